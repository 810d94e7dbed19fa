// Package deeds finds out what an action did, from the changes that it made and from
// what the agent announced of it: the numbers, the words and what was said beside
// them, as a viewer is told. It forms no actions and records nothing.
//
// Everything here reads files, so it isn't for the session's loop. Methods may be
// called from any goroutine. What the agent wrote is hostile; what comes out is
// escaped.
package deeds

import (
	"cmp"
	"context"
	"encoding/hex"
	"log/slog"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"weak"

	"stepbox/policy/git"
	"stepbox/runner/overlay/content"
	"stepbox/runner/overlay/diff"
	"stepbox/runner/overlay/manifest"
	"stepbox/session/api"
	"stepbox/session/base"
	"stepbox/session/effects"
	"stepbox/session/files"
	"stepbox/session/said"
)

// Teller tells of one session's actions. Its fields aren't changed once it is used.
type Teller struct {
	Files   *files.Files
	Bodies  files.Bodies
	Ignores *git.Repository // what git ignores, as of the start
	Project string          // the folder
	Home    string          // the agent's, where its transcripts are
	From    time.Time       // when the session began
	Log     *slog.Logger

	recent atomic.Pointer[weak.Pointer[base.Record]]
}

// Action is what has to be known of one. Others may change the session's meanwhile.
type Action struct {
	Before   int64        // the checkpoint before it
	Spans    []files.Span // in which its changes were made
	Commands []api.Command
	Edited   Edited    // of an edit
	Since    time.Time // when the one before it with the same title began; of an edit, was written
	Began    time.Time
	Base     *api.Base // what the project was; nil: that isn't known yet
	Ruled    bool      // whether its changes need a review may be up to a rule
}

// Edited is what the agent itself wrote.
type Edited struct {
	Paths       []string  // the first files
	First, Last time.Time // between which they were written
}

// maxPaths bounds the files of an edit that calls are looked for.
const maxPaths = 32

// EditedIn finds out what the agent itself wrote, from the changes that came of it. An
// agent says what it edits, not that it deletes, so what is gone was none of its calls.
func EditedIn(changed []diff.Change) (e Edited) {
	for _, c := range changed {
		if c.New == nil || c.New.Kind != manifest.KindFile || len(e.Paths) == maxPaths {
			continue
		}
		at := time.Unix(c.New.MTime.Sec, int64(c.New.MTime.Nsec))
		if e.Paths = append(e.Paths, c.Path); len(e.Paths) == 1 || at.Before(e.First) {
			e.First = at
		}
		if at.After(e.Last) {
			e.Last = at
		}
	}
	return e
}

// Tell finds out what an action did.
func (r *Teller) Tell(a Action) files.Told {
	ctx := context.Background()
	t := r.Files.Tell(ctx, a.Before, a.Spans)
	if a.Ruled {
		t.Trust = files.TrustIn(t.Changed, a.Commands, r.Ignores)
	}
	in := effects.Input{
		Changed: t.Changed, More: t.More, From: t.From, To: t.Until, Project: r.Project, Ignored: r.Ignores.Ignored,
		Open: func(f *diff.File, most int64) ([]byte, bool) {
			b, err := r.Files.Read(ctx, f, most)
			return b, err == nil
		},
	}
	for _, c := range a.Commands {
		if !c.Unclear {
			in.Folders = append(in.Folders, c.Cwd)
		}
	}
	if a.Base != nil && slices.ContainsFunc(t.Changed, func(c diff.Change) bool { return c.Old != nil || strings.HasSuffix(c.Path, ".git/logs/HEAD") }) {
		in.Base = r.base(ctx, a.Base)
	}
	var commit *effects.Commit
	t.Effects, commit = effects.Of(in)
	all := r.announced(a, r.deeds(t.Changed))
	if commit != nil {
		all = append(all, said.Announcement{Text: commit.Message, Source: said.FromCommit, Deeds: r.deeds(commit.Changes)})
	}
	t.Said = said.Of(all)
	return t
}

// Announced is what the agent said of an action, as long as it isn't known what that
// did; nil: nothing is known.
func (r *Teller) Announced(a Action) *api.Said { return said.Of(r.announced(a, nil)) }

// Beside puts what was done beside what the agent announced of it.
func (r *Teller) Beside(announced *api.Said, changed []diff.Change) *api.Said {
	return said.Of([]said.Announcement{{Text: announced.Text, Source: announced.Source, Deeds: r.deeds(changed)}})
}

// base is what the project was; nil when that can't be read. It may be large: it is
// kept until the next collection, for actions that follow soon.
func (r *Teller) base(ctx context.Context, b *api.Base) *base.Record {
	if kept := r.recent.Load(); kept != nil {
		if rec := kept.Value(); rec != nil { // asked once: it may go at any moment
			return rec
		}
	}
	var hash content.Hash
	_, _ = hex.Decode(hash[:], []byte(b.Hash)) // it was written as such
	rec, err := base.Load(ctx, r.Bodies, hash)
	if err != nil {
		r.Log.Warn("what the project was can't be read", "error", err)
		return nil
	}
	kept := weak.Make(rec)
	r.recent.Store(&kept)
	return rec
}

// announced finds what the agent said of an action, in its own transcripts and in the
// commands.
func (r *Teller) announced(a Action, deeds []said.Deed) []said.Announcement {
	if len(a.Commands) == 0 && len(a.Edited.Paths) == 0 {
		return nil
	}
	find := said.Act{Project: r.Project, After: a.Since.Add(said.Late), From: a.Began, Until: a.Began.Add(said.Late)}
	if len(a.Edited.Paths) > 0 { // transcripts have milliseconds
		find.After, find.From, find.Until = a.Since, a.Edited.First.Truncate(time.Millisecond), a.Edited.Last.Add(said.Late)
	}
	if find.After.Before(r.From) {
		find.After = r.From
	}
	for _, p := range a.Edited.Paths {
		find.Paths = append(find.Paths, path.Join(r.Project, p))
	}
	comment := ""
	for _, c := range a.Commands {
		lines := append([]string{c.Line}, c.Argv[max(len(c.Argv)-1, 0):]...) // the last may be a shell's script
		find.Lines = append(find.Lines, lines...)
		for _, line := range lines {
			comment = cmp.Or(comment, said.Comment(line))
		}
	}
	called := said.InTranscript(r.Home, find)
	return []said.Announcement{{Text: called.Text, Source: called.Source, Deeds: deeds}, {Text: comment, Source: said.FromComment, Deeds: deeds}}
}

// deeds are changes that the agent's words must cover.
func (r *Teller) deeds(changed []diff.Change) (out []said.Deed) {
	for _, c := range changed {
		if _, internal := effects.InGit(c.Path); !internal && !(c.Old != nil && c.Old.Kind == manifest.KindDir) && !(c.New != nil && c.New.Kind == manifest.KindDir) && !r.Ignores.Ignored(c.Path, false) {
			out = append(out, said.Deed{Path: c.Path, What: c.Status[0]})
		}
	}
	return out
}
