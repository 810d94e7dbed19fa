package scratch

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stepbox/session/frozen"
)

// freeze has git be what it is now in a session of the project.
func (r *rig) freeze() {
	r.Helper()
	r.cfg.Folder = filepath.Join(r.cfg.DataDir, "session")
	_, err := frozen.Git{Project: r.project, Folder: r.cfg.Folder, Repositories: []string{".git"}}.Take(0)
	r.must(err)
}

// What the host had when the session began isn't the agent's, whatever became of the
// host's branches; and it can be fetched.
func TestThePersonsCommitsArentTheAgents(t *testing.T) {
	t.Parallel()
	for name, does := range map[string]func(r *rig){
		"goes on":                   func(r *rig) { r.git("", "commit", "-qm", "more", "--allow-empty") },
		"goes back":                 func(r *rig) { r.git("", "reset", "-q", "--hard", "HEAD~2") },
		"is amended":                func(r *rig) { r.git("", "commit", "-q", "--amend", "-m", "else", "--allow-empty") },
		"is amended, and forgotten": forgotten,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRepository(t)
			for range 3 {
				r.git("", "commit", "-qm", "the person's", "--allow-empty")
			}
			r.git("", "tag", "-am", "annotated", "v1", "HEAD~3")
			r.freeze()
			state := r.agent(asAda + "echo two >a.txt; git commit -qam second; git switch -qc topic HEAD~1; git commit -qm third --allow-empty")
			does(r)
			got, err := r.fetched("s1", state)
			r.must(err)
			if want := []string{"main second", "topic third"}; !slices.Equal(subjects(got.Commits), want) || len(got.Notes) > 0 || strings.Contains(got.List[0].Danger, "compared") {
				t.Fatalf("the commits are %+v, %s", got.List, notes(got.Commits))
			}
			if log := r.git("", "log", "--format=%s", "refs/stepbox/s1/main"); log != "second\nthe person's\nthe person's\nthe person's\nfirst" {
				t.Errorf("fetched is\n%s", log)
			}
			r.git("", "fsck", "--strict")
		})
	}
}

// forgotten has the host's git throw away what it had.
func forgotten(r *rig) {
	was := r.git("", "rev-parse", "HEAD")
	r.git("", "commit", "-q", "--amend", "-m", "else", "--allow-empty")
	r.git("", "reflog", "expire", "--expire=all", "--all")
	r.git("", "gc", "-q", "--prune=now")
	if strings.Contains(r.git("", "cat-file", "--batch-check", "--batch-all-objects"), was) {
		r.Error("git still has it")
	}
}
