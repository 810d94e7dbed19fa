package find

import (
	"fmt"
	"testing"

	"stepbox/session/api"
	"stepbox/session/e2e/must"
)

// A word that one of 10,000 sessions has, one that each has, and one that none
// has, with the places of the first 50. Each session has ten actions and printed
// 2 kB.
//
//	go test -run '^$' -bench Find ./session/find
func BenchmarkFind(b *testing.B) {
	st, h := record(b)
	for i := range 10_000 {
		id := fmt.Sprintf("s%d", i)
		begin(b, st, api.Session{ID: id, Name: "project", Command: "claude", State: api.SessionEnded})
		for n := range 10 {
			facts(b, st, id, actionFact(n+1, fmt.Sprintf(`"title":"go test ./part%d"`, n)))
		}
		text := fmt.Sprintf("needle%d\n", i)
		for n := range 40 {
			text += fmt.Sprintf("--- PASS: TestOfNumber%d (0.%02ds)\r\nok all of it well\r\n", n, i%100)
		}
		prints(b, st, id, true, text)
	}
	f := New(h)
	for { // until all are indexed
		p, err := f.Find(b.Context(), api.Query{Text: "needle0"})
		must.OK(b, err)
		if p.Behind == 0 {
			break
		}
	}
	for name, text := range map[string]string{"one": "needle7777", "each": "TestOfNumber7", "none": "nowhere"} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := f.Find(b.Context(), api.Query{Text: text, Limit: 50}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
