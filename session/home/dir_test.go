package home_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"stepbox/session/e2e/must"
	"stepbox/session/home"
)

// No name that an agent made leads out of its home, and none holds a reader up.
func TestDirFollowsNothing(t *testing.T) {
	out, in := t.TempDir(), t.TempDir()
	secret := filepath.Join(out, "secret")
	for _, err := range []error{
		os.WriteFile(secret, []byte("s"), 0o600), os.Mkdir(filepath.Join(in, "d"), 0o700),
		os.Symlink(secret, filepath.Join(in, "link")), os.Symlink(out, filepath.Join(in, "up")), os.Symlink("d", filepath.Join(in, "across")),
		unix.Mkfifo(filepath.Join(in, "pipe"), 0o600), os.WriteFile(filepath.Join(in, "file"), []byte("12345"), 0o700),
	} {
		must.OK(t, err)
	}
	d, err := home.Open(in)
	must.OK(t, err)
	defer d.Close()
	for _, name := range []string{"link", "up/secret", "pipe", "d", ".", "", "../x", secret, "nothing", "file/x"} {
		if data, _, err := d.Read(name, 10); err == nil {
			t.Errorf("%s was read: %q", name, data)
		}
	}
	if _, _, err := d.Read("pipe", 10); !errors.Is(err, home.ErrNotFile) {
		t.Errorf("pipe: %v", err)
	}
	if _, _, err := d.Read("file", 4); err == nil {
		t.Error("more was read than asked for")
	}
	if data, mode, err := d.Read("file", 5); string(data) != "12345" || mode.Perm() != 0o700 || err != nil {
		t.Errorf("%q %v %v", data, mode, err)
	}
	for _, name := range []string{"up/secret", "../x", ".", "", "d", "file/x", "pipe/x/y"} {
		if err := d.Write(name, []byte("x"), false); err == nil {
			t.Errorf("%s was written", name)
		}
	}
	for _, name := range []string{"link", "pipe", "file", "a/b/c"} {
		if err := d.Write(name, []byte("new"), false); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if info, err := os.Lstat(filepath.Join(in, name)); err != nil || info.Mode() != 0o600 {
			t.Errorf("%s is %v (%v)", name, info, err)
		}
	}
	if data, err := os.ReadFile(secret); string(data) != "s" {
		t.Errorf("the file outside is %q (%v)", data, err)
	}
	if left, _ := filepath.Glob(filepath.Join(in, "*/.stepbox-*")); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
	if _, err := home.Open(filepath.Join(in, "up")); err == nil {
		t.Error("a link is a home")
	}
}
