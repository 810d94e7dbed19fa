package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// Recording is the record of a session's terminal as it was when it was opened; of
// a live session what is printed later may be in it or not. It holds no file open
// and is safe for concurrent use.
type Recording struct {
	store   *Store
	session string
	dir     string
	chunks  map[uint32]chunk // what is recorded of the packed files
	files   []journalFile
}

// Lead is how long after its session, which began when it is told, the time of its frames
// counts from, in whole milliseconds; 0 when there is no file that says so. It reads the
// beginning of one file, whose own sum it checks.
func (r *Recording) Lead(session time.Time) time.Duration {
	for _, f := range r.files {
		if began, err := r.began(f); err == nil {
			return began.Sub(session).Truncate(time.Millisecond)
		}
	}
	return 0
}

func (r *Recording) began(f journalFile) (began time.Time, err error) {
	name := filepath.Join(r.dir, chunkName(f.number))
	if f.raw {
		name = rawName(r.dir, f.number)
	}
	file, err := os.OpenFile(name, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return began, err
	}
	defer file.Close()
	var from io.Reader = file
	if !f.raw {
		dec, err := unpacker(file)
		if err != nil {
			return began, err
		}
		defer dec.Close()
		from = dec
	}
	header := make([]byte, headerSize)
	if _, err := io.ReadFull(from, header); err != nil {
		return began, err
	}
	return parseHeader(header, f.number)
}

// Recording opens the record of a session's terminal. A session without one has an
// empty one.
func (s *Store) Recording(ctx context.Context, session string) (*Recording, error) {
	fail := func(err error) (*Recording, error) {
		return nil, fmt.Errorf("cannot read the terminal journal of session %.80q: %w", session, err)
	}
	if err := checkID(session); err != nil {
		return fail(err)
	}
	r := &Recording{store: s, session: session, dir: filepath.Join(s.SessionDir(session), terminal)}
	var err error
	if r.files, r.chunks, _, err = s.journalFiles(ctx, session); err != nil {
		return fail(err)
	}
	return r, nil
}

// Length is when its last frame is from.
func (r *Recording) Length() time.Duration {
	for i := len(r.files) - 1; i >= 0; i-- {
		if c, ok := r.chunks[r.files[i].number]; ok {
			return time.Duration(c.ToMS) * time.Millisecond
		}
		if p, err := r.open(i); err == nil {
			_ = p.end() // what is damaged there has no time
			if p.frames > 0 {
				return time.Duration(p.ms) * time.Millisecond
			}
		}
	}
	return 0
}

// Files lists its files by number, and says which of them won't get longer any more.
func (r *Recording) Files() (numbers []int64, packed []bool) {
	for _, f := range r.files {
		numbers, packed = append(numbers, int64(f.number)), append(packed, !f.raw)
	}
	return numbers, packed
}

// File yields one of its files, from its keyframe on if it has one.
func (r *Recording) File(number int64) iter.Seq2[Frame, error] {
	return func(yield func(Frame, error) bool) {
		lost := false
		for i, f := range r.files {
			if int64(f.number) == number {
				if more, err := r.playFile(i, nil, true, &lost, yield); err != nil && more {
					yield(Frame{}, r.damaged(err))
				}
			}
		}
	}
}

// Lost is a part of a recording that can't be read.
type Lost struct {
	From, To time.Duration
	Why      string
}

// Lost lists the packed files that are missing or of another size than was recorded,
// in order. It reads none of them: what was changed in one is found when that is read.
func (r *Recording) Lost() []Lost {
	var out []Lost
	for _, n := range slices.Sorted(maps.Keys(r.chunks)) {
		c, why := r.chunks[n], ""
		info, err := os.Lstat(filepath.Join(r.dir, c.File))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			why = "is missing"
		case err != nil:
			why = "can't be read"
		case info.Size() != c.Packed:
			why = fmt.Sprintf("has %d bytes instead of %d", info.Size(), c.Packed)
		default:
			continue
		}
		out = append(out, Lost{
			From: time.Duration(c.FromMS) * time.Millisecond, To: time.Duration(c.ToMS) * time.Millisecond,
			Why: fmt.Sprintf("file %d %s", n, why),
		})
	}
	return out
}

// From yields what makes the terminal as it was at a time: first the newest keyframe
// by then, if there is one, or else what came first, on an empty terminal; and all
// that came after it. Where the record is damaged there is an error that wraps
// io.ErrUnexpectedEOF, and for who reads on the next keyframe, if there is one, and
// what came after that. It holds one file, about 1 MiB, at a time.
func (r *Recording) From(at time.Duration) iter.Seq2[Frame, error] {
	return func(yield func(Frame, error) bool) {
		first, open := r.before(at)
		r.play(first, open, yield)
	}
}

// before finds the last file that begins with a keyframe from a time or before, and
// opens it. Without one it is the first.
func (r *Recording) before(at time.Duration) (first int, open *parser) {
	for i := len(r.files) - 1; i > 0; i-- {
		if c, ok := r.chunks[r.files[i].number]; ok && (!c.Key || time.Duration(c.FromMS)*time.Millisecond > at) {
			continue
		}
		p, err := r.open(i)
		if err != nil {
			continue // it is damaged, which is told when that is read
		}
		begin := *p
		if f, err := begin.next(); err == nil && f.Kind == FrameKey && f.At <= at {
			return i, p
		}
	}
	return 0, nil
}

// open reads a file whose frames are parsed then.
func (r *Recording) open(i int) (*parser, error) {
	raw, _, err := r.store.readJournalFile(r.dir, r.files[i], r.chunks)
	if err != nil {
		return nil, err
	}
	return &parser{b: raw[headerSize:], number: r.files[i].number}, nil
}

// play yields the frames of a file, which may be open, and of those after it, with the
// keyframes of the first file and of those after damage.
func (r *Recording) play(first int, open *parser, yield func(Frame, error) bool) {
	lost := first > 0 // what the terminal was before the next frame
	next := uint32(1)
	if first > 0 {
		next = r.files[first].number
	}
	for i := first; i < len(r.files); i++ {
		n := r.files[i].number
		if n != next {
			lost = true
			if !yield(Frame{}, r.damaged(fmt.Errorf("file %d is missing: %w", next, io.ErrUnexpectedEOF))) {
				return
			}
		}
		next = n + 1
		more, err := r.playFile(i, open, i == first, &lost, yield)
		open = nil
		if err != nil {
			lost = true
			more = yield(Frame{}, r.damaged(err))
		}
		if !more {
			return
		}
	}
	if _, gone := r.chunks[next]; gone {
		yield(Frame{}, r.damaged(fmt.Errorf("file %d is missing: %w", next, io.ErrUnexpectedEOF)))
	}
}

func (r *Recording) damaged(err error) error {
	return fmt.Errorf("cannot read the terminal journal of session %.80q: %w", r.session, err)
}

// playFile yields a file's frames, or none if they need what is lost. A keyframe is
// yielded where the reading begins and after what is lost. More is false when the
// reader has enough.
func (r *Recording) playFile(i int, p *parser, begin bool, lost *bool, yield func(Frame, error) bool) (more bool, err error) {
	n, torn := r.files[i].number, false
	if p == nil {
		p, err = r.open(i)
	}
	if i == len(r.files)-1 && r.files[i].raw {
		torn = true // where its writer was stopped
		if errors.Is(err, errTorn) {
			return true, nil
		}
	}
	if err != nil {
		return true, fmt.Errorf("file %d: %w: %w", n, io.ErrUnexpectedEOF, err)
	}
	for {
		f, err := p.next()
		switch {
		case errors.Is(err, io.EOF) || torn && errors.Is(err, errTorn):
			return true, nil
		case err != nil:
			return true, fmt.Errorf("file %d at byte %d: %w: %w", n, headerSize+p.off, io.ErrUnexpectedEOF, err)
		case *lost && f.Kind != FrameKey:
			return true, nil
		case f.Kind == FrameKey && !*lost && !begin:
			continue // it says what the frames before it made
		case !yield(f, nil):
			return false, nil
		}
		*lost = false
	}
}
