package project

import (
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"stepbox/runner/overlay/inode"
	"stepbox/runner/overlay/manifest"
	"stepbox/session/e2e/must"
)

// An access list that lets user 1 read and write, with a mask.
var aclOfOne, _ = hex.DecodeString("02000000" + "01000700ffffffff" + "0200060001000000" + "04000500ffffffff" + "10000700ffffffff" + "20000500ffffffff")

// attrWorld is a world on a file system that keeps attributes and access lists.
func attrWorld(t *testing.T) *world {
	t.Helper()
	w := fastWorld(t)
	if unix.Setxattr(w.root, "user.x", nil, 0) != nil {
		w = newWorld(t)
	}
	return w
}

// adorn gives what states put there all that an inode can have, some of it linked.
func (w *world) adorn(rt *rapid.T, states map[string]State) {
	paths := sorted(states)
	for _, p := range paths {
		if at := filepath.Join(w.root, p); states[p].Kind == manifest.KindFile && rapid.Bool().Draw(rt, "links") {
			for _, q := range paths {
				if q != p && states[q].Same(states[p]) && rapid.Bool().Draw(rt, "linked") && writable(filepath.Dir(filepath.Join(w.root, q))) {
					must.OK(w.t, os.Remove(filepath.Join(w.root, q)), os.Link(at, filepath.Join(w.root, q)))
				}
			}
		}
	}
	for _, p := range slices.Backward(append([]string{""}, paths...)) {
		at, s := filepath.Join(w.root, p), states[p]
		if p != "" && s.Kind != manifest.KindSymlink {
			s.Mode = adornOne(w.t, rt, at, s)
			states[p] = s
		}
		ts := []unix.Timespec{{Nsec: unix.UTIME_OMIT}, {Sec: rapid.Int64Range(0, 1_700_000_000).Draw(rt, "sec"), Nsec: rapid.Int64Range(0, 999_999_999).Draw(rt, "nsec")}}
		must.OK(w.t, unix.UtimesNanoAt(unix.AT_FDCWD, at, ts, unix.AT_SYMLINK_NOFOLLOW))
	}
}

func adornOne(t testing.TB, rt *rapid.T, at string, s State) uint32 {
	must.OK(t, unix.Chmod(at, 0o700))
	if rapid.Bool().Draw(rt, "attribute") {
		must.OK(t, unix.Setxattr(at, "user.of\x01person", []byte("a\x00value"), 0))
	}
	if s.Kind == manifest.KindDir && rapid.Bool().Draw(rt, "default list") {
		must.OK(t, unix.Setxattr(at, manifest.ACLDefault, aclOfOne, 0))
	}
	if rapid.Bool().Draw(rt, "list") {
		must.OK(t, unix.Setxattr(at, manifest.ACLAccess, aclOfOne, 0))
	}
	if os.Geteuid() == 0 && rapid.Bool().Draw(rt, "owned") {
		must.OK(t, os.Chown(at, 7, 8))
	}
	mode := s.Mode | rapid.SampledFrom([]uint32{0, unix.S_ISUID, unix.S_ISGID, unix.S_ISVTX, 0o7000}).Draw(rt, "set-ids")
	must.OK(t, unix.Chmod(at, mode))
	return mode
}

func writable(dir string) bool { return unix.Access(dir, unix.W_OK) == nil }

// inodesOf is treeOf with all else that there is, the folder itself too.
func inodesOf(t testing.TB, root string) tree {
	t.Helper()
	out, first := tree{}, map[uint64]string{}
	for p, s := range treeOf(t, root) {
		out[p] = s
	}
	out[""] = "the project"
	for _, p := range slices.SortedFunc(keys(out), order) {
		fd, err := unix.Open(filepath.Join(root, p), unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		must.OK(t, err)
		var st unix.Stat_t
		must.OK(t, inode.Fstat(fd, &st))
		m, err := inode.MetaOf(fd, &st)
		must.OK(t, err, unix.Close(fd))
		if _, ok := first[st.Ino]; !ok {
			first[st.Ino] = p
		}
		out[p] += fmt.Sprintf(" %o %d:%d %v %q", m.Mode, m.UID, m.GID, m.MTime, m.Xattrs)
		if inode.KindOf(&st) == manifest.KindFile {
			out[p] += fmt.Sprintf(" %d links, of %q", st.Nlink, first[st.Ino])
		}
	}
	return out
}

func keys(t tree) func(func(string) bool) {
	return func(yield func(string) bool) {
		for p := range t {
			if !yield(p) {
				return
			}
		}
	}
}

// What the person can't give is said before and after, and not given to somebody else.
func TestOwnerOfAnother(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root can")
	}
	s := Step{New: State{Kind: manifest.KindFile, Found: true, Meta: manifest.Meta{Mode: 0o4755, UID: 1, GID: 1}}}
	if got := s.Beyond(); got != "its owner 1:1, setuid and setgid" {
		t.Errorf("said: %q", got)
	}
	at := filepath.Join(t.TempDir(), "x")
	f, err := os.Create(at)
	must.OK(t, err)
	defer f.Close()
	x := &executor{}
	x.dress(int(f.Fd()), &s)
	var st unix.Stat_t
	must.OK(t, inode.Fstat(int(f.Fd()), &st))
	if st.Mode&0o7777 != 0o755 || len(x.left) != 1 || !strings.Contains(x.left[0].Text, "owner 1:1") {
		t.Errorf("mode %04o, left %q", st.Mode, x.left)
	}
}

// A name that goes, or gets content of its own, shares its file again when that is undone;
// one whose file was changed since doesn't.
func TestLinksComeBack(t *testing.T) {
	w := newWorld(t)
	w.write("a", "text", 0o644)
	must.OK(t, os.Mkdir(filepath.Join(w.root, "d"), 0o755), os.Link(filepath.Join(w.root, "a"), filepath.Join(w.root, "d/b")), os.Link(filepath.Join(w.root, "a"), filepath.Join(w.root, "c")))
	before := inodesOf(t, w.root)
	for _, news := range []map[string]State{
		{"a": {}}, {"a": {}, "c": {}}, {"a": {}, "c": {}, "d": {}, "d/b": {}}, {"a": w.bodies.file("own", 0o644), "d/b": w.bodies.file("other", 0o600)},
	} {
		name, left, err := w.carry(w.steps(news))
		if err != nil || len(left) > 0 {
			t.Fatalf("carry: %v %v", err, left)
		}
		if left, err := w.undo(name); err != nil || len(left) > 0 {
			t.Fatalf("undo: %v %v", err, left)
		}
		if d := inodesOf(t, w.root).diff(before); d != "" {
			t.Fatalf("undone:\n%s", d)
		}
	}
	name, _, err := w.carry(w.steps(map[string]State{"a": {}, "c": {}}))
	must.OK(t, err)
	w.write("d/b", "typed", 0o644)
	left, err := w.undo(name)
	if err != nil || w.read("a") != "text" || w.read("c") != "text" || w.read("d/b") != "typed" {
		t.Fatalf("undo: %v %v", err, left)
	}
}

// A file that was made anew is still known by its names, one that only looks like it isn't.
func TestLinksOfFileMadeAnew(t *testing.T) {
	w := fastWorld(t)
	w.write("d/a", "text", 0o4444)
	at := func(path string) string { return filepath.Join(w.root, path) }
	must.OK(t, os.Link(at("d/a"), at("b")), os.Link(at("d/a"), at("d/c")))
	w.write("copy", "text", 0o4444)
	var st unix.Stat_t
	must.OK(t, unix.Lstat(at("b"), &st), unix.UtimesNano(at("copy"), []unix.Timespec{st.Atim, st.Mtim}))
	for name, history := range map[string][]map[string]State{
		"the last name goes":         {{"d/a": {}}, {"d/c": {}}, {"b": {}}},
		"the last names go":          {{"d/a": {}}, {"d/c": {}, "b": {}}},
		"the last name is changed":   {{"d/a": {}, "b": {}}, {"d/c": w.bodies.file("own", 0o444)}},
		"all are changed":            {{"d/a": w.bodies.file("own", 0o644)}, {"b": dirState(0o755)}, {"d/c": link("b")}},
		"it is made anew repeatedly": {{"d/a": {}}, {"b": {}}, {"d/c": w.bodies.file("own", 0o600)}, {"copy": {}, "d/c": {}, "d": {}}},
	} {
		t.Run(name, func(t *testing.T) {
			before, n := inodesOf(t, w.root), w.n
			for _, news := range history {
				if _, left, err := w.carry(w.steps(news)); err != nil || len(left) > 0 {
					t.Fatalf("carry: %v %v", err, left)
				}
			}
			for i := w.n; i > n; i-- {
				if left, err := w.undo(fmt.Sprintf("test-%d", i)); err != nil || len(left) > 0 {
					t.Errorf("undo: %v %v", err, left)
				}
			}
			if d := inodesOf(t, w.root).diff(before); d != "" {
				t.Fatalf("undone:\n%s", d)
			}
		})
	}
}

// A file that took a name since isn't the one that had it, even if it got the same inode.
func TestLinksOfAnotherFile(t *testing.T) {
	w := newWorld(t)
	w.write("a", "text", 0o644)
	must.OK(t, os.Link(filepath.Join(w.root, "a"), filepath.Join(w.root, "b")))
	name, _, err := w.carry(w.steps(map[string]State{"a": {}}))
	must.OK(t, err, os.Remove(filepath.Join(w.root, "b")))
	w.write("b", "text", 0o644)
	left, err := w.undo(name)
	if err != nil || len(left) != 1 || left[0].Path != "a" {
		t.Errorf("undo: %v %v", err, left)
	}
}
