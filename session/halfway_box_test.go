package session_test

import (
	"testing"

	"stepbox/session/api"
)

// TestHalfwayEdits: a file that is written beside another and then renamed onto it is one
// edit, also when the disk takes its time, and so is one that is emptied and then written;
// one that keeps its temporary name, or stays empty, is an edit after a while, and is never
// taken for a part of what follows.
func TestHalfwayEdits(t *testing.T) {
	t.Parallel()
	w := startProgram(t, api.ModeWatch, func(string) {}, "perl", "-e", `
		sub put { open(F, ">", $_[0]); print F "new\n"; close F; }
		put("a.txt.tmp.10.db9c"); select(undef, undef, undef, 0.7); rename("a.txt.tmp.10.db9c", "a.txt");
		<STDIN>; put("b.txt.tmp"); <STDIN>; rename("b.txt.tmp", "b.txt");
		<STDIN>; open(F, ">", "a.txt"); select(undef, undef, undef, 0.7); print F "other\n"; close F;
		<STDIN>; open(F, ">", "a.txt"); close F; <STDIN>;`)
	for n, title := range []string{"edit a.txt", "edit b.txt.tmp", "edit b.txt", "edit a.txt", "edit a.txt"} {
		a := w.action(title, func(a api.Action) bool { return a.N > n && a.Files > 0 })
		if a.N != n+1 || a.Title != title || a.Files != 1 {
			t.Fatalf("action %d is %q with %d files, want %q", a.N, a.Title, a.Files, title)
		}
		w.enter()
	}
}
