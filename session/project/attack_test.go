package project

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"stepbox/runner/overlay/content"
	"stepbox/runner/overlay/manifest"
	"stepbox/session/e2e/must"
)

// What an agent's tree may hold, against what stands in its way: recipe by recipe.
// Each is refused in words, and nothing is written, inside or outside.
func TestAttacks(t *testing.T) {
	file := func(w *world) State { return w.bodies.file("evil", 0o644) }
	for name, test := range map[string]struct {
		set  func(w *world, outside string)
		path string
		new  func(w *world) State
		want string
	}{
		"parent is a relative link out":  {func(w *world, out string) { w.link("../outside", "d") }, "d/x", file, "isn't there"},
		"parent is an absolute link":     {func(w *world, out string) { w.link(out, "d") }, "d/x", file, "isn't there"},
		"parent is a link inside":        {func(w *world, out string) { w.write("real/y", "", 0o644); w.link("real", "d") }, "d/x", file, "isn't there"},
		"dots":                           {nil, "../outside/x", file, "isn't a path"},
		"dots inside":                    {nil, "a/../../outside/x", file, "isn't a path"},
		"absolute":                       {nil, "/etc/x", file, "isn't a path"},
		"the project itself":             {nil, "", file, "isn't a path"},
		"NUL":                            {nil, "a\x00b", file, "isn't a path"},
		"git's folder":                   {nil, ".git/hooks/pre-commit", file, "git's own"},
		"git's file":                     {nil, ".git", file, "git's own"},
		"git's folder, deeper":           {nil, "vendor/sub/.git/config", file, "git's own"},
		"git's folder in large letters":  {nil, ".GiT/config", file, "git's own"},
		"git's short name":               {nil, "GIT~1/config", file, "git's own"},
		"git's short name, another":      {nil, "git~12", file, "git's own"},
		"git, a blank and a dot":         {nil, ".git ./config", file, "git's own"},
		"git's stream":                   {nil, ".git::$INDEX_ALLOCATION/config", file, "git's own"},
		"git before a backslash":         {nil, `.git\config`, file, "git's own"},
		"git with nothing to see in it":  {nil, ".g\u200cit/config", file, "git's own"},
		"git with a soft hyphen":         {nil, ".gi\u00adt/config", file, "git's own"},
		"git with a variation selector":  {nil, "\ufe0f.git", file, "git's own"},
		"a device":                       {nil, "x", func(*world) State { return State{Kind: manifest.KindDevice} }, "isn't carried"},
		"a FIFO":                         {nil, "x", func(*world) State { return State{Kind: manifest.KindFIFO} }, "isn't carried"},
		"a socket":                       {nil, "x", func(*world) State { return State{Kind: manifest.KindSocket} }, "isn't carried"},
		"a whiteout":                     {nil, "x", func(*world) State { return State{Kind: manifest.KindWhiteout} }, "isn't carried"},
		"a link to nothing":              {nil, "x", func(*world) State { return link("") }, "no link"},
		"a huge file that nobody stored": {nil, "x", func(*world) State { return State{Kind: manifest.KindFile, Size: 1 << 62, Hash: content.Hash{1}} }, "can't be written"},
		"a link where a file was seen":   {func(w *world, out string) { w.link(out+"/victim", "x") }, "x", file, "is there as a symlink"},
		"a FIFO where nothing was seen":  {func(w *world, out string) { must.OK(w.t, unix.Mkfifo(filepath.Join(w.root, "x"), 0o600)) }, "x", file, "is there as a fifo"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			outside := filepath.Join(filepath.Dir(w.root), "outside")
			must.OK(t, os.Mkdir(outside, 0o755), os.WriteFile(filepath.Join(outside, "victim"), []byte("mine"), 0o644))
			if test.set != nil {
				test.set(w, outside)
			}
			inside, out := treeOf(t, w.root), treeOf(t, outside)
			_, res, err := w.carry([]Step{{Path: test.path, New: test.new(w)}})
			if err == nil || !strings.Contains(err.Error(), test.want) || len(res) > 0 {
				t.Errorf("it said %v %+v, not %q", err, res, test.want)
			}
			if d := treeOf(t, w.root).diff(inside) + treeOf(t, outside).diff(out); d != "" {
				t.Errorf("written:\n%s", d)
			}
		})
	}
}

func (w *world) link(target, path string) {
	w.t.Helper()
	must.OK(w.t, os.Symlink(target, filepath.Join(w.root, path)))
}

// Names that only look like git's are an agent's to use.
func TestNever(t *testing.T) {
	for _, path := range []string{".gitmodules", ".gitignore", ".github/workflows/ci.yml", "git", "git~", "x.git/config", ".gitx", "a/..b", "git~1x", "\xff.git\xff", ".husky/pre-commit", ".g.it"} {
		if why := Never(path); why != "" {
			t.Errorf("%q is never written: %s", path, why)
		}
	}
}

// A file that others share by a hard link, and one that is a program with rights of
// its own: only the name is replaced, and the rights aren't carried.
func TestLinksAndRights(t *testing.T) {
	w := newWorld(t)
	w.write("a", "old", 0o644)
	must.OK(t, os.Link(filepath.Join(w.root, "a"), filepath.Join(filepath.Dir(w.root), "other")))
	steps := w.steps(map[string]State{"a": w.bodies.file("new", 0o4755), "b": w.bodies.file("b", 0o2755), "c": w.bodies.file("c", 0o1777)})
	_, _, err := w.carry(steps)
	must.OK(t, err)
	other, err := os.ReadFile(filepath.Join(filepath.Dir(w.root), "other"))
	must.OK(t, err)
	if string(other) != "old" || w.read("a") != "new" {
		t.Errorf("the other name has %q, the path %q", other, w.read("a"))
	}
	for name, want := range map[string]os.FileMode{"a": 0o755, "b": 0o755, "c": 0o777} {
		info, err := os.Lstat(filepath.Join(w.root, name))
		must.OK(t, err)
		if info.Mode() != want {
			t.Errorf("%s has mode %v, not %v", name, info.Mode(), want)
		}
	}
}

// What the person gave a file besides its content stays with it.
func TestAttributesStay(t *testing.T) {
	w := newWorld(t)
	w.write("a", "old", 0o644)
	path := filepath.Join(w.root, "a")
	if err := unix.Setxattr(path, "user.note", []byte("mine"), 0); err != nil {
		t.Skipf("this file system keeps no user attributes: %v", err)
	}
	gid := os.Getegid()
	if os.Geteuid() == 0 {
		gid = 12345
		must.OK(t, os.Chown(path, 12345, gid))
	}
	_, _, err := w.carry(w.steps(map[string]State{"a": w.bodies.file("new", 0o600)}))
	must.OK(t, err)
	var b [16]byte
	n, err := unix.Getxattr(path, "user.note", b[:])
	var st unix.Stat_t
	must.OK(t, err, unix.Stat(path, &st))
	if string(b[:n]) != "mine" || int(st.Gid) != gid || st.Mode&0o7777 != 0o600 {
		t.Errorf("it has note %q, group %d, mode %o", b[:n], st.Gid, st.Mode)
	}
}

// A project folder that isn't there any more, or is another one, is refused by
// everything, and the other one isn't touched.
func TestProjectMoved(t *testing.T) {
	for name, move := range map[string]func(w *world, aside string){
		"renamed": func(w *world, aside string) { must.OK(w.t, os.Rename(w.root, aside)) },
		"replaced": func(w *world, aside string) {
			must.OK(w.t, os.Rename(w.root, aside), os.Mkdir(w.root, 0o755), os.WriteFile(filepath.Join(w.root, "a"), []byte("one"), 0o644))
		},
		"a link": func(w *world, aside string) { must.OK(w.t, os.Rename(w.root, aside), os.Symlink(aside, w.root)) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.write("a", "one", 0o644)
			first, _, err := w.carry(w.steps(map[string]State{"b": w.bodies.file("b", 0o644)}))
			must.OK(t, err)
			f := w.open()
			defer f.Close()
			steps := w.steps(map[string]State{"a": w.bodies.file("two", 0o644)})
			aside := w.root + "-aside"
			move(w, aside)
			before := treeOf(t, aside)
			_, lookErr := f.Look(t.Context(), "a")
			_, carryErr := f.Carry(t.Context(), w.in, "later", steps, nil)
			_, undoErr := f.Undo(t.Context(), w.in, first, nil)
			for what, err := range map[string]error{"look": lookErr, "carry": carryErr, "undo": undoErr} {
				if !errors.Is(err, ErrMoved) {
					t.Errorf("%s: %v", what, err)
				}
			}
			if d := treeOf(t, aside).diff(before); d != "" {
				t.Errorf("written:\n%s", d)
			}
			if name == "a link" {
				if _, err := Open(w.root); err == nil || !strings.Contains(err.Error(), "symbolic link") {
					t.Errorf("opened: %v", err)
				}
			}
		})
	}
}

// Moved while it is written, it is as it was, wherever it is now; and a journal
// whose process died isn't carried on in a folder that took its place.
func TestProjectMovedMeanwhile(t *testing.T) {
	w := newWorld(t)
	w.write("a", "one", 0o644)
	steps := w.steps(map[string]State{"a": w.bodies.file("two", 0o644), "b": w.bodies.file("b", 0o644)})
	f := w.open()
	defer f.Close()
	before := treeOf(t, w.root)
	n := 0
	crashed = func() {
		if n++; n == 8 {
			must.OK(t, os.Rename(w.root, w.root+"-aside"))
		}
	}
	_, err := f.Carry(t.Context(), w.in, "first", steps, nil)
	crashed = nil
	if !errors.Is(err, ErrMoved) {
		t.Errorf("carry: %v", err)
	}
	if d := treeOf(t, w.root+"-aside").diff(before); d != "" {
		t.Errorf("left:\n%s", d)
	}
	must.OK(t, os.Rename(w.root+"-aside", w.root))
	if !dying(12, func() { _, _ = f.Carry(t.Context(), w.in, "second", steps, nil) }) {
		t.Fatal("it had fewer changes")
	}
	must.OK(t, os.Rename(w.root, w.root+"-aside"), os.Mkdir(w.root, 0o755))
	got, err := w.in.Recover(t.Context())
	must.OK(t, err)
	if len(got) != 1 || !errors.Is(got[0].Err, ErrMoved) || len(treeOf(t, w.root)) > 0 {
		t.Fatalf("recovered %+v", got)
	}
	must.OK(t, os.Remove(w.root), os.Rename(w.root+"-aside", w.root))
	got, err = w.in.Recover(t.Context())
	must.OK(t, err)
	if len(got) != 1 || got[0].Err != nil {
		t.Fatalf("recovered %+v", got)
	}
}

// A FIFO hangs nobody, and a file that grows for ever is given up.
func TestLook(t *testing.T) {
	w := newWorld(t)
	w.write("sub/file", "text", 0o4755)
	w.link("file", "sub/link")
	must.OK(t, unix.Mkfifo(filepath.Join(w.root, "fifo"), 0o600))
	f := w.open()
	defer f.Close()
	for path, want := range map[string]State{
		"sub": dirState(0o755), "sub/link": link("file"), "fifo": {Kind: manifest.KindFIFO},
		"sub/link/x": {}, "sub/file/x": {}, "nowhere/x": {}, "": dirState(0o755),
	} {
		got, err := f.Look(t.Context(), path)
		must.OK(t, err)
		if got.Kind != want.Kind || want.Kind != manifest.KindFIFO && !got.Same(want) {
			t.Errorf("%q is %+v, not %+v", path, got, want)
		}
	}
	got, err := f.Keep(t.Context(), "sub/file", w.bodies)
	must.OK(t, err)
	if got.Mode != 0o4755 || got.Hash != content.Sum([]byte("text")) || !w.bodies.has(got.Hash) || got.MTime.Sec == 0 {
		t.Errorf("the file is %+v", got)
	}
	if _, err := f.Look(t.Context(), "../x"); err == nil {
		t.Error("looked outside")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	big, err := os.Create(filepath.Join(w.root, "big"))
	must.OK(t, err, big.Truncate(8<<20))
	_, err = big.WriteAt([]byte("x"), 7<<20)
	must.OK(t, err, big.Close())
	if _, err := f.Look(ctx, "big"); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// Names that this file system takes for one.
func TestCaseFolding(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root mounts a file system that folds case")
	}
	w := newWorld(t)
	image := filepath.Join(filepath.Dir(w.root), "image")
	must.OK(t, os.WriteFile(image, nil, 0o600), os.Truncate(image, 32<<20))
	if out, err := exec.CommandContext(t.Context(), "mkfs.ext4", "-q", "-O", "casefold", image).CombinedOutput(); err != nil {
		t.Skipf("no file system that folds case can be made here: %v %s", err, out)
	}
	if out, err := exec.CommandContext(t.Context(), "mount", "-o", "loop", image, w.root).CombinedOutput(); err != nil {
		t.Skipf("no file system that folds case can be mounted here: %v %s", err, out)
	}
	defer func() { must.OK(t, unix.Unmount(w.root, 0)) }()
	must.OK(t, os.Remove(filepath.Join(w.root, "lost+found")))
	if out, err := exec.CommandContext(t.Context(), "chattr", "+F", w.root).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	w.write("README", "mine", 0o644)
	_, _, err := w.carry([]Step{{Path: "readme", New: w.bodies.file("other", 0o644)}})
	if err == nil || !strings.Contains(err.Error(), `can't be told from "README"`) {
		t.Errorf("over another: %v", err)
	}
	_, _, err = w.carry([]Step{{Path: "x", New: w.bodies.file("1", 0o644)}, {Path: "X", New: w.bodies.file("2", 0o644)}})
	if err == nil || !strings.Contains(err.Error(), `can't be told from`) {
		t.Errorf("two new ones: %v", err)
	}
	if d := treeOf(t, w.root).diff(tree{"README": "file 644 " + content.Sum([]byte("mine")).String()}); d != "" {
		t.Errorf("written:\n%s", d)
	}
}
