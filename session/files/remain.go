package files

import (
	"context"
	"slices"
	"strings"

	"stepbox/runner/overlay/diff"
	"stepbox/runner/overlay/manifest"
	"stepbox/runner/overlay/restore"
	"stepbox/session/project"
)

// What a roll back can't put back remains, and the actions that changed it aren't taken
// back. What was below the uppers may not be in the record, where git ignores a file or
// it is too large: then there is but what the project has by now, which may be what the
// session made of it.

// lists says which paths a plan lists, or leads to one that it does.
func (p *Plan) lists() func(path string) bool {
	listed := leading(pathsOf(p.changed))
	return func(path string) bool { return listed[path] }
}

// unlist takes what a plan doesn't write off its list, so that nobody is told that it
// comes back.
func (p *Plan) unlist(steps *restore.Plan) {
	written := make(map[string]bool)
	for _, path := range steps.Paths() {
		written[path] = true
	}
	for _, path := range steps.Lost {
		if !written[path] {
			p.stays = append(p.stays, path)
		}
	}
	p.changed = slices.DeleteFunc(slices.Clone(p.changed), func(c diff.Change) bool { return slices.Contains(p.stays, c.Path) })
}

// gone are those of some actions that changed none of the paths which remain. All are
// what is known of the actions.
func (f *Files) gone(ctx context.Context, some []int, all []Past, remain []string) ([]int, error) {
	if len(remain) == 0 {
		return some, nil
	}
	var out []int
	for _, n := range some {
		var spans []Span
		if i := slices.IndexFunc(all, func(a Past) bool { return a.N == n }); i >= 0 {
			spans = all[i].Spans
		}
		changed, err := f.holdsSome(ctx, spans, remain)
		if err != nil {
			return nil, err
		}
		if !changed {
			out = append(out, n)
		}
	}
	return out, nil
}

// sayHost says of each file that a plan lists what the project has there, if that isn't
// what the session first saw: a roll back leaves it.
func (r *Restorer) sayHost(ctx context.Context, p *Plan) {
	host, err := project.Open(r.Project)
	if err != nil {
		return // only words
	}
	defer host.Close()
	base := manifest.LaterBase(p.source, p.target)
	for i := range p.Shown.Files {
		c := &p.changed[i]
		had := (*manifest.Manifest)(nil).Has(base, c.Path)
		if c.From != "" || StateOf(c.Old).Same(project.Of(had)) {
			continue // a rename, or no change of the session's
		}
		why, applied := r.Files.meanwhile(ctx, host, nil, c.Path, had, c.Old)
		switch {
		case why == "" && !applied:
			continue
		case applied && c.Old == nil:
			why = "it stays deleted in the project"
		case applied:
			why = "it stays in the project"
		}
		f := &p.Shown.Files[i]
		f.Words = strings.TrimPrefix(f.Words+", "+why, ", ")
	}
}
