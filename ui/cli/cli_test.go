package cli_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"stepbox/session/api"
	"stepbox/ui/cli"
)

// sessions are the lists of a server with these.
func sessions(all ...api.Session) map[string]any {
	return map[string]any{"GET /v1/sessions": all}
}

func TestFind(t *testing.T) {
	past := func(id, name string, n int64) api.Session {
		return api.Session{ID: id, Name: name, Number: n, State: api.SessionEnded}
	}
	live := past("live1234", "web", 7)
	live.State = api.SessionRunning
	all := []api.Session{past("mine2345", "older123", 10), past("newer123", "web", 9), past("twin5678", "api-2", 8), live, past("older123", "api", 5), past("nine4567", "9", 3), past("4444", "44", 2), past("3333aaaa", "1-x", 1)} // newest first
	for word, want := range map[string]string{
		"":         "live1234", // the only live one
		"web":      "live1234", // the live one first
		"7":        "live1234",
		"live":     "live1234",
		"newer123": "newer123",
		"older123": "older123", // an id goes before a name
		"9":        "newer123", // a number goes before a name
		"nine":     "nine4567",
		"4444":     "4444",
		"api":      "older123", // exactly that
		"api-":     "twin5678",
		"5":        "older123",
	} {
		if s, err := cli.Find(all, word); err != nil || s.ID != want {
			t.Errorf("%q is %q, %v, want %s", word, s.ID, err, want)
		}
	}
	for word, want := range map[string]string{"zzz": "there is no session", "\x1b[2J": `\x1b[2J`, "a": "may be any of api-2 (8), api (5)"} {
		if _, err := cli.Find(all, word); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", word, err, want)
		}
	}
	for _, word := range []string{"44", "3333", "333", "0", "6"} { // what a name or an id begins with is no number
		if s, err := cli.Find(all, word); err == nil {
			t.Errorf("%q is %q", word, s.ID)
		}
	}
	if _, err := cli.Find(all[:2], ""); err == nil || !strings.Contains(err.Error(), "no session is running") {
		t.Error(err)
	}
	if _, err := cli.Find([]api.Session{live, live}, ""); !errors.Is(err, cli.ErrUsage) || !strings.Contains(err.Error(), "2 sessions are running") {
		t.Error(err)
	}
}

// A command line that is wrong is said to be, before anything is asked that
// changes something; what was typed is shown escaped.
func TestBadCommandLines(t *testing.T) {
	for line, want := range map[string]string{
		"gc x":                            "unknown command",
		"show 1 2 3":                      "accepts at most 2 arg",
		"show x nine":                     `"nine" is no action number`,
		"show x 0":                        "no action number",
		"diff x \x1b[2J":                  `\x1b[2J`,
		"approve":                         "accepts between 1 and 2 arg",
		"approve x -- -1":                 "no action number",
		"approve 1 --into --over":         "exclude each other",
		"approve 1 --keep --into":         "exclude each other",
		"mode":                            "accepts between 1 and 2 arg",
		"mode x \x1b[2J":                  `there is no mode "\\x1b[2J": use step, policy or watch`,
		"rollback x":                      "--to-before ACTION",
		"rollback x --to-before -1":       "--to-before ACTION",
		"rollback --action 1 --redo 1":    "--to-before ACTION",
		"rollback --path a --to-before 1": "--path goes with --action",
		"rollback --to-before 1 --resolve a=merge": "--resolve goes with --action",
		"rollback --action 1":                      "there is no terminal",
		"kill x y":                                 "accepts at most 1 arg",
		"keep x \u202e1":                           `\u202e1`,
		"deny 1 2 3":                               "accepts between 1 and 2 arg",
		"log a b":                                  "accepts at most 1 arg",
		"pause a b":                                "accepts at most 1 arg",
		"continue a b":                             "accepts at most 1 arg",
		"show " + strings.Repeat("y", 5) + " 1 1 1": "accepts at most 2 arg",
	} {
		a := serve(t, sessions(api.Session{ID: "one", Name: "x", State: api.SessionRunning}))
		out, code := a.run(strings.Split(line, " ")...)
		if code != cli.ExitUsage || !strings.Contains(out, want) || !strings.Contains(out, "stepbox --help") || strings.ContainsAny(out, "\x1b\u202e") {
			t.Errorf("%q: exit %d\n%s\nwant %q", line, code, out, want)
		}
		if asked := a.requests(); len(asked) > 0 {
			t.Errorf("%q asked %v", line, asked)
		}
	}
}

// A session of which it isn't known what it left is removed only when that is meant.
func TestRemoveDamaged(t *testing.T) {
	a := serve(t, sessions(api.Session{ID: "one23456"}))
	out, code := a.run("rm", "one23456")
	if asked := a.requests(); code != cli.ExitFailure || !strings.Contains(out, "--repair") || len(asked) > 0 {
		t.Errorf("exit %d, it asked %v\n%s", code, asked, out)
	}
}

// A part of a name is enough to look at a session, not to remove it.
func TestRemoveByAPart(t *testing.T) {
	for _, more := range [][]string{nil, {"--force"}} {
		a := serve(t, sessions(api.Session{ID: "one23456", Name: "two2", State: api.SessionEnded}))
		out, code := a.run(append([]string{"rm", "two"}, more...)...)
		if asked := a.requests(); code != cli.ExitUsage || !strings.Contains(out, "two2 (0) begins so") || len(asked) > 0 {
			t.Errorf("exit %d, it asked %v\n%s", code, asked, out)
		}
	}
}

// What a session refuses exits with 3, what isn't there with 1, and either is
// said in its words.
func TestRefusals(t *testing.T) {
	for code, want := range map[string]int{
		api.CodeDecided: cli.ExitRefused, api.CodeStale: cli.ExitRefused, api.CodeGone: cli.ExitRefused, api.CodeBusy: cli.ExitRefused,
		api.CodeNotLive: cli.ExitRefused, api.CodeUnknown: cli.ExitRefused, api.CodeNotFound: cli.ExitFailure, api.CodeInvalid: cli.ExitFailure,
		api.CodeInternal: cli.ExitFailure, "of a later version": cli.ExitFailure,
	} {
		of := sessions(api.Session{ID: "one", Name: "x", State: api.SessionPaused})
		p := &api.Problem{Code: code, Message: "the words"}
		for _, request := range []string{"POST %s/pause", "POST %s/continue", "POST %s/kill", "POST %s/mode", "POST %s/actions/1/keep", "POST %s/actions/1/kill", "POST %s/rollback-plan", "GET %s/actions", "GET %s/diffs"} {
			of[fmt.Sprintf(request, "/v1/sessions/one")] = p
		}
		a := serve(t, of)
		for _, line := range []string{"pause", "continue", "kill", "mode watch", "keep 1", "kill --action 1", "rollback --to-before 1", "show", "diff --json"} {
			if out, got := a.run(strings.Fields(line)...); got != want || out != "stepbox: the words\n" {
				t.Errorf("%s: %s exits with %d, want %d: %s", code, line, got, want, out)
			}
		}
	}
}

// What is held stands below the actions, with what the agent said of it.
func TestShowHeld(t *testing.T) {
	of := sessions(api.Session{ID: "one", Name: "x", State: api.SessionRunning})
	of["GET /v1/sessions/one/questions"] = []api.Question{{ID: 1, Action: 2, Title: "make install", Rule: "step mode"}}
	of["GET /v1/sessions/one/actions"] = []api.Action{{N: 1, Claim: &api.Claimed{Text: "before"}}, {N: 2, State: api.ActionHeld, Claim: &api.Claimed{Text: "I install it"}}}
	out, _ := serve(t, of).run("show", "x")
	if _, last, ok := strings.Cut(out, "held: #2"); !ok || !strings.Contains(last, "I install it") || strings.Contains(last, "before") {
		t.Errorf("it shows\n%s", out)
	}
}

// A supervisor that was killed leaves actions as they were: nobody waits for an answer.
func TestNothingIsHeldInAnEndedSession(t *testing.T) {
	of := sessions(api.Session{ID: "one", Name: "x", State: api.SessionInterrupted})
	of["GET /v1/sessions/one/questions"] = []api.Question{}
	of["GET /v1/sessions/one/actions/1"] = api.Action{N: 1, State: api.ActionHeld}
	out, code := serve(t, of).run("approve", "x", "1")
	if want := "#1 isn't held any more: the session is interrupted; stepbox resume one goes on with it"; code != 3 || !strings.Contains(out, want) {
		t.Errorf("it says %q and ends with %d", out, code)
	}
}

// What is held is answered by its hash, and not at all when that isn't held.
func TestAnswers(t *testing.T) {
	held := []api.Question{
		{ID: 1, Action: 1, Subject: api.SubjectCommand, Title: "make", Hash: "h1"},
		{ID: 2, Action: 2, Subject: api.SubjectNested, Title: "cc", Hash: "h2"},
		{ID: 3, Action: 2, Subject: api.SubjectNested, Title: "ld", Hash: "h3"},
		{ID: 6, Action: 7, Subject: api.SubjectRequest, Title: "sign", Hash: "h6", Request: &api.Request{}},
		{ID: 7, Action: 7, Subject: api.SubjectNested, Title: "as", Hash: "h7"},
		{ID: 8, Action: 8, Subject: api.SubjectRequest, Title: "sign", Hash: "h8", Request: &api.Request{}},
	}
	decide := func(q int, hash, rest string) string {
		return fmt.Sprintf(`POST /v1/sessions/one/decisions {"question":%d,"hash":%q,"answer":%s,"by":"cli"}`, q, hash, rest)
	}
	for line, want := range map[string]struct {
		code  int
		out   string
		asked string
	}{
		"approve 1":             {0, "allow: #9  done", decide(1, "h1", `"approve"`)},
		"approve 1 --into":      {0, "allow", decide(1, "h1", `"into"`)},
		"approve 1 --over":      {0, "allow", decide(1, "h1", `"over"`)},
		"approve 1 --keep":      {0, "allow", decide(1, "h1", `"approve-keep"`)},
		"approve 1 --hash h0":   {0, "allow", decide(1, "h0", `"approve"`)}, // the session refuses it
		"approve 2":             {1, "approved by its hash (stepbox approve one 2 --hash h2): cc", ""},
		"approve 2 --hash h3":   {0, "allow", decide(3, "h3", `"approve"`)},
		"deny 2 --reason a\tb":  {0, "allow", decide(2, "h2", `"deny","reason":"a\tb"`)},
		"approve 4":             {3, "#4 isn't held: it is denied (deny by tui)", ""},
		"approve 5":             {1, "there is no #5", ""},
		"deny 7":                {0, "allow", decide(7, "h7", `"deny"`)}, // not the request
		"approve 8":             {3, "#8 itself isn't held; of what it does waits: sign (stepbox approve one q8, or deny)", ""},
		"approve q8":            {0, "allow: done", decide(8, "h8", `"approve"`)},
		"deny x 1 --hash other": {0, "allow", decide(1, "other", `"deny"`)},
	} {
		of := sessions(api.Session{ID: "one", Name: "x", State: api.SessionRunning})
		of["GET /v1/sessions/one/questions"] = held
		of["GET /v1/sessions/one/actions/4"] = api.Action{N: 4, State: api.ActionDenied, Verdict: api.Deny, By: "tui"}
		of["POST /v1/sessions/one/decisions"] = api.Question{Action: 9, Title: "done", Closed: "allow"}
		a := serve(t, of)
		out, code := a.run(strings.Split(line, " ")...)
		var asked []string
		for _, r := range a.requests() {
			if strings.HasPrefix(r, "POST") {
				asked = append(asked, r)
			}
		}
		if code != want.code || !strings.Contains(out, want.out) || strings.Join(asked, "\n") != want.asked {
			t.Errorf("%s: exit %d\n%sasked %q\nwant %+v", line, code, out, asked, want)
		}
	}
}

// Each state that a session or an action can be in has its words, and each
// unusual circumstance too; a state of a later version is shown as it is.
func TestStates(t *testing.T) {
	for name, c := range map[string]struct {
		s    api.Session
		list string
		show []string
	}{
		"running":     {api.Session{State: api.SessionRunning, Mode: api.ModeStep, Held: 2, Actions: 3}, "running step 2 3", nil},
		"exit":        {api.Session{State: api.SessionEnded, Exit: &api.Exit{Code: 4}}, "ended ✗ exit 4", []string{"ended, ✗ exit 4"}},
		"signal":      {api.Session{State: api.SessionEnded, Exit: &api.Exit{Code: 137, Signal: "SIGKILL"}}, "ended ✗ SIGKILL", []string{"ended, ✗ SIGKILL"}},
		"failed":      {api.Session{State: api.SessionEnded, EndedBy: api.ByFailure, Reason: "no room"}, "failed", []string{"because no room"}},
		"interrupted": {api.Session{State: api.SessionInterrupted, CutOff: &api.RollbackTarget{ToBefore: 5}}, "interrupted: a rollback to before #5 was under way", []string{"beware a rollback to before #5 was under way: files may be as they were before it or after; stepbox resume one, then stepbox rollback one --to-before 5 does it again"}},
		"weaker":      {api.Session{State: api.SessionRunning, Warnings: []string{"no cgroups"}, Hidden: []string{".env", "key"}, Redacted: []string{".git/config"}}, "running", []string{"warning no cgroups", "hidden .env, key", "without secrets .git/config"}},
		"bounded":     {api.Session{State: api.SessionRunning, Limits: api.Limits{Source: "cgroup v2", Memory: 1 << 30, CPUs: 1.5, Pids: 9, WallTime: time.Minute}}, "running", []string{"limits memory 1G, cpus 1.5, pids 9, wall time 1m0s (cgroup v2)"}},
		"a commit":    {api.Session{State: api.SessionRunning, Commit: strings.Repeat("ab", 20), Branch: "refs/heads/main", Base: &api.Base{Kind: "git", Files: 2, Reason: "too large"}}, "running", []string{"base commit abababababab on main, 2 files changed or not tracked, incomplete: too large"}},
		"later":       {api.Session{State: "teleported"}, "teleported", []string{"state teleported"}},
	} {
		c.s.ID, c.s.Name, c.s.Command = "one", "x", strings.Repeat("long ", 100)
		of := sessions(c.s)
		of["GET /v1/sessions/one/actions"] = []api.Action{
			{N: 1, State: api.ActionHeld, Title: "t1"}, {N: 2, State: api.ActionRunning, Title: "t2", LeftRunning: 3}, {N: 3, State: api.ActionEnded, Exit: &api.Exit{Signal: "SIGTERM"}, Files: 1, Added: 2, Review: api.ReviewOpen},
			{N: 4, State: api.ActionDenied, Reason: "ask Kim"}, {N: 5, State: api.ActionAbandoned}, {N: 6, State: api.ActionEnded, Housekeeping: true}, {N: 7, State: "later"},
		}
		of["GET /v1/sessions/one/questions"] = []api.Question{}
		a := serve(t, of)
		out, code := a.run("ls")
		if plain := spaces.ReplaceAllString(out, " "); code != 0 || !strings.Contains(plain, "x "+c.list) || len(plain) > 330 {
			t.Errorf("%s: exit %d\n%s", name, code, out)
		}
		out, code = a.run("show", "x")
		plain := spaces.ReplaceAllString(out, " ")
		for _, want := range append(c.show, " #1 HELD t1", " #2 running t2 3 left running", " #3 ✗ SIGTERM 1 file +2 -0, unreviewed", " #4 denied ask Kim", " #5 abandoned", " … 1 of housekeeping (--all)", " #7 later") {
			if code != 0 || !strings.Contains(plain, want) {
				t.Errorf("%s: exit %d, no %q in\n%s", name, code, want, out)
			}
		}
		if out, code = a.run("show", "x", "--all"); code != 0 || !strings.Contains(spaces.ReplaceAllString(out, " "), " #6 ended housekeeping") {
			t.Errorf("%s: exit %d, not all is in\n%s", name, code, out)
		}
	}
	if out, code := serve(t, sessions()).run("ls"); code != 0 || !strings.Contains(out, "no sessions yet; stepbox run starts one") {
		t.Errorf("%d %s", code, out)
	}
}

// A rule isn't made on a host that is called like the session whose host was forgotten.
func TestForgottenHost(t *testing.T) {
	a := serve(t, recorded(t))
	for _, line := range []string{"allow x", "allow x --always", "allow oldsess1"} {
		if out, code := a.run(strings.Fields(line)...); code != cli.ExitUsage || !strings.Contains(out, "name the host after it") {
			t.Errorf("%s: exit %d: %s", line, code, out)
		}
	}
}

// As JSON comes what the API has, whole.
func TestJSON(t *testing.T) {
	a := serve(t, recorded(t))
	for line, request := range map[string]string{
		"ls":                               "GET /v1/sessions",
		"keep 1":                           "POST /v1/sessions/oldsess1/actions/1/keep",
		"kill":                             "POST /v1/sessions/oldsess1/kill",
		"approve 3":                        "POST /v1/sessions/oldsess1/decisions",
		"rollback --to-before 1 --dry-run": "POST /v1/sessions/oldsess1/rollback-plan",
		"diff":                             "GET /v1/sessions/oldsess1/diffs",
		"log":                              "GET /v1/sessions/oldsess1/events?follow=false&from=0",
	} {
		out, code := a.run(append(strings.Fields(line), "--json")...)
		var got, want any
		b, err := json.Marshal(a.of[request])
		if err == nil {
			err = json.Unmarshal(b, &want)
		}
		if line == "log" { // one a line
			out = "[" + strings.ReplaceAll(strings.TrimSpace(out), "\n", ",") + "]"
		}
		if err := errors.Join(err, json.Unmarshal([]byte(out), &got)); err != nil || code != 0 {
			t.Errorf("%s: exit %d, %v\n%s", line, code, err, out)
		} else if !reflect.DeepEqual(got, want) {
			t.Errorf("%s printed\n%s\nwant\n%s", line, out, b)
		}
	}
}

// A command to be judged is shown whole, however long, a line at a time.
func TestLongCommandsAreShownWhole(t *testing.T) {
	long := strings.Repeat("0123456789", 77)
	of := sessions(api.Session{ID: "one", Name: "x", State: api.SessionRunning})
	of["GET /v1/sessions/one/actions/1"] = api.Action{N: 1, State: api.ActionHeld, Title: long}
	of["GET /v1/sessions/one/actions/1/execs"] = []api.Exec{}
	of["GET /v1/sessions/one/attempts"] = []api.Attempt{
		{ID: 1, Action: 1, Name: "example.org", Port: 443, Verdict: api.Deny, Rule: "deny example.org (your policy, p:3)"}, {ID: 2, Action: 2, Name: "other.example.org", Port: 443},
	}
	of["GET /v1/sessions/one/questions"] = []api.Question{{ID: 1, Action: 1, Title: long, Hash: "h", Command: &api.Command{
		Argv: []string{"sh", long}, Program: "/bin/sh", Cwd: "/p", Written: true, Truncated: true, Sends: []string{"pushes main"}, Unpinned: []string{"u"}, Sources: []string{"s"}, Env: []string{"A=b"},
		Parts: []api.Part{{Text: "p", Verdict: api.Ask, Rule: "r"}}, Pipeline: []api.Command{{Line: "tee", Argv: []string{"tee"}}},
	}}}
	out, code := serve(t, of).run("show", "x", "1")
	plain := spaces.ReplaceAllString(out, " ")
	for _, want := range []string{"argv[0] sh\n", "program /bin/sh", "this session wrote that file", "too large to be shown whole", "what runs may differ from what you see: u", "agent can write: s", "sends pushes main\n", "env A=b", "part p ask (r)", "piped to tee", "hash h\n", "network example.org:443 deny deny example.org (your policy, p:3)"} {
		if code != 0 || !strings.Contains(plain, want) {
			t.Errorf("exit %d, no %q in\n%s", code, want, out)
		}
	}
	if got := strings.Count(strings.Join(strings.Fields(out), ""), "0123456789"); got < 3*77 {
		t.Errorf("%d parts of the long text are shown, want %d", got, 3*77)
	}
	for line := range strings.Lines(out) {
		if len(line) > 230 {
			t.Errorf("a line of %d: %s", len(line), line)
		}
	}
}

// What waits is told with what answers it: the protocol is part of that.
func TestNetSaysWhatAnswers(t *testing.T) {
	of := sessions(api.Session{ID: "one", Name: "x", State: api.SessionRunning})
	of["GET /v1/sessions/one/attempts"] = []api.Attempt{
		{ID: 1, Name: "a.example.org", Port: 443, Protocol: "tcp", Verdict: api.Ask, Open: true},
		{ID: 2, Name: "b.example.org", Port: 443, Protocol: "udp", Verdict: api.Ask, Open: true},
		{ID: 3, Name: "c.example.org", Protocol: "icmp", Verdict: api.Ask, Open: true},
	}
	out, _ := serve(t, of).run("net", "x")
	for _, want := range []string{"stepbox allow one a.example.org:443\n", "stepbox allow one b.example.org:443/udp\n", "stepbox allow one c.example.org/icmp\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

// Many destinations that one question is about are denied together.
func TestDenyAllThatIsTried(t *testing.T) {
	of := sessions(api.Session{ID: "one", Name: "x", State: api.SessionRunning})
	of["GET /v1/sessions/one/questions"] = []api.Question{
		{ID: 1, Subject: api.SubjectConnection, Connection: &api.Connection{Host: "a.example.org", Rule: "a.example.org:443"}},
		{ID: 2, Subject: api.SubjectConnection, Connection: &api.Connection{Many: []string{"b.example.org:443"}}},
	}
	of["POST /v1/sessions/one/decisions"] = api.Question{ID: 2}
	a := serve(t, of)
	out, code := a.run("deny", "--once", "x", "*")
	last := a.asked[len(a.asked)-1]
	if code != 0 || !strings.HasPrefix(last, "POST /v1/sessions/one/decisions ") || !strings.Contains(last, `"question":2`) {
		t.Errorf("%d: %s, with %q", code, out, a.asked)
	}
}

func TestParseSize(t *testing.T) {
	for s, want := range map[string]int64{"0": 0, "512": 512, "1k": 1 << 10, "4G": 4 << 30, "1.5M": 3 << 19, "2GiB": 2 << 30, "3KB": 3 << 10, "1T": 1 << 40} {
		if n, err := cli.ParseSize(s); err != nil || n != want {
			t.Errorf("%q is %d, %v, want %d", s, n, err, want)
		}
	}
	for _, s := range []string{"", "x", "-1", "1X", "NaN", "Inf", "1e30", "9999999T", "1 M", "M", "\x1b"} {
		if n, err := cli.ParseSize(s); !errors.Is(err, cli.ErrUsage) || strings.ContainsRune(err.Error(), 0x1b) {
			t.Errorf("%q is %d, %v", s, n, err)
		}
	}
}

func TestValidName(t *testing.T) {
	for name, want := range map[string]bool{"a": true, "é-1._": true, strings.Repeat("x", 64): true, strings.Repeat("x", 65): false, "": false, "a b": false, "a/b": false, "\u202e": false, "a\n": false} {
		if api.ValidName(name) != want {
			t.Errorf("%q", name)
		}
	}
}
