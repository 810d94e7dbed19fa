package session_test

import (
	"strings"
	"testing"

	"stepbox/session/api"
)

// TestRedoAndReview: an action is taken back exactly while nothing of it is there, however
// parts of it went and came again, and a session that goes on finds it so.
func TestRedoAndReview(t *testing.T) {
	t.Parallel()
	part := func(n int, globs ...string) api.RollbackTarget {
		return api.RollbackTarget{Selection: &api.Selection{Actions: []int{n}, Globs: globs}}
	}
	redo := func(id int64) api.RollbackTarget { return api.RollbackTarget{Redo: id} }
	const there, gone = api.ReviewOpen, api.ReviewRolledBack
	type step struct {
		target api.RollbackTarget
		a, n   string // what the two files have then
		review api.Review
	}
	const n = 3 // the action, after the FIFO and what was there before
	for name, steps := range map[string][]step{
		"whole": {
			{only(n), "", "", gone}, {redo(1), "b\n", "n\n", there}, {redo(2), "", "", gone}, {redo(3), "b\n", "n\n", there}, {redo(4), "", "", gone},
		},
		"to before": {
			{api.Before(n), "", "", gone}, {redo(1), "b\n", "n\n", there}, {redo(2), "", "", gone}, {redo(3), "b\n", "n\n", there},
		},
		"the first part comes again": {
			{part(n, "n"), "b\n", "", there}, {only(n), "", "", gone}, {redo(1), "", "n\n", there}, {redo(3), "", "", gone}, {redo(4), "", "n\n", there}, {only(n), "", "", gone},
		},
		"both parts, and away in order": {
			{part(n, "n"), "b\n", "", there}, {only(n), "", "", gone}, {redo(1), "", "n\n", there}, {redo(2), "b\n", "n\n", there},
			{redo(3), "b\n", "", there}, {redo(4), "", "", gone},
		},
		"both parts, and away the other way": {
			{part(n, "n"), "b\n", "", there}, {only(n), "", "", gone}, {redo(2), "b\n", "", there}, {redo(1), "b\n", "n\n", there},
			{redo(3), "", "n\n", there}, {redo(4), "", "", gone},
		},
		"a part, then all by going back": {
			{part(n, "n"), "b\n", "", there}, {api.Before(n), "", "", gone}, {redo(1), "", "n\n", there},
		},
	} {
		for when, resumed := range map[string]bool{"": false, ", resumed now and then": true} {
			t.Run(name+when, func(t *testing.T) {
				d := drive(t, api.ModePolicy, nil)
				d.run("echo base >base")
				if got := d.run("echo n >n; echo b >a"); got != n {
					t.Fatalf("it is action %d", got)
				}
				away := map[int64]bool{}
				for i, s := range steps {
					if resumed && i%2 == 1 {
						d.again(func(string) {})
					}
					_, done := d.take(s.target)
					if away[done.ID] = s.target.Redo > 0 && steps[s.target.Redo-1].target.Redo > 0 && !away[s.target.Redo]; done.Away != away[done.ID] {
						t.Errorf("step %d: away is %v", i, done.Away)
					}
					if a, n := d.has("a"), d.has("n"); a != s.a || n != s.n {
						t.Errorf("step %d: the files are %q and %q, want %q and %q", i, a, n, s.a, s.n)
					}
					if got := d.review(n); got != s.review {
						t.Errorf("step %d: the action is %q, want %q", i, got, s.review)
					}
				}
				_, err := d.Kill(t.Context())
				d.must(err)
				d.must(verified(t.Context(), d.store, d.ID()))
			})
		}
	}
}

// TestRedoOfOneOfMany: what a redo puts in is of those that were there when it was taken
// out, and of the lines that they changed.
func TestRedoOfOneOfMany(t *testing.T) {
	t.Parallel()
	const there, gone = api.ReviewOpen, api.ReviewRolledBack
	redo := func(id int64) api.RollbackTarget { return api.RollbackTarget{Redo: id} }
	expect := func(d *driven, what, f string, reviews map[int]api.Review) {
		t.Helper()
		if got := d.has("f"); got != f {
			t.Errorf("%s: f is %q, want %q", what, got, f)
		}
		for n, want := range reviews {
			if got := d.review(n); got != want {
				t.Errorf("%s: action %d is %q, want %q", what, n, got, want)
			}
		}
	}
	t.Run("tried again", func(t *testing.T) {
		d := drive(t, api.ModePolicy, nil)
		d.run("echo 0 >f")
		first := d.run("echo 1 >f")
		d.take(only(first))
		second := d.run("echo 2 >f")
		d.take(only(second))
		d.take(redo(2))
		expect(d, "redone", "2\n", map[int]api.Review{first: gone, second: there})
	})
	t.Run("other lines", func(t *testing.T) {
		d := drive(t, api.ModePolicy, nil)
		d.run("seq 7 >f")
		first := d.run("sed -i s/1/one/ f")
		second := d.run("sed -i s/7/seven/ f")
		d.take(only(first))
		d.take(only(second))
		d.take(redo(1))
		expect(d, "redone", "one\n2\n3\n4\n5\n6\n7\n", map[int]api.Review{first: there, second: gone})
		d.take(redo(3))
		expect(d, "away", seven, map[int]api.Review{first: gone, second: gone})
	})
	t.Run("undone by others", func(t *testing.T) {
		d := drive(t, api.ModePolicy, nil)
		d.run("seq 7 >f")
		first := d.run("sed -i s/1/one/ f")
		d.run("sed -i s/one/1/ f")
		last := d.run("sed -i s/7/seven/ f")
		d.take(only(last))
		d.take(redo(1))
		d.take(redo(2))
		expect(d, "away", seven, map[int]api.Review{first: there, last: gone})
	})
	t.Run("in conflict at first", func(t *testing.T) {
		d := drive(t, api.ModePolicy, nil)
		d.run("echo 0 >f")
		first := d.run("echo 1 >f; echo 1 >g")
		second := d.run("echo 2 >f")
		d.take(only(first))
		if d.has("g") != "" {
			t.Error("g is there")
		}
		expect(d, "in part", "2\n", map[int]api.Review{first: there, second: there})
		d.take(only(second))
		d.take(only(first))
		expect(d, "the rest", "0\n", map[int]api.Review{first: gone, second: gone})
		d.take(redo(1))
		if d.has("g") != "1\n" {
			t.Error("g isn't there")
		}
		expect(d, "redone", "0\n", map[int]api.Review{first: there, second: gone})
	})
	t.Run("in part, since the rest is in conflict", func(t *testing.T) {
		d := drive(t, api.ModePolicy, nil)
		d.run("echo 0 >f")
		first := d.run("echo 1 >f; echo 1 >g")
		d.take(only(first))
		d.run("echo 2 >f")
		d.take(redo(1))
		if d.has("g") != "1\n" {
			t.Error("g isn't there")
		}
		expect(d, "redone", "2\n", map[int]api.Review{first: there})
	})
	t.Run("made again by hand", func(t *testing.T) {
		d := drive(t, api.ModePolicy, nil)
		first := d.run("echo 1 >f")
		second := d.run("echo 1 >g")
		d.take(only(first, second))
		d.run("echo 1 >f")
		d.take(redo(1))
		if d.has("g") != "1\n" {
			t.Error("g isn't there")
		}
		expect(d, "redone", "1\n", map[int]api.Review{first: there, second: there})
	})
	t.Run("in part, while it ran", func(t *testing.T) {
		d := drive(t, api.ModePolicy, nil)
		d.do("echo 1 >f; mkfifo /tmp/wait; read -r x </tmp/wait; echo 2 >g")
		goOn := d.feed("wait")
		first := d.action("the command", func(a api.Action) bool {
			return strings.Contains(a.Title, "/tmp/wait;") && a.State == api.ActionRunning
		}).N
		some := only(first)
		some.Selection.Globs = []string{"f"}
		d.take(some)
		d.take(redo(1))
		d.take(redo(2))
		if got := d.review(first); d.has("f") != "" || got == gone {
			t.Errorf("f is %q, and what may write again is %q", d.has("f"), got)
		}
		goOn("")
		d.action("its end", func(a api.Action) bool { return a.N == first && a.State == api.ActionEnded })
		d.take(only(first))
		expect(d, "the rest", "", map[int]api.Review{first: gone})
		d.take(redo(3))
		expect(d, "redone", "1\n", map[int]api.Review{first: there})
	})
}
