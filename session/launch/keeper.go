package launch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"stepbox/runner/holder"
	"stepbox/runner/overlay/content"
	"stepbox/runner/overlay/manifest"
	"stepbox/session/api"
	"stepbox/session/apply"
	"stepbox/session/files"
	"stepbox/session/ledger"
	"stepbox/session/outfit"
	"stepbox/session/project"
	"stepbox/store"
)

// keeper keeps the record in bounds.
type keeper struct {
	store    *store.Store
	live     registry
	journals project.Journals // of applies
	history  *files.History
}

// maxWritten is how much is listed of what was written to one folder besides the project.
const maxWritten = 50

// Space is server.Keeper's.
func (k keeper) Space(ctx context.Context, id string) (api.Space, error) {
	s, err := ledger.Session(ctx, k.store, id)
	if err != nil {
		return api.Space{}, noSession(id, err)
	}
	dir := k.store.SessionDir(id)
	use := func(names ...string) int64 {
		for i, name := range names {
			names[i] = filepath.Join(dir, name)
		}
		return files.DiskUse(ctx, names...).Bytes
	}
	sp := api.Space{Files: use("upper"), Temporary: use("tmp"), Beside: use("mounts", "caches")}
	sp.Record = use("") - sp.Files - sp.Temporary - sp.Beside
	for _, d := range s.Dirs {
		if names, more := outfit.Written(dir, d.Path, maxWritten); d.Write && len(names) > 0 {
			sp.Written = append(sp.Written, api.Written{Dir: api.Escape(d.Path), Paths: api.EscapeAll(names), More: more})
		}
	}
	return sp, ctx.Err()
}

// Remove is server.Keeper's. While it is at it nobody goes on with the session or
// applies it.
func (k keeper) Remove(ctx context.Context, id string) error {
	if last, err := k.store.LastEvent(ctx, id); err != nil {
		return err
	} else if last == 0 {
		return api.NoSession(id)
	}
	was, err := ledger.Session(ctx, k.store, id) // damage may have left none
	if err == nil && was.Live() && k.live.live(id) {
		return api.Problemf(api.CodeBusy, "session %s is running: end it first, with stepbox kill %s", id, id)
	}
	journals, err := k.journalsOf(ctx, id)
	if err != nil {
		return noSession(id, err)
	}
	release, err := apply.Ended{Store: k.store, ID: id, Live: k.live.live}.Hold(ctx) // a supervisor takes a moment to go away
	if err != nil {
		return err
	}
	defer release() // its folder goes, with the lock in it
	if err := k.store.Remove(ctx, id); err != nil {
		return noSession(id, err)
	}
	for _, name := range journals {
		_ = k.journals.Retire(name) // one that isn't settled stays, and so does what it names
	}
	// Up to where a person had looked, if they had.
	_ = os.Remove(filepath.Join(filepath.Dir(string(k.live)), "looked", id))
	return holder.RemoveAll(k.store.SessionDir(id) + store.Removed) // what fails Collect meets again
}

// journalsOf are the journals of what was applied of a session. One that damage hides
// stays, and so does what it names.
func (k keeper) journalsOf(ctx context.Context, id string) (names []string, err error) {
	applies, err := k.store.Docs(ctx, id, store.KindApply, -1, 0)
	for _, doc := range applies {
		var a api.Apply
		if json.Unmarshal(doc, &a) == nil && a.Journal != "" {
			names = append(names, a.Journal)
		}
	}
	return names, err
}

// journaled finds the bodies that applies can be undone with: all of them, but for those
// of some journals, with the first document that it is asked about. Unread is why not.
func (k keeper) journaled(without []string, unread *error) store.References {
	asked := false
	return func(ctx context.Context, _ string, _ store.Kind, _ json.RawMessage) (out []store.Hash, err error) {
		if asked {
			return nil, nil
		}
		asked = true
		defer func() { *unread = err }()
		all, err := k.journals.List()
		for name, l := range all {
			if l.Over || slices.Contains(without, name) {
				continue
			}
			j, err := l.Read()
			if err != nil {
				return nil, fmt.Errorf("%w; stepbox rm %s gets past it, by removing its session", err, apply.SessionOf(name))
			}
			for _, s := range j.Steps {
				for _, state := range []project.State{s.Old, s.New} {
					if state.Kind != manifest.KindFile {
						continue
					}
					refs, err := content.Refs(ctx, k.journals.Bodies, state.Hash, state.Size)
					if err != nil {
						return nil, err
					}
					for _, h := range refs {
						out = append(out, store.Hash(h))
					}
				}
			}
		}
		return out, err
	}
}

// forget removes the journals of removed sessions whose project no session is of any more,
// and retires those that were left when their session went. One that isn't settled stays,
// as one does that is retired by someone else.
func (k keeper) forget(ctx context.Context) error {
	all, err := k.journals.List() // before the sessions: one begins with its row
	if err != nil || len(all) == 0 {
		return err
	}
	sessions, err := k.history.Sessions(ctx)
	if err != nil {
		return err
	}
	ids, folders := map[string]bool{}, map[string]bool{}
	for _, s := range sessions {
		ids[s.ID], folders[s.Folder] = true, true
	}
	for name, l := range all {
		if ids[apply.SessionOf(name)] {
			continue
		}
		away := k.journals.Retire
		if folder, unread := l.Project(); unread == nil && !folders[folder] { // one that is damaged may matter to any
			away = k.journals.Remove
		}
		if failed := away(name); !errors.Is(failed, project.ErrUnfinished) && !errors.Is(failed, fs.ErrNotExist) {
			err = errors.Join(err, failed)
		}
	}
	return err
}

func noSession(id string, err error) error {
	if errors.Is(err, store.ErrNotFound) {
		return api.NoSession(id)
	}
	return err
}
