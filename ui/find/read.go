package find

import (
	"context"
	"slices"
	"strings"

	"stepbox/session/api"
)

// Hosts are where actions tried to connect.
func Hosts(attempts []api.Attempt) map[int][]string {
	out := map[int][]string{}
	for i := range attempts {
		if t := &attempts[i]; t.Action != 0 && !slices.Contains(out[t.Action], t.Host()) {
			out[t.Action] = append(out[t.Action], t.Host())
		}
	}
	return out
}

// Wrote is, for each text in paths that was asked for, which actions wrote such files.
type Wrote map[string][]int

// By says of an action's writing what a Row asks.
func (w Wrote) By(action int) func(path string) bool {
	return func(path string) bool {
		_, ok := slices.BinarySearch(w[path], action)
		return ok
	}
}

// mostHits is how many places are looked at for a path.
const mostHits = 1000

// Writers asks the record which actions of a session wrote files with texts in their
// paths. What it found out before it failed is told, too.
func Writers(ctx context.Context, find func(context.Context, api.Query) (api.FoundPage, error), session string, paths []string) (Wrote, error) {
	out := Wrote{}
	var failed error
	for _, p := range paths {
		out[p] = nil
		page, err := api.Searched(ctx, find, api.Query{Text: p, Session: session, Hits: mostHits})
		if err != nil {
			failed = err
			continue
		}
		for _, f := range page.Found {
			for _, h := range f.Hits { // of a long path only a part is told
				if h.Kind == api.HitPath && (strings.Contains(strings.ToLower(h.Text), p) || strings.Contains(h.Text, "…")) {
					out[p] = append(out[p], h.Action)
				}
			}
		}
		slices.Sort(out[p])
	}
	return out, failed
}
