package restore

import (
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"stepbox/runner/overlay/manifest"
	"stepbox/runner/overlay/scan"
	"stepbox/runner/overlay/watch"
)

// However files are changed, by one or by many at once: a scan of what the watcher
// calls dirty finds what a scan of everything does. Scans also run while files are
// written, so that they take in what was told too late, and only the next has it.
// What files with several names hide is found by the next full scan in any case.
// With -rapid.checks=3000 it takes long.
func TestDirtyProperty(t *testing.T) {
	for name, place := range places(t) {
		t.Run(name, func(t *testing.T) {
			h := startHelper(t)
			sure := 0
			rapid.Check(t, func(rt *rapid.T) { sure += dirtyHistory(t, rt, h, place) })
			if sure == 0 {
				t.Error("the watcher was never sure")
			}
		})
	}
}

// dirtyHistory gives how many scans there were of what is dirty alone.
func dirtyHistory(t *testing.T, rt *rapid.T, h *helper, place string) (sure int) {
	s := newSession(t, h, place, func(lower string) {
		fillLower(rt, lower)
		must(t, filepath.WalkDir(lower, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() { // an ordinary user has to get in
				return os.Chmod(path, 0o755)
			}
			if err == nil && d.Type() == fs.ModeNamedPipe { // os.RemoveAll waits for FIFOs
				return os.Remove(path)
			}
			return nil
		}))
	})
	defer s.close()
	w, err := watch.New(s.q.Upper, func() {})
	must(t, err)
	defer func() { must(t, w.Close()) }()
	s.scan()
	links := rapid.Bool().Draw(rt, "links")
	look := func() (o scan.Options) {
		if dirs, ok := w.Dirty(); ok {
			o.Dirty = append([]string{}, dirs...)
		}
		return o
	}
	certain := true // no look failed since the last full one
	for range rapid.IntRange(2, 6).Draw(rt, "rounds") {
		muts := rapid.SliceOfN(genMutation, 0, 12).Draw(rt, "muts")
		muts = slices.DeleteFunc(muts, func(m mutation) bool { return m.Op == "fifo" || m.Op == "link" && !links })
		storm := s.with("storm")
		storm.Half = links
		stormy := rapid.Bool().Draw(rt, "stormy")
		storm.Path = strconv.FormatUint(rapid.Uint64().Draw(rt, "seed"), 10)
		mutate := s.with("mutate")
		mutate.Muts = muts
		done := make(chan error, 1)
		var errs []string
		go func() {
			r, err := s.h.call(mutate)
			if errs = r.Errs; err == nil && stormy {
				_, err = s.h.call(storm)
			}
			done <- err
		}()
		racing := rapid.IntRange(0, 4).Draw(rt, "racing")
		if stormy && place == shm { // nothing tells of a store through a mapping there that comes after a scan
			racing = 0
		}
		for ; racing > 0; racing-- {
			o := look()
			if !certain {
				o.Dirty = nil
			}
			_, _, err := s.scanner.Scan(bg, o)
			certain = err == nil
		}
		must(t, <-done)
		o := look()
		if !certain {
			o.Dirty = nil
		}
		if o.Dirty != nil {
			sure++
		}
		before := s.scanner.Last()
		moved, err := s.scanner.Moved(bg, o)
		must(t, err)
		got, _, err := s.scanner.Scan(bg, o)
		must(t, err)
		certain = true
		if links {
			got = s.scan()
		}
		fresh, err := scan.New(s.q.Upper, nil, s.h.open(bg, s.q.Upper))
		must(t, err)
		want, _, err := fresh.Scan(bg, scan.Options{})
		must(t, err, fresh.Close())
		if diff := explainManifests(want, got); diff != "" {
			rt.Fatalf("looking at %q, a scan found other than one from scratch:\n%s\nafter %v %v, storm %s", o.Dirty, diff, muts, errs, storm.Path)
		}
		if diff := explainManifests(want, before); !moved && !links && diff != "" {
			rt.Fatalf("looking at %q, nothing was said to have moved:\n%s\nafter %v %v, storm %s", o.Dirty, diff, muts, errs, storm.Path)
		}
	}
	return sure
}

// storm has several change the files below a directory at once, in all ways there
// are of writing to them. All files are closed in the end.
func storm(top, seed string, links bool) error {
	n, err := strconv.ParseUint(seed, 10, 64)
	if err != nil {
		return err
	}
	var all sync.WaitGroup
	for i := range uint64(3) {
		x := &stormer{top: top, links: links, rnd: rand.New(rand.NewPCG(n, i))}
		all.Go(x.run)
	}
	all.Wait()
	return nil
}

type stormer struct {
	top string
	rnd *rand.Rand
	// Files may get more than one name.
	links bool
	// What is held open while other things happen.
	open   []*os.File
	mapped [][]byte
}

func (x *stormer) path() string {
	parts := make([]string, 1+x.rnd.IntN(4))
	for i := range parts {
		parts[i] = []string{"dir", "sub", "a", "b", "c"}[x.rnd.IntN(5)]
	}
	return filepath.Join(x.top, filepath.Join(parts...))
}

func (x *stormer) run() {
	for range 10 + x.rnd.IntN(60) { // many fail, as they would for anyone
		x.step()
	}
	for _, m := range x.mapped {
		_ = unix.Munmap(m)
	}
	for _, f := range x.open {
		_ = f.Close()
	}
}

func (x *stormer) step() {
	path := x.path()
	switch x.rnd.IntN(18) {
	case 0, 1:
		write(path, strconv.Itoa(x.rnd.Int()))
	case 2:
		_ = os.MkdirAll(path, 0o755)
	case 3:
		_ = os.MkdirAll(path+"/deep/er/still", 0o755)
		write(path+"/deep/er/still/f", "new")
	case 4, 5:
		_ = os.Rename(path, x.path())
	case 6:
		_ = unix.Renameat2(unix.AT_FDCWD, path, unix.AT_FDCWD, x.path(), unix.RENAME_EXCHANGE)
	case 7, 8:
		if x.links {
			_ = os.Link(path, x.path())
		}
	case 9:
		_ = os.Chmod(path, os.FileMode(0o700|x.rnd.IntN(0o100)))
	case 10:
		_ = os.RemoveAll(path)
		_ = os.MkdirAll(path+"/a", 0o755)
		write(path+"/a/b", "again")
	case 11:
		_ = os.RemoveAll(path)
	case 12:
		_ = unix.Setxattr(path, "user.a", []byte(strconv.Itoa(x.rnd.IntN(100))), 0)
	case 13:
		if f, err := os.OpenFile(path, os.O_RDWR|unix.O_NONBLOCK, 0); err == nil {
			if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
				_ = f.Close()
				return
			}
			x.open = append(x.open, f)
		}
	case 14:
		if len(x.open) > 0 {
			_, _ = x.open[x.rnd.IntN(len(x.open))].WriteAt([]byte(strconv.Itoa(x.rnd.Int())), 0)
		}
	case 15:
		x.store(path)
	case 16:
		if len(x.open) > 0 {
			_ = spliced(x.open[x.rnd.IntN(len(x.open))], strconv.Itoa(x.rnd.Int()))
		}
	case 17:
		if x.links {
			_ = x.unnamed(path, x.path())
		}
	}
}

// write makes a file, and waits for nobody where there is a FIFO.
func write(path, text string) {
	if f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|unix.O_NONBLOCK, 0o644); err == nil {
		_, _ = f.WriteString(text)
		_ = f.Close()
	}
}

// store writes through a mapping, whose file is closed before.
func (x *stormer) store(path string) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NONBLOCK, 0o644)
	if err != nil {
		return
	}
	defer f.Close()
	if f.Truncate(8) != nil {
		return
	}
	if m, err := unix.Mmap(int(f.Fd()), 0, 8, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err == nil {
		x.mapped = append(x.mapped, m)
		func() {
			defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
			defer func() { _ = recover() }() // someone cut the file
			m[0]++
		}()
	}
	if len(x.mapped) > 0 && x.rnd.IntN(2) == 0 {
		_ = unix.Munmap(x.mapped[0])
		x.mapped = x.mapped[1:]
	}
}

// spliced writes to a file out of a pipe, without a copy.
func spliced(f *os.File, text string) error {
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	_, err = w.WriteString(text)
	err = errors.Join(err, w.Close())
	if err != nil {
		return err
	}
	var at int64
	_, err = unix.Splice(int(r.Fd()), nil, int(f.Fd()), &at, len(text), unix.SPLICE_F_NONBLOCK)
	return err
}

// unnamed makes a file without a name in one directory, gives it one in another,
// and goes on writing to it.
func (x *stormer) unnamed(path, to string) error {
	fd, err := unix.Open(filepath.Dir(path), unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), "unnamed")
	x.open = append(x.open, f)
	if err := unix.Linkat(unix.AT_FDCWD, "/proc/self/fd/"+strconv.Itoa(fd), unix.AT_FDCWD, to, unix.AT_SYMLINK_FOLLOW); err != nil {
		return err
	}
	_, err = f.WriteString(strings.Repeat("late ", 1+x.rnd.IntN(9)))
	return err
}

// A name that a file gets in a directory that is looked at makes those it has in
// others move too, and so do writes through any of them.
func TestDirtyLinks(t *testing.T) {
	s := newSession(t, startHelper(t), os.TempDir(), nil)
	defer s.close()
	s.agent(mutation{Op: "mkdir", Path: "a"}, mutation{Op: "mkdir", Path: "b"}, mutation{Op: "write", Path: "a/f", Data: []byte("1")})
	s.scan()
	see := func(dirs []string, want string) *manifest.Manifest {
		t.Helper()
		m, _ := scanWith(t, s.scanner, scan.Options{Dirty: dirs})
		fresh, err := scan.New(s.q.Upper, nil, s.h.open(bg, s.q.Upper))
		must(t, err)
		all, _ := scanWith(t, fresh, scan.Options{})
		must(t, fresh.Close())
		if diff := explainManifests(all, m); diff != "" {
			t.Errorf("%s:\n%s", want, diff)
		}
		return m
	}
	s.agent(mutation{Op: "link", Path: "a/f", To: "b/f"})
	see([]string{"b"}, "another name")
	s.agent(mutation{Op: "append", Path: "b/f", Data: []byte("2")})
	see([]string{"b"}, "written through it")
	s.agent(mutation{Op: "append", Path: "b/f", Data: []byte("3")})
	see([]string{}, "without a word")
	s.agent(mutation{Op: "remove", Path: "b/f"})
	see([]string{"b"}, "the name is gone")
}
