package find

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"stepbox/session/api"
	"stepbox/session/ledger"
	"stepbox/store"
)

// looked is what the index says of a text.
type looked struct {
	words   []word
	places  map[string][]store.Place // of each session, those with any of the words
	indexed map[string]store.Indexed
}

// placesMost bounds how many places of one session are read for its hits.
const placesMost = 200

// look finds out which sessions have a text, and tells the choice. Notes say what
// couldn't be searched.
func (f *Finder) look(ctx context.Context, q api.Query, c *store.Choice, out *api.FoundPage) (looked, error) {
	l := looked{words: words(q.Text), places: make(map[string][]store.Place)}
	if len(l.words) == 0 {
		return l, nil
	}
	if n := len(l.words); n > wordsMost {
		l.words = l.words[:wordsMost]
		out.Notes = append(out.Notes, fmt.Sprintf("only the first %d of %d words were looked for", wordsMost, n))
	}
	for _, w := range l.words {
		c.Words = append(c.Words, store.Word{Text: w.text})
	}
	x, err := f.Store.Index(ctx)
	if errors.Is(err, store.ErrNotFound) && f.Store.ReadOnly() {
		out.Notes = append(out.Notes, "only what sessions are called was searched: the record can't be written, and what happened in them was never indexed")
		return l, nil
	}
	if err != nil {
		return l, err
	}
	if l.indexed, out.Behind, err = f.catchUp(ctx, x, atOnce); err != nil {
		return l, err
	}
	if out.Behind > 0 && x.ReadOnly() {
		out.Notes, out.Behind = append(out.Notes, "the newest of what happened wasn't searched: the record can't be written, and it isn't indexed"), 0
	}
	sessions := make([]map[string]bool, len(l.words)) // that have it
	for i, w := range l.words {
		sessions[i] = make(map[string]bool)
		places, err := x.Match(ctx, w.text, w.begun)
		if err != nil {
			return l, err
		}
		for _, p := range places {
			sessions[i][p.Session] = true
			if !slices.Contains(l.places[p.Session], p) {
				l.places[p.Session] = append(l.places[p.Session], p)
			}
		}
	}
	cut, err := f.unindexed(ctx, l, c.First, q.Session, sessions)
	if err != nil {
		return l, err
	}
	for i, has := range sessions {
		for id, yes := range has {
			if yes {
				c.Words[i].In = append(c.Words[i].In, id)
			}
		}
	}
	if cut > 0 {
		out.Notes = append(out.Notes, fmt.Sprintf("of what live sessions (%d) printed since they were indexed only the newest is searched, about %d MiB", cut, tailFiles))
	}
	long := 0
	for id, n := range l.indexed {
		if n.Bytes >= printedMost && (q.Session == "" || id == q.Session) {
			long++
		}
	}
	if long > 0 {
		out.Notes = append(out.Notes, fmt.Sprintf("of what was printed in very long sessions (%d) only the first %d MiB of text is searched", long, printedMost>>20))
	}
	return l, nil
}

// unindexed adds which live sessions, or which one of them, printed a word since they
// were indexed, and says of how many that isn't known to the end.
func (f *Finder) unindexed(ctx context.Context, l looked, live []string, only string, sessions []map[string]bool) (cut int, err error) {
	for _, id := range live {
		if only != "" && id != only {
			continue
		}
		var want []int // words that the index doesn't have of it
		for i := range l.words {
			if !sessions[i][id] {
				want = append(want, i)
			}
		}
		if len(want) == 0 {
			continue
		}
		part, err := f.tail(ctx, id, l.indexed[id].File, func(_ time.Duration, ln line) bool {
			in := tokens(ln.text)
			want = slices.DeleteFunc(want, func(i int) bool {
				sessions[i][id] = l.words[i].in(in)
				return sessions[i][id]
			})
			return len(want) > 0
		})
		if err != nil && !errors.Is(err, store.ErrNotFound) { // it was removed meanwhile
			return cut, err
		}
		if part && len(want) > 0 {
			cut++
		}
	}
	return cut, nil
}

// atOnce is how long a search may take to catch up with the record.
const atOnce = 300 * time.Millisecond

// tailFiles bounds what of a live session is read for each search, in files of 1 MiB.
const tailFiles = 8

// tail yields what a live session printed that isn't indexed yet until yield has
// enough, and says whether that is only the newest of it.
func (f *Finder) tail(ctx context.Context, id string, after int64, yield func(lead time.Duration, l line) bool) (part bool, err error) {
	r, lead, err := f.recording(ctx, id)
	if err != nil {
		return false, err
	}
	numbers, _ := r.Files()
	numbers = slices.DeleteFunc(numbers, func(n int64) bool { return n <= after })
	more := true
	for i := max(0, len(numbers)-tailFiles); i < len(numbers) && more; i++ {
		printed(r.File(numbers[i]), func(l line) bool {
			more = ctx.Err() == nil && yield(lead, l)
			return more
		})
	}
	return len(numbers) > tailFiles, ctx.Err()
}

// recording opens what a session printed, and says how long after the session it began.
func (f *Finder) recording(ctx context.Context, id string) (*store.Recording, time.Duration, error) {
	r, err := f.Store.Recording(ctx, id)
	if err != nil {
		return nil, 0, err
	}
	s, err := ledger.Session(ctx, f.Store, id)
	return r, r.Lead(s.StartedAt), err
}

// hits collects places of a session: those that have all words, or when there are none
// those that have any; else what it is called that has a part of one, as whoever chooses
// sessions goes by that too.
type hits struct {
	words     []word
	most      int
	all, some []api.Hit
	called    []api.Hit
}

// add looks at a text, and says whether more are wanted. One without letters
// is in what a session is called alone: the index has none.
func (h *hits) add(at api.Hit) bool {
	in, n := tokens(at.Text), 0
	for _, w := range h.words {
		if w.in(in) || at.Kind == api.HitLabel && len(w.tokens) == 0 && strings.Contains(at.Text, w.text) {
			n++
		}
	}
	to := &h.some
	switch {
	case n == len(h.words):
		to = &h.all
	case n == 0 && at.Kind == api.HitLabel && slices.ContainsFunc(h.words, func(w word) bool {
		return strings.Contains(strings.ToLower(at.Text), strings.ToLower(w.text))
	}):
		to, n = &h.called, 1
	}
	if n > 0 && len(*to) <= h.most {
		at.Text = shown(at.Text, h.words)
		*to = append(*to, at)
	}
	return len(h.all) <= h.most
}

// hits are the places of a session that have the text.
func (f *Finder) hits(ctx context.Context, s api.Session, l looked, most int) (out []api.Hit, more bool, err error) {
	h := &hits{words: l.words, most: most}
	for _, text := range []string{s.Name, s.Agent, s.Command, s.Workspace, s.Note, strings.Join(s.Tags, " ")} {
		h.add(api.Hit{Kind: api.HitLabel, Text: text})
	}
	order := []string{string(api.HitAction), string(api.HitPath), string(api.HitAttempt), string(api.HitTerminal)}
	places := l.places[s.ID]
	slices.SortStableFunc(places, func(a, b store.Place) int { return slices.Index(order, a.Kind) - slices.Index(order, b.Kind) })
	for _, p := range places[:min(len(places), placesMost)] {
		if len(h.all) > most || err != nil {
			break
		}
		err = f.place(ctx, s, p, h)
	}
	if err == nil && s.Live() {
		_, err = f.tail(ctx, s.ID, l.indexed[s.ID].File, func(lead time.Duration, ln line) bool {
			return h.add(api.Hit{Kind: api.HitTerminal, Offset: max(0, lead+ln.at), Text: ln.text})
		})
	}
	out = h.all
	for _, less := range [][]api.Hit{h.some, h.called} {
		if len(out) == 0 {
			out = less
		}
	}
	slices.SortStableFunc(out, func(a, b api.Hit) int { return cmp.Compare(a.Offset, b.Offset) })
	seen := make(map[api.Hit]bool) // a resource that changed is indexed again
	out = slices.DeleteFunc(out, func(x api.Hit) bool {
		again := seen[x]
		seen[x] = true
		return again
	})
	return out[:min(len(out), most)], len(out) > most, err
}

// place looks through one place of a session.
func (f *Finder) place(ctx context.Context, s api.Session, p store.Place, h *hits) error {
	if p.Kind == string(api.HitTerminal) {
		r, lead, err := f.recording(ctx, s.ID)
		if err == nil {
			printed(r.File(p.First), func(l line) bool {
				return h.add(api.Hit{Kind: api.HitTerminal, Offset: max(0, lead+l.at), Text: l.text})
			})
		}
		return err
	}
	kind := store.Kind(p.Kind)
	if p.Kind == string(api.HitPath) {
		kind = store.KindAction
	}
	docs, err := f.Store.Docs(ctx, s.ID, kind, p.First-1, int(p.Last-p.First)+1)
	if err != nil {
		return err
	}
	for _, doc := range docs {
		at, a, err := ofDoc(kind, doc)
		if err != nil || at.Key < p.First || at.Key > p.Last {
			continue // it has no words
		}
		before := len(h.all) + len(h.some)
		if p.Kind == string(api.HitPath) {
			at.Kind = api.HitPath
			for _, path := range f.paths(ctx, s.ID, a.N) {
				if at.Text = path; !h.add(at) {
					break
				}
			}
		} else {
			h.add(at)
		}
		if len(h.all)+len(h.some) == before {
			continue
		}
		told, err := f.Store.Told(ctx, s.ID, kind, at.Key)
		if err != nil {
			return err
		}
		for _, list := range [][]api.Hit{h.all, h.some} {
			for i := range list {
				if x := &list[i]; x.Kind == at.Kind && x.Key == at.Key && len(told) > 0 {
					x.Seq, x.Offset = told[0].Seq, max(0, told[0].At.Sub(s.StartedAt))
				}
			}
		}
	}
	return nil
}
