package e2e

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"stepbox/session/e2e/standintest"
)

// A hundred calls of a model at once are a hundred actions, each with its own outcome,
// whether the agent makes them side by side or in turn.
func TestAgentsManyCalls(t *testing.T) {
	const many = 100
	each(t, agents, func(t *testing.T, a *agent, p *person, model *standintest.Server) {
		var turn standintest.Turn
		for i := range many {
			turn.Calls = append(turn.Calls, a.shell(fmt.Sprintf("echo call-$((1000+%d))", i)))
		}
		model.Add(func(standintest.Request) standintest.Turn { return turn }, standintest.Say("The work is done."))
		r := a.run(t, p, model, "policy", "many", append(a.ask, "do all of it"), approving)
		told := strings.Join(results(t, model, many), "\n") // in the order in which they ended
		done := map[string]int{}
		for _, x := range p.show("many").List {
			done[x.Title]++
		}
		for i := range many {
			if title := fmt.Sprintf("echo call-$((1000+%d))", i); done[title] != 1 {
				t.Errorf("%s is in the record %d times", title, done[title])
			}
			if n := len(regexp.MustCompile(fmt.Sprintf(`call-%d\b`, 1000+i)).FindAllString(told, -1)); n != 1 {
				t.Errorf("the model was told %d times what came of call %d", n, i)
			}
		}
		if r.exit != 0 || !strings.Contains(r.output, "The work is done.") {
			t.Errorf("exit %d: %s", r.exit, r.output)
		}
	})
}

// A model whose answer breaks off is asked again, and nothing that ran before runs twice.
func TestAgentsModelBreaksOff(t *testing.T) {
	each(t, agents, func(t *testing.T, a *agent, p *person, model *standintest.Server) {
		model.Add(calls(a.shell("echo once >> calc.py"))[0],
			func(standintest.Request) standintest.Turn { panic(http.ErrAbortHandler) },
			calls(a.shell("cat ./calc.py"))[0], standintest.Say("The work is done."))
		r := a.run(t, p, model, "policy", "broken", append(a.ask, "write it down"), approving)
		turns := model.Turns()
		if got := turns[len(turns)-1].Last(); strings.Count(got, "once") != 1 {
			t.Errorf("the file is %q", got)
		}
		titles(t, a, p, p.show("broken"), "echo once >> calc.py", "cat ./calc.py")
		if r.exit != 0 || !strings.Contains(r.output, "The work is done.") {
			t.Errorf("exit %d: %s", r.exit, r.output)
		}
	})
}
