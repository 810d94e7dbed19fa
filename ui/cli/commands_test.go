package cli_test

import (
	"regexp"
	"strings"
	"testing"
)

// spaces are what columns are made with.
var spaces = regexp.MustCompile(` +`)

// commands are command lines for the recorded session, and what each prints.
var commands = []struct {
	line string
	want []string // parts of the output, in order
	asks []string // what is asked of the server besides lists; nil: not looked at
}{
	{"ls", []string{"NO NAME STATE", "1 x running step 1 3", " bash -c 'cp a.txt b.txt;"}, nil},
	{"show", []string{"session 1 x\n", "project /home/person/project\n", "state running, mode step\n", "exit 0 cp a.txt b.txt", "1 file +1 -0, kept", "HELD touch c.txt", "held: #3 touch c.txt"}, nil},
	{"show x 1", []string{"#1", "ended exit 0", "approved by cli", "exec ", "cp a.txt b.txt"}, nil},
	{"show x 3", []string{"#3", "held", "touch c.txt", "argv[0]", "touch", "hash", "d107d5472d2fafa3252951fb23358770"}, nil},
	{"log", []string{"session.created", "action.held #1 cp a.txt b.txt", "decision #1: approve", "attempt.closed tcp 192.0.2.1:80 deny", "action.held #3 touch c.txt"}, nil},
	{"approve 3", []string{"allow: #3 touch c.txt\n"}, []string{
		"GET /v1/sessions/oldsess1/questions",
		`POST /v1/sessions/oldsess1/decisions {"question":3,"hash":"d107d5472d2fafa3252951fb23358770","answer":"approve","by":"cli"}`,
	}},
	{"deny x 3 --reason no", []string{"allow: #3"}, []string{
		"GET /v1/sessions/oldsess1/questions",
		`POST /v1/sessions/oldsess1/decisions {"question":3,"hash":"d107d5472d2fafa3252951fb23358770","answer":"deny","reason":"no","by":"cli"}`,
	}},
	{"keep 1", []string{"kept: #1 cp a.txt b.txt\n"}, []string{"POST /v1/sessions/oldsess1/actions/1/keep"}},
	{"mode policy", []string{"mode policy: x\n", "what was held before waits on (1): stepbox show oldsess1\n"}, []string{`POST /v1/sessions/oldsess1/mode {"mode":"policy"}`}},
	{"pause oldsess1", []string{"paused: x\n"}, []string{"POST /v1/sessions/oldsess1/pause"}},
	{"continue x", []string{"x isn't paused: it is running\n"}, []string{}},
	{"rollback --to-before 1 --dry-run", []string{"rolls back #1\n", "D b.txt\n", "hash"}, []string{`POST /v1/sessions/oldsess1/rollback-plan {"to_before":1}`}},
	{"rollback x --to-before 1", []string{"b.txt", "rolled back to before #1: 1 file\n", "1 file changed meanwhile and left as they are: c.txt\n"}, []string{
		`POST /v1/sessions/oldsess1/rollback-plan {"to_before":1}`,
		`POST /v1/sessions/oldsess1/rollback {"to_before":1,"hash":"23f8abd2595e7230f0a2e903cb16bcc9","by":"cli"}`,
	}},
	{"kill --action 2", []string{"killed: #2"}, []string{"POST /v1/sessions/oldsess1/actions/2/kill"}},
	{"kill 1", []string{"killed: x\n"}, []string{"POST /v1/sessions/oldsess1/kill"}},
}

// Every command asks the server for what it needs, and says what came of it.
func TestCommands(t *testing.T) {
	a := serve(t, recorded(t))
	for _, c := range commands {
		t.Run(c.line, func(t *testing.T) {
			out, code := a.run(strings.Fields(c.line)...)
			if code != 0 {
				t.Errorf("exit %d", code)
			}
			rest := spaces.ReplaceAllString(out, " ")
			for _, want := range c.want {
				_, after, found := strings.Cut(rest, want)
				if !found {
					t.Errorf("no %q, or not in its place, in\n%s", want, out)
				}
				rest = after
			}
			if asked := a.requests(); c.asks != nil && strings.Join(asked, "\n") != strings.Join(c.asks, "\n") {
				t.Errorf("it asked\n%s\nwant\n%s", strings.Join(asked, "\n"), strings.Join(c.asks, "\n"))
			}
		})
	}
}
