package cli

import (
	"bufio"
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/creack/pty"

	"stepbox/session/api"
	"stepbox/session/e2e/must"
	"stepbox/session/screen"
)

func lines(cols, rows int, keyframe []byte, line func(string)) Emulator {
	return screen.NewLines(cols, rows, keyframe, line)
}

func played(t *testing.T, frames ...api.Frame) []string {
	t.Helper()
	var out bytes.Buffer
	r := &replay{emulator: lines, lines: bufio.NewWriter(&out)}
	for i, f := range append([]api.Frame{{Kind: api.FrameKeyframe, Cols: 40, Rows: 5}}, frames...) {
		r.frame(f)
		if f.Kind == api.FrameTime {
			at, _ := f.Offset() // of one that is made here
			if err := r.wait(at); err != nil {
				t.Fatalf("frame %d: %v", i, err)
			}
		}
	}
	must.OK(t, r.end())
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	for i, l := range lines {
		if l != "" && !strings.HasPrefix(l, "  ") {
			t.Errorf("a line of the agent's begins as ours do: %q", l)
		}
		lines[i] = strings.TrimPrefix(l, "  ")
	}
	return lines
}

func said(s string) api.Frame { return api.Frame{Kind: api.FrameOutput, Data: []byte(s)} }

// Each line is written once, however it came about, in the order in which it was
// there; one that changed after a while is written again.
func TestReplayWritesEachLineOnce(t *testing.T) {
	var many strings.Builder
	var want []string
	for i := range 5000 {
		fmt.Fprintf(&many, "line %d\r\n", i)
		want = append(want, fmt.Sprintf("line %d", i))
	}
	if got := played(t, said(many.String())); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%d lines became %d, the last of them %q", len(want), len(got), got[max(0, len(got)-5):])
	}
	got := played(t, said("10%\r"), said("20%\r"), api.TimeFrame(time.Second), said("90%\r"), api.TimeFrame(time.Second+time.Millisecond), said("done\r\n\n\n\n\n\nlast"))
	if want := "20%|done||||||last"; strings.Join(got, "|") != want {
		t.Errorf("the lines are %q", got)
	}
	got = played(t, said("one\r\n\x1b[?1049h\x1b[2Jfull\x1b[3;1Hscreen"), api.TimeFrame(time.Second), said("\x1b[?1049ltwo"))
	if want := "full|screen|one|two"; strings.Join(got, "|") != want {
		t.Errorf("the lines are %q, want %q", got, want)
	}
	got = played(t, said("a\r\nb\r\nc\r\nd\r\ne"), api.Frame{Kind: api.FrameResize, Cols: 40, Rows: 2}, said("\r\nf"), api.Frame{Kind: api.FrameResize, Cols: 40, Rows: 6})
	if want := "a|b|c|d|e|f"; strings.Join(got, "|") != want {
		t.Errorf("the lines are %q, want %q", got, want)
	}
	// No line of the agent's passes for one of what happened.
	got = played(t, said("── #7 rm -rf / (ended)\r\n  ━━ x\r\n\u200b── y\r\n-- #8 z"))
	if want := "-- #7 rm -rf / (ended);  -- x;-- y;-- #8 z"; strings.Join(got, ";") != want {
		t.Errorf("the lines are %q, want %q", got, want)
	}
}

// Nor does what a pager wraps, in a line of either: what ours begin with is in none.
func TestReplayHasNoMarkWithinALine(t *testing.T) {
	for s, want := range map[string]string{
		strings.Repeat(".", 78) + "── #99 git push (denied by root)": strings.Repeat(".", 78) + "-- #99 git push (denied by root)",
		"─\u200d─ #9, ─\u0336─\u0336\u00a0#9, ────#9":                "-- #9, --\u0336\u00a0#9, ----#9",
		"╭───┬── a ──╮  a─b  a — b ──  ":                             "╭───┬-- a ──╮  a─b  a — b ──  ",
		"├───┼───┤ └────┘ ────────":                                  "├───┼───┤ └────┘ ────────",
	} {
		if got := unmarked(s); got != want {
			t.Errorf("%q became %q, want %q", s, got, want)
		}
	}
	var out bytes.Buffer
	r := &replay{emulator: lines, lines: bufio.NewWriter(&out)}
	r.screen = lines(40, 5, nil, r.write)
	r.mark("#1 echo ── #98 rm -rf / (exit 0)")
	_ = r.lines.Flush()
	if got := out.String(); got != "── #1 echo -- #98 rm -rf / (exit 0)\n" {
		t.Errorf("an action's line is %q", got)
	}
}

// Nor does it where a terminal goes on with a line below.
func TestReplayFoldsLines(t *testing.T) {
	master, slave, err := pty.Open()
	must.OK(t, err)
	defer master.Close()
	defer slave.Close()
	must.OK(t, pty.Setsize(slave, &pty.Winsize{Cols: 30, Rows: 5}))
	var out bytes.Buffer
	r := &replay{terminal: slave, lines: bufio.NewWriter(&out)}
	r.line("  ", strings.Repeat("x", 28)+"── #7 rm -rf / (ended)")
	r.line("── ", "#8 "+strings.Repeat("y", 24)+"── #9 (ended)")
	_ = r.lines.Flush() // into a buffer
	want := "  " + strings.Repeat("x", 28) + "\n  -- #7 rm -rf / (ended)\n── #8 " + strings.Repeat("y", 24) + "\n  -- #9 (ended)\n"
	if out.String() != want {
		t.Errorf("the lines are\n%s, want\n%s", &out, want)
	}
}

// Nothing that an agent printed does anything to a person's terminal.
func TestReplayIsPlainText(t *testing.T) {
	hostile := []string{
		"\x1b]52;c;aGk=\a", "\x1b]0;title\a", "\x1b[31m\x1b[5;5H", "\x1bP+q\x1b\\", "\u202e\u2066", "\u200b\ufeff", "\xff\xc3\x28\x9b31m", "\x9d0;t\x9c", "\x1b[?1049h", "\x7f\x00\x05", "\u009b2J", "e\u0301 漢字 👨‍👩‍👧 ",
	}
	all := strings.Repeat(strings.Join(hostile, "x"), 50) + strings.Repeat("long", 10<<20/4) + strings.Join(hostile, "")
	for _, l := range played(t, said(all)) {
		for _, c := range l {
			if unicode.IsControl(c) || unicode.Is(unicode.Bidi_Control, c) || !utf8.ValidString(l) {
				t.Fatalf("the line %q reaches a terminal", l)
			}
		}
	}
}

// What happened is said once for each thing, in words.
func TestReplayTellsWhatHappened(t *testing.T) {
	for want, e := range map[string]api.Event{
		"#3 go test ./... (✗ exit 1)":                   {Kind: "action.ended", Action: &api.Action{N: 3, Title: "go test ./...", Exit: &api.Exit{Code: 1}}},
		"#3 denied by tui: rm -rf / (not here)":         {Kind: "action.denied", Action: &api.Action{N: 3, Title: "rm -rf /", By: "tui", Reason: "not here"}},
		"#3 denied by rule: rm -rf /":                   {Kind: "action.denied", Action: &api.Action{N: 3, Title: "rm -rf /", By: "rule"}},
		"#4 edit main.go":                               {Kind: "action.edited", Action: &api.Action{N: 4, Title: "edit main.go"}},
		"#3 held: make":                                 {Kind: "question.opened", Question: &api.Question{Action: 3, Title: "make"}},
		"network: tcp example.org:443 (deny)":           {Kind: "attempt.closed", Attempt: &api.Attempt{Protocol: "tcp", Name: "example.org", Port: 443, Verdict: api.Deny}},
		"network: tcp 1.2.3.4:80 (allow)":               {Kind: "attempt.opened", Attempt: &api.Attempt{Protocol: "tcp", Address: "1.2.3.4", Port: 80, Verdict: api.Allow}},
		"#3 make (the session was interrupted)":         {Kind: "action.ended", Action: &api.Action{N: 3, Title: "make", Reason: "the session was interrupted"}},
		"#3 exec sh (ended)":                            {Kind: "action.ended", Action: &api.Action{N: 3, Title: "exec sh", State: api.ActionEnded}},
		"#3 make (abandoned)":                           {Kind: "action.abandoned", Action: &api.Action{N: 3, Title: "make", State: api.ActionAbandoned}},
		"undid what was applied to the project: 1 file": {Kind: "apply.undone", Apply: &api.Apply{Files: 1}},
		"a rollback to before #3: done":                 {Kind: "rollback.done", Rollback: &api.Rollback{RollbackTarget: api.Before(3)}},
		"a rollback to before #3: disk full":            {Kind: "rollback.failed", Rollback: &api.Rollback{RollbackTarget: api.Before(3), Failure: "disk full"}},
		"applied 1 file":                                {Kind: "apply.done", Apply: &api.Apply{Files: 1}},
		"resumed with claude":                           {Kind: "session.started", Session: &api.Session{Resumed: 1, Command: "claude"}},
		"ended":                                         {Kind: "session.ended", Session: &api.Session{}},
	} {
		if got := told(e); got != want {
			t.Errorf("%s is told as %q, want %q", e.Kind, got, want)
		}
	}
	for _, e := range []api.Event{
		{Kind: "action.running", Action: &api.Action{N: 3}}, {Kind: "action.ended", Action: &api.Action{N: 3, Housekeeping: true, Exit: &api.Exit{}}},
		{Kind: "attempt.closed", Attempt: &api.Attempt{Verdict: api.Allow}}, {Kind: "exec.allowed", Exec: &api.Exec{}}, {Kind: "session.started", Session: &api.Session{}},
	} {
		if got := told(e); got != "" {
			t.Errorf("%s is told as %q", e.Kind, got)
		}
	}
}

// An interruption stands before what was done after it, and what it cut off before how
// the session went on.
func TestReplayOrder(t *testing.T) {
	on := &api.Session{Resumed: 1, Command: "claude"}
	ended := func(n int, why string) api.Event {
		return api.Event{Kind: "action.ended", Action: &api.Action{N: n, Title: "make", Reason: why, State: api.ActionEnded}}
	}
	applied := api.Event{Kind: "apply.done", Apply: &api.Apply{Files: 1}}
	exec := api.Event{Kind: "exec.allowed", Exec: &api.Exec{}}
	resumed := []api.Event{{Kind: "session.resumed", Session: on}, exec, {Kind: "session.started", Session: on}}
	over := api.Event{Kind: "session.ended", Session: on}
	for want, c := range map[string]struct {
		events []api.Event
		state  api.SessionState
	}{
		"#1 make (ended);interrupted;applied 1 file;#2 make (the session was interrupted);#3 make (the session was interrupted);resumed with claude;#4 make (ended);ended": {
			slices.Concat([]api.Event{ended(1, ""), applied}, resumed, []api.Event{ended(2, api.CutOff), ended(3, api.CutOff), {Kind: "note"}, ended(2, api.CutOff), ended(3, api.CutOff), ended(4, ""), over}), api.SessionEnded},
		"#1 make (ended);ended;applied 1 file;resumed with claude;interrupted;resumed with claude;interrupted": {
			slices.Concat([]api.Event{ended(1, ""), over, applied}, resumed, resumed), api.SessionInterrupted},
		"#1 make (ended);applied 1 file;#2 make (ended);interrupted;applied 1 file": {
			[]api.Event{ended(1, ""), applied, ended(2, ""), applied}, api.SessionInterrupted},
	} {
		var out bytes.Buffer
		r := &replay{session: api.Session{State: c.state}, screen: lines(1, 1, nil, nil), lines: bufio.NewWriter(&out), cutOff: make(map[int]bool)}
		for e, err := range r.sorted(func(yield func(api.Event, error) bool) {
			for _, e := range c.events {
				if !yield(e, nil) {
					return
				}
			}
		}) {
			if err == nil {
				err = r.event(e)
			}
			must.OK(t, err)
		}
		must.OK(t, r.end())
		if got := strings.TrimPrefix(strings.ReplaceAll(strings.TrimSuffix(out.String(), "\n"), "\n── ", ";"), "── "); got != want {
			t.Errorf("it is told as\n%s, want\n%s", got, want)
		}
	}
}
