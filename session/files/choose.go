package files

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/bmatcuk/doublestar/v4"

	"stepbox/runner/overlay/content"
	"stepbox/runner/overlay/diff"
	"stepbox/runner/overlay/manifest"
	"stepbox/session/api"
	"stepbox/session/merge"
)

// chooser says which files of a selection are meant.
type chooser struct {
	globs   []string
	choices map[string]api.Choice // by path
	found   map[string]bool       // of them
}

// chooserOf reads a selection's globs and files. Hunks can be chosen of the
// changes of one action, or of the session.
func chooserOf(in api.Selection) (*chooser, error) {
	c := &chooser{globs: in.Globs, choices: make(map[string]api.Choice), found: make(map[string]bool)}
	for _, g := range in.Globs {
		if g == "" || !doublestar.ValidatePattern(g) {
			return nil, api.Problemf(api.CodeUsage, "%q is no pattern of paths; src/** is one", api.Escape(api.Trim(g, 200)))
		}
	}
	for _, f := range in.Files {
		path, err := api.PathOf(f.Key)
		if err != nil {
			return nil, err
		}
		if len(f.Hunks) > 0 && len(in.Actions) > 1 {
			return nil, api.Problemf(api.CodeInvalid, "hunks can be chosen of one action's changes, or of the session's")
		}
		c.choices[path] = f
	}
	return c, nil
}

func (c *chooser) all() bool { return len(c.globs)+len(c.choices) == 0 }

// matches says whether a path, or a folder that it is in, is named by a pattern.
func (c *chooser) matches(path string) bool {
	if len(c.globs) == 0 {
		return true
	}
	for at := path; at != ""; at = parent(at) {
		if slices.ContainsFunc(c.globs, func(g string) bool { return doublestar.MatchUnvalidated(g, at) }) {
			return true
		}
	}
	return false
}

// of says which paths of a change are meant, and what those become of which only
// some hunks are. Back says that the change is to be taken out: then they are what
// it made, without those hunks.
func (c *chooser) of(ctx context.Context, f *Files, from, to *manifest.Manifest, back bool) (only func(path string) bool, hunks map[string]*diff.File, err error) {
	if len(c.choices) == 0 {
		return c.matches, nil, nil
	}
	changes, err := f.differs(ctx, from, to)
	if err != nil {
		return nil, nil, err
	}
	named, hunks := make(map[string]bool), make(map[string]*diff.File)
	for _, n := range changes {
		choice, ok := c.choices[n.Path]
		if !ok {
			continue
		}
		c.found[n.Path] = true
		for _, path := range n.Paths() {
			named[path] = true
		}
		if len(choice.Hunks) > 0 {
			if hunks[n.Path], err = f.some(ctx, n, choice, back); err != nil {
				return nil, nil, err
			}
			if hunks[n.Path] == nil { // all of them
				delete(hunks, n.Path)
			}
		}
	}
	return func(path string) bool { return named[path] && c.matches(path) }, hunks, nil
}

// missing is an error when a chosen file isn't among the changes.
func (c *chooser) missing() error {
	for path := range c.choices {
		if !c.found[path] {
			return api.Problemf(api.CodeNotFound, "%q hasn't changed there", api.Escape(path))
		}
	}
	return nil
}

// some is a changed file with some of its hunks, or without them; nil when they
// are all.
func (f *Files) some(ctx context.Context, n diff.Change, choice api.Choice, back bool) (*diff.File, error) {
	d, err := f.fileDiff(ctx, n)
	if err != nil {
		return nil, err
	}
	switch {
	case d.Hash != choice.Of || d.Hash == "":
		return nil, api.Problemf(api.CodeStale, "%s isn't what was shown any more; look at it again", d.Change.Path)
	case len(slices.Compact(slices.Sorted(slices.Values(choice.Hunks)))) == len(d.Hunks):
		return nil, nil
	}
	before, after, _, err := f.sides(ctx, n)
	if err != nil {
		return nil, err
	}
	part, out := merge.Pick, n.Old
	if back {
		part = merge.Drop
	}
	if out == nil || back && n.New != nil {
		out = n.New
	}
	text, err := part([]byte(before), []byte(after), d.Hunks, choice.Hunks)
	if err != nil {
		return nil, err
	}
	made := *out
	made.Lower = false
	return &made, f.keep(ctx, &made.Entry, text)
}

// keep gives an entry a text as its content.
func (f *Files) keep(ctx context.Context, e *manifest.Entry, text []byte) error {
	if len(text) > content.ChunkedAbove {
		return api.Problemf(api.CodeInvalid, "%q would be too large when merged", api.Escape(e.Name))
	}
	stored, err := Bodies{f.store}.PutBatch(ctx, [][]byte{text})
	if err != nil {
		return fmt.Errorf("cannot keep the merged %q: %w", api.Escape(e.Name), err)
	}
	e.Hash, e.Size, e.Unsaved = stored[0], int64(len(text)), ""
	e.MTime = manifest.Time{Sec: time.Now().Unix()}
	return nil
}
