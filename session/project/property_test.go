package project

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"stepbox/runner/overlay/manifest"
	"stepbox/session/e2e/must"
)

func sorted(m map[string]State) []string {
	return slices.SortedFunc(maps.Keys(m), order)
}

// states draws what a folder has. Its names are few, so that kinds change.
func states(bodies *memory, label string) *rapid.Generator[map[string]State] {
	return rapid.Custom(func(t *rapid.T) map[string]State {
		out := map[string]State{}
		var fill func(dir string, depth int)
		fill = func(dir string, depth int) {
			for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d.e", "a-b", "\xff\n"}), 0, 3, rapid.ID).Draw(t, "names") {
				path := manifest.Join(dir, name)
				switch rapid.IntRange(0, 5).Draw(t, "kind") {
				case 0, 1, 2:
					text := rapid.SampledFrom([]string{"", "one\n", "two\n", "three\n", strings.Repeat("\x00", 9000) + "end"}).Draw(t, "text")
					out[path] = bodies.file(text, rapid.SampledFrom([]uint32{0o644, 0o755, 0o600, 0o444}).Draw(t, "mode"))
				case 3:
					out[path] = link(rapid.SampledFrom([]string{"a", "../nowhere", "/nowhere/at/all", "nowhere"}).Draw(t, "target"))
				default:
					out[path] = dirState(rapid.SampledFrom([]uint32{0o755, 0o700, 0o777, 0o555}).Draw(t, "mode"))
					if depth < 3 {
						fill(path, depth+1)
					}
				}
			}
		}
		fill("", 0)
		return out
	})
}

// readable leaves out steps in folders that can't be written to and have no step.
func possible(steps []Step, from map[string]State) bool {
	has := map[string]bool{}
	for _, s := range steps {
		has[s.Path] = true
	}
	for _, s := range steps {
		dir, _ := manifest.Split(s.Path)
		if from[dir].Kind == manifest.KindDir && from[dir].Mode&0o700 != 0o700 && !has[dir] {
			return false
		}
	}
	return true
}

// What is carried out is what was asked for, and undone it is what there was.
func TestHistories(t *testing.T) {
	w := attrWorld(t)
	t.Cleanup(w.clear)
	rapid.Check(t, func(rt *rapid.T) {
		from := states(w.bodies, "from").Draw(rt, "from")
		w.put(from)
		w.adorn(rt, from)
		var names []string
		var before []tree
		for range rapid.IntRange(1, 4).Draw(rt, "steps") {
			to := states(w.bodies, "to").Draw(rt, "to")
			steps := between(from, to)
			if os.Geteuid() != 0 && !possible(steps, from) {
				continue
			}
			was := inodesOf(t, w.root)
			name, res, err := w.carry(steps)
			if err != nil || len(res) > 0 {
				rt.Fatalf("carry: %v %+v", err, res)
			}
			if d := treeOf(t, w.root).diff(treeFor(to)); d != "" {
				rt.Fatalf("carried out:\n%s", d)
			}
			names, before, from = append(names, name), append(before, was), to
		}
		for i := len(names) - 1; i >= 0; i-- {
			if res, err := w.undo(names[i]); err != nil || len(res) > 0 {
				rt.Fatalf("undo: %v %+v", err, res)
			}
			if d := inodesOf(t, w.root).diff(before[i]); d != "" {
				rt.Fatalf("undone:\n%s", d)
			}
			must.OK(t, w.in.Remove(names[i]))
		}
	})
}

type killedAt struct{ at int }

// dying runs do until it has come to change something for the nth time, and there
// ends it as a kill would: what is on disk stays as it is. It says whether it came
// so far.
func dying(n int, do func()) (died bool) {
	left := n
	crashed = func() {
		if left--; left < 0 {
			panic(killedAt{n})
		}
	}
	defer func() {
		crashed = nil
		if r := recover(); r != nil {
			if _, ok := r.(killedAt); !ok {
				panic(r)
			}
			died = true
		}
	}()
	do()
	return false
}

// allKinds has a change of each kind to each other, in folders that come, go, stay
// and can't be written to.
func allKinds(b *memory) (from, to map[string]State) {
	from, to = map[string]State{}, map[string]State{}
	one := map[string]func(m map[string]State, p string, after bool){
		"none": func(map[string]State, string, bool) {},
		"file": func(m map[string]State, p string, after bool) { m[p] = b.file(fmt.Sprint("file ", after), 0o644) },
		"exec": func(m map[string]State, p string, after bool) { m[p] = b.file("the same", 0o755) },
		"link": func(m map[string]State, p string, after bool) { m[p] = link(fmt.Sprint("to ", after)) },
		"dir": func(m map[string]State, p string, after bool) {
			m[p] = dirState(map[bool]uint32{false: 0o755, true: 0o700}[after])
		},
		"full": func(m map[string]State, p string, after bool) {
			m[p] = dirState(0o755)
			m[p+"/in"] = dirState(map[bool]uint32{false: 0o555, true: 0o511}[after])
			m[p+"/in/x"] = b.file(fmt.Sprint("x ", after), 0o600)
			m[p+"/y"] = link("in/x")
		},
	}
	for x, make := range one {
		for y, makeAfter := range one {
			make(from, x+"-"+y, false)
			makeAfter(to, x+"-"+y, true)
		}
	}
	return from, to
}

// Killed anywhere, and killed again while it recovers, a carry or an undo is
// finished or taken back, and the journal says which.
func TestKilledAnywhere(t *testing.T) {
	w := fastWorld(t)
	t.Cleanup(w.clear)
	from, to := allKinds(w.bodies)
	before, after := treeFor(from), treeFor(to)
	check := func(n int, undo bool) {
		t.Helper()
		open, err := w.in.find()
		must.OK(t, err)
		for _, r := range open {
			if r.open() {
				t.Fatalf("killed at %d: %s.%s is still open", n, r.name, r.stage)
			}
		}
		j, err := w.in.Read("k")
		if errors.Is(err, os.ErrNotExist) {
			j.Phase = Failed // it wasn't begun
		} else {
			must.OK(t, err)
		}
		want := map[Phase]tree{Done: after, Failed: before, Undone: before}[j.Phase]
		if want == nil {
			t.Fatalf("killed at %d: it is %s", n, j.Phase)
		}
		if d := treeOf(t, w.root).diff(want); d != "" {
			t.Fatalf("killed at %d, and it is %s:\n%s", n, j.Phase, d)
		}
	}
	reset := func(done bool) {
		_ = w.in.Remove("k")
		w.put(from)
		if done {
			f := w.open()
			defer f.Close()
			_, err := f.Carry(t.Context(), w.in, "k", between(from, to), nil)
			must.OK(t, err)
		}
	}
	recover := func(n int) {
		t.Helper()
		got, err := w.in.Recover(t.Context())
		must.OK(t, err)
		for _, r := range got {
			if r.Err != nil || len(r.Left) > 0 {
				t.Fatalf("killed at %d: %v %+v", n, r.Err, r.Left)
			}
		}
	}
	second := 1
	for _, undo := range []bool{false, true} {
		for n, died := 0, true; died; n++ {
			reset(undo)
			died = dying(n, func() {
				f := w.open()
				defer f.Close()
				var err error
				var res []manifest.Problem
				if undo {
					res, err = f.Undo(t.Context(), w.in, "k", nil)
				} else {
					res, err = f.Carry(t.Context(), w.in, "k", between(from, to), nil)
				}
				if err != nil || len(res) > 0 {
					t.Fatalf("undo %v: %v %+v", undo, err, res)
				}
			})
			second = (second*31 + 7) % 97
			dying(second, func() { _, _ = w.in.Recover(t.Context()) })
			dying(second/3, func() { _, _ = w.in.Recover(t.Context()) })
			recover(n)
			check(n, undo)
		}
	}
}
