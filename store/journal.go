package store

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Journal records one session's terminal. Each call writes its frames with one
// write(2) before it returns, so that they survive kill -9 of the process;
// power loss may take the last second. Full files are packed by a goroutine
// beside. A journal that failed once stays failed: a gap would be a lie.
//
// All methods may be called from many goroutines; frames are in the order of
// the calls.
type Journal struct {
	store   *Store
	session string
	dir     string
	lock    *os.File // held exclusively: one writer per session
	began   time.Time
	opened  time.Time     // has a monotonic reading
	offset  time.Duration // of opened from began

	pack     chan struct{} // holds one: there is a full file, or something to sync
	stop     context.CancelFunc
	packed   sync.WaitGroup
	capacity *sync.Cond // on mu: a file was packed, or the journal failed

	mu     sync.Mutex // held across the write: the order of frames is the point
	f      *os.File   // guarded by mu; nil once closed
	number uint32     // guarded by mu; of f
	size   int64      // guarded by mu; bytes of f that are whole frames
	key    int64      // guarded by mu; bytes of f that are a keyframe
	frames int        // guarded by mu; in f
	ms     uint64     // guarded by mu; of the last frame
	first  uint32     // guarded by mu; the first file that isn't packed
	dirty  bool       // guarded by mu; written since the last sync
	err    error      // guarded by mu; what made it fail
	buf    []byte     // guarded by mu
}

const (
	rotateAt   = 1 << 20 // bytes of a file, beside its keyframe, that make it full
	unpacked   = 8       // full files that may wait; then output waits, and with it the agent
	terminal   = "terminal"
	journalFmt = "%06d"
)

// Journal opens a session's terminal journal for writing. What an earlier
// writer left is taken up: a torn last frame, which was never acknowledged, is
// cut off, and time goes on. It fails while another process writes it.
func (s *Store) Journal(session string) (*Journal, error) {
	j, err := s.openJournal(session)
	if err != nil {
		return nil, fmt.Errorf("cannot open the terminal journal of session %.80q: %w", session, fileFault(s.dir, err))
	}
	return j, nil
}

func (s *Store) openJournal(session string) (_ *Journal, err error) {
	if s.readonly {
		return nil, ErrReadOnly
	}
	// The chunks' rows need the session's.
	if _, err := s.Doc(context.Background(), session, KindSession, 0); err != nil {
		return nil, err
	}
	dir := filepath.Join(s.SessionDir(session), terminal)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, unlock(lock))
		}
	}()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, fmt.Errorf("another process writes it: %w", err)
	}
	j := &Journal{store: s, session: session, dir: dir, lock: lock, pack: make(chan struct{}, 1)}
	j.capacity = sync.NewCond(&j.mu)
	if err := j.recover(); err != nil {
		return nil, err
	}
	if err := j.start(j.number); err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	j.stop = stop
	j.packed.Go(func() { j.packer(ctx) })
	j.wake()
	return j, nil
}

// start begins file number n, and the one that it is packed into: there may be no
// inodes left by then. The caller holds mu or has j alone.
func (j *Journal) start(n uint32) error {
	packed, err := os.OpenFile(j.chunk(n)+unfinished, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	err = packed.Close()
	var f *os.File
	if err == nil {
		f, err = os.OpenFile(j.raw(n), os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o600)
	}
	if err != nil {
		return errors.Join(err, os.Remove(packed.Name()))
	}
	h := appendHeader(nil, j.began, n)
	if _, err := f.Write(h); err != nil {
		return errors.Join(err, f.Close(), j.drop(n))
	}
	j.f, j.number, j.size, j.key, j.frames = f, n, int64(len(h)), 0, 0
	return nil
}

// drop removes a file in which nothing is.
func (j *Journal) drop(n uint32) error {
	_ = os.Remove(j.chunk(n) + unfinished) // one that stays takes an inode
	return os.Remove(j.raw(n))
}

func (j *Journal) raw(n uint32) string { return rawName(j.dir, n) }

// damaged is where what isn't part of the record is set aside, for people.
func (j *Journal) damaged(n uint32) string {
	return filepath.Join(j.dir, fmt.Sprintf(journalFmt+".damaged", n))
}
func (j *Journal) chunk(n uint32) string { return filepath.Join(j.dir, chunkName(n)) }
func chunkName(n uint32) string          { return fmt.Sprintf(journalFmt+".zst", n) }

// Fresh says whether a file begins with the next frame, which should then be a
// keyframe.
func (j *Journal) Fresh() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.f != nil && j.err == nil && j.frames == 0
}

// Keyframe records what all frames so far made of the terminal: its size, and bytes
// that draw it on an empty one. One that is larger than KeyMost isn't recorded: who
// reads begins with an earlier one.
func (j *Journal) Keyframe(cols, rows int, data []byte) error {
	if len(data) > KeyMost {
		return nil
	}
	if err := checkSize(cols, rows); err != nil {
		return err
	}
	return j.add(FrameKey, append(appendResize(nil, cols, rows), data...))
}

// KeyMost is how many bytes a keyframe may have.
const KeyMost = frameMost - 2*binary.MaxVarintLen64

func rawName(dir string, n uint32) string {
	return filepath.Join(dir, fmt.Sprintf(journalFmt+".raw", n))
}

// Output records what the agent printed. p is only used during the call.
func (j *Journal) Output(p []byte) error {
	for len(p) > frameMost {
		if err := j.add(FrameOutput, p[:frameMost]); err != nil {
			return err
		}
		p = p[frameMost:]
	}
	if len(p) == 0 {
		return nil
	}
	return j.add(FrameOutput, p)
}

// Resize records the terminal's size from here on.
func (j *Journal) Resize(cols, rows int) error {
	if err := checkSize(cols, rows); err != nil {
		return err
	}
	return j.add(FrameResize, appendResize(nil, cols, rows))
}

func checkSize(cols, rows int) error {
	if cols < 0 || rows < 0 || cols > 1<<16 || rows > 1<<16 {
		return fmt.Errorf("cannot record a terminal of %d×%d", cols, rows)
	}
	return nil
}

func (j *Journal) add(kind FrameKind, data []byte) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	for j.err == nil && j.f != nil && j.number-j.first > unpacked {
		j.capacity.Wait()
	}
	switch {
	case j.err != nil:
		return j.err
	case j.f == nil:
		return fmt.Errorf("cannot record the terminal of session %s: %w", j.session, ErrClosed)
	}
	ms := max(uint64((j.offset + time.Since(j.opened)).Milliseconds()), j.ms)
	delta := ms - j.ms
	if j.frames == 0 {
		delta = ms // every file counts from the beginning
	}
	j.buf = appendFrame(j.buf[:0], kind, delta, data, j.number)
	if n, err := j.f.Write(j.buf); err != nil {
		if n > 0 { // nothing half stays behind
			err = errors.Join(err, j.f.Truncate(j.size))
		}
		return j.failed(err)
	}
	j.ms, j.size, j.frames = ms, j.size+int64(len(j.buf)), j.frames+1
	if kind == FrameKey {
		j.key += int64(len(j.buf))
	}
	if cap(j.buf) > 256<<10 {
		j.buf = nil // one large frame shouldn't hold its memory for ever
	}
	if !j.dirty {
		j.dirty = true
		j.wake()
	}
	if j.size-j.key >= rotateAt {
		return j.rotate()
	}
	return nil
}

// rotate goes on in a new file and leaves the full one to the packer. The
// caller holds mu.
func (j *Journal) rotate() error {
	full := j.f
	if err := j.start(j.number + 1); err != nil {
		return j.failed(err)
	}
	if err := full.Close(); err != nil {
		return j.failed(err)
	}
	j.wake()
	return nil
}

// failed keeps the first error for all later calls. The caller holds mu.
func (j *Journal) failed(err error) error {
	if j.err == nil {
		j.err = fmt.Errorf("cannot record the terminal of session %s: %w", j.session, fileFault(j.store.dir, err))
		j.capacity.Broadcast()
	}
	return j.err
}

// wake tells the packer that there is something to do.
func (j *Journal) wake() {
	select {
	case j.pack <- struct{}{}:
	default: // it looks at everything each time
	}
}

// Close packs what was recorded, so that the chain covers all of it, and lets
// go of the journal. It returns the error that made the journal fail, if one
// did: what was whole by then is packed all the same. Calls afterwards fail.
func (j *Journal) Close() error {
	j.mu.Lock()
	if j.f == nil {
		defer j.mu.Unlock()
		return j.err
	}
	f, last, empty := j.f, j.number, j.frames == 0
	j.f = nil
	j.capacity.Broadcast()
	j.mu.Unlock()

	j.stop()
	j.packed.Wait()
	err := f.Close()
	if empty {
		err = errors.Join(err, j.drop(last))
		last--
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if err == nil {
		for ; j.first <= last && err == nil; j.first++ {
			err = j.packOne(context.Background(), j.first)
		}
	}
	if err != nil {
		_ = j.failed(err) // returned below
	}
	if err := unlock(j.lock); err != nil {
		_ = j.failed(err)
	}
	return j.err
}
