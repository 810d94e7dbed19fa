package tree

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"stepbox/runner/overlay/manifest"
)

// Inexact lists what isn't surely in the tree as it was, by path, and why. It reads no
// contents: what can be had now may be gone when it is opened.
func (t *Tree) Inexact(ctx context.Context) ([]manifest.Problem, error) {
	gaps := slices.Clone(t.gaps)
	asked := make([][]*File, len(t.repos)) // by repository
	err := t.Walk(ctx, "", func(f *File) error {
		switch {
		case f.Path == "" || f.kept() || f.upper != nil && f.Unsaved == "":
		case f.blob != nil:
			asked[f.repo] = append(asked[f.repo], f)
		case f.Kind == manifest.KindFile:
			if g := t.changedSince(ctx, f); g != nil {
				gaps = append(gaps, *g)
			}
		case f.Unsaved != "":
			gaps = append(gaps, manifest.Problem{Path: f.Path, Text: f.Unsaved})
		}
		return ctx.Err()
	})
	if err != nil {
		return nil, err
	}
	for repo, list := range asked {
		for _, f := range t.absent(ctx, repo, list) {
			out, err := t.outside(ctx, f)
			if err == nil {
				out.Close()
				continue
			}
			gaps = append(gaps, manifest.Problem{Path: f.Path, Text: err.Error()})
		}
	}
	slices.SortStableFunc(gaps, func(a, b manifest.Problem) int { return strings.Compare(a.Path, b.Path) })
	return gaps, ctx.Err()
}

// changedSince says why a file whose content isn't in the record can't be had from
// the project folder either; nil: it can, as far as its looks tell.
func (t *Tree) changedSince(ctx context.Context, f *File) *manifest.Problem {
	why := f.Unsaved
	if why == "" {
		why = "its content isn't in the record"
	}
	if t.lower == nil {
		return &manifest.Problem{Path: f.Path, Text: why + ", and the project folder isn't there, or is another"}
	}
	e, err := t.lower.Stat(ctx, f.Path)
	switch {
	case err != nil:
		return &manifest.Problem{Path: f.Path, Text: why + ", and in the project it can't be looked at"}
	case e == nil:
		return &manifest.Problem{Path: f.Path, Text: why + ", and in the project it isn't there any more"}
	case !t.looksLike(ctx, f, e):
		return &manifest.Problem{Path: f.Path, Text: why + ", and in the project it is another by now, or may be"}
	}
	return nil
}

// absent says which files a repository's objects don't have.
func (t *Tree) absent(ctx context.Context, repo int, list []*File) (out []*File) {
	if len(list) == 0 {
		return nil
	}
	var names bytes.Buffer
	for _, f := range list {
		fmt.Fprintln(&names, hex.EncodeToString(f.blob))
	}
	cmd, err := t.git(ctx, repo, "cat-file", "--batch-check=%(objecttype)")
	if err != nil {
		return list
	}
	cmd.Stdin = &names
	said, err := cmd.Output()
	lines := strings.Split(strings.TrimSuffix(string(said), "\n"), "\n")
	if err != nil || len(lines) != len(list) {
		return list
	}
	for i, line := range lines {
		if line != "blob" {
			out = append(out, list[i])
		}
	}
	return out
}
