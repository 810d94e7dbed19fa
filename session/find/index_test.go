package find

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"stepbox/session/api"
	"stepbox/session/e2e/must"
	"stepbox/session/files"
	"stepbox/session/screen"
	"stepbox/store"
)

// prints records what a session prints. The journal is closed if it has ended.
func prints(t testing.TB, st *store.Store, id string, ended bool, pieces ...string) {
	t.Helper()
	j, err := st.Journal(id)
	must.OK(t, err)
	sc := screen.New(80, 24)
	for _, p := range pieces {
		p = strings.ReplaceAll(p, "\n", "\r\n") // as a terminal does
		for some := range slices.Chunk([]byte(p), 64<<10) {
			var err error
			if j.Fresh() {
				err = j.Keyframe(80, 24, sc.Keyframe())
			}
			_, _ = sc.Write(some) // it takes everything
			if err = errors.Join(err, j.Output(some)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if !ended {
		t.Cleanup(func() { j.Close() })
	} else if err := j.Close(); err != nil {
		t.Fatal(err)
	}
}

func facts(t testing.TB, st *store.Store, id string, f ...store.Fact) {
	t.Helper()
	if _, err := st.Append(t.Context(), id, f...); err != nil {
		t.Fatal(err)
	}
}

func actionFact(n int, doc string) store.Fact {
	return store.Fact{Kind: store.KindAction, Key: int64(n), Event: "action.ended", Doc: []byte(fmt.Sprintf(`{"n":%d,%s}`, n, doc))}
}

// hitsOf lists the places of the only session that a text is found in.
func hitsOf(t testing.TB, f *Finder, text string) (out []string) {
	t.Helper()
	p, err := f.Find(t.Context(), api.Query{Text: text, Hits: 10})
	must.OK(t, err)
	for _, x := range p.Found {
		for _, h := range x.Hits {
			out = append(out, fmt.Sprintf("%s %s %d: %s", x.Session.ID, h.Kind, h.Action, h.Text))
			if h.Offset < 0 || h.Kind == api.HitAction && h.Seq == 0 {
				t.Errorf("%s is at %v, event %d", h.Text, h.Offset, h.Seq)
			}
		}
	}
	return out
}

func TestSearch(t *testing.T) {
	st, h := record(t, "live")
	f := New(h)
	begin(t, st, api.Session{ID: "old", Name: "project", State: api.SessionEnded})
	begin(t, st, api.Session{ID: "live", Name: "other", Command: "sh -c x", State: api.SessionRunning})
	facts(t, st, "old", actionFact(1, `"title":"go test ./store","claim":{"text":"Checks the record"}`), actionFact(2, `"title":"git commit","reason":"denied: too early"`),
		store.Fact{Kind: store.KindAttempt, Key: 1, Event: "attempt", Doc: []byte(`{"id":1,"action":1,"name":"proxy.example.org","port":443,"protocol":"tcp","verdict":"deny"}`)})
	prints(t, st, "old", true, "first \x1b[1mbold\x1b[0mface li", "ne\r\n\x1b]52;c;aGk=\x07Überraschung: FAIL\tTestX\x1b[4;5Hpanel\x1b[3Cright\n", "10%\r10%\r20%\n", "bytes \xff\xfe\x00here\n")
	prints(t, st, "live", false, "tail words here\n")
	for text, want := range map[string]string{
		"store":                 "old action 1: go test ./store · Checks the record",
		"checks RECORD":         "old action 1: go test ./store · Checks the record",
		`"too early"`:           "old action 2: git commit · denied: too early",
		"example.org":           "old attempt 1: proxy.example.org:443 tcp deny ",
		"boldface":              "old terminal 0: first boldface line",
		"uberrasch":             "old terminal 0: Überraschung: FAIL TestX",
		"Überraschung":          "old terminal 0: Überraschung: FAIL TestX",
		`"fail testx"`:          "old terminal 0: Überraschung: FAIL TestX",
		"panel":                 "old terminal 0: panel right",
		"aGk":                   "",
		`"testx panel"`:         "",
		"10":                    "", // nobody saw it
		"20":                    "old terminal 0: 20%",
		"tail wor":              "live terminal 0: tail words here",
		"store panel":           "old action 1: go test ./store · Checks the record; old terminal 0: panel right", // in different places
		"store nowhere":         "",
		`"go te" x`:             "",
		`a" OR "store`:          "",
		"go NOT store":          "",
		"words:store":           "",
		"* ( ) -":               "",
		"\x00\x1b[2Jstore":      "",
		"proj store":            "old action 1: go test ./store · Checks the record", // one of them in its name
		"rojec":                 "old label 0: project",                              // the part of a word that chose it
		"-":                     "live label 0: sh -c x",
		"sh -":                  "live label 0: sh -c x",
		"NEAR":                  "",
		strings.Repeat(`"`, 99): "",
	} {
		got := strings.Join(hitsOf(t, f, text), "; ")
		if want == "" && !strings.Contains(text, "nowhere") && strings.Trim(text, `"`) == "" {
			continue // asks for everything
		}
		if got != want {
			t.Errorf("%q gives\n%q, want\n%q", text, got, want)
		}
	}
	if got := strings.Join(hitsOf(t, f, "here"), "; "); !strings.Contains(got, `bytes`) || strings.ContainsAny(got, "\x00\x1b") {
		t.Errorf("hostile bytes are told as %q", got)
	}
	if p, err := f.Find(t.Context(), api.Query{Text: strings.Repeat("store ", wordsMost) + "nowhere"}); err != nil || p.Total != 1 || fmt.Sprint(p.Notes) != "[only the first 16 of 17 words were looked for]" {
		t.Errorf("of many words: %d found, %q, %v", p.Total, p.Notes, err)
	}
	// What is recorded later is found later, also by others.
	facts(t, st, "old", actionFact(3, `"title":"make later"`), store.Fact{Kind: store.KindSession, Event: "session.counted", Doc: []byte(`{"id":"old","name":"project","state":"ended"}`)})
	if got := finds(t, f, api.Query{Text: "later"}); got != "old" {
		t.Errorf("later: %q", got)
	}
	must.OK(t, st.Remove(t.Context(), "old"))
	if got := finds(t, f, api.Query{Text: "store", Hits: 3}); got != "" {
		t.Errorf("a session that was removed is found: %q", got)
	}
}

// A session that died leaves its last words where nobody packs them.
func TestSearchInterrupted(t *testing.T) {
	st, h := record(t)
	begin(t, st, api.Session{ID: "dead", Name: "x", State: api.SessionRunning})
	prints(t, st, "dead", false, "famous last words\n")
	if got := hitsOf(t, New(h), "famous"); len(got) != 1 || got[0] != "dead terminal 0: famous last words" {
		t.Errorf("its last words are %q", got)
	}
}

// cutOff is a context that ends once a session is in the index.
type cutOff struct {
	context.Context
	x  *store.Index
	id string
}

func (c cutOff) Err() error {
	if known, err := c.x.Indexed(context.WithoutCancel(c.Context)); err != nil || known[c.id].Told > 0 {
		return errors.Join(err, context.Canceled)
	}
	return nil
}

// A search or an indexing that is interrupted leaves the rest to the next one, and what
// another process is at is told as behind.
func TestSearchCutOff(t *testing.T) {
	st, h := record(t)
	x, err := st.Index(t.Context())
	must.OK(t, err)
	begin(t, st, api.Session{ID: "ended", Name: "x", State: api.SessionEnded})
	prints(t, st, "ended", true, "the needle\n")
	f := New(h)
	if err := f.Index(cutOff{t.Context(), x, "ended"}, "ended"); !errors.Is(err, context.Canceled) {
		t.Fatalf("it wasn't cut off: %v", err)
	}
	if got := finds(t, f, api.Query{Text: "needle"}); got != "ended" {
		t.Errorf("after that %q is found", got)
	}
	begin(t, st, api.Session{ID: "dead", Name: "y", State: api.SessionRunning})
	prints(t, st, "dead", false, "another needle\n")
	asked := 0
	f.Live = func(string) bool {
		if asked++; asked == 2 { // it is known what is indexed: another is faster
			if mine, err := x.Add(t.Context(), "dead", store.Indexed{}, store.Indexed{Told: 1, Seq: 1, Open: true}, nil); !mine || err != nil {
				t.Errorf("the other didn't come first: %v", err)
			}
		}
		return false
	}
	for _, want := range []string{"1 1", "2 0"} {
		if p, err := f.Find(t.Context(), api.Query{Text: "needle"}); err != nil || fmt.Sprint(p.Total, p.Behind) != want {
			t.Errorf("%d found, %d behind, %v; want %s", p.Total, p.Behind, err, want)
		}
	}
}

// A record that can't be written is searched as far as it was indexed, which is said.
func TestSearchReadOnly(t *testing.T) {
	st, h := record(t)
	begin(t, st, api.Session{ID: "one", Name: "x", State: api.SessionEnded})
	facts(t, st, "one", actionFact(1, `"title":"go vet"`))
	dir := strings.TrimSuffix(st.SessionDir("one"), "/sessions/one")
	look := func(text string) (string, []string) {
		ro, err := store.OpenReadOnly(t.Context(), dir)
		must.OK(t, err)
		defer ro.Close()
		p, err := New(files.NewHistory(ro, h.Live)).Find(t.Context(), api.Query{Text: text})
		must.OK(t, err)
		return fmt.Sprint(len(p.Found), p.Behind), p.Notes
	}
	if n, notes := look("vet"); n != "0 0" || len(notes) != 1 || !strings.Contains(notes[0], "never indexed") {
		t.Errorf("without an index: %s, %q", n, notes)
	}
	must.OK(t, New(h).Index(t.Context(), "one"))
	if n, notes := look("vet"); n != "1 0" || len(notes) != 0 {
		t.Errorf("with an index: %s, %q", n, notes)
	}
	begin(t, st, api.Session{ID: "two", Name: "new", State: api.SessionEnded})
	if n, notes := look("new"); n != "1 0" || len(notes) != 1 {
		t.Errorf("with an old index: %s, %q", n, notes)
	}
}

// Several who search at once index each session once.
func TestSearchAtOnce(t *testing.T) {
	st, h := record(t)
	for i := range 20 {
		id := fmt.Sprintf("s%d", i)
		begin(t, st, api.Session{ID: id, Name: "x", State: api.SessionEnded})
		facts(t, st, id, actionFact(1, `"title":"common word"`))
	}
	done := make(chan error)
	for range 4 {
		go func() {
			f := New(h)
			for {
				p, err := f.Find(context.WithoutCancel(t.Context()), api.Query{Text: "common"})
				if err != nil || p.Behind == 0 {
					if err == nil && p.Total != 20 {
						err = fmt.Errorf("%d found", p.Total)
					}
					done <- err
					return
				}
			}
		}()
	}
	for range 4 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	x, err := st.Index(t.Context())
	must.OK(t, err)
	if places, err := x.Match(t.Context(), "common", false); err != nil || len(places) != 20 {
		t.Errorf("%d places, %v", len(places), err)
	}
}

// What a live session printed is found whichever of its files it is in, and of very
// much that isn't indexed only the newest is searched, which is said.
func TestSearchLiveLong(t *testing.T) {
	st, h := record(t, "live")
	begin(t, st, api.Session{ID: "live", Name: "x", State: api.SessionRunning})
	n := 0
	lines := func(mib int) string {
		var b strings.Builder
		for ; b.Len() < mib<<20; n++ {
			fmt.Fprintf(&b, "%d %s\n", n, strings.Repeat("filler ", 300))
		}
		return b.String()
	}
	j, err := st.Journal("live")
	must.OK(t, err)
	defer j.Close()
	f := New(h)
	search := func(printed, text string) string {
		must.OK(t, j.Output([]byte(printed)))
		p, err := f.Find(t.Context(), api.Query{Text: text})
		must.OK(t, err)
		return fmt.Sprint(len(p.Found), strings.Contains(fmt.Sprint(p.Notes), "only the newest is searched"))
	}
	if got := search(lines(6)+"the needle is here\n"+lines(3), `"needle"`); got != "1 false" {
		t.Errorf("a word in the middle: %s", got)
	}
	if got := search(lines(8)+"the last\n", `"is here" last`); got != "0 true" {
		t.Errorf("a word before what is searched: %s", got)
	}
	if got := search("", `"the last"`); got != "1 false" {
		t.Errorf("the last: %s", got)
	}
}

// What was said first and last of a long session is bounded, and said to be.
func TestSearchLong(t *testing.T) {
	st, h := record(t)
	begin(t, st, api.Session{ID: "long", Name: "x", State: api.SessionEnded})
	j, err := st.Journal("long")
	must.OK(t, err)
	line := strings.Repeat("filler ", 1000)
	for i := range 1400 {
		must.OK(t, j.Output([]byte(fmt.Sprintf("%d %s\n", i, line))))
	}
	must.OK(t, j.Output([]byte("needle\n")))
	must.OK(t, j.Close())
	begin(t, st, api.Session{ID: "short", Name: "y", State: api.SessionEnded})
	f := New(h)
	for only, notes := range map[string]int{"": 1, "long": 1, "short": 0} {
		p, err := api.Searched(t.Context(), f.Find, api.Query{Text: "needle", Session: only})
		must.OK(t, err)
		if p.Total != 0 || len(p.Notes) != notes || notes > 0 && !strings.Contains(p.Notes[0], "very long sessions (1)") {
			t.Errorf("of %q %d found, %q", only, p.Total, p.Notes)
		}
	}
}

// Words are whole where the terminal's record goes on in another file, and where a line
// is longer than one may be.
func TestSearchAcross(t *testing.T) {
	for _, live := range []string{"", "across"} {
		st, h := record(t, live)
		begin(t, st, api.Session{ID: "across", Name: "x", State: map[bool]api.SessionState{true: api.SessionEnded, false: api.SessionRunning}[live == ""]})
		filler := strings.Repeat("many a word. ", 1<<20/13) + "\nHERE fam\x1b[3"
		prints(t, st, "across", live == "", filler, "1mous words\n"+strings.Repeat("x ", 4096/2-2), "curious", strings.Repeat(" y", 4096))
		r, err := st.Recording(t.Context(), "across")
		must.OK(t, err)
		if numbers, _ := r.Files(); len(numbers) != 2 {
			t.Fatalf("it is in files %v", numbers)
		}
		f := New(h)
		for text, want := range map[string]string{`"here famous words"`: "HERE famous words", `"curious"`: "curious"} {
			if got := hitsOf(t, f, text); len(got) != 1 || !strings.Contains(got[0], want) {
				t.Errorf("%s gives %q", text, got)
			}
		}
	}
}

// read is what is found in frames.
func read(frames ...store.Frame) (got []line) {
	printed(func(yield func(store.Frame, error) bool) {
		for _, f := range frames {
			if !yield(f, nil) {
				return
			}
		}
	}, func(l line) bool {
		got = append(got, l)
		return true
	})
	return got
}

func TestPrinted(t *testing.T) {
	output := func(at time.Duration, s string) store.Frame {
		return store.Frame{Kind: store.FrameOutput, At: at, Data: []byte(s)}
	}
	old := screen.New(20, 5)
	_, _ = old.Write([]byte("from before\r\nhalf"))
	for _, c := range []struct {
		what, want string
		frames     []store.Frame
	}{
		{"each line once, when it was whole", "[{1000000000 one} {1000000000 tw} {3000000000 two} {3000000000 three} {3000000000 fo} {4000000000 four}]", []store.Frame{
			output(time.Second, "one\r\n\r\ntw"), {Kind: store.FrameResize, At: 2 * time.Second, Cols: 70, Rows: 9},
			output(3*time.Second, "o\r\nthree\r\none\r\nfo\x1b[31"), output(4*time.Second, "mur"),
		}},
		{"words that are drawn one by one", "[{2000000000 the order of its terms} {2000000000 below}]", []store.Frame{
			output(2*time.Second, "\x1b[2J\x1b[1;1Hthe\x1b[1;14Hits\x1b[3;1Hbelow\x1b[1;5Horder\x1b[1;11Hof\x1b[1;18Hterms"),
		}},
		{"what was there before isn't new, and what is changed of it is", "[{0 half a line} {0 new}]", []store.Frame{
			{Kind: store.FrameKey, Cols: 20, Rows: 5, Data: old.Keyframe()}, output(0, " a line\r\nnew"),
		}},
		{"what is drawn over without a rest is told once a second", "[{1900000000 at 1 s} {2000000000 at 2 s}]", func() (f []store.Frame) {
			for ms := time.Duration(0); ms <= 2000; ms += 100 {
				f = append(f, output(ms*time.Millisecond, fmt.Sprintf("\rat %d ms", ms)), output(ms*time.Millisecond, fmt.Sprintf("\rat %d s \x1b[K", ms/1000)))
			}
			return f[:len(f):len(f)]
		}()},
	} {
		got := read(c.frames...)
		if c.what[:9] == "what is d" {
			got = got[1:] // as of the beginning
		}
		if fmt.Sprint(got) != c.want {
			t.Errorf("%s: %v, want %s", c.what, got, c.want)
		}
	}
	long, n := read(output(0, strings.Repeat("x", 10<<20))), 0
	for _, l := range long {
		n = max(n, len(l.text))
	}
	if n > 8<<10 || len(long) > 2 {
		t.Errorf("of a line without an end there are %d, the longest of %d bytes", len(long), n)
	}
}
