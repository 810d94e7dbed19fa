// Package base says what a project folder was when a session started, without
// reading all of it: by its repositories' commits and indexes, and by what lay
// in the folder beside them. A folder without a repository is a list of names.
//
// Nothing that the session hides from the agent is in it: of a hidden file
// there is neither content nor hash, and of a repository's own folder .git
// nothing but the commit, the branch and the index.
//
// Functions are safe for concurrent use; values aren't changed once made.
package base

import (
	"context"
	"fmt"

	"stepbox/runner/overlay/content"
	"stepbox/runner/overlay/manifest"
)

// Record is what a project folder was. What the commits and indexes name isn't
// kept: it is in the repositories, as long as they have it. A path that was
// added to the index and not committed is told by its index entry only, which
// can't say whether the commit has it as well.
type Record struct {
	Repositories []Repository // by path
	Entries      []Entry      // by path
	Missing      string       // why it isn't complete, in words; "" when it is

	// What was seen while it was taken, and isn't kept with it: how many names have an
	// owner or a group that the agent's user namespace doesn't, and one of them.
	Foreign   int
	Foreigner string
}

// Repository is a repository that the project is in or has in it.
type Repository struct {
	Path    string    // from the project; "" when the project is in it or its root
	Prefix  string    // from the repository's root to the project
	Commit  string    // that was checked out, in hexadecimal; "" for none
	Branch  string    // refs/heads/NAME; "" for none
	Tracked []Tracked // what the index has of the project, by path and stage
	// Unread says why the index couldn't be read. All files are Entries then,
	// by their names and attributes.
	Unread string
}

// Tracked is what an index has under a path.
type Tracked struct {
	Path   string // from the repository's Path
	Mode   uint32 // git's
	Stage  int    // 0, or 1 to 3 of a path with a conflict
	Sparse bool   // it wasn't meant to be in the working tree
	Hash   []byte // git's, of the blob; empty for a file that is hidden from the agent
}

// Entry is a path at which the folder differs from what the indexes say: a file
// that is changed, not tracked or ignored, a folder with nothing tracked in it,
// or a whiteout for what is deleted, with all that was below it. Outside of
// repositories every path is one.
type Entry struct {
	Path string // from the project
	// Without a name. The hash of a file that wasn't read is zero. Unsaved says why
	// the content, or what is in a folder, isn't in the record: a content whose
	// hash is known and has none is there.
	manifest.Entry
}

// Kind says in a word what the record goes by: "git", or "names" for a folder
// that isn't in a repository.
func (r *Record) Kind() string {
	if len(r.Repositories) > 0 && r.Repositories[0].Path == "" && r.Repositories[0].Unread == "" {
		return "git"
	}
	return "names"
}

// kept says whether the entry's content is among the bodies.
func (e *Entry) kept() bool {
	return e.Kind == manifest.KindFile && !e.Hash.IsZero() && e.Unsaved == ""
}

// Refs gives the hash of every body that the record needs beside its own. One
// may come more than once.
func (r *Record) Refs(ctx context.Context, b content.Bodies) ([]content.Hash, error) {
	var out []content.Hash
	for i := range r.Entries {
		e := &r.Entries[i]
		if !e.kept() {
			continue
		}
		refs, err := content.Refs(ctx, b, e.Hash, e.Size)
		if err != nil {
			return nil, fmt.Errorf("cannot list the content of %q: %w", e.Path, err)
		}
		out = append(out, refs...)
	}
	return out, nil
}
