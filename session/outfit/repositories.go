package outfit

import (
	"fmt"
	"slices"

	"stepbox/runner"
	"stepbox/session/frozen"
)

// repositories is what git is inside.
type repositories struct {
	frozen.Git
	frozen.Taken
}

// git takes over the project's repositories, or finds what a session took over before.
func (s *survey) git(n Needs) (r repositories, err error) {
	r.Git = frozen.Git{Project: n.Workspace, Folder: n.StateDir, Repositories: s.repos}
	known := false
	if n.Git != "" {
		r.Folder = n.Git
		if r.Taken, known, err = frozen.Load(n.Git); err != nil {
			return r, err
		}
	}
	failure := r.Beyond(r.Taken)
	if !known {
		if r.Taken, err = r.Take(0); err != nil {
			return r, err
		}
	}
	if failure != nil {
		r.NoGit = failure.Error()
	}
	if r.NoGit != "" {
		r.Outer = ""
	}
	for _, rel := range r.Taken.Hidden {
		if !slices.Contains(s.hidden, rel) {
			s.hidden = append(s.hidden, rel)
		}
	}
	return r, nil
}

// above is what stands in front of the project.
func (r *repositories) above() []string {
	return []string{frozen.Layer(r.Folder), frozen.Restored(r.Folder)}
}

// lacks are words on what git hasn't inside.
func (r *repositories) lacks() (out []string) {
	if r.NoGit != "" {
		out = append(out, "git can't be used: the project's repository isn't shown: "+r.NoGit)
	}
	for _, store := range r.Borrows {
		out = append(out, fmt.Sprintf("git lacks the objects that are in %q, which isn't shown, and may be of no use; git repack -ad, and the file .git/objects/info/alternates removed then, has them in the project", store))
	}
	return out
}

// stores are the object stores that are shown as they are.
func (r *repositories) stores() (out []runner.Bind) {
	for _, s := range r.Stores {
		out = append(out, runner.Bind{Source: s.Source, Target: s.Target})
	}
	return out
}
