package runner

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"stepbox/session/e2e/must"
)

func TestCheckWorkspace(t *testing.T) {
	r := newRig(t)
	file := filepath.Join(r.base, "file")
	must.OK(t, os.WriteFile(file, nil, 0o600))
	link := filepath.Join(r.base, "link")
	must.OK(t, os.Symlink(r.project, link))
	home := filepath.Join(r.base, "person")
	for _, dir := range []string{home, filepath.Join(home, "src"), filepath.Join(r.base, "closed"), filepath.Join(r.base, "new\nline"), filepath.Join(r.base, "bad\xff")} {
		must.OK(t, os.Mkdir(dir, 0o700))
	}
	t.Setenv("HOME", home)
	must.OK(t, os.Chmod(filepath.Join(r.base, "closed"), 0))
	state := filepath.Join(r.base, "state")
	must.OK(t, os.MkdirAll(filepath.Join(state, "inside"), 0o700))
	for path, want := range map[string]string{
		r.project:                          "",
		filepath.Join(home, "src"):         "",
		filepath.Join(r.base, "none"):      "there is no such folder",
		file:                               "it is a file",
		link:                               "symbolic link; use \"" + r.project + "\"",
		link + "/":                         "isn't an absolute path",
		"project":                          "isn't an absolute path",
		"":                                 "isn't an absolute path",
		"/":                                "root of all files",
		home:                               "home folder",
		r.base:                             "home folder or holds it",
		state:                              "Stepbox keeps its own files",
		filepath.Join(state, "inside"):     "Stepbox keeps its own files",
		"/usr":                             "the system's",
		"/etc":                             "the system's",
		"/proc/self":                       "",
		"/proc/sys":                        "the system's",
		filepath.Join(r.base, "new\nline"): "control characters",
		filepath.Join(r.base, "bad\xff"):   "isn't valid UTF-8",
	} {
		if path == "/proc/self" {
			continue // a link, of another name each time
		}
		err := CheckWorkspace(path, state)
		switch {
		case want == "" && err != nil:
			t.Errorf("%q: %v", path, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%q: %v, not %q", path, err, want)
		}
	}
	if err := CheckWorkspace(filepath.Join(r.base, "closed"), state); os.Getuid() != 0 && (err == nil || !strings.Contains(err.Error(), "can't be read")) {
		t.Errorf("an unreadable folder: %v", err)
	}
}

// TestOddNames runs in folders whose names the kernel's mount options give
// meaning to.
func TestOddNames(t *testing.T) {
	for _, name := range []string{"we,ird", "co:lon", `back\slash`, "two words", "upperdir=x,lowerdir=y", "uml äß ☃", "-dash", "%s%n", `all, of:it\ to,ge\\ther`} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.spec.Workspace = filepath.Join(r.base, name)
			r.spec.StateDir = filepath.Join(r.base, "state "+name)
			must.OK(t, os.Rename(r.project, r.spec.Workspace))
			for _, file := range []string{"there", "hidden"} {
				must.OK(t, os.WriteFile(filepath.Join(r.spec.Workspace, file), []byte("before\n"), 0o644))
			}
			r.spec.Hidden = []string{"hidden"}
			out, _ := r.sh(`cat there hidden 2>/dev/null; pwd; echo after >there; echo new >new`)
			if out != "before\n"+r.spec.Workspace+"\n" {
				t.Errorf("it says %q", out)
			}
			for file, want := range map[string]string{"there": "after\n", "new": "new\n"} {
				if text, err := os.ReadFile(filepath.Join(r.spec.StateDir, "upper", file)); err != nil || string(text) != want {
					t.Errorf("the upper's %q is %q, %v", file, text, err)
				}
			}
		})
	}
}

// TestSubmounts: a project with a mount below it is refused in words, since the
// kernel only says EINVAL.
func TestSubmounts(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("mounting takes root")
	}
	r := newRig(t)
	below := filepath.Join(r.project, "mounted")
	must.OK(t, os.Mkdir(below, 0o700))
	must.OK(t, unix.Mount("tmpfs", below, "tmpfs", 0, "size=64k"))
	t.Cleanup(func() { _ = unix.Unmount(below, unix.MNT_DETACH) })
	r.spec.Argv = []string{"/bin/true"}
	s, err := Start(t.Context(), r.spec, r.handler)
	if err == nil {
		s.Close(t.Context())
		t.Fatal("it started")
	}
	if !strings.Contains(err.Error(), below) {
		t.Errorf("%v", err)
	}
}

// TestNoOverlay: a project that the kernel can't put under an overlay, here since it is
// one of two already, is refused in words.
func TestNoOverlay(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("mounting takes root")
	}
	r := newRig(t)
	mount := func(what, at, data string) {
		t.Helper()
		must.OK(t, unix.Mount(what, at, what, 0, data))
		t.Cleanup(func() { _ = unix.Unmount(at, unix.MNT_DETACH) })
	}
	disk := filepath.Join(r.base, "disk")
	dir := func(name string) string { return filepath.Join(disk, name) }
	must.OK(t, os.Mkdir(disk, 0o700))
	mount("tmpfs", disk, "size=1m")
	for _, name := range []string{"lower", "merged", "upper", "work", "upper2", "work2"} {
		must.OK(t, os.Mkdir(dir(name), 0o755))
	}
	mount("overlay", dir("merged"), "lowerdir="+dir("lower")+",upperdir="+dir("upper")+",workdir="+dir("work"))
	mount("overlay", r.project, "lowerdir="+dir("merged")+",upperdir="+dir("upper2")+",workdir="+dir("work2"))
	r.spec.Argv = []string{"/bin/true"}
	s, err := Start(t.Context(), r.spec, r.handler)
	if err == nil {
		s.Close(t.Context())
		t.Fatal("it started")
	}
	if !strings.Contains(err.Error(), "can't put the project under an overlay") {
		t.Errorf("%v", err)
	}
}
