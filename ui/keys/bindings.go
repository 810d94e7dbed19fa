package keys

import (
	"stepbox/session/api"
	"stepbox/ui/intent"
)

// notHeld is what keys that would decide on a connection are answered with.
const notHeld = "connections don't wait for an answer: what may be reached was said when the session started"

// defaults lists every binding. Order is the order of help screens.
func defaults(leader string) []Binding {
	var all []Binding
	add := func(s Scope, bs ...Binding) {
		for _, b := range bs {
			b.Scope = s
			all = append(all, b)
		}
	}
	bind := func(keys []string, name, short, help string, i intent.Intent) Binding {
		return Binding{Keys: keys, Name: name, Short: short, Help: help, Intent: i}
	}
	k := func(keys ...string) []string { return keys }

	add(Home,
		bind(k("enter"), "open", "open", "attach to a live session, or open a past one", intent.Open{}),
		bind(k("n"), "new", "new session", "start a session in this folder", intent.New{}),
		bind(k("j", "down"), "", "", "next session", intent.Move{By: 1}),
		bind(k("k", "up"), "", "", "previous session", intent.Move{By: -1}),
		bind(k("pgdown", "space"), "", "", "a page down", intent.Page{By: 1}),
		bind(k("pgup"), "", "", "a page up", intent.Page{By: -1}),
		bind(k("g", "home"), "", "", "first session", intent.Top{}),
		bind(k("G", "end"), "", "", "last session", intent.Bottom{}),
		bind(k("tab"), "", "next held", "next session with something held", intent.HeldStep{By: 1}),
		bind(k("?"), "help", "help", "show these keys", intent.Help{}),
		bind(k("q", "ctrl+c"), "quit", "quit", "leave Stepbox; sessions go on", intent.Quit{}),
	)
	add(Leader,
		bind(k("a"), "inspect", "first question", "open the first question; this never answers it", intent.FirstHeld{}),
		bind(k("d"), "detach", "detach", "leave; the session goes on", intent.Detach{}),
		bind(k("1"), "terminal", "", "focus the Terminal", intent.Focus{Pane: intent.Terminal}),
		bind(k("2"), "changes", "", "focus Changes", intent.Focus{Pane: intent.Changes}),
		bind(k("3"), "network", "", "focus Network", intent.Focus{Pane: intent.Network}),
		bind(k("4"), "actions", "", "focus Actions", intent.Focus{Pane: intent.Actions}),
		bind(k("tab"), "", "", "focus the next pane", intent.FocusStep{By: 1}),
		bind(k("shift+tab"), "", "", "focus the previous pane", intent.FocusStep{By: -1}),
		bind(k("left"), "", "", "focus the pane to the left", intent.FocusTo{DX: -1}),
		bind(k("right"), "", "", "focus the pane to the right", intent.FocusTo{DX: 1}),
		bind(k("up"), "", "", "focus the pane above", intent.FocusTo{DY: -1}),
		bind(k("down"), "", "", "focus the pane below", intent.FocusTo{DY: 1}),
		bind(k("z"), "zoom", "zoom", "show the focused pane alone, or all again", intent.Zoom{}),
		bind(k("s"), "side", "", "show another side pane, where one fits", intent.SideCycle{}),
		bind(k("<"), "", "", "make the left column narrower", intent.Split{By: -4}),
		bind(k(">"), "", "", "make the left column wider", intent.Split{By: 4}),
		bind(k("pgup"), "", "", "scroll the Terminal back", intent.Scroll{Back: 1}),
		bind(k("pgdown"), "", "", "scroll the Terminal forward", intent.Scroll{Back: -1}),
		bind(k("p"), "pause", "", "freeze every process of the agent; again to go on", intent.Pause{}),
		bind(k("i"), "facts", "", "show what holds for this session", intent.Facts{}),
		bind(k("h"), "home", "", "the list of sessions", intent.Home{}),
		bind(k(":"), "", "", "find a command by name", intent.Palette{}),
		bind(k("?"), "help", "help", "show every key", intent.Help{}),
		bind(k(leader), "", "", "send this key itself to the agent", intent.Leader{}),
		bind(k("esc"), "", "", "do nothing", intent.Back{}),
	)
	add(Panes,
		bind(k("1"), "", "", "focus the Terminal", intent.Focus{Pane: intent.Terminal}),
		bind(k("2"), "", "", "focus Changes", intent.Focus{Pane: intent.Changes}),
		bind(k("3"), "", "", "focus Network", intent.Focus{Pane: intent.Network}),
		bind(k("4"), "", "", "focus Actions", intent.Focus{Pane: intent.Actions}),
		bind(k("tab"), "next held", "next held", "go to the next held thing", intent.HeldStep{By: 1}),
		bind(k("shift+tab"), "previous held", "", "go to the previous held thing", intent.HeldStep{By: -1}),
		bind(k("z"), "", "zoom", "show this pane alone, or all again", intent.Zoom{}),
		bind(k("o"), "", "", "show another side pane, where one fits", intent.SideCycle{}),
		bind(k("<"), "", "", "make the left column narrower", intent.Split{By: -4}),
		bind(k(">"), "", "", "make the left column wider", intent.Split{By: 4}),
		bind(k("p"), "", "pause", "freeze every process of the agent; again to go on", intent.Pause{}),
		bind(k("c"), "continue", "", "follow the policy: hold only where it says ask", intent.Continue{}),
		bind(k("ctrl+k"), "kill sandbox", "", "kill the whole sandbox, after asking", intent.KillSandbox{}),
		bind(k("I"), "", "", "show what holds for this session", intent.Facts{}),
		bind(k("ctrl+p", ":"), "", "command", "find a command by name", intent.Palette{}),
		bind(k("?"), "", "help", "show these keys", intent.Help{}),
		bind(k("esc"), "", "", "back: out of zoom, then to the Terminal", intent.Back{}),
	)
	add(Actions,
		bind(k("enter"), "", "inspect", "open the selected action, or its question", intent.Open{}),
		bind(k("a"), "approve", "approve", "approve once", intent.Approve{}),
		bind(k("b"), "approve and keep", "", "both: approve, and keep what it changes", intent.Approve{Keep: true}),
		bind(k("d"), "deny", "deny…", "deny, with a reason for the agent if you like", intent.Deny{}),
		bind(k("i"), "step into", "step into", "hold each program that this action starts", intent.StepInto{}),
		bind(k("n"), "step over", "step over", "run this one, hold at the next action", intent.StepOver{}),
		bind(k("u"), "roll back", "roll back…", "roll back this action, after showing its files", intent.Rollback{}),
		bind(k("U"), "roll back to", "", "roll back to just before it, later actions too", intent.Rollback{Later: true}),
		bind(k("y"), "keep", "keep", "mark this action's changes as reviewed", intent.Keep{}),
		bind(k("K"), "kill action", "", "kill the action's processes, after asking", intent.KillAction{}),
		bind(k("s"), "", "", "show this action's changes, or all again", intent.Scope{}),
		bind(k("h"), "housekeeping", "", "show or fold the agent's housekeeping", intent.Fold{}),
		bind(k("j", "down"), "", "", "next action", intent.Move{By: 1}),
		bind(k("k", "up"), "", "", "previous action", intent.Move{By: -1}),
		bind(k("pgdown", "space"), "", "", "a page down", intent.Page{By: 1}),
		bind(k("pgup"), "", "", "a page up", intent.Page{By: -1}),
		bind(k("g", "home"), "", "", "first action", intent.Top{}),
		bind(k("G", "end", "f"), "", "", "last action; follow new ones", intent.Bottom{}),
	)
	add(Changes,
		bind(k("j", "down"), "", "", "next file", intent.Move{By: 1}),
		bind(k("k", "up"), "", "", "previous file", intent.Move{By: -1}),
		bind(k("pgdown", "space", "J"), "", "", "scroll the diff down", intent.Page{By: 1}),
		bind(k("pgup", "K"), "", "", "scroll the diff up", intent.Page{By: -1}),
		bind(k("g", "home"), "", "", "first file", intent.Top{}),
		bind(k("G", "end"), "", "", "last file", intent.Bottom{}),
		bind(k("left"), "", "", "scroll long lines left", intent.Slide{By: -8}),
		bind(k("right"), "", "", "scroll long lines right", intent.Slide{By: 8}),
		bind(k("s"), "scope", "scope", "whole session, or the selected action", intent.Scope{}),
		bind(k("enter"), "", "read", "read the diff alone, or all again", intent.Open{}),
		bind(k("u"), "", "", "roll back the action in scope, after showing its files", intent.Rollback{}),
	)
	add(Network,
		bind(k("enter"), "", "details", "all attempts of this row", intent.Open{}),
		bind(k("j", "down"), "", "", "next row", intent.Move{By: 1}),
		bind(k("k", "up"), "", "", "previous row", intent.Move{By: -1}),
		bind(k("pgdown", "space"), "", "", "a page down", intent.Page{By: 1}),
		bind(k("pgup"), "", "", "a page up", intent.Page{By: -1}),
		bind(k("g", "home"), "", "", "first row", intent.Top{}),
		bind(k("G", "end", "f"), "", "", "last row; follow new ones", intent.Bottom{}),
		bind(k("a", "A", "d"), "", "", notHeld, intent.Unavailable{Why: notHeld}),
	)
	add(Decision,
		bind(k("a"), "", "approve once", "approve once", intent.Approve{}),
		bind(k("b"), "", "approve, keep", "both: approve, and keep what it changes", intent.Approve{Keep: true}),
		bind(k("d"), "", "deny…", "deny, with a reason for the agent if you like", intent.Deny{}),
		bind(k("i"), "", "step into", "hold each program that this action starts", intent.StepInto{}),
		bind(k("n"), "", "step over", "run this one, hold at the next action", intent.StepOver{}),
		bind(k("y"), "", "keep", "an edit: keep it", intent.Keep{}),
		bind(k("u"), "", "roll back…", "an edit: roll it back", intent.Rollback{}),
		bind(k("v"), "", "raw argv", "show the arguments as they are executed", intent.Raw{}),
		bind(k("tab"), "", "next", "the next question", intent.HeldStep{By: 1}),
		bind(k("shift+tab"), "", "", "the previous question", intent.HeldStep{By: -1}),
		bind(k("j", "down"), "", "", "scroll down", intent.Move{By: 1}),
		bind(k("k", "up"), "", "", "scroll up", intent.Move{By: -1}),
		bind(k("pgdown", "space"), "", "", "a page down", intent.Page{By: 1}),
		bind(k("pgup"), "", "", "a page up", intent.Page{By: -1}),
		bind(k("g", "home"), "", "", "the beginning", intent.Top{}),
		bind(k("G", "end"), "", "", "the end", intent.Bottom{}),
		bind(k("?"), "", "", "show these keys", intent.Help{}),
		bind(k("esc", "q"), "", "later", "leave it held", intent.Back{}),
	)
	add(Details,
		bind(k("j", "down"), "", "", "scroll down", intent.Move{By: 1}),
		bind(k("k", "up"), "", "", "scroll up", intent.Move{By: -1}),
		bind(k("pgdown", "space"), "", "", "a page down", intent.Page{By: 1}),
		bind(k("pgup"), "", "", "a page up", intent.Page{By: -1}),
		bind(k("g", "home"), "", "", "the beginning", intent.Top{}),
		bind(k("G", "end"), "", "", "the end", intent.Bottom{}),
		bind(k("esc", "q", "enter"), "", "close", "close", intent.Back{}),
	)
	add(Confirm,
		bind(k("y"), "", "yes", "do it", intent.Yes{}),
		bind(k("j", "down"), "", "", "scroll down", intent.Move{By: 1}),
		bind(k("k", "up"), "", "", "scroll up", intent.Move{By: -1}),
		bind(k("pgdown", "space"), "", "", "a page down", intent.Page{By: 1}),
		bind(k("pgup"), "", "", "a page up", intent.Page{By: -1}),
		bind(k("g", "home"), "", "", "the beginning", intent.Top{}),
		bind(k("G", "end"), "", "", "the end", intent.Bottom{}),
		bind(k("n", "esc", "q", "enter"), "", "no", "leave everything as it is", intent.Back{}),
	)
	add(Input,
		bind(k("enter"), "", "send", "send the line", intent.Yes{}),
		bind(k("esc"), "", "back", "back, nothing sent", intent.Back{}),
	)
	add(Lists,
		bind(k("j", "down"), "", "", "scroll down", intent.Move{By: 1}),
		bind(k("k", "up"), "", "", "scroll up", intent.Move{By: -1}),
		bind(k("pgdown", "space"), "", "", "a page down", intent.Page{By: 1}),
		bind(k("pgup"), "", "", "a page up", intent.Page{By: -1}),
		bind(k("g", "home"), "", "", "the beginning", intent.Top{}),
		bind(k("G", "end"), "", "", "the end", intent.Bottom{}),
		bind(k("esc", "q", "?", "enter"), "", "close", "close", intent.Back{}),
	)
	add(Picker,
		bind(k("up", "ctrl+p"), "", "", "previous command", intent.Move{By: -1}),
		bind(k("down", "ctrl+n", "tab"), "", "", "next command", intent.Move{By: 1}),
		bind(k("enter"), "", "run", "run the command", intent.Yes{}),
		bind(k("esc"), "", "close", "close", intent.Back{}),
	)
	return all
}

// Modes are the palette's commands that have no key.
func Modes() []Binding {
	return []Binding{
		{Name: "mode step", Help: "hold every action that isn't housekeeping", Intent: intent.SetMode{Mode: api.ModeStep}},
		{Name: "mode policy", Help: "rules decide: allow, ask or deny", Intent: intent.SetMode{Mode: api.ModePolicy}},
		{Name: "mode watch", Help: "let all pass, record all", Intent: intent.SetMode{Mode: api.ModeWatch}},
	}
}
