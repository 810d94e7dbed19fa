package cli

import (
	"strings"
	"testing"

	"stepbox/session/api"
)

// What wrote no file has nothing that could be undone.
func TestAppliedWords(t *testing.T) {
	for want, x := range map[string]api.Apply{
		"applied: 1 file; stepbox apply s --undo=2 undoes it\n": {ID: 2, Files: 1, Journal: "s-2"},
		"applied: no files, so there is nothing to be undone\n1 commit below refs/stepbox/s/\n  git merge x\n": {
			ID: 2, Fetched: []api.Commit{{}}, Ref: "refs/stepbox/s/", How: []string{"git merge x"},
		},
	} {
		var got strings.Builder
		if appliedWords(&got, api.Session{ID: "s"}, x); got.String() != want {
			t.Errorf("it says %q", got.String())
		}
	}
}
