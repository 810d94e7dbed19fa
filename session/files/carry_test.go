package files

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"stepbox/runner/overlay/lower"
	"stepbox/runner/overlay/manifest"
	"stepbox/session/api"
	"stepbox/session/e2e/must"
	"stepbox/session/merge"
	"stepbox/store"
)

// overlaid is a project and an upper that are written as overlayfs would, without
// a mount: what is removed of the project is a whiteout, a folder that is made in
// the place of one is opaque.
type overlaid struct {
	project, upper string
	*Files
	close func()
}

func newOverlaid(dir string) (*overlaid, error) {
	o := &overlaid{project: filepath.Join(dir, "project"), upper: filepath.Join(dir, "upper")}
	data := filepath.Join(dir, "data")
	for _, d := range []string{o.project, o.upper, data} {
		if err := os.Mkdir(d, 0o700); err != nil {
			return nil, err
		}
	}
	st, err := store.Open(context.Background(), data)
	if err != nil {
		return nil, err
	}
	o.close = func() { _ = st.Close() }
	o.Files, err = Open(st, "test", o.project, lower.Options{}, nil)
	return o, err
}

// attach begins to look, once the project is made.
func (o *overlaid) attach() error {
	was := o.close
	o.close = func() { o.Close(); was() }
	return o.Attach(o.upper, nil, nil, time.Time{})
}

// shows says whether the project shows through at a path.
func (o *overlaid) shows(path string) bool {
	if _, err := os.Lstat(filepath.Join(o.project, path)); err != nil {
		return false
	}
	for at := parent(path); at != ""; at = parent(at) {
		st, err := os.Lstat(filepath.Join(o.upper, at))
		if err != nil {
			continue
		}
		n, _ := unix.Lgetxattr(filepath.Join(o.upper, at), "user.overlay.opaque", nil)
		if !st.IsDir() || n > 0 {
			return false
		}
	}
	return true
}

// is what the agent sees at a path.
func (o *overlaid) is(path string) os.FileInfo {
	st, err := os.Lstat(filepath.Join(o.upper, path))
	switch {
	case err == nil && st.Mode()&os.ModeCharDevice != 0:
		return nil
	case err == nil:
		return st
	case !o.shows(path):
		return nil
	}
	st, _ = os.Lstat(filepath.Join(o.project, path))
	return st
}

// ready makes the folders above a path in the upper, in place of whatever is there.
func (o *overlaid) ready(path string) error {
	if path == "" {
		return nil
	}
	if err := o.ready(parent(path)); err != nil {
		return err
	}
	now := o.is(path)
	at := filepath.Join(o.upper, path)
	if now != nil && now.IsDir() {
		err := os.Mkdir(at, now.Mode().Perm())
		if errors.Is(err, os.ErrExist) {
			return nil
		}
		return err
	}
	if err := o.remove(path); err != nil {
		return err
	}
	white := os.Remove(at) == nil
	err := os.Mkdir(at, 0o755)
	if err == nil && white {
		err = unix.Setxattr(at, "user.overlay.opaque", []byte("y"), 0)
	}
	return err
}

func (o *overlaid) remove(path string) error {
	at := filepath.Join(o.upper, path)
	if o.is(path) == nil {
		return nil
	}
	if err := o.ready(parent(path)); err != nil {
		return err
	}
	if err := os.RemoveAll(at); err != nil {
		return err
	}
	if o.shows(path) {
		return unix.Mknod(at, unix.S_IFCHR, 0)
	}
	return nil
}

// put puts something in a path's place: a text, "@target" for a link, "!" for a
// FIFO, "/" for an empty folder.
func (o *overlaid) put(path, what string, mode os.FileMode) error {
	if err := o.ready(parent(path)); err != nil {
		return err
	}
	at := filepath.Join(o.upper, path)
	if what == "/" {
		return o.ready(path)
	}
	if st := o.is(path); st == nil || !st.Mode().IsRegular() || what[0] == '@' || what[0] == '!' {
		if err := o.remove(path); err != nil {
			return err
		}
		if err := os.RemoveAll(at); err != nil {
			return err
		}
	}
	switch what[0] {
	case '@':
		return os.Symlink(what[1:], at)
	case '!':
		return unix.Mkfifo(at, 0o600)
	}
	return errors.Join(os.WriteFile(at, []byte(what), mode), os.Chmod(at, mode))
}

// tree is what the agent sees: files, links and FIFOs by path, and folders with
// nothing in them.
func (o *overlaid) tree() map[string]string {
	out := make(map[string]string)
	var walk func(path string) bool
	walk = func(path string) bool {
		names := make(map[string]bool)
		for _, top := range []string{o.project, o.upper} {
			list, _ := os.ReadDir(filepath.Join(top, path)) // it may be in one only
			for _, e := range list {
				names[e.Name()] = true
			}
		}
		some := false
		for name := range names {
			at := manifest.Join(path, name)
			st := o.is(at)
			if st == nil {
				continue
			}
			some = true
			real := filepath.Join(o.upper, at)
			if _, err := os.Lstat(real); err != nil {
				real = filepath.Join(o.project, at)
			}
			switch {
			case st.IsDir():
				if !walk(at) {
					out[at] = "/"
				}
			case st.Mode()&os.ModeSymlink != 0:
				target, _ := os.Readlink(real)
				out[at] = "@" + target
			case st.Mode().IsRegular():
				b, _ := os.ReadFile(real)
				out[at] = fmt.Sprintf("%o %s", st.Mode().Perm(), b)
			default:
				out[at] = "!"
			}
		}
		return some
	}
	walk("")
	return out
}

// state is a manifest's tree, in the same words.
func (o *overlaid) state(t *rapid.T, m *manifest.Manifest, first map[string]string) map[string]string {
	out := maps.Clone(first)
	changes, err := o.differs(context.Background(), nil, m)
	must.OK(t, err)
	for path, c := range byPath(changes) {
		delete(out, path)
		if c.then == nil {
			continue
		}
		switch c.then.Kind {
		case manifest.KindDir:
			continue // only those that are empty count
		case manifest.KindSymlink:
			out[path] = "@" + c.then.Target
		case manifest.KindFIFO:
			out[path] = "!"
		default:
			b, err := o.Read(context.Background(), c.then, 1<<20)
			if err != nil {
				t.Fatalf("%s of %+v: %v", path, c.then.Entry, err)
			}
			out[path] = fmt.Sprintf("%o %s", c.then.Mode, b)
		}
	}
	maps.DeleteFunc(out, func(_, what string) bool { return what == "/" })
	return out
}

func (o *overlaid) check(t *rapid.T) *manifest.Manifest {
	m, err := o.Scan(context.Background())
	must.OK(t, err)
	return m
}

var somePaths = []string{"a", "b", "d", "d/x", "d/y", "d/e", "d/e/f", "d/e/g", "n", "n/x", "\x1b\xff"}

// act does what an action would, and gives the state after it.
func (o *overlaid) act(t *rapid.T, n int) {
	for range rapid.IntRange(1, 4).Draw(t, "steps") {
		path := rapid.SampledFrom(somePaths).Draw(t, "path")
		var err error
		switch rapid.IntRange(0, 7).Draw(t, "what") {
		case 0, 1:
			err = o.remove(path)
		case 2:
			err = o.put(path, rapid.SampledFrom([]string{"@a", "@d", "!", "/"}).Draw(t, "kind"), 0)
		case 3:
			if st := o.is(path); st != nil && st.Mode().IsRegular() {
				text := o.tree()[path]
				_, text, _ = strings.Cut(text, " ")
				err = o.put(path, text, rapid.SampledFrom([]os.FileMode{0o600, 0o644, 0o755}).Draw(t, "mode"))
			}
		default: // a line of the file that is there, or a new file
			lines := []string{"1\n", "2\n", "3\n", "4\n", "5\n", "6\n", "7\n"}
			mode := os.FileMode(0o644)
			if st := o.is(path); st != nil && st.Mode().IsRegular() {
				_, text, _ := strings.Cut(o.tree()[path], " ")
				if lines, mode = strings.SplitAfter(text, "\n"), st.Mode().Perm(); len(lines) > 0 {
					lines[rapid.IntRange(0, len(lines)-1).Draw(t, "line")] = fmt.Sprintf("action %d\n", n)
				}
			}
			err = o.put(path, strings.Join(lines, "")+"", mode)
		}
		if err != nil {
			t.Fatalf("cannot play an action at %q: %v", path, err)
		}
	}
}

// expected is what taking a change back from what is there comes to by the rules,
// path by path: now is what is there, found and made what the change found and
// made. Ok is false for a conflict.
func expected(found, made, now string) (want string, ok bool) {
	switch {
	case found == made || now == found:
		return now, true
	case now == made:
		return found, true
	}
	f, m, n := strings.SplitN(found, " ", 2), strings.SplitN(made, " ", 2), strings.SplitN(now, " ", 2)
	if len(f) < 2 || len(m) < 2 || len(n) < 2 {
		return now, false
	}
	mode := n[0]
	switch {
	case n[0] == m[0]:
		mode = f[0]
	case f[0] != m[0] && f[0] != n[0]:
		return now, false
	}
	r := merge.Three([]byte(m[1]), []byte(n[1]), []byte(f[1]))
	return mode + " " + string(r.Text), r.Clean
}

// near says whether one path is in the folder that the other is, or the same.
func near(a, b string) bool {
	return a == b || strings.HasPrefix(a, b+"/") || strings.HasPrefix(b, a+"/")
}

// TestTakeBackOne: of a random history one action is taken back. What isn't named
// as a conflict or a problem is exactly as the rules have it; what is named is
// untouched, and for a reason. To take the whole back, and have it come again, gives
// what was there. More cases with -rapid.checks.
func TestTakeBackOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp("", "stepbox-test-carry-")
		must.OK(t, err)
		defer os.RemoveAll(dir)
		o, err := newOverlaid(dir)
		must.OK(t, err)
		defer func() { o.close() }()
		for _, path := range []string{"a", "d/x", "d/e/f", "n"} {
			if rapid.Bool().Draw(t, path) {
				if err := errors.Join(os.MkdirAll(filepath.Join(o.project, parent(path)), 0o755),
					os.WriteFile(filepath.Join(o.project, path), []byte("1\n2\n3\n4\n5\n6\n7\n"), 0o644)); err != nil {
					t.Fatal(err)
				}
			}
		}
		must.OK(t, o.attach())
		first := o.tree()
		states, trees := []*manifest.Manifest{o.check(t)}, []map[string]string{first}
		for n := range rapid.IntRange(1, 5).Draw(t, "actions") {
			o.act(t, n+1)
			states, trees = append(states, o.check(t)), append(trees, o.tree())
		}
		k := rapid.IntRange(1, len(states)-1).Draw(t, "taken back")
		now := len(states) - 1
		done := carried{to: states[now]}
		whole, err := done.carry(context.Background(), carrying{Files: o.Files, from: states[k], to: states[k-1]})
		must.OK(t, err)
		named := make(map[string]bool)
		for _, m := range done.conflicts {
			path, err := api.PathOf(m.Key)
			if err != nil || m.Why == "" || named[path] {
				t.Fatalf("a conflict is %+v", m)
			}
			named[path] = true
		}
		for _, p := range done.problems {
			named[p.Path] = true
		}
		got := o.state(t, done.to, first)
		leaves := func(tree map[string]string) map[string]string {
			out := maps.Clone(tree)
			maps.DeleteFunc(out, func(_, what string) bool { return what == "/" })
			return out
		}
		for _, path := range somePaths {
			found, made, there := leaves(trees[k-1])[path], leaves(trees[k])[path], leaves(trees[now])[path]
			want, ok := expected(found, made, there)
			switch {
			case named[path]:
				if got[path] != there {
					t.Fatalf("%q is in conflict, and became %q from %q", path, got[path], there)
				}
				nowhere := trees[k-1][path] == "/" && parent(path) != "" && trees[now][parent(path)] != "/" // a folder to come back to one that is gone
				if ok && want == there && trees[now][path] == trees[k][path] && !nowhere && !slices.ContainsFunc(slices.Collect(maps.Keys(trees[now])), func(p string) bool { return p != path && near(p, path) }) {
					t.Fatalf("%q is named for no reason: found %q, made %q, there %q", path, found, made, there)
				}
			case got[path] == want && ok:
			case slices.ContainsFunc(slices.Collect(maps.Keys(named)), func(n string) bool { return near(n, path) }) && got[path] == there:
			default:
				// A rename takes others' lines along: then both names are as the change found them, but for those.
				content := func(entry string) string { _, text, _ := strings.Cut(entry, " "); return text }
				if slices.ContainsFunc(slices.Collect(maps.Keys(done.merged)), func(from string) bool {
					return from == path || content(trees[k][from]) == content(found)
				}) {
					continue
				}
				t.Fatalf("%q is %q; found %q, made %q, there %q, want %q (%v)\nnamed %q", path, got[path], found, made, there, want, ok, slices.Collect(maps.Keys(named)))
			}
		}
		if whole && len(done.conflicts) > 0 {
			t.Fatalf("it is whole in spite of %v and %v", done.conflicts, done.problems)
		}
		again := carried{to: done.to}
		_, err = again.carry(context.Background(), carrying{Files: o.Files, from: done.to, to: states[now]})
		if err != nil || len(again.conflicts)+len(again.problems) > 0 {
			t.Fatalf("it comes again with %v, %v, %v", again.conflicts, again.problems, err)
		}
		if left, err := o.differs(context.Background(), again.to, states[now]); err != nil || len(left) > 0 {
			t.Fatalf("after it came again %v differ, %v", left, err)
		}
	})
}
