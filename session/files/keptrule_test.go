package files

import (
	"cmp"
	"testing"

	"stepbox/runner/overlay/diff"
	"stepbox/runner/overlay/manifest"
	"stepbox/session/api"
)

func file(path string) diff.Change {
	return diff.Change{Path: path, Status: diff.Added, New: &diff.File{Entry: manifest.Entry{Kind: manifest.KindFile}}}
}

// What a person approved with its command is kept, but what their own programs trust; and what nothing goes by.
func TestKeptByRule(t *testing.T) {
	output, source, hook := file("build/a"), file("a.c"), file(".git/hooks/x")
	many := make([]diff.Change, mostJudged)
	for i := range many {
		many[i] = output
	}
	for name, c := range map[string]struct {
		kind           api.ActionKind
		ahead, lingers bool
		shared, idle   bool
		files          []diff.Change
		kept           bool
	}{
		"output":              {files: []diff.Change{output}},
		"source":              {files: []diff.Change{source}},
		"approved with it":    {ahead: true, files: []diff.Change{source}, kept: true},
		"but not its hooks":   {ahead: true, files: []diff.Change{source, hook}},
		"nor a bare one's":    {ahead: true, files: []diff.Change{file("cache/config")}},
		"nor a bare one":      {ahead: true, files: []diff.Change{file("cache/HEAD")}},
		"nor its hook":        {ahead: true, files: []diff.Change{file("cache/hooks/post-checkout")}},
		"hooks of another's":  {ahead: true, files: []diff.Change{file("src/hooks/use.ts"), file(".git/refs/heads/config")}, kept: true},
		"nor a link to one's": {ahead: true, files: []diff.Change{file(".vscode")}},
		"nor a shell's":       {ahead: true, files: []diff.Change{file("x/.direnv/bin/a")}},
		"nor an editor's":     {ahead: true, files: []diff.Change{file(".devcontainer.json")}},
		"nor a key":           {ahead: true, files: []diff.Change{file("x/.ssh/known")}},
		"nor a secret":        {ahead: true, files: []diff.Change{file("build/.env")}},
		"an edit":             {kind: api.KindEdit, ahead: true, files: []diff.Change{output}},
		"something lives":     {ahead: true, lingers: true, files: []diff.Change{output}},
		"others ran":          {ahead: true, shared: true, files: []diff.Change{output}},
		"it may have looked":  {idle: true, files: []diff.Change{file(".git/index")}, kept: true},
		"too many to list":    {ahead: true, files: many},
	} {
		t.Run(name, func(t *testing.T) {
			a := &api.Action{Kind: cmp.Or(c.kind, api.KindCommand), Verdict: api.Allow, Shared: c.shared}
			trust := (&Files{}).TrustIn(t.Context(), c.files)
			trust.Idle = c.idle
			if why := KeptByRule(a, c.ahead, c.lingers, trust); (why != "") != c.kept {
				t.Errorf("kept: %q", why)
			}
		})
	}
}
