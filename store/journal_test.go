package store

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"stepbox/session/e2e/must"
)

func openJournal(t testing.TB, s *Store, id string) *Journal {
	t.Helper()
	j, err := s.Journal(id)
	must.OK(t, err)
	t.Cleanup(func() { _ = j.Close() }) // tests that care have closed it
	return j
}

// frames copies all frames of a journal.
func frames(t testing.TB, s *Store, id string) []Frame {
	t.Helper()
	var fs []Frame
	for f, err := range s.ReadJournal(id) {
		must.OK(t, err)
		f.Data = bytes.Clone(f.Data)
		fs = append(fs, f)
	}
	return fs
}

// A file of the journal has the inode that it is packed into: there may be none left
// by the time that it is full.
func TestJournalPacksWithoutANewInode(t *testing.T) {
	s := open(t)
	id := session(t, s, "aaaaaaaa")
	j := openJournal(t, s, id)
	kept, err := os.Stat(j.chunk(1) + unfinished)
	must.OK(t, err)
	must.OK(t, j.Output([]byte("hello")), j.Close())
	if packed, err := os.Stat(j.chunk(1)); err != nil || !os.SameFile(kept, packed) {
		t.Errorf("it is packed into a new file: %v", err)
	}
	left, err := os.ReadDir(j.dir)
	if err != nil || len(left) != 2 { // and the lock
		t.Errorf("left are %v, %v", left, err)
	}
	j = openJournal(t, s, id) // and nothing is printed
	must.OK(t, j.Close())
	if again, err := os.ReadDir(j.dir); err != nil || len(again) != 2 {
		t.Errorf("left by nothing are %v, %v", again, err)
	}
}

func TestJournal(t *testing.T) {
	s := open(t)
	id := session(t, s, "aaaaaaaa")
	if fs := frames(t, s, id); len(fs) != 0 {
		t.Errorf("%d frames of no journal", len(fs))
	}
	j := openJournal(t, s, id)
	if fs := frames(t, s, id); len(fs) != 0 {
		t.Errorf("%d frames of an empty journal", len(fs))
	}
	steps := []error{
		j.Resize(80, 24), j.Output([]byte("hello\x1b[0m")), j.Output(nil), j.Resize(120, 35),
		j.Output(bytes.Repeat([]byte("y"), 2*frameMost+5)),
	}
	must.OK(t, errors.Join(steps...))
	check := func(when string) {
		t.Helper()
		fs := frames(t, s, id)
		if len(fs) != 6 || fs[0].Cols != 80 || fs[0].Rows != 24 || string(fs[1].Data) != "hello\x1b[0m" ||
			fs[2].Cols != 120 || len(fs[3].Data) != frameMost || len(fs[5].Data) != 5 {
			t.Errorf("%s: %d frames %.200v", when, len(fs), fs)
		}
	}
	check("while it is written")
	for _, e := range []error{j.Resize(-1, 2), j.Resize(1, 1<<20)} {
		if e == nil {
			t.Error("nonsense was recorded")
		}
	}
	must.OK(t, j.Close())
	check("when it is closed")
	if err := j.Output([]byte("late")); !errors.Is(err, ErrClosed) {
		t.Errorf("Output after Close = %v", err)
	}
	verify(t, s, id)
	// Reopened, it goes on, and so does its time.
	before := frames(t, s, id)
	j = openJournal(t, s, id)
	must.OK(t, j.Output([]byte("again")), j.Close())
	after := frames(t, s, id)
	if len(after) != 7 || string(after[6].Data) != "again" || after[6].At < before[5].At {
		t.Errorf("after it was reopened: %d frames", len(after))
	}
	// Opened and closed without a frame, nothing changes.
	must.OK(t, openJournal(t, s, id).Close())
	if fs := frames(t, s, id); len(fs) != 7 {
		t.Errorf("%d frames", len(fs))
	}
	verify(t, s, id)
}

// Output from several goroutines fills many files; a reader beside sees a
// prefix at any time; at the end all of it is there, packed and in the chain.
func TestJournalRotates(t *testing.T) {
	s := open(t)
	id := session(t, s, "aaaaaaaa")
	j := openJournal(t, s, id)
	const writers, each, size = 3, 120, 40 << 10
	noise := make([]byte, size)
	rng := rand.New(rand.NewPCG(3, 4))
	for i := range noise {
		noise[i] = byte(rng.Uint32())
	}
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			p := bytes.Clone(noise)
			for i := range each {
				p[0], p[1] = byte(w), byte(i)
				if err := j.Output(p); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	stop := make(chan struct{})
	var reader sync.WaitGroup
	reader.Go(func() {
		last := 0
		for {
			n := len(frames(t, s, id))
			if n < last {
				t.Errorf("%d frames after %d", n, last)
			}
			last = n
			select {
			case <-stop:
				return
			default:
			}
		}
	})
	wg.Wait()
	close(stop)
	reader.Wait()
	must.OK(t, j.Close())
	var next [writers]int
	for _, f := range frames(t, s, id) {
		w := f.Data[0]
		if int(f.Data[1]) != next[w] || len(f.Data) != size {
			t.Fatalf("writer %d: frame %d follows on %d", w, f.Data[1], next[w])
		}
		next[w]++
	}
	if next != [writers]int{each, each, each} {
		t.Errorf("frames %v", next)
	}
	docs, err := s.Docs(t.Context(), id, KindChunk, 0, 0)
	if err != nil || len(docs) < 13 {
		t.Errorf("%d chunks, %v", len(docs), err)
	}
	if raw, err := filepath.Glob(filepath.Join(j.dir, "*.raw")); err != nil || len(raw) != 0 {
		t.Errorf("raw files left: %v, %v", raw, err)
	}
	verify(t, s, id)
}

// When files can't be packed, output waits rather than filling the disk with
// raw files, and goes on when they can.
func TestJournalIsBounded(t *testing.T) {
	s := open(t)
	id := session(t, s, "aaaaaaaa")
	j := openJournal(t, s, id)
	c, err := s.keep.db.Conn(t.Context())
	must.OK(t, err)
	defer c.Close()
	if _, err := c.ExecContext(t.Context(), `BEGIN IMMEDIATE`); err != nil { // no row can be written
		t.Fatal(err)
	}
	const total = 2 * unpacked
	wrote := make(chan error, 1)
	go func() {
		for range total {
			if err := j.Output(make([]byte, frameMost)); err != nil {
				wrote <- err
				return
			}
		}
		wrote <- nil
	}()
	raws := func() int { return len(must.Get(filepath.Glob(filepath.Join(j.dir, "*.raw")))) }
	for deadline := time.Now().Add(2 * time.Minute); raws() < unpacked+2 && time.Now().Before(deadline); {
		<-time.After(time.Millisecond) // nothing tells of a file that was made
	}
	select {
	case err := <-wrote:
		t.Fatalf("output didn't wait: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	if n := raws(); n != unpacked+2 {
		t.Errorf("%d raw files", n)
	}
	if _, err := c.ExecContext(t.Context(), `ROLLBACK`); err != nil {
		t.Fatal(err)
	}
	must.OK(t, <-wrote, j.Close())
	if fs := frames(t, s, id); len(fs) != total {
		t.Errorf("%d frames", len(fs))
	}
	verify(t, s, id)
}

// What kill -9 may leave at each moment of packing is taken up.
func TestJournalPackingInterrupted(t *testing.T) {
	for _, tt := range []struct {
		name  string
		leave func(t *testing.T, s *Store, j *Journal, raw []byte)
	}{
		{"before it began", func(*testing.T, *Store, *Journal, []byte) {}},
		{"half of the packed file", func(t *testing.T, _ *Store, j *Journal, _ []byte) {
			write(t, j.chunk(1)+".tmp", []byte("half"))
		}},
		{"before the row", func(t *testing.T, _ *Store, j *Journal, raw []byte) {
			write(t, j.chunk(1), must.Get(compress(raw)))
		}},
		{"after the row", func(t *testing.T, _ *Store, j *Journal, raw []byte) {
			must.OK(t, j.packOne(context.Background(), 1))
			write(t, j.raw(1), raw)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := open(t)
			id := session(t, s, "aaaaaaaa")
			j := openJournal(t, s, id)
			must.OK(t, j.Output([]byte("one")))
			raw := must.Get(os.ReadFile(j.raw(1)))
			must.OK(t, j.Close())
			// Another session's journal is made to look like a killed one's.
			id = session(t, s, "bbbbbbbb")
			must.OK(t, os.MkdirAll(filepath.Join(s.SessionDir(id), terminal), 0o700))
			left := &Journal{store: s, session: id, dir: filepath.Join(s.SessionDir(id), terminal)}
			write(t, left.raw(1), raw)
			tt.leave(t, s, left, raw)
			if fs := frames(t, s, id); len(fs) != 1 || string(fs[0].Data) != "one" {
				t.Errorf("before it is taken up: %v", fs)
			}
			j = openJournal(t, s, id)
			must.OK(t, j.Output([]byte("two")), j.Close())
			if fs := frames(t, s, id); len(fs) != 2 || string(fs[0].Data) != "one" || string(fs[1].Data) != "two" {
				t.Errorf("after it was taken up: %v", fs)
			}
			if docs, err := s.Docs(t.Context(), id, KindChunk, 0, 0); err != nil || len(docs) != 2 {
				t.Errorf("%d chunks, %v", len(docs), err)
			}
			verify(t, s, id)
		})
	}
}

// A journal cut anywhere in its last frames gives all whole frames and goes on;
// one that was overwritten says so, and loses nothing before.
func TestJournalTail(t *testing.T) {
	s := open(t)
	id := session(t, s, "aaaaaaaa")
	j := openJournal(t, s, id)
	for _, p := range []string{"one", "two", "three"} {
		must.OK(t, j.Output([]byte(p)))
	}
	raw := must.Get(os.ReadFile(j.raw(1)))
	must.OK(t, j.Close())
	var ends []int // of the header and of each frame
	p := parser{b: raw[headerSize:], number: 1}
	for err := error(nil); err == nil; _, err = p.next() {
		ends = append(ends, headerSize+p.off)
	}
	id = session(t, s, "bbbbbbbb")
	dir := filepath.Join(s.SessionDir(id), terminal)
	file := filepath.Join(dir, "000001.raw")
	for cut := range raw {
		must.OK(t, os.RemoveAll(dir))
		must.OK(t, os.Mkdir(dir, 0o700))
		write(t, file, raw[:cut])
		whole := 0
		for _, e := range ends[1:] {
			if cut >= e {
				whole++
			}
		}
		if fs := frames(t, s, id); len(fs) != whole {
			t.Fatalf("cut at %d: %d frames of %d", cut, len(fs), whole)
		}
		if cut%9 != 0 {
			continue // taking up is slower than reading
		}
		left := &Journal{store: s, session: id, dir: dir}
		if err := left.recover(); err != nil {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		if fs := frames(t, s, id); len(fs) != whole || (whole > 0) != (left.number == 2) {
			t.Fatalf("cut at %d and taken up: %d frames of %d, next file %d", cut, len(fs), whole, left.number)
		}
	}
	// Overwritten in its second frame, as by a disk that lost power.
	bad := bytes.Clone(raw)
	clear(bad[ends[1]:])
	write(t, file, bad)
	n := 0
	for _, err := range s.ReadJournal(id) {
		if err != nil {
			if !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Error(err)
			}
			break
		}
		n++
	}
	if n != 1 {
		t.Errorf("%d frames before the damage", n)
	}
	must.OK(t, (&Journal{store: s, session: id, dir: dir}).recover())
	if kept := must.Get(os.ReadFile(filepath.Join(dir, "000001.damaged"))); !bytes.Equal(kept, bad[ends[1]:]) {
		t.Errorf("%d bytes of the damaged end were kept", len(kept))
	}
	if fs := frames(t, s, id); len(fs) != 1 {
		t.Errorf("%d frames", len(fs))
	}
}

// A journal is tampered with after its supervisor has gone: each way is found.
func TestJournalTampered(t *testing.T) {
	for _, tt := range []struct {
		name   string
		tamper func(t *testing.T, j *Journal)
		read   bool // reading finds it too
	}{
		{"changed", func(t *testing.T, j *Journal) {
			raw := must.Get(unpack(j.chunk(1), Hash{}, false))
			i := bytes.Index(raw, []byte("rm -rf"))
			p := parser{b: raw[headerSize:], number: 1}
			if _, err := p.next(); err != nil {
				t.Fatal(err)
			}
			frame := raw[headerSize : headerSize+p.off]
			copy(raw[i:], "ls -la")
			forged := appendFrame(nil, FrameOutput, 0, []byte("ls -la"), 1) // with a good checksum
			copy(frame[len(frame)-4:], forged[len(forged)-4:])
			write(t, j.chunk(1), must.Get(compress(raw)))
		}, true},
		{"removed", func(t *testing.T, j *Journal) {
			must.OK(t, os.Remove(j.chunk(2)))
		}, true},
		{"swapped", func(t *testing.T, j *Journal) {
			one, two := must.Get(os.ReadFile(j.chunk(1))), must.Get(os.ReadFile(j.chunk(2)))
			write(t, j.chunk(1), two)
			write(t, j.chunk(2), one)
		}, true},
		{"added", func(t *testing.T, j *Journal) {
			write(t, j.chunk(3), must.Get(compress(appendFrame(appendHeader(nil, time.Now(), 3), FrameOutput, 0, []byte("x"), 3))))
		}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := open(t)
			id := session(t, s, "aaaaaaaa")
			for range 2 {
				j := openJournal(t, s, id)
				must.OK(t, j.Output([]byte("rm -rf")), j.Close())
			}
			verify(t, s, id)
			tt.tamper(t, &Journal{dir: filepath.Join(s.SessionDir(id), terminal)})
			if err := s.Verify(t.Context(), id); !errors.Is(err, ErrTampered) {
				t.Errorf("Verify = %v", err)
			}
			var err error
			for _, e := range s.ReadJournal(id) {
				err = e
			}
			if (err != nil) != tt.read {
				t.Errorf("ReadJournal = %v", err)
			}
		})
	}
}

// Raw files that are put where a chunk is recorded, or behind what nothing more is printed
// in, aren't taken for output, and are told; nor does who goes on with the session record them.
func TestRawAdded(t *testing.T) {
	fact := func(kind Kind, event, doc string) Fact { return Fact{Kind: kind, Event: event, Doc: []byte(doc)} }
	ended, after := fact(KindSession, "session.ended", `{"state":"ended"}`), fact(KindSeal, "sealed", `{"of":2,"by":"after"}`)
	going, counted := fact(KindSeal, "sealed", `{"of":2,"by":"going"}`), fact(KindSession, "session.counted", `{"state":"running"}`)
	resumed := fact(KindSession, "session.resumed", `{"state":"running"}`)
	for name, c := range map[string]struct {
		facts []Fact
		goes  bool // it goes on: then a file behind it is its own
	}{
		"ended":                  {[]Fact{ended}, false},
		"killed, and sealed":     {[]Fact{after}, false},
		"... and applied":        {[]Fact{after, fact(KindApply, "apply.done", `{}`), counted}, false},
		"killed":                 {[]Fact{going}, true},
		"resumed":                {[]Fact{after, counted, resumed}, true},
		"resumed, and goes on":   {[]Fact{after, resumed, going}, true},
		"resumed after its end":  {[]Fact{ended, fact(KindSeal, "sealed", `{"of":3,"by":"final"}`), resumed}, true},
		"killed, before a seal":  {nil, true},
		"resumed, killed, found": {[]Fact{after, resumed, going, fact(KindSeal, "sealed", `{"of":4,"by":"after"}`)}, false},
	} {
		for n := uint32(1); n <= 2; n++ {
			if c.goes && n == 2 {
				continue
			}
			s := open(t)
			id := session(t, s, "aaaaaaaa")
			j := openJournal(t, s, id)
			must.OK(t, j.Output([]byte("deed")), j.Close())
			for i, f := range c.facts {
				f.Key = map[Kind]int64{KindSeal: int64(i + 1), KindApply: 1}[f.Kind]
				appendFacts(t, s, id, f)
			}
			verify(t, s, id)
			said := func(when string) {
				if fs := frames(t, s, id); len(fs) != 1 || string(fs[0].Data) != "deed" {
					t.Errorf("%s: %d: %s: %v", name, n, when, fs)
				}
				if err := s.Verify(t.Context(), id); !errors.Is(err, ErrTampered) {
					t.Errorf("%s: %d: %s: Verify = %v", name, n, when, err)
				}
			}
			if c.goes {
				write(t, j.raw(2), appendFrame(appendHeader(nil, time.Now(), 2), FrameOutput, 0, []byte("more"), 2))
				if fs := frames(t, s, id); len(fs) != 2 {
					t.Errorf("%s: %v", name, fs)
				}
				verify(t, s, id)
				continue
			}
			write(t, j.raw(n), appendFrame(appendHeader(nil, time.Now(), n), FrameOutput, 0, []byte("fine"), n))
			said("added")
			must.OK(t, openJournal(t, s, id).Close())
			said("taken up")
		}
	}
}

func TestReadJournalOfNobody(t *testing.T) {
	s := open(t)
	for f, err := range s.ReadJournal("../../etc") {
		if !errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), "no session") {
			t.Errorf("%v, %v", f, err)
		}
	}
}

func write(t testing.TB, p string, b []byte) {
	t.Helper()
	must.OK(t, os.WriteFile(p, b, 0o600))
}

// TestStrangersBesideJournal puts files beside a journal whose names are numbers, and
// not as its own are written.
func TestStrangersBesideJournal(t *testing.T) {
	s := open(t)
	id := session(t, s, "aaaaaaaa")
	j := openJournal(t, s, id)
	for _, name := range []string{"00000009.raw", "2.raw", "+00003.raw", "0000000.zst"} {
		write(t, filepath.Join(j.dir, name), []byte("no frames"))
	}
	must.OK(t, j.Output([]byte("deed")), j.Close())
	again := openJournal(t, s, id)
	if err := errors.Join(again.Output([]byte("more")), again.Close()); err != nil {
		t.Errorf("going on: %v", err)
	}
	if fs := frames(t, s, id); len(fs) != 2 || string(fs[1].Data) != "more" {
		t.Errorf("read: %v", fs)
	}
	verify(t, s, id)
}
