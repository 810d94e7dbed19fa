package backtest

import (
	"context"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"stepbox/session/api"
	"stepbox/session/e2e/must"
)

// Whatever a session did: rules that deny all save no question and let nothing through,
// and the rules in force are no different from themselves.
func TestProperties(t *testing.T) {
	lines := [][]string{{"git", "push"}, {"ls"}, {"sh", "-c", "cd x; git push a && ls"}, {"ssh", "x"}, {"sh", "-c", "eval $X"}, {"rm", "-rf", "/"}, {"make", "a\nb"}}
	n := 0
	w := record(t)
	rapid.Check(t, func(rt *rapid.T) {
		n++
		w.t = t
		id := fmt.Sprintf("p%d", n)
		w.begin(id, rapid.SampledFrom([]api.Mode{api.ModePolicy, api.ModeStep, api.ModeWatch}).Draw(rt, "mode"))
		w.do(step{line: argv("bash")})
		for range rapid.IntRange(1, 8).Draw(rt, "steps") {
			s := step{gone: rapid.IntRange(0, 9).Draw(rt, "gone") == 0}
			switch argv := rapid.SampledFrom(lines).Draw(rt, "line"); rapid.IntRange(0, 2).Draw(rt, "kind") {
			case 0:
				s.line = argv
			case 1:
				s.nested = argv
			default:
				s.to = rapid.SampledFrom([]string{"example.org:443", "b.example.org:80", "192.0.2.1:53/udp"}).Draw(rt, "to")
			}
			s.say = rapid.SampledFrom([]api.Answer{"", api.AnswerApprove, api.AnswerDeny}).Draw(rt, "answer")
			w.do(s)
		}
		try := func(with string) api.PolicyTried {
			out, err := w.tester(with).Try(context.Background(), api.PolicyTry{PastOf: api.PastOf{Sessions: []string{id}}, File: "/new.yaml"}, func(api.PastSeen) {})
			must.OK(rt, err)
			return out
		}
		if got := try(`{commands: [{deny: "*"}, {deny: "* **"}], network: [{deny: "*/any"}, {deny: 0.0.0.0/0/any}, {deny: "::/0/any"}]}`); len(got.LetThrough)+len(got.Saved)+got.Denied != 0 || got.With.Total() > 0 {
			rt.Fatalf("rules that deny all: %s, %+v", changed(got), got.With)
		}
		if got := try("{}"); !got.Same() || got.Now != got.With || got.Denied != 0 {
			rt.Fatalf("the same rules: %s", changed(got))
		}
	})
}

func BenchmarkTry(b *testing.B) {
	w := record(b)
	for i := range 1000 {
		w.do(step{line: argv("sh", "-c", fmt.Sprintf("cd /p && git status && go test ./pkg%d | tail -5", i))}, step{nested: argv("git", "status")})
	}
	t := w.tester("commands: [{ask: git push}, {allow: go test **}]")
	for b.Loop() {
		if _, err := t.Try(b.Context(), api.PolicyTry{File: "/new.yaml"}, func(api.PastSeen) {}); err != nil {
			b.Fatal(err)
		}
	}
}
