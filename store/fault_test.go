package store

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"stepbox/session/e2e/must"
)

// inNamespace makes a child run as root of namespaces of its own, so that it
// can mount, and everything it mounts goes with it.
func inNamespace(t *testing.T, name string, args ...string) {
	t.Helper()
	cmd := child(t, name, args...)
	cmd.SysProcAttr.Cloneflags = unix.CLONE_NEWUSER | unix.CLONE_NEWNS
	cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}}
	cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}
	must.OK(t, cmd.Run())
}

// wants is an error unless err is what a case expects, with its advice.
func wants(what string, err, want error, words ...string) error {
	if !errors.Is(err, want) {
		return fmt.Errorf("%s: %v, want %v", what, err, want)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			return fmt.Errorf("%s: %v: it doesn't say %q", what, err, w)
		}
	}
	return nil
}

func init() {
	children["full"] = fullDisk
	children["small files"] = smallFiles
	children["read-only"] = readOnlyDisk
	children["fuse"] = onFUSE
}

// A disk that fills up stops the record with ErrFull and takes nothing of what
// is there; when there is room again, it goes on.
func TestFullDisk(t *testing.T) { inNamespace(t, "full", t.TempDir()) }

func fullDisk(args []string) error {
	dir, ctx := args[0], context.Background()
	if err := unix.Mount("none", dir, "tmpfs", 0, "size=3m,mode=700"); err != nil {
		return err
	}
	fill := func() error { // up to the last byte
		f, err := os.OpenFile(filepath.Join(dir, "filler"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
		if err != nil {
			return err
		}
		for n := 64 << 10; n > 0; {
			if _, err := f.Write(make([]byte, n)); err != nil {
				n /= 2
			}
		}
		return f.Close()
	}
	empty := func() error { return os.Remove(filepath.Join(dir, "filler")) }
	for _, free := range []int64{40 << 10, 8 << 10, 0} { // too little for a database, or for any of it
		if err := fill(); err != nil {
			return err
		}
		filler := filepath.Join(dir, "filler")
		st, err := os.Stat(filler)
		if err == nil {
			err = os.Truncate(filler, st.Size()-free)
		}
		if err != nil {
			return err
		}
		_, err = Open(ctx, dir)
		if err := wants("opening a new record", err, ErrFull, "cannot open the record: the disk is full: make room on the filesystem of "+dir, "STEPBOX_DATA"); err != nil {
			return err
		}
		if strings.Contains(err.Error(), "upgrade") || strings.Contains(err.Error(), "transaction") {
			return fmt.Errorf("opening a new record: %w: it speaks of more than that", err)
		}
		if err := empty(); err != nil {
			return err
		}
	}
	s, err := Open(ctx, dir)
	if err != nil {
		return err
	}
	const id = "aaaaaaaa"
	if _, err := s.CreateSession(ctx, id, json.RawMessage(`{}`)); err != nil {
		return err
	}
	j, err := s.Journal(id)
	if err != nil {
		return err
	}
	if err := fill(); err != nil {
		return err
	}
	recorded := int64(0)
	for err = error(nil); err == nil; recorded++ {
		_, err = s.Append(ctx, id, Fact{Kind: KindNote, Key: recorded, Event: "note", Doc: json.RawMessage(`{"text":"` + strings.Repeat("x", 9000) + `"}`)})
	}
	recorded--
	if err := wants("Append", err, ErrFull, "make room", "STEPBOX_DATA"); err != nil {
		return err
	}
	_, err = s.PutBodies(ctx, [][]byte{bytes.Repeat([]byte("small"), 3000)})
	if err := wants("PutBodies", err, ErrFull); err != nil {
		return err
	}
	_, _, err = s.PutBody(ctx, bytes.NewReader(make([]byte, 1<<20)))
	if err := wants("PutBody", err, ErrFull); err != nil {
		return err
	}
	output := 0
	for err = error(nil); err == nil; output++ {
		err = j.Output(make([]byte, 3000))
	}
	output--
	if err := wants("Output", err, ErrFull); err != nil {
		return err
	}
	if err := empty(); err != nil {
		return err
	}
	if err := wants("Output once it failed", j.Output([]byte("x")), ErrFull); err != nil {
		return err
	}
	if err := wants("closing a journal that failed", j.Close(), ErrFull); err != nil {
		return err
	}
	if chunks, err := s.chunks(ctx, id); err != nil || len(chunks) != 1 { // else it would count no more once the session has ended
		return fmt.Errorf("%d chunks are recorded of a journal that failed, %v", len(chunks), err)
	}
	if _, err := s.Append(ctx, id, fact(1, "held")); err != nil {
		return fmt.Errorf("with room again: %w", err)
	}
	if j, err = s.Journal(id); err != nil {
		return fmt.Errorf("with room again: %w", err)
	}
	frames := 0
	for _, err := range s.ReadJournal(id) {
		if err != nil {
			return err
		}
		frames++
	}
	if err := errors.Join(j.Close(), s.Verify(ctx, id), s.Close()); err != nil {
		return err
	}
	if s, err = Open(ctx, dir); err != nil {
		return err
	}
	docs, err := s.Docs(ctx, id, KindNote, -1, 0)
	if err != nil || int64(len(docs)) != recorded || frames != output {
		return fmt.Errorf("%d notes of %d, %d frames of %d, %v", len(docs), recorded, frames, output, err)
	}
	return s.Close()
}

// A limit on the size of files is another full disk, and no signal kills us.
func TestSmallFiles(t *testing.T) {
	cmd := child(t, "small files", filepath.Join(t.TempDir(), "data"))
	must.OK(t, cmd.Run())
}

func smallFiles(args []string) error {
	ctx := context.Background()
	s, err := Open(ctx, args[0])
	if err != nil {
		return err
	}
	const id = "aaaaaaaa"
	if _, err := s.CreateSession(ctx, id, json.RawMessage(`{}`)); err != nil {
		return err
	}
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 400 << 10, Max: unix.RLIM_INFINITY}); err != nil {
		return err
	}
	_, _, err = s.PutBody(ctx, bytes.NewReader(make([]byte, 1<<20)))
	if err := wants("PutBody", err, ErrFull); err != nil {
		return err
	}
	n := int64(0)
	for err = error(nil); err == nil; n++ {
		_, err = s.Append(ctx, id, fact(n, strings.Repeat("x", 9000)))
	}
	if err := wants("Append", err, ErrFull); err != nil {
		return err
	}
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY}); err != nil {
		return err
	}
	if _, err := s.Append(ctx, id, fact(n, "held")); err != nil {
		return err
	}
	return errors.Join(s.Verify(ctx, id), s.Close())
}

// A record on a read-only disk is refused with advice and can be read, closed
// properly or not.
func TestReadOnlyDisk(t *testing.T) { inNamespace(t, "read-only", t.TempDir()) }

func readOnlyDisk(args []string) error {
	dir, ctx := args[0], context.Background()
	mount := func(flags uintptr) error { return unix.Mount("none", dir, "tmpfs", flags, "mode=700") }
	if err := mount(0); err != nil {
		return err
	}
	s, err := Open(ctx, dir)
	if err != nil {
		return err
	}
	if _, err := s.CreateSession(ctx, "aaaaaaaa", json.RawMessage(`{"name":"first"}`)); err != nil {
		return err
	}
	// While it is open there is a log; then there is none.
	for _, open := range []bool{true, false} {
		if !open {
			if err := s.Close(); err != nil {
				return err
			}
		}
		if err := mount(unix.MS_REMOUNT | unix.MS_RDONLY); err != nil && open {
			// A filesystem with files open for writing can't be; a
			// mount of it can.
			if err := unix.Mount(dir, dir, "", unix.MS_BIND, ""); err != nil {
				return err
			}
			if err := unix.Mount("", dir, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
				return err
			}
		} else if err != nil {
			return err
		}
		_, err := Open(ctx, dir)
		if err := wants("Open", err, ErrReadOnly, "STEPBOX_DATA"); err != nil {
			return err
		}
		r, err := OpenReadOnly(ctx, dir)
		if err != nil {
			return fmt.Errorf("open elsewhere %v: %w", open, err)
		}
		docs, err := r.Sessions(ctx)
		if err != nil || len(docs) != 1 || !strings.Contains(string(docs[0]), "first") {
			return fmt.Errorf("open elsewhere %v: %s, %w", open, docs, err)
		}
		_, err = r.Append(ctx, "aaaaaaaa", fact(1, "held"))
		if err := wants("Append", err, ErrReadOnly); err != nil {
			return err
		}
		_, err = r.Journal("aaaaaaaa")
		if err := errors.Join(wants("Journal", err, ErrReadOnly), r.Verify(ctx, "aaaaaaaa"), r.Close()); err != nil {
			return err
		}
		if open {
			if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
				return err
			}
		}
	}
	return nil
}

// Permissions that say no, for a user that they apply to.
func TestReadOnlyFolder(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Log("permissions don't stop root: TestAsUnprivileged runs this")
		return
	}
	dir := filepath.Join(t.TempDir(), "data")
	session(t, openAt(t, dir), "aaaaaaaa")
	for _, p := range []string{dir, filepath.Join(dir, database), filepath.Join(dir, bodiesDir)} {
		st := must.Get(os.Stat(p))
		must.OK(t, os.Chmod(p, st.Mode().Perm()&^0o222))
		_, err := Open(t.Context(), dir)
		if err := wants(p, err, ErrReadOnly, "chmod -R u+rwX "+dir, "STEPBOX_DATA"); err != nil {
			t.Error(err)
		}
		r, err := OpenReadOnly(t.Context(), dir)
		if err != nil {
			t.Error(err)
		} else if err := r.Close(); err != nil {
			t.Error(err)
		}
		must.OK(t, os.Chmod(p, st.Mode().Perm()))
	}
	if _, err := Open(t.Context(), "/proc/stepbox"); err == nil {
		t.Error("a record was made in /proc")
	}
}

// Somebody else on the machine could read what agents printed.
func TestNotPrivate(t *testing.T) {
	for _, tt := range []struct {
		sub  string
		mode os.FileMode
	}{{"", 0o755}, {"", 0o710}, {"", 0o701}, {bodiesDir, 0o750}, {sessions, 0o704}} {
		dir := filepath.Join(t.TempDir(), "da ta")
		p := filepath.Join(dir, tt.sub)
		must.OK(t, os.MkdirAll(p, 0o700))
		must.OK(t, os.Chmod(p, tt.mode))
		_, err := Open(t.Context(), dir)
		if err := wants(tt.sub, err, ErrPrivate, "chmod 700 '"+p+"'"); err != nil {
			t.Error(err)
		}
		if left := must.Get(os.ReadDir(dir)); tt.sub == "" && len(left) != 0 {
			t.Errorf("%v was made in a folder that is refused", left)
		}
	}
	old := unix.Umask(0)
	defer unix.Umask(old)
	s := open(t)
	session(t, s, "aaaaaaaa")
	err := filepath.Walk(s.dir, func(p string, info os.FileInfo, err error) error {
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", p, info.Mode())
		}
		return err
	})
	must.OK(t, err)
	if os.Geteuid() == 0 {
		dir := t.TempDir()
		must.OK(t, os.Chmod(dir, 0o700), os.Chown(dir, 12345, 12345))
		_, err := Open(t.Context(), dir)
		if err := wants("another user's folder", err, ErrPrivate, "uid 12345"); err != nil {
			t.Error(err)
		}
	}
}

func TestNotAFolder(t *testing.T) {
	p := filepath.Join(t.TempDir(), "file")
	write(t, p, nil)
	if _, err := Open(t.Context(), p); err == nil {
		t.Error("a file was taken for a folder")
	}
	if _, err := OpenReadOnly(t.Context(), t.TempDir()+"/none"); !errors.Is(err, ErrNotFound) {
		t.Errorf("reading no record: %v", err)
	}
}

// A database that is taken away while it is open is noticed: what is written to a file
// that has no name would be kept by nobody.
func TestTakenAway(t *testing.T) {
	for name, take := range map[string]func(dir string) error{
		"removed": func(dir string) error { return os.Remove(filepath.Join(dir, database)) },
		"replaced": func(dir string) error {
			return errors.Join(os.WriteFile(filepath.Join(dir, "other"), nil, 0o600), os.Rename(filepath.Join(dir, "other"), filepath.Join(dir, database)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := Open(t.Context(), filepath.Join(t.TempDir(), "data"))
			must.OK(t, err)
			defer s.Close() // it may say that it wasn't closed well
			session(t, s, "aaaaaaaa")
			must.OK(t, take(s.dir))
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			for n := int64(0); err == nil && ctx.Err() == nil; n++ {
				_, err = s.Append(ctx, "aaaaaaaa", fact(n%10, "held"))
			}
			if err := wants("Append", err, ErrGone, database); err != nil {
				t.Error(err)
			}
		})
	}
}
