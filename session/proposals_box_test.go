package session_test

import (
	"slices"
	"strings"
	"testing"

	"stepbox/session/api"
	"stepbox/session/rules"
)

func patterns(all []api.Proposal) (out []string) {
	for _, p := range all {
		out = append(out, p.Pattern)
	}
	return out
}

// What an answer may be made goes from narrow to wide, and each can be answered with.
func TestProposals(t *testing.T) {
	t.Parallel()
	w := startAsking(t, api.ModePolicy, `git push --dry-run; git push origin main; timeout 9 bash -c 'true && git push "b c" | cat; ssh -p 2 x'; exec 3<>/dev/tcp/192.0.2.1/80; read x`)
	q := w.held(0)
	for _, c := range []struct {
		title string
		want  []string
	}{
		{"git push origin main", []string{"git push origin main", "git push origin *", "git push *", "git *"}},
		{"timeout 9 bash", []string{`git push b\ c`, "git push *", "git *", "ssh -p 2 x", "ssh *"}},
		{"192.0.2.1", []string{"192.0.2.1:80", "192.0.2.1"}},
	} {
		all, err := w.Proposals(t.Context(), q.ID)
		w.must(err)
		if got := patterns(all); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", q.Title, got, c.want)
		}
		for _, p := range all {
			if p.Means == "" {
				t.Errorf("%s says nothing", p.Pattern)
			}
		}
		switch c.title {
		case "git push origin main":
			if p := all[3]; p.Matched != 1 || !slices.Equal(p.Examples, []string{"git push --dry-run"}) {
				t.Errorf("it was about %+v", p)
			}
			w.must(w.decide(q, api.AnswerDeny))
			q = w.asks(q, "timeout 9")
		case "timeout 9 bash":
			if p := all[1]; p.Matched != 2 || p.Denied != 1 || p.Examples[0] != "git push origin main" {
				t.Errorf("it was about %+v", p)
			}
			w.must(w.answer(q, api.AnswerDeny, api.ExtentSession, all[4].Pattern))
			q = w.asks(q, "192.0.2.1")
		}
	}
	if _, err := w.Proposals(t.Context(), 99); code(err) != api.CodeNotFound {
		t.Errorf("a question that isn't there: %v", err)
	}
}

// What was answered the same three times offers to be a rule.
func TestAnOffer(t *testing.T) {
	t.Parallel()
	w := startAsking(t, api.ModePolicy, "git push a; git push a; git push a; git push b; git push a; read x")
	var q api.Question
	for range 3 {
		if q = w.held(q.ID); q.Offer != nil {
			t.Errorf("question %d offers %+v", q.ID, q.Offer)
		}
		w.must(w.decide(q, api.AnswerDeny))
	}
	q = w.asks(q, "git push b")
	w.must(w.decide(q, api.AnswerDeny))
	q = w.asks(q, "git push a")
	if o := q.Offer; o == nil || o.Answer != api.AnswerDeny || o.Times != 3 || o.Pattern != "git push a" || o.Means == "" {
		t.Errorf("it offers %+v", q.Offer)
	}
}

// One answer to several questions is one that was given.
func TestAnOfferCountsDecisions(t *testing.T) {
	t.Parallel()
	w := startAsking(t, api.ModePolicy, "git push a & git push a & git push a & wait; git push a; git push a; git push a; read x")
	first, second := w.both()
	all := []api.Question{first, second, w.held(second.ID)}
	for i, q := range all {
		d := api.Decision{Question: q.ID, Hash: q.Hash, Answer: api.AnswerDeny}
		if i > 0 {
			d.With = all[0].ID
		}
		_, err := w.Decide(t.Context(), d)
		w.must(err)
	}
	q := all[2]
	for n := 1; n <= 3; n++ {
		if q = w.held(q.ID); (q.Offer != nil) != (n == 3) {
			t.Errorf("after %d decisions it offers %+v", n, q.Offer)
		}
		w.must(w.decide(q, api.AnswerDeny))
	}
}

// Questions are equal that are about the same bytes, not those that only read the same.
func TestWhatIsTheSame(t *testing.T) {
	t.Parallel()
	w := begin(t, api.ModePolicy, map[string]string{
		rules.Name:   "commands: [{ask: bash t}]\n",
		"t":          "ls\n",
		"bin/claude": "#!/bin/bash\nbash t & bash t & read x; echo pwd >t; bash t & wait; read x\n",
	}, "claude")
	a, b := w.both()
	if a.Same == "" || a.Same != b.Same || a.Hash == b.Hash {
		t.Errorf("of one command %q and %q, %s and %s", a.Same, b.Same, a.Hash, b.Hash)
	}
	v := w.Terminal().Join()
	defer v.Close()
	v.Input([]byte("\n"))
	if c := w.held(b.ID); c.Title != a.Title || c.Same == a.Same || c.Same == "" {
		t.Errorf("of another script %s, %q like %q", c.Title, c.Same, a.Same)
	}
}

// A rule may let go of more than it was made for: what else is asked about in the same
// line, and what waits beside it.
func TestAProposalSaysWhatElseRuns(t *testing.T) {
	t.Parallel()
	w := startAsking(t, api.ModePolicy, "bash -c 'git push a; ssh x' & git push b & wait; read x")
	q, other := w.both()
	if !strings.HasPrefix(q.Title, "git push a; ssh") {
		q, other = other, q
	}
	all, err := w.Proposals(t.Context(), q.ID)
	w.must(err)
	for _, p := range all {
		once, waiting := []string{"ssh x"}, []int64(nil)
		switch p.Pattern {
		case "ssh x", "ssh *":
			once = []string{"git push a"}
		case "git push *", "git *":
			waiting = []int64{other.ID}
		}
		if !slices.Equal(p.Once, once) || !slices.Equal(p.Waiting, waiting) {
			t.Errorf("%s: approves %q once, and answers %d", p.Pattern, p.Once, p.Waiting)
		}
	}
	if len(all) != 5 {
		t.Errorf("it proposes %q", patterns(all))
	}
}

// In step mode no rule lets go of what waits; a connection that waits isn't a past one.
func TestAProposalOnAConnection(t *testing.T) {
	t.Parallel()
	for mode, want := range map[api.Mode]int{api.ModePolicy: 1, api.ModeStep: 0} {
		w := start(t, mode, "exec 3<>/dev/tcp/192.0.2.1/80 & exec 3<>/dev/tcp/192.0.2.1/81 & wait; read x")
		q, other := w.both()
		all, err := w.Proposals(t.Context(), q.ID)
		w.must(err)
		if p := all[1]; len(p.Waiting) != want || want > 0 && p.Waiting[0] != other.ID || p.Matched != 0 || len(all[0].Waiting) != 0 {
			t.Errorf("%s: %s covers %d, answers %d", mode, p.Pattern, p.Matched, p.Waiting)
		}
	}
}
