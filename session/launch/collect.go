package launch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"stepbox/runner/holder"
	"stepbox/session/api"
	"stepbox/session/files"
	"stepbox/store"
)

const trashed = "it was in the trash" // why it goes

// inTrash is how long a session stays in the trash before a collection takes it.
const inTrash = 24 * time.Hour

// Collect is server.Keeper's.
func (k keeper) Collect(ctx context.Context, r api.CollectRequest, tell func(api.Collecting)) (api.Collected, error) {
	out := api.Collected{Dry: r.Dry}
	if r.OlderThan < 0 || r.Keep != nil && *r.Keep < 0 || r.MaxSize < 0 {
		return out, api.Problemf(api.CodeUsage, "an age, a number and a size can't be negative")
	}
	if err := k.store.Sane(ctx); err != nil { // before sessions go
		return out, err
	}
	unknown, err := k.store.Unknown(ctx)
	unknown = slices.DeleteFunc(unknown, func(dir string) bool { return k.live.live(filepath.Base(dir)) }) // one that is just starting has no row yet
	if err != nil {
		return out, err
	}
	if len(unknown) > 0 && !r.Unapplied {
		return out, api.Problemf(api.CodeBusy, "nothing is removed: there are folders of sessions that the record doesn't know, %s. If an older copy of the database was put back, put back the newest; "+
			"else stepbox gc --force removes them, with what wasn't applied of them", strings.Join(unknown, ", "))
	}
	gone, err := k.drop(ctx, r, &out, tell)
	if err != nil {
		return out, err
	}
	var journals []string // that a dry run leaves there
	for _, id := range gone {
		of, err := k.journalsOf(ctx, id)
		if err != nil {
			return out, err
		}
		journals = append(journals, of...)
	}
	var unread error // no session's row is to blame for it
	c, err := k.store.Collect(ctx, r.Dry, gone, files.References(k.store), k.journaled(journals, &unread))
	if unread != nil {
		err = fmt.Errorf("what an apply needs to be undone can't be told, so no contents were removed: %w", unread)
	}
	out.Bodies, out.Bytes = c.Bodies, c.Bytes
	if errors.Is(err, store.ErrBusy) {
		also := ""
		if out.Sessions > 0 {
			also = fmt.Sprintf("; sessions that were removed: %d; their contents will be by the next stepbox gc", out.Sessions)
		}
		return out, api.Problemf(api.CodeBusy, "%v%s", err, also)
	}
	if err == nil && !r.Dry {
		err = k.forget(ctx)
	}
	for _, dir := range c.Folders {
		if err != nil || k.live.live(filepath.Base(dir)) { // one that is just starting has no row yet
			continue
		}
		out.Folders++
		out.Bytes += files.DiskUse(ctx, dir).Bytes
		if !r.Dry {
			err = holder.RemoveAll(dir)
		}
	}
	return out, err
}

// drop removes the sessions that a request asks for, or says which would go.
func (k keeper) drop(ctx context.Context, r api.CollectRequest, out *api.Collected, tell func(api.Collecting)) (gone []string, err error) {
	sessions, err := k.history.Sessions(ctx)
	if err != nil {
		return nil, err
	}
	list := candidates(sessions, r, time.Now())
	if len(list) == 0 {
		return nil, nil
	}
	w, err := k.store.Weigh(ctx, func() []store.References { return []store.References{files.References(k.store)} }, func(n, of int) {
		tell(api.Collecting{Weighed: n, Of: of})
	})
	if err != nil {
		return nil, err
	}
	folders, left := make(map[string]int64), w.Total()
	for _, s := range sessions {
		folders[s.ID] = files.DiskUse(ctx, k.store.SessionDir(s.ID)).Bytes
		left += folders[s.ID]
	}
	for _, d := range list {
		if d.Why == "" && left <= r.MaxSize {
			continue // as would all that are newer, but for those that are asked for otherwise
		}
		d.Why = cmp.Or(d.Why, "more than so many bytes are kept")
		if d.Stays == "" && !r.Unapplied {
			d.Stays = k.stays(ctx, d.ID)
		}
		if d.Stays == "" {
			d.Bytes = w.Take(d.ID) + folders[d.ID]
			if !r.Dry {
				err = k.Remove(ctx, d.ID)
			}
			if p := (*api.Problem)(nil); errors.As(err, &p) && p.Code == api.CodeNotFound { // someone else removed it
				left -= d.Bytes
				continue
			} else if p != nil { // it goes on again, or is just being removed
				d.Stays, err = p.Message, nil
			} else if err != nil {
				return nil, fmt.Errorf("cannot remove session %s: %w", d.ID, err)
			} else {
				left -= d.Bytes
				out.Sessions++
				gone = append(gone, d.ID)
				out.Freed += d.Bytes
			}
		}
		tell(api.Collecting{Dropped: &d})
	}
	out.Left = left
	return gone, ctx.Err()
}

// candidates are the sessions that a request may take, the oldest first. Those without a
// reason go only for the room that they take.
func candidates(sessions []api.Session, r api.CollectRequest, now time.Time) (out []api.Dropped) {
	sorted := slices.SortedFunc(slices.Values(sessions), func(a, b api.Session) int { return b.Last().Compare(a.Last()) })
	kept, needed := 0, needed(sessions)
	for _, s := range sorted { // the newest first
		if s.Live() {
			continue
		}
		d := api.Dropped{ID: s.ID, Name: s.Name, Number: s.Number, At: s.Last(), Applied: s.Applies > 0}
		switch age := now.Sub(d.At); {
		case !s.Trashed.IsZero() && now.Sub(s.Trashed) > inTrash:
			d.Why = trashed
		case r.OlderThan > 0 && age > r.OlderThan:
			d.Why = "it is older than that"
		case r.Keep != nil && kept >= *r.Keep:
			d.Why = "so many newer ones are kept"
		case s.Pinned:
			continue
		default:
			if kept++; r.MaxSize == 0 {
				continue
			}
		}
		if s.Pinned {
			d.Stays = "it is pinned"
		} else if only := s.Only(); only != "" && !r.Unapplied {
			d.Stays = "it has " + only
		} else if by, ok := needed[s.ID]; ok && d.Why != trashed && !r.Unapplied {
			d.Stays = fmt.Sprintf("%s (%d) goes on from it, and isn't applied", by.Name, by.Number)
		}
		out = append(out, d)
	}
	slices.Reverse(out)
	return out
}

// stays says why a session stays by what only it has, which lists don't have all of; "" for
// one that may go. One that someone else removed may.
func (k keeper) stays(ctx context.Context, id string) string {
	s, err := k.history.Session(ctx, id)
	if p := (*api.Problem)(nil); err != nil && (!errors.As(err, &p) || p.Code != api.CodeNotFound) {
		return "it can't be told what only it has: " + api.Escape(err.Error())
	}
	if only := s.Only(); only != "" {
		return "it has " + only
	}
	return ""
}

// needed are the sessions that others go on from which live or wait to be applied: what
// those take back of their applies is known by them alone.
func needed(sessions []api.Session) map[string]api.Session {
	all, out := make(map[string]api.Session), make(map[string]api.Session)
	for _, s := range sessions {
		all[s.ID] = s
	}
	for _, s := range sessions {
		if !s.Live() && s.Unapplied == 0 {
			continue
		}
		for at := s; at.Parent != nil; at = all[at.Parent.ID] {
			if _, known := out[at.Parent.ID]; known {
				break
			}
			out[at.Parent.ID] = s
		}
	}
	return out
}
