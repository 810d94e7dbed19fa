package files

import (
	"slices"
	"testing"

	"stepbox/runner/overlay/diff"
	"stepbox/runner/overlay/manifest"
	"stepbox/session/e2e/must"
)

// An action owns what changed in its spans, whatever others changed in between.
func TestTell(t *testing.T) {
	l := newTimeline(t) // 1
	l.write(l.project, "old", "0\n")
	for _, what := range [][]string{{"a 1\n2\n"}, {"b 1\n"}, {"a 3\n"}, {"c 1\n", "old 1\n"}, {"-b"}} { // 2 to 6
		l.change(what...)
	}
	for name, c := range map[string]struct {
		before         int64
		spans          []Span
		want           []string
		added, removed int
		to, after      int64 // after 0: a state of its own
	}{
		"nothing":                   {1, nil, nil, 0, 0, 1, 1},
		"one span":                  {1, []Span{{1, 2}}, []string{"A a"}, 2, 0, 2, 2},
		"two that follow":           {1, []Span{{1, 2}, {2, 3}}, []string{"A a", "A b"}, 3, 0, 3, 3},
		"with another's in between": {1, []Span{{1, 2}, {3, 4}}, []string{"A a"}, 1, 0, 4, 0},
		"begun later than it ran":   {1, []Span{{2, 3}}, []string{"A b"}, 1, 0, 3, 0},
		"of the project's file":     {4, []Span{{4, 5}}, []string{"A c", "M old"}, 2, 1, 5, 5},
		"made and removed":          {2, []Span{{2, 3}, {5, 6}}, nil, 0, 0, 6, 0},
	} {
		t.Run(name, func(t *testing.T) {
			got := l.Tell(t.Context(), c.before, c.spans)
			if got.Err != nil {
				t.Fatal(got.Err)
			}
			var changed []string
			for _, ch := range got.Changed {
				changed = append(changed, string(ch.Status)+" "+ch.Path)
			}
			if !slices.Equal(changed, c.want) || len(got.Listed) != len(c.want) {
				t.Errorf("it changed %q and lists %+v, want %q", changed, got.Listed, c.want)
			}
			if got.Added != c.added || got.Removed != c.removed || got.To != c.to || got.After != c.after || (got.Made != nil) != (c.after == 0) {
				t.Errorf("+%d −%d, to %d, after %d, made %v; want +%d −%d, %d, %d", got.Added, got.Removed, got.To, got.After, got.Made, c.added, c.removed, c.to, c.after)
			}
		})
	}
}

// Going back and forth leaves those checkpoints behind that the files don't go on from.
func TestLine(t *testing.T) {
	var l Line
	for _, from := range []int64{0, 1, 2, 1, 3} { // 4 rolled back to 1, 5 forward to 3
		l.Last = l.Number([32]byte{}, nil, from)
		if l.Last.ID == 4 && (l.There(l.Last.ID)[2] || !l.There(l.Last.ID)[1]) {
			t.Errorf("rolled back, the files go on from %v", l.There(l.Last.ID))
		}
	}
	if there := l.There(l.Last.ID); !there[5] || !there[3] || !there[2] || !there[1] || there[4] || l.Newest() != 5 {
		t.Errorf("the files at %d go on from %v", l.Newest(), there)
	}
}

// What an action changes is over others' if these changed it since it began, or a person has kept what it made of it.
func TestOverOthers(t *testing.T) {
	l := newTimeline(t) // 1
	l.write(l.project, "old", "0\n")
	for _, what := range [][]string{{"a 1\n"}, {"b 1\n"}, {"a 2\n"}, {"c 1\n"}} { // 2 to 5
		l.change(what...)
	}
	for name, c := range map[string]struct {
		before int64
		unkept []Span
		path   string
		want   bool
	}{
		"its own":               {1, []Span{{1, 2}, {3, 4}}, "a", false},
		"another's":             {1, []Span{{1, 2}, {3, 4}}, "b", true},
		"its own that was kept": {1, []Span{{4, 5}}, "a", true},
		"of before it began":    {3, []Span{{3, 4}}, "b", false},
		"nobody's yet":          {1, nil, "new", false},
	} {
		last, err := l.At(t.Context(), 5)
		must.OK(t, err)
		file := diff.File{Entry: manifest.Entry{Kind: manifest.KindFile}}
		changed := []diff.Change{{Path: c.path, Status: diff.Modified, Old: &file, New: &file}}
		if got := l.OverOthers(t.Context(), changed, last, c.before, c.unkept); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if !l.OverOthers(t.Context(), nil, nil, 99, []Span{{99, 100}}) {
		t.Error("what can't be told isn't over others'")
	}
}
