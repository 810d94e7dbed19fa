package scratch

import (
	"context"

	"stepbox/runner/overlay/manifest"
	"stepbox/session/api"
)

// Commits are those of a state that the project's repositories on the host don't
// have on any branch, tag or remote branch.
type Commits struct {
	List  []api.Commit  // of each repository and branch, the newest first
	Notes []api.Trouble // repositories, and branches, whose commits can't be had, and why
}

// Fetched is what was put into the real repositories.
type Fetched struct {
	Commits
	Ref string   // below which the commits are: refs/stepbox/ID/; "" when there are none
	How []string // commands with which a person merges or picks them
}

// Commits lists the commits that the agent made.
func (s *Scratch) Commits(ctx context.Context, state *manifest.Manifest) (Commits, error) {
	return Commits{}, nil
}

// Fetch puts the commits that the agent made into the repositories that the
// project has on the host, below refs/stepbox/ID, where ID is the session's, and
// changes nothing else there. It may be done again.
func (s *Scratch) Fetch(ctx context.Context, session string, state *manifest.Manifest) (Fetched, error) {
	return Fetched{}, nil
}
