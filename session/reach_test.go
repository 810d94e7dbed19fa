package session_test

import (
	"bytes"
	_ "embed"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stepbox/session/api"
	"stepbox/session/e2e/must"
)

//go:embed testdata/reach.c
var reachSource []byte

// TestReach tells how the agent changes a program after it was approved, and
// how one approved program takes over another: by ptrace(2), by writing its
// memory, by taking its descriptors, by sharing its working directory. Within
// one action all that a debugger needs works.
func TestReach(t *testing.T) {
	t.Parallel()
	for _, mode := range []api.Mode{api.ModeStep, api.ModePolicy, api.ModeWatch} {
		t.Run(string(mode), func(t *testing.T) {
			w := startProgram(t, mode, func(project string) {
				cc := exec.Command("cc", "-O1", "-w", "-static", "-no-pie", "-o", filepath.Join(project, "reach"), "-x", "c", "-")
				cc.Stdin = bytes.NewReader(reachSource)
				if out, err := cc.CombinedOutput(); err != nil {
					t.Fatalf("cannot compile: %v\n%s", err, out)
				}
				// What an agent starts under its own name is the agent again.
				must.OK(t, os.Link(filepath.Join(project, "reach"), filepath.Join(project, "command")))
			}, "./reach", "agent")
			noted := 0
			w.happened("the end", func(e api.Event) bool {
				if q := e.Question; q != nil && e.Kind == "question.opened" {
					answer := api.AnswerApprove
					if q.Subject == api.SubjectNested { // what a debugger starts can't be compared with what was shown
						answer = api.AnswerStepOver
					}
					w.must(w.decide(*q, answer))
				}
				if e.Note != nil && strings.Contains(e.Note.Text, "tried to get hold of") {
					noted++
				}
				return e.Kind == "session.ended"
			})
			<-w.Done()
			if noted != 1 {
				t.Errorf("a person was told %d times", noted)
			}
			within, child := "done", "the child has 2"
			if mode == api.ModeStep { // where a program that others tell what to do gets hold of none that was shown
				within, child = "EPERM", "the child has 1"
			}
			want := []string{
				"the victim has 1", "the parent has 1", "the agent has 1", "agent share: EPERM",
				"within an action attach: " + within, "within an action seize: " + within, "within an action writev: EPERM",
				"within an action getfd: EPERM", "within an action mem: EACCES", child, "action share: " + within,
				// The agent traces nothing, its own child neither.
				"the traced one ends with 98", "over",
			}
			for _, who := range []string{"agent to action", "action to action", "action to agent", "early child to action", "early child to its parent"} {
				for way, refusal := range map[string]string{"attach": "EPERM", "seize": "EPERM", "writev": "EPERM", "getfd": "EPERM", "mem": "EACCES"} {
					want = append(want, who+" "+way+": "+refusal)
				}
			}
			if mode == api.ModePolicy { // nobody approved whatever the debugger starts
				want = append(want, "starting a seven: EACCES", "the debugged one ends with 99")
			} else {
				want = append(want, "the debugged one ends with 7")
			}
			got := strings.Split(strings.TrimSpace(w.results()), "\n")
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		})
	}
}

// results is what the programs of reach.c have said.
func (w *world) results() string {
	text, _ := os.ReadFile(filepath.Join(w.store.SessionDir(w.ID()), "tmp", "results"))
	return string(text)
}
