package backtest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"

	"stepbox/policy"
	"stepbox/session/api"
	"stepbox/session/ledger"
	"stepbox/store"
)

// Backtester answers what rules would have said of recorded sessions. It is safe for concurrent use.
type Backtester struct {
	History *ledger.History
	// Home is the folder that sandboxes have as their home.
	Home string
	// Profiles are those of agents; nil: the built-in. They are read when they are asked for.
	Profiles func() *policy.Profiles
	// Layers are the rules that hold in a project's folder now.
	Layers func(folder string) (Layers, error)
	// Load reads a file of rules as a layer of this name.
	Load func(name, file string) (policy.Layer, error)
}

// Layers are those that come from files. A layer without rules is none.
type Layers struct {
	User, Project policy.Layer
}

// profiles are those of agents.
func (b *Backtester) profiles() *policy.Profiles {
	if b.Profiles == nil {
		return nil
	}
	return b.Profiles()
}

func (l Layers) all() []policy.Layer { return []policy.Layer{l.User, l.Project} }

// page is how many sessions are looked up at once.
const page = 100

// sessions goes through the sessions that are meant, the newest first.
func (b *Backtester) sessions(ctx context.Context, of api.PastOf, each func(s *api.Session, number, all int) error) error {
	if of.Folder != "" && !filepath.IsAbs(of.Folder) {
		return api.Problemf(api.CodeInvalid, "%q isn't an absolute path", api.Escape(of.Folder))
	}
	c := store.Choice{Folder: of.Folder, Since: of.Since, Limit: page}
	if len(of.Sessions) > 0 {
		c.In = &of.Sessions
		for _, id := range of.Sessions {
			if _, err := b.History.Session(ctx, id); err != nil {
				return err
			}
		}
	}
	for n := 0; ; {
		chosen, err := b.History.Store.Choose(ctx, c)
		if err != nil {
			return err
		}
		for _, doc := range chosen.Docs {
			var s api.Session
			if err := json.Unmarshal(doc, &s); err != nil {
				return fmt.Errorf("a row of the table of sessions can't be read, which stepbox verify --all --repair makes again from the events: %w", err)
			}
			n++
			err := each(&s, n, max(n, chosen.Total))
			if p := (*api.Problem)(nil); errors.As(err, &p) && p.Code == api.CodeNotFound && len(of.Sessions) == 0 {
				err = nil // removed meanwhile
			}
			if err != nil {
				return err
			}
		}
		if c.After = chosen.Next; c.After == "" {
			return nil
		}
	}
}

// walk goes through what the sessions did that are meant, and tells how far it is. begin is
// given each of them with the rules that hold in its folder now, and gives what takes in
// its deeds one by one.
func (b *Backtester) walk(ctx context.Context, of api.PastOf, tell func(api.PastSeen), begin func(s *api.Session, now Layers) func(*Deed) error) error {
	known := make(map[string]Layers) // by folder
	return b.sessions(ctx, of, func(s *api.Session, n, all int) error {
		now, ok := known[s.Folder]
		if !ok {
			var err error
			if now, err = b.Layers(s.Folder); err != nil {
				return err
			}
			known[s.Folder] = now
		}
		var failed error
		take := begin(s, now)
		err := Read(ctx, b.History, b.profiles(), s.ID, func(d *Deed) bool {
			failed = take(d)
			return failed == nil
		})
		if err = cmp.Or(err, failed); err != nil {
			return err
		}
		tell(api.PastSeen{Session: s.ID, Number: n, Of: all})
		return nil
	})
}
