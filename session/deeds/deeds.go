// Package deeds finds out what an action did, from the changes that it made: the numbers
// and the words, as a viewer is told. It forms no actions and records nothing.
//
// Everything here reads files, so it isn't for the session's loop. Methods may be
// called from any goroutine. What the agent wrote is hostile; what comes out is
// escaped.
package deeds

import (
	"context"
	"encoding/hex"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"weak"

	"stepbox/policy/git"
	"stepbox/runner/overlay/content"
	"stepbox/runner/overlay/diff"
	"stepbox/session/api"
	"stepbox/session/base"
	"stepbox/session/effects"
	"stepbox/session/files"
)

// Teller tells of one session's actions. Its fields aren't changed once it is used.
type Teller struct {
	Files   *files.Files
	Bodies  files.Bodies
	Ignores *git.Repository // what git ignores, as of the start
	Project string          // the folder
	Log     *slog.Logger

	recent atomic.Pointer[weak.Pointer[base.Record]]
}

// Action is what has to be known of one. Others may change the session's meanwhile.
type Action struct {
	Before   int64        // the checkpoint before it
	Spans    []files.Span // in which its changes were made
	Commands []api.Command
	Base     *api.Base // what the project was; nil: that isn't known yet
	Ruled    bool      // whether its changes need a review may be up to a rule
}

// Tell finds out what an action did.
func (r *Teller) Tell(a Action) files.Told {
	ctx := context.Background()
	t := r.Files.Tell(ctx, a.Before, a.Spans)
	if a.Ruled {
		t.Trust = r.Files.TrustIn(ctx, t.Changed)
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
	t.Effects = effects.Of(in)
	return t
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
