package project

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"stepbox/runner/overlay/content"
	"stepbox/runner/overlay/manifest"
	"stepbox/session/e2e/must"
)

// found says where bytes are: below the project, or in the bodies.
func (w *world) found(text string) string {
	w.t.Helper()
	if w.bodies.has(content.Sum([]byte(text))) {
		return "the record"
	}
	where := ""
	must.OK(w.t, filepath.WalkDir(filepath.Dir(w.root), func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if b, err := os.ReadFile(p); err == nil && bytes.Equal(b, []byte(text)) {
				where = p
			}
		}
		return err
	}))
	return where
}

// beside are the names beside that are left in the project.
func (w *world) beside() (left []string) {
	w.t.Helper()
	must.OK(w.t, filepath.WalkDir(w.root, func(p string, d fs.DirEntry, err error) error {
		if strings.HasPrefix(d.Name(), tempPrefix) {
			left = append(left, p)
		}
		return err
	}))
	return left
}

const typed = "what the person typed"

// edits are what a person's programs do to a path.
func edits() map[string]func(w *world, path string) error {
	in := func(w *world, p string) string { return filepath.Join(w.root, p) }
	return map[string]func(w *world, path string) error{
		"writes in place": func(w *world, path string) error {
			f, err := os.OpenFile(in(w, path), os.O_WRONLY|os.O_TRUNC, 0)
			if err != nil {
				return err
			}
			_, err = f.WriteString(typed)
			return errors.Join(err, f.Close())
		},
		"saves by renaming": func(w *world, path string) error {
			return errors.Join(os.WriteFile(in(w, path)+"~", []byte(typed), 0o644), os.Rename(in(w, path)+"~", in(w, path)))
		},
		"deletes and writes": func(w *world, path string) error {
			return errors.Join(os.Remove(in(w, path)), os.WriteFile(in(w, path), []byte(typed), 0o644))
		},
		"makes a folder": func(w *world, path string) error {
			return errors.Join(os.RemoveAll(in(w, path)), os.Mkdir(in(w, path), 0o755), os.WriteFile(filepath.Join(in(w, path), "n"), []byte(typed), 0o644))
		},
		"makes a link out": func(w *world, path string) error {
			return errors.Join(os.RemoveAll(in(w, path)), os.Symlink("/etc", in(w, path)))
		},
		"moves the folder away": func(w *world, path string) error {
			return os.Rename(filepath.Dir(in(w, path)), in(w, "moved"))
		},
		"puts a link for the folder": func(w *world, path string) error {
			out := filepath.Join(filepath.Dir(w.root), "out")
			return errors.Join(os.Rename(filepath.Dir(in(w, path)), out), os.Symlink(out, filepath.Dir(in(w, path))))
		},
	}
}

// An editor that does something between any two changes that a carry, or its
// undoing, makes, also when that is killed right after it and recovered: what it
// wrote is still there, or is named and stored, and so is what was there before.
func TestEditorAnywhere(t *testing.T) {
	for name, edit := range edits() {
		for _, path := range []string{"d/changed", "d/deleted", "d/new", "d/tree/x", "gone/x"} {
			t.Run(name+" at "+path, func(t *testing.T) {
				types := !strings.Contains(name, "link") && !strings.Contains(name, "away")
				for _, killed := range []int{0, 1, 2} { // changes later; 0 never
					for n, more := 0, true; more; n++ {
						more = editAt(t, n, killed, path, edit, types)
					}
				}
			})
		}
	}
}

// editAt carries out steps with an edit before the nth change, and says whether
// there was such a change.
func editAt(t *testing.T, n, killed int, path string, edit func(w *world, path string) error, types bool) bool {
	w := fastWorld(t)
	for _, p := range []string{"d/changed", "d/deleted", "gone/x", "d/other"} {
		w.write(p, "old "+p, 0o644)
	}
	steps := w.steps(map[string]State{
		"d/changed": w.bodies.file("new", 0o644), "d/deleted": {}, "d/new": w.bodies.file("added", 0o644),
		"d/tree": dirState(0o755), "d/tree/x": w.bodies.file("x", 0o644), "d/tree/y": link("x"), "gone": {}, "gone/x": {},
	})
	edited, left, res, err := false, n, []manifest.Problem(nil), error(nil)
	func() {
		defer func() {
			crashed = nil
			if r := recover(); r != nil && r != any(killedAt{n}) {
				panic(r)
			}
		}()
		crashed = func() {
			if left--; left == -1 {
				edited = edit(w, path) == nil
			} else if killed > 0 && left == -1-killed {
				panic(killedAt{n})
			}
		}
		_, res, err = w.carry(steps)
	}()
	again, rerr := w.in.Recover(t.Context())
	must.OK(t, rerr)
	for _, r := range again {
		if res = append(res, r.Left...); r.Err != nil {
			t.Fatalf("before change %d: recover: %v", n, r.Err)
		}
	}
	if edited && w.found(typed) == "" && types {
		t.Fatalf("before change %d: lost what was typed; %v %+v", n, err, res)
	}
	for _, p := range []string{"d/changed", "d/deleted", "gone/x", "d/other"} {
		if w.found("old "+p) == "" {
			t.Fatalf("before change %d: lost %s; %v %+v", n, p, err, res)
		}
	}
	for _, p := range w.beside() {
		rel, _ := filepath.Rel(w.root, p)
		named := false
		for _, l := range res {
			named = named || strings.Contains(l.Text, filepath.Base(rel)) || strings.Contains(l.Text, "moved away")
		}
		if !named {
			t.Fatalf("before change %d: %s is left and not named; %v %+v", n, rel, err, res)
		}
	}
	if _, err := os.Lstat("/etc/x"); err == nil {
		t.Fatal("written outside")
	}
	if !edited && left < 0 { // the edit wasn't possible then
		return true
	}
	if err != nil && edited {
		var refused *RefusedError
		if !errors.As(err, &refused) && !errors.Is(err, ErrMoved) {
			t.Fatalf("before change %d: %v", n, err)
		}
	}
	return left < 0
}

// A carry under a living editor, again and again: whatever the editor saved last
// is there, stored, or named.
func TestLivingEditor(t *testing.T) {
	w := newWorld(t)
	const files = 20
	paths := make([]string, files)
	for i := range paths {
		paths[i] = fmt.Sprintf("d%d/f%d", i%3, i)
		w.write(paths[i], "start", 0o644)
	}
	saved := make([]string, 0, 4096)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			default:
			}
			p, text := filepath.Join(w.root, paths[n*7%files]), fmt.Sprintf("typed %d", n)
			if n%2 == 0 {
				f, err := os.OpenFile(p, os.O_WRONLY|os.O_TRUNC, 0)
				if err != nil {
					continue
				}
				_, err = f.WriteString(text)
				if errors.Join(err, f.Close()) != nil {
					continue
				}
			} else if os.WriteFile(p+"~", []byte(text), 0o644) != nil || os.Rename(p+"~", p) != nil {
				continue
			}
			saved = append(saved, paths[n*7%files]+" "+text)
		}
	})
	done := 0
	for round := range 200 {
		news := map[string]State{}
		for i := range 4 {
			news[paths[(round*5+i*3)%files]] = w.bodies.file(fmt.Sprintf("agent %d", round), 0o644)
		}
		f := w.open()
		var steps []Step
		for p, s := range news {
			old, err := f.Keep(t.Context(), p, w.bodies)
			if err == nil {
				steps = append(steps, Step{p, old, s})
			}
		}
		name := fmt.Sprint("round-", round)
		_, err := f.Carry(t.Context(), w.in, name, steps, nil)
		must.OK(t, f.Close())
		var refused *RefusedError
		switch {
		case err == nil:
			done++
		case !errors.As(err, &refused) && !strings.Contains(err.Error(), content.ErrMoved.Error()):
			t.Fatalf("round %d: %v", round, err)
		}
	}
	close(stop)
	wg.Wait()
	last := map[string]string{}
	for _, s := range saved {
		p, text, _ := strings.Cut(s, " ")
		last[p] = text
	}
	for p, text := range last {
		if w.found(text) == "" {
			t.Errorf("%s: %q is lost", p, text)
		}
	}
	t.Logf("%d of 200 were carried out, %d saves", done, len(saved))
}

// What a program has open for writing isn't replaced: before, and when it opens it
// while others are put in place.
func TestLivingWriter(t *testing.T) {
	w := newWorld(t)
	w.write("log", "one\n", 0o644)
	w.write("other", "o", 0o644)
	steps := w.steps(map[string]State{"log": w.bodies.file("agent", 0o644), "other": w.bodies.file("agent", 0o644)})
	before := treeOf(t, w.root)
	logger, err := os.OpenFile(filepath.Join(w.root, "log"), os.O_WRONLY|os.O_APPEND, 0)
	must.OK(t, err)
	_, _, err = w.carry(steps)
	if err == nil || !strings.Contains(err.Error(), "open for writing") {
		t.Errorf("with a writer: %v", err)
	}
	must.OK(t, logger.Close())
	if d := treeOf(t, w.root).diff(before); d != "" {
		t.Errorf("written:\n%s", d)
	}
	for n := 0; ; n++ {
		left, logger := n, (*os.File)(nil)
		crashed = func() {
			if left--; left == -1 {
				logger, _ = os.OpenFile(filepath.Join(w.root, "log"), os.O_WRONLY|os.O_APPEND, 0)
			}
		}
		name, res, err := w.carry(steps)
		crashed = nil
		if logger == nil {
			t.Logf("%d changes", n)
			break
		}
		_, werr := logger.WriteString("late\n")
		must.OK(t, werr, logger.Close())
		late := "one\nlate\n"
		if err == nil && w.read("log") == "agentlate\n" {
			late = "agentlate\n" // it opened the new one
		}
		if w.found(late) == "" {
			t.Fatalf("opened before change %d: lost what it wrote; %v %+v", n, err, res)
		}
		_ = w.in.Remove(name)
		w.clear()
		w.write("log", "one\n", 0o644)
		w.write("other", "o", 0o644)
	}
}

// Cancelled anywhere, it is as it was, or all of it is done.
func TestCancelledAnywhere(t *testing.T) {
	w := fastWorld(t)
	t.Cleanup(w.clear)
	from, to := allKinds(w.bodies)
	cancelled := 0
	for n := 0; ; n += 3 {
		w.put(from)
		ctx, cancel := context.WithCancel(t.Context())
		left := n
		crashed = func() {
			if left--; left == -1 {
				cancel()
			}
		}
		f := w.open()
		res, err := f.Carry(ctx, w.in, fmt.Sprint("c-", n), between(from, to), nil)
		must.OK(t, f.Close())
		crashed = nil
		cancel()
		want := treeFor(to)
		if err != nil {
			want = treeFor(from)
			cancelled++
			if !errors.Is(err, context.Canceled) || len(res) > 0 {
				t.Fatalf("cancelled before change %d: %v %+v", n, err, res)
			}
		}
		if d := treeOf(t, w.root).diff(want); d != "" {
			t.Fatalf("cancelled before change %d: %v\n%s", n, err, d)
		}
		if left >= 0 {
			break
		}
	}
	if cancelled == 0 {
		t.Error("it was never cancelled")
	}
}

// One project is written by one at a time, and who is at it is left alone.
func TestOneAtATime(t *testing.T) {
	w := newWorld(t)
	w.write("a", "one", 0o644)
	n := 0
	crashed = func() {
		hook := crashed
		crashed = nil
		defer func() { crashed = hook }()
		n++
		if _, _, err := w.carry([]Step{{Path: "b", New: w.bodies.file("b", 0o644)}}); !errors.Is(err, ErrBusy) {
			t.Errorf("before change %d: %v", n, err)
		}
		if got, err := w.in.Recover(t.Context()); err != nil || len(got) > 0 {
			t.Errorf("before change %d: recovered %+v %v", n, got, err)
		}
	}
	_, _, err := w.carry(w.steps(map[string]State{"a": w.bodies.file("two", 0o644)}))
	crashed = nil
	must.OK(t, err)
	// Another project isn't held up, and one that was left half-way is mended first.
	steps := w.steps(map[string]State{"a": w.bodies.file("three", 0o644)})
	f := w.open()
	defer f.Close()
	if !dying(8, func() { _, _ = f.Carry(t.Context(), w.in, "dead", steps, nil) }) {
		t.Fatal("it had fewer changes")
	}
	if _, _, err := w.carry(steps); !errors.Is(err, ErrUnfinished) {
		t.Errorf("on top of one that is half-way: %v", err)
	}
	if err := w.in.Remove("dead"); !errors.Is(err, ErrUnfinished) {
		t.Errorf("removed: %v", err)
	}
}
