package find

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"stepbox/session/api"
	"stepbox/session/ledger"
	"stepbox/store"
)

// Bounds of what of one session is indexed, and of how much at a time.
const (
	printedMost = 4 << 20 // bytes of text that it printed
	pathsMost   = 50_000
	batch       = 500 // actions or attempts
)

// catchUp brings the index up to what is recorded, for at most so long, and says how
// many sessions it still doesn't know well. One at a time does this in a process.
func (f *Finder) catchUp(ctx context.Context, x *store.Index, most time.Duration) (known map[string]store.Indexed, behind int, err error) {
	until := time.Now().Add(most)
	select {
	case f.indexing <- struct{}{}:
		defer func() { <-f.indexing }()
	case <-ctx.Done():
		return nil, 0, ctx.Err()
	}
	rows, err := f.Store.Rows(ctx)
	if err != nil {
		return nil, 0, err
	}
	if known, err = x.Indexed(ctx); err != nil {
		return nil, 0, err
	}
	for id, told := range rows {
		if n, ok := known[id]; ok && n.Told == told && !n.Open {
			continue
		}
		if x.ReadOnly() || time.Now().After(until) {
			behind++
			continue
		}
		all := false
		if known[id], all, err = f.index(ctx, x, id, told, known[id]); err != nil {
			return nil, 0, err
		}
		if !all {
			behind++
		}
	}
	return known, behind, nil
}

// Index indexes what is recorded of a session that has ended.
func (f *Finder) Index(ctx context.Context, id string) error {
	x, err := f.Store.Index(ctx)
	if err != nil {
		return err
	}
	rows, err := f.Store.Rows(ctx)
	if err != nil {
		return err
	}
	known, err := x.Indexed(ctx)
	if err == nil {
		_, _, err = f.index(ctx, x, id, rows[id], known[id])
	}
	return err
}

// index adds what was recorded of a session since it was indexed, and says whether that
// is all: else another process is at it. Told is the event that wrote its row, as of
// before. Until all is in the index the session stays open there, so that whoever comes
// after an interruption goes on.
func (f *Finder) index(ctx context.Context, x *store.Index, id string, told uint64, was store.Indexed) (_ store.Indexed, all bool, err error) {
	last, err := f.Store.LastEvent(ctx, id)
	if err != nil || last == 0 { // it was removed meanwhile
		return was, true, err
	}
	s, err := ledger.Session(ctx, f.Store, id)
	if errors.Is(err, store.ErrNotFound) { // as above
		return was, true, nil
	}
	if err != nil {
		return was, false, err
	}
	live := s.Live() && f.Live(id)
	now := was
	now.Told, now.Seq, now.Open = told, last, true
	places, paths, err := f.touched(ctx, id, was, last)
	if err != nil {
		return was, false, err
	}
	now.Paths += paths
	if now != was || len(places) > 0 {
		mine, err := x.Add(ctx, id, was, now, places)
		if err != nil || !mine {
			return was, false, err
		}
	}
	if now, all, err = f.indexTerminal(ctx, x, id, live, now); !all || live {
		return now, all, err
	}
	was, now.Open = now, false
	all, err = x.Add(ctx, id, was, now, nil)
	return now, all, err
}

// touched are the places of actions, attempts and changed paths that events told of
// since a session was indexed.
func (f *Finder) touched(ctx context.Context, id string, was store.Indexed, last uint64) (places []store.Place, paths int64, err error) {
	for _, kind := range []store.Kind{store.KindAction, store.KindAttempt} {
		keys, err := f.Store.Touched(ctx, id, kind, was.Seq, last)
		if err != nil {
			return nil, 0, err
		}
		for some := range slices.Chunk(keys, batch) {
			p := store.Place{Kind: string(kind), First: some[0], Last: some[len(some)-1]}
			docs, err := f.Store.Docs(ctx, id, kind, p.First-1, int(p.Last-p.First)+1)
			if err != nil {
				return nil, 0, err
			}
			var text strings.Builder
			for _, doc := range docs {
				h, a, err := ofDoc(kind, doc)
				if _, mine := slices.BinarySearch(some, h.Key); err != nil || !mine {
					continue // a document that can't be read has no words
				}
				text.WriteString(h.Text + "\n")
				if a.Files > 0 && !a.EndedAt.IsZero() && was.Paths+paths < pathsMost {
					changed := f.paths(ctx, id, a.N)
					paths += int64(len(changed))
					places = append(places, store.Place{Kind: string(api.HitPath), First: int64(a.N), Last: int64(a.N), Text: strings.Join(changed, "\n")})
				}
			}
			p.Text = text.String()
			places = append(places, p)
		}
	}
	return places, paths, nil
}

// ofDoc is an action or an attempt as a place that has words.
func ofDoc(kind store.Kind, doc json.RawMessage) (h api.Hit, a api.Action, err error) {
	if kind == store.KindAttempt {
		var t api.Attempt
		err = json.Unmarshal(doc, &t)
		return api.Hit{Kind: api.HitAttempt, Key: t.ID, Action: t.Action, Text: fmt.Sprintf("%s:%d %s %s %s", t.Host(), t.Port, t.Protocol, t.Verdict, t.Program)}, a, err
	}
	err = json.Unmarshal(doc, &a)
	text := a.Title
	if a.Reason != "" {
		text += " · " + a.Reason
	}
	if said := a.Said(); said != "" {
		text += " · " + said
	}
	return api.Hit{Kind: api.HitAction, Key: int64(a.N), Action: a.N, Text: text}, a, err
}

// paths lists what an action changed; nothing when that can't be told any more.
func (f *Finder) paths(ctx context.Context, id string, n int) (out []string) {
	scope, err := f.Scope(ctx, id, api.Scope{Action: n})
	if err != nil || scope.To == nil {
		return nil
	}
	changes, err := scope.Files.Between(ctx, scope.From, scope.To)
	if err != nil {
		return nil
	}
	for _, c := range changes[:min(len(changes), pathsMost)] {
		out = append(out, api.Escape(c.Path))
	}
	return out
}

// indexTerminal adds what a session printed, file by file.
func (f *Finder) indexTerminal(ctx context.Context, x *store.Index, id string, live bool, was store.Indexed) (_ store.Indexed, all bool, err error) {
	r, err := f.Store.Recording(ctx, id)
	if err := ctx.Err(); err != nil {
		return was, false, err
	}
	if err != nil {
		return was, true, nil // damaged: it has no words, and whoever replays it hears why
	}
	numbers, packed := r.Files()
	for i, n := range numbers {
		if n <= was.File || was.Bytes >= printedMost {
			continue
		}
		if live && !packed[i] {
			break
		}
		var text strings.Builder
		printed(r.File(n), func(l line) bool {
			text.WriteString(l.text + "\n")
			return int64(text.Len()) < printedMost-was.Bytes && ctx.Err() == nil
		})
		if err := ctx.Err(); err != nil {
			return was, false, err
		}
		now := was
		now.File, now.Bytes = n, was.Bytes+int64(text.Len())
		mine, err := x.Add(ctx, id, was, now, []store.Place{{Kind: string(api.HitTerminal), First: n, Last: n, Text: text.String()}})
		if err != nil || !mine {
			return was, false, err
		}
		was = now
	}
	return was, true, nil
}
