package source

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"stepbox/session/e2e/must"
)

func write(t *testing.T, file, content string) string {
	t.Helper()
	must.OK(t, os.MkdirAll(filepath.Dir(file), 0o755))
	must.OK(t, os.WriteFile(file, []byte(content), 0o644))
	return file
}

func refused(t *testing.T, what string, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%s: %v, want %q", what, err, want)
	}
}

func TestPerson(t *testing.T) {
	dir := t.TempDir()
	file := write(t, filepath.Join(dir, "policy.yaml"), "version: 1\n")
	link := filepath.Join(dir, "link.yaml")
	must.OK(t, os.Symlink(file, link))
	for _, f := range []string{file, link} {
		if got, err := Person(f); err != nil || string(got) != "version: 1\n" {
			t.Errorf("%s: %q, %v", f, got, err)
		}
	}
	_, err := Person(filepath.Join(dir, "none"))
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that isn't there: %v", err)
	}
	_, err = Person(dir)
	refused(t, "a folder", err, "isn't a regular file")
	fifo := filepath.Join(dir, "fifo")
	must.OK(t, unix.Mkfifo(fifo, 0o600))
	_, err = Person(fifo) // and doesn't wait for a writer
	refused(t, "a pipe", err, "isn't a regular file")
	must.OK(t, os.Chmod(file, 0o666))
	_, err = Person(file)
	refused(t, "a file that everybody writes", err, "everybody can change it")
}

func TestProject(t *testing.T) {
	outside := t.TempDir()
	secret := write(t, filepath.Join(outside, "secret"), "x")
	dir := t.TempDir()
	file := write(t, filepath.Join(dir, "sub", "a.yaml"), "version: 1\n")
	for name, to := range map[string]string{"link.yaml": file, "out": outside, "secret.yaml": secret} {
		must.OK(t, os.Symlink(to, filepath.Join(dir, name)))
	}
	read := Project(dir)
	if got, err := read(file); err != nil || string(got) != "version: 1\n" {
		t.Errorf("%q, %v", got, err)
	}
	for _, name := range []string{"link.yaml", "out/secret", "secret.yaml"} {
		_, err := read(filepath.Join(dir, name))
		refused(t, name, err, "isn't followed")
	}
	_, err := read(secret)
	refused(t, "a file outside", err, "isn't in the project")
}

// A file that is never the same twice is no policy.
func TestChanging(t *testing.T) {
	dir, n := t.TempDir(), 0
	file := filepath.Join(dir, "a")
	_, err := read(func() (int, error) {
		n++
		write(t, file, strings.Repeat("x", n))
		return unix.Open(file, flags, 0)
	}, true)
	refused(t, "a file that changes", err, "being written")
	n = 0
	got, err := read(func() (int, error) {
		n++
		write(t, file, strings.Repeat("x", min(n, 3)))
		return unix.Open(file, flags, 0)
	}, true)
	if err != nil || string(got) != "xxx" {
		t.Errorf("a file that was being written: %q, %v", got, err)
	}
}
