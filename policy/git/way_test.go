package git

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// Asked in the order of a walk, each name is looked at once, however deep it is
// and whether or not its folders have rules.
func TestIgnoredLooksOnceAtAName(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, map[string]string{".gitignore": "*.o\n", "d/.gitignore": "x/y\n"})
	r := Open(dir, Person{})
	r.ReadFolder("d")
	name, names := "d", 1
	for range 256 {
		r.Ignored(name, true)
		r.Ignored(name+"/a", false)
		r.Ignored(name+"/b.o", false)
		name, names = name+"/"+strings.Repeat("d", 10), names+4 // a folder is asked about as itself, and entered
	}
	if r.way.asked > names {
		t.Errorf("%d names cost %d looks", names, r.way.asked)
	}
}

// In whatever order paths are asked about, the answers are those of a repository
// that was asked nothing before.
func TestIgnoredInAnyOrder(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, map[string]string{
		".gitignore": "out\n*.o\n/a/b/c/\n", "a/.gitignore": "!x.o\nab\n", "a/ab/.gitignore": "!*\n", "a/b/.gitignore": "*.o\n!out\n", "ab/.gitignore": "b\n",
	})
	rapid.Check(t, func(t *rapid.T) {
		lazy := OpenLazily(dir, Person{})
		names := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "ab", "b", "c", "out", "x.o"}), 1, 5)
		for range rapid.IntRange(1, 20).Draw(t, "questions") {
			p, folder := path.Join(names.Draw(t, "path")...), rapid.Bool().Draw(t, "folder")
			fresh := OpenLazily(dir, Person{})
			if got, want := lazy.Ignored(p, folder), fresh.Ignored(p, folder); got != want {
				t.Fatalf("%q is ignored: %v, then %v; on the way to %q %s", p, want, got, lazy.way.to, fmt.Sprint(lazy.way.legs))
			}
			if ends := strings.Count(lazy.way.to, "/"); ends != len(lazy.way.legs) || !slices.IsSortedFunc(lazy.way.legs, func(a, b leg) int { return a.end - b.end }) {
				t.Fatalf("the way to %q has %v", lazy.way.to, lazy.way.legs)
			}
		}
	})
}
