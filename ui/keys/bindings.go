package keys

import (
	"slices"
	"strings"
	"time"

	"charm.land/bubbles/v2/key"

	"stepbox/session/api"
	"stepbox/ui/intent"
	"stepbox/ui/selection"
)

// bind makes a binding of keys with blanks between them.
func bind(keys, name, short, help string, i intent.Intent) Binding {
	all := strings.Fields(keys)
	var shown []string
	for _, k := range all {
		shown = append(shown, Pretty(k))
	}
	return Binding{key.NewBinding(key.WithKeys(all...), key.WithHelp(strings.Join(shown, " "), help)), name, short, i}
}

// list are the keys of a list of things.
func list(thing, lastKeys, last string) []Binding {
	return moves("pgdown", "next "+thing, "previous "+thing, "first "+thing, lastKeys, last)
}

// text are the keys of what scrolls.
func text() []Binding {
	return moves("pgdown space", "scroll down", "scroll up", "the beginning", "G end", "the end")
}

// reading are the same where nothing else is done.
func reading() []Binding {
	all := text()
	all[2].Short = "scroll"
	return all
}

func moves(page, down, up, first, lastKeys, last string) []Binding {
	return []Binding{
		bind("j down", "", "", down, intent.Move{By: 1}),
		bind("k up", "", "", up, intent.Move{By: -1}),
		bind(page, "", "", "a page down", intent.Page{By: 1}),
		bind("pgup", "", "", "a page up", intent.Page{By: -1}),
		bind("g home", "", "", first, intent.Top{}),
		bind(lastKeys, "", "", last, intent.Bottom{}),
	}
}

// work are the keys that bring a session's work home, or back.
func work() []Binding {
	return []Binding{
		bind("w", "apply", "apply…", "write the selection, or all, to the project folder, after showing a plan", intent.Apply{}),
		bind("Z", "undo apply", "undo apply…", "list the applies, and undo one", intent.Applies{}),
		bind("ctrl+r", "redo", "redo…", "bring again what was rolled back last, after showing its files", intent.Redo{}),
		bind("H", "roll back home", "", "roll back what was changed in a home of the session's own, after showing its files", intent.RollbackHome{}),
		bind("x", "export", "", "write a patch of this session that git apply takes, after asking where", intent.Export{}),
		bind("r", "resume", "resume", "have an ended session go on, over its files as it left them", intent.Resume{}),
	}
}

// panes are the keys of the panes' places.
func panes() []Binding {
	return []Binding{
		bind("1", "terminal", "", "focus the Terminal", intent.Focus{Pane: intent.Terminal}),
		bind("2", "changes", "", "focus Changes", intent.Focus{Pane: intent.Changes}),
		bind("3", "network", "", "focus Network", intent.Focus{Pane: intent.Network}),
		bind("4", "actions", "", "focus Actions", intent.Focus{Pane: intent.Actions}),
		bind("z", "zoom", "zoom", "show the focused pane alone, or all again", intent.Zoom{}),
		bind("< alt+left", "narrower", "", "move the border between the columns to the left", intent.Resize{DX: -1}),
		bind("> alt+right", "wider", "", "move the border between the columns to the right", intent.Resize{DX: 1}),
		bind("( alt+up", "border up", "", "move the border above Actions up; in Changes and Network the one between them", intent.Resize{DY: -1}),
		bind(") alt+down", "border down", "", "move it down", intent.Resize{DY: 1}),
	}
}

// bindings lists every binding, with a leader. Order is the order of help screens.
func bindings(leader string) map[Scope][]Binding {
	return map[Scope][]Binding{
		Home: slices.Concat([]Binding{
			bind("enter", "open", "open", "attach to a live session, or open a past one, where the search found it", intent.Open{}),
			bind("n", "new", "new session", "start a session: enter at once starts one in this folder, as the last one there", intent.New{}),
			bind("d", "demo", "demo", "start the demo: a scripted agent that needs no account and no network", intent.Demo{}),
			bind("/", "search", "search", "find sessions by what is in them, and choose which are listed", intent.Search{}),
			bind("] right", "", "next place", "next place that has what was searched", intent.Place{By: 1}),
			bind("[ left", "", "", "previous place that has it", intent.Place{By: -1}),
			bind("r", "resume", "resume", "have an ended session go on, over its files as it left them, after asking", intent.Resume{}),
			bind("f", "fork", "fork", "start a session on the files it had at the end, or where the search found it, after asking", intent.Fork{}),
			bind("w", "apply", "", "open it, with the plan to write its changes to the project folder", intent.Apply{}),
			bind("R", "replay", "", "replay it from its start", intent.Replay{}),
			bind("v", "preview", "preview", "show or hide what the session did", intent.Preview{}),
			bind("e", "rename", "", "give it another name", intent.Rename{}),
			bind("t", "tag", "", "edit its tags", intent.Tag{}),
			bind("N", "note", "", "edit its note", intent.Note{}),
			bind("p", "pin", "", "keep it, whatever the rules of retention say; again: no longer", intent.Pin{}),
			bind("x", "export", "", "write a patch of its changes that git apply takes, after asking where", intent.Export{}),
			bind("D", "trash", "trash", "put it into the trash, which is emptied once Stepbox is left; until then it can be brought back", intent.Trash{}),
			bind("u Z", "restore", "bring back", "bring back what was put into the trash last, or the selected one", intent.Restore{}),
			bind("ctrl+k", "kill sandbox", "", "kill the whole sandbox of a live session, after asking", intent.KillSandbox{}),
			bind("s", "sort", "sort", "newest, longest, most changed files, or by name", intent.Order{}),
			bind("h", "here", "", "only sessions of this folder, or all", intent.Here{}),
		}, list("session", "G end", "last session"), []Binding{
			bind("c", "theme", "", "choose colours, which are seen at once", intent.Themes{}),
			bind("tab", "inbox", "inbox", "to what is held in all sessions, where keys answer it", intent.FirstHeld{}),
			bind(": ctrl+p", "", "command", "find a command by name", intent.Palette{}),
			bind("?", "help", "help", "show these keys", intent.Help{}),
			bind("esc", "", "", "list all again", intent.Back{}),
			bind("q ctrl+c", "quit", "quit", "leave Stepbox; sessions go on", intent.Quit{}),
		}),
		Inbox: slices.Concat([]Binding{
			bind("enter", "", "open", "open the question beside its evidence", intent.Open{}),
			bind("a", "", "approve", "approve once, in each session that asks the same", intent.Approve{}),
			bind("A", "", "always…", "approve, and make it a rule: which one and for how long is asked", intent.Always{}),
			bind("b", "", "approve, keep", "both: approve, and keep what it changes", intent.Approve{Keep: true}),
			bind("d", "", "deny…", "deny, with a reason for the agent if you like; an edit: open it, to roll it back", intent.Deny{}),
			bind("y", "", "keep", "an edit: open it, to keep it", intent.Keep{}),
			bind("u", "", "roll back", "an edit: open it, to roll it back", intent.Rollback{}),
			bind("i", "", "step into", "hold each program that this action starts", intent.StepInto{}),
			bind("o", "", "step over", "run this one, hold at the next action; a nested one: and all that its action starts", intent.StepOver{}),
		}, list("question", "G end", "last question"), []Binding{
			bind("tab esc", "", "sessions", "back to the list of sessions", intent.Back{}),
		}),
		Searching: {
			bind("enter tab", "", "to the list", "keep the search, and go to the list", intent.Yes{}),
			bind("up ctrl+p", "", "", "previous session", intent.Move{By: -1}),
			bind("down ctrl+n", "", "", "next session", intent.Move{By: 1}),
			bind("pgup", "", "", "a page up", intent.Page{By: -1}),
			bind("pgdown", "", "", "a page down", intent.Page{By: 1}),
			bind("esc", "", "list all", "list all again", intent.Back{}),
			bind("ctrl+c", "", "", "leave Stepbox; sessions go on", intent.Quit{}),
		},
		Leader: slices.Concat([]Binding{
			bind("a", "inspect", "first question", "open the first question; this never answers it", intent.FirstHeld{}),
			bind("y", "", "approve", "approve what the selected row of Actions shows whole, if that was in view before the leader key; an edit is opened", intent.Quick{Yes: true}),
			bind("x", "", "deny", "deny it so, without a reason; an edit: roll it back, after showing the files", intent.Quick{}),
			bind("d", "detach", "detach", "leave; the session goes on", intent.Detach{}),
		}, panes(), []Binding{
			bind("space", "layout", "", "the next layout: usual, watching, reviewing, deciding", intent.Arrange{}),
			bind("tab", "next pane", "", "focus the next pane", intent.FocusStep{By: 1}),
			bind("shift+tab", "previous pane", "", "focus the previous pane", intent.FocusStep{By: -1}),
			bind("left", "pane left", "", "focus the pane to the left", intent.FocusTo{DX: -1}),
			bind("right", "pane right", "", "focus the pane to the right", intent.FocusTo{DX: 1}),
			bind("up", "pane above", "", "focus the pane above", intent.FocusTo{DY: -1}),
			bind("down", "pane below", "", "focus the pane below", intent.FocusTo{DY: 1}),
			bind("s", "side", "", "show another side pane, where one fits", intent.SideCycle{}),
			bind("[", "copy mode", "copy", "read the Terminal's scrollback: move, search, select and copy", intent.CopyMode{}),
			bind("pgup", "scroll back", "", "the same, a page up", intent.Scroll{Back: 1}),
			bind("p", "pause", "", "freeze every process of the agent; again to go on", intent.Pause{}),
			bind("r", "replay", "look back", "look at what was, while the session goes on", intent.Replay{}),
			bind("i", "facts", "", "show what holds for this session", intent.Facts{}),
			bind("ctrl+z", "forget rule", "", "forget the newest rule that was made in this session", intent.Forget{}),
			bind("h", "home", "", "the list of sessions", intent.Home{}),
			bind("c", "theme", "", "choose colours, which are seen at once", intent.Themes{}),
			bind("t", "tour", "", "begin the tour, or go on with it", intent.Tour{}),
			bind("T", "end tour", "", "end the tour", intent.Tour{End: true}),
			bind(":", "", "palette", "find a command by name", intent.Palette{}),
			bind("?", "help", "help", "show every key", intent.Help{}),
			bind(leader, "", "", "send the key itself", intent.Leader{}),
			bind("esc", "", "", "do nothing", intent.Back{}),
		}),
		Panes: slices.Concat([]Binding{
			bind("tab", "next held", "next held", "go to the next held thing", intent.HeldStep{By: 1}),
			bind("shift+tab", "previous held", "", "go to the previous held thing", intent.HeldStep{By: -1}),
		}, work(), []Binding{
			bind("p", "", "pause", "freeze every process of the agent; again to go on", intent.Pause{}),
			bind("@", "moment", "replay", "replay from where the selected action, connection or file's change began", intent.Jump{}),
			bind("R", "replay", "", "look at what was, while a live session goes on", intent.Replay{}),
		}, panes(), []Binding{
			bind("O", "layout", "", "the next layout: usual, watching, reviewing, deciding", intent.Arrange{}),
			bind("c", "continue, mode policy", "", "follow the policy: hold only where it says ask; in step mode after asking", intent.SetMode{Mode: api.ModePolicy}),
			bind("C", "copy", "copy", "copy what is selected: its command, path, host or diff", intent.TakeOut{}),
			bind("ctrl+k", "kill sandbox", "", "kill the whole sandbox, after asking", intent.KillSandbox{}),
			bind("I", "", "", "show what holds for this session", intent.Facts{}),
			bind("P", "rules", "", "list the rules that were made in this session, to forget one", intent.Rules{}),
			bind("ctrl+z", "forget rule", "", "forget the newest rule that was made in this session", intent.Forget{}),
			bind("ctrl+o", "return", "", "where you were before #, M, S, @ or a number led elsewhere; again: before that", intent.Return{}),
			bind("ctrl+p :", "", "command", "find a command by name, or an action by its number", intent.Palette{}),
			bind("?", "", "help", "show these keys", intent.Help{}),
			bind("esc", "", "", "back: out of zoom, then to the Terminal", intent.Back{}),
		}),
		Lists: {
			bind("/", "filter", "filter", "list only rows with these words, or denied, failed, exit≠0, file:PATH, host:NAME; #12 goes to that action", intent.Filter{}),
			bind("#", "its action", "action", "the action that did this, or the ones that changed the file; in Actions: go to a number", intent.Related{To: intent.Actions}),
			bind("M", "its files", "files", "what the action modified, in Changes", intent.Related{To: intent.Changes}),
			bind("S", "its connections", "connections", "what the action sent, in Network", intent.Related{To: intent.Network}),
		},
		Filtered: {
			bind("n", "", "next", "next row, or place of a session, that the filter has", intent.Match{By: 1}),
			bind("N", "", "", "previous one that it has", intent.Match{By: -1}),
			bind("esc", "", "all", "list all again", intent.Back{}),
		},
		Filtering: {
			bind("enter", "", "to the list", "keep the filter, and go to the list; of #12 alone: go to that action", intent.Yes{}),
			bind("esc", "", "list all", "list all again", intent.Back{}),
			bind("up ctrl+p", "", "", "previous row", intent.Move{By: -1}),
			bind("down ctrl+n", "", "choose", "next row", intent.Move{By: 1}),
			bind("pgup", "", "", "a page up", intent.Page{By: -1}),
			bind("pgdown", "", "", "a page down", intent.Page{By: 1}),
		},
		Actions: slices.Concat([]Binding{
			bind("enter", "", "inspect", "open the selected action, or its question", intent.Open{}),
			bind("a", "approve", "approve", "approve once", intent.Approve{}),
			bind("b", "approve and keep", "and keep", "both: approve, and keep what it changes", intent.Approve{Keep: true}),
			bind("A", "allow always", "always…", "approve, and make it a rule: which one and for how long is asked", intent.Always{}),
			bind("d", "deny", "deny…", "deny, with a reason for the agent if you like; an edit: roll it back, with one", intent.Deny{}),
			bind("i", "step into", "step into", "hold each program that this action starts", intent.StepInto{}),
			bind("o", "step over", "step over", "run this one, hold at the next action; a nested one: and all that its action starts", intent.StepOver{}),
			bind("y", "keep", "keep", "mark this action's changes as reviewed, or the selected ones', and go to the next that aren't", intent.Keep{}),
			bind("u", "roll back this", "roll back…", "roll back this action alone, or the selected ones, after showing the files", intent.Rollback{}),
			bind("U", "roll back to before", "", "roll back to just before this action, later ones too, after showing the files", intent.Rollback{Later: true}),
			bind("space", "select", "select", "select this action for y, u, w and W; again: no longer", intent.Toggle{}),
			bind("W", "apply without", "", "apply all but this action, or but the selected ones", intent.Apply{Without: true}),
			bind("K", "kill action", "", "kill the action's processes, after asking", intent.KillAction{}),
			bind("s", "", "", "show this action's changes, or all again", intent.Scope{}),
			bind("B", "where it began", "", "read the Terminal where this action began", intent.Printed{}),
			bind("E", "open diff in pager", "", "open this action's diff in your own pager, or the selected ones'", intent.Read{}),
			bind("F", "find what broke this", "what broke it", "find the action after which a command fails", intent.Bisect{}),
			bind("h", "housekeeping", "", "show or fold the agent's housekeeping", intent.Fold{}),
		}, list("action", "G end f", "last action; follow new ones")),
		Changes: {
			bind("j down", "", "", "next row, or line of the diff that is read alone", intent.Move{By: 1}),
			bind("k up", "", "", "previous row or line", intent.Move{By: -1}),
			bind("space", "", "select", "select the file or folder, or the hunk while reading; again: no longer", intent.Toggle{}),
			bind("a", "select all", "", "select all; again: nothing", intent.ToggleAll{}),
			bind("enter", "", "read", "read the diff alone, or all again; fold or unfold a folder", intent.Open{}),
			bind("] n }", "", "", "next hunk", intent.Hunk{By: 1}),
			bind("[ N {", "", "", "previous hunk", intent.Hunk{By: -1}),
			bind("pgdown", "", "", "scroll the diff down", intent.Page{By: 1}),
			bind("pgup", "", "", "scroll the diff up", intent.Page{By: -1}),
			bind("J", "", "", "scroll the diff down; while reading: next file", intent.Beside{By: 1}),
			bind("K", "", "", "scroll the diff up; while reading: previous file", intent.Beside{By: -1}),
			bind("g home", "", "", "first row or line", intent.Top{}),
			bind("G end", "", "", "last row or line", intent.Bottom{}),
			bind("left h", "", "", "fold the folder; while reading: scroll long lines left", intent.Slide{By: -8}),
			bind("right l", "", "", "unfold the folder; while reading: scroll long lines right", intent.Slide{By: 8}),
			bind("t", "side by side", "", "old and new text side by side, or unified", intent.Sides{}),
			bind("T", "tree or list", "", "folders as a tree, or files with their whole paths", intent.Flat{}),
			bind("s", "scope", "scope", "whole session, since you looked, or the selected action", intent.Scope{}),
			bind("m", "looked", "looked", "mark what is shown as looked at, for the scope since you looked", intent.Looked{}),
			bind("v", "view file", "view", "read the whole file as it was then; there, s saves it", intent.View{}),
			bind("e", "open in editor", "", "open a copy of the file as it was then in your own editor, at this line", intent.Edit{}),
			bind("E", "open diff in pager", "", "open the diff in your own pager", intent.Read{}),
			bind("b", "blame", "blame", "read the whole file with the action that wrote each line", intent.Blame{}),
			bind("u", "", "", "roll back what is selected, or what the cursor is on, after showing its files", intent.Rollback{}),
		},
		Network: slices.Concat([]Binding{
			bind("enter", "", "details", "all attempts of this row", intent.Open{}),
			bind("a", "", "allow", "allow what is held, once; what was denied earlier, from its next try on in this session", intent.Approve{}),
			bind("A", "", "always…", "allow it by a rule: which one and for how long is asked", intent.Always{}),
			bind("d", "", "deny…", "deny what is held; what was allowed earlier, by a rule: which one and for how long is asked", intent.Deny{}),
		}, list("row", "G end f", "last row; follow new ones")),
		CopyMode: {
			bind("y enter", "", "copy", "copy what is selected, and leave", intent.Yes{}),
			bind("v space", "", "select", "select characters; again: no longer", intent.SelectText{Mode: int(selection.Chars)}),
			bind("V", "", "lines", "select lines", intent.SelectText{Mode: int(selection.Lines)}),
			bind("ctrl+v", "", "", "select a block", intent.SelectText{Mode: int(selection.Block)}),
			bind("o", "", "", "the other end of what is selected", intent.OtherEnd{}),
			bind("/", "", "search", "search down; small letters find capitals too", intent.Find{}),
			bind("?", "", "", "search up", intent.Find{Back: true}),
			bind("n", "", "", "the next place that was found", intent.Hit{By: 1}),
			bind("N", "", "", "the previous place", intent.Hit{By: -1}),
			bind("]", "", "action", "where the next action began", intent.ActionStep{By: 1}),
			bind("[", "", "", "where the previous action began", intent.ActionStep{By: -1}),
			bind("h left", "", "", "left", intent.Slide{By: -1}),
			bind("j down", "", "", "down", intent.Move{By: 1}),
			bind("k up", "", "", "up", intent.Move{By: -1}),
			bind("l right", "", "", "right", intent.Slide{By: 1}),
			bind("w", "", "", "the next word", intent.Word{By: 1}),
			bind("b", "", "", "the word before", intent.Word{By: -1}),
			bind("e", "", "", "the end of the word", intent.Word{By: 1, End: true}),
			bind("0 home", "", "", "the beginning of the row", intent.LineStart{}),
			bind("$ end", "", "", "the end of the row", intent.LineEnd{}),
			bind("g", "", "", "the oldest row", intent.Top{}),
			bind("G", "", "", "the last row", intent.Bottom{}),
			bind("ctrl+u", "", "", "half a page up", intent.HalfPage{By: -1}),
			bind("ctrl+d", "", "", "half a page down", intent.HalfPage{By: 1}),
			bind("pgup ctrl+b", "", "", "a page up", intent.Page{By: -1}),
			bind("pgdown ctrl+f", "", "", "a page down", intent.Page{By: 1}),
			bind("q esc", "", "leave", "select nothing; then leave", intent.Back{}),
		},
		Replay: {
			bind("space", "play", "play", "play, or stand still; pauses of more than a second are shortened to one", intent.Play{}),
			bind("left", "", "5 s", "five seconds back", intent.Seek{By: -5 * time.Second}),
			bind("right", "", "5 s", "five seconds on", intent.Seek{By: 5 * time.Second}),
			bind("[", "", "action", "where the previous action began", intent.ActionStep{By: -1}),
			bind("]", "", "action", "where the next action began", intent.ActionStep{By: 1}),
			bind("end L", "now", "now", "how the session stands now, live if it is", intent.Present{}),
			bind("n", "", "place", "next place that was found", intent.Hit{By: 1}),
			bind("N", "", "place", "previous place that was found", intent.Hit{By: -1}),
			bind("/", "search", "search", "search commands, paths, hosts and the terminal's text", intent.Search{}),
			bind(",", "", "frame", "the output before", intent.FrameStep{By: -1}),
			bind(".", "", "frame", "the next output", intent.FrameStep{By: 1}),
			bind("-", "", "speed", "slower", intent.Speed{By: -1}),
			bind("+ =", "", "speed", "faster", intent.Speed{By: 1}),
			bind("home", "beginning", "", "the session's beginning", intent.Beginning{}),
			bind("f", "fork", "fork", "start a session on the files as they are here, after asking", intent.Fork{}),
			bind("#", "", "", "the action that ran then, in Actions", intent.Related{To: intent.Actions}),
			bind("q", "", "", "the list of sessions; a live one goes on", intent.Home{}),
		},
		Decision: slices.Concat([]Binding{
			bind("a", "", "approve once", "approve once", intent.Approve{}),
			bind("A", "", "always…", "approve, and make it a rule: which one and for how long is asked", intent.Always{}),
			bind("b", "", "approve, keep", "both: approve, and keep what it changes", intent.Approve{Keep: true}),
			bind("y", "", "keep", "an edit: keep it", intent.Keep{}),
			bind("u", "", "roll back…", "an edit: roll it back, after showing the files", intent.Rollback{}),
			bind("d", "", "deny…", "deny, with a reason for the agent if you like", intent.Deny{}),
			bind("i", "", "step into", "hold each program that this action starts", intent.StepInto{}),
			bind("o", "", "step over", "run this one, hold at the next action; a nested one: and all that its action starts", intent.StepOver{}),
			bind("v", "", "raw argv", "show the arguments as they are executed", intent.Raw{}),
			bind("tab", "", "next question", "the next question", intent.HeldStep{By: 1}),
			bind("shift+tab", "", "", "the previous question", intent.HeldStep{By: -1}),
		}, text(), []Binding{
			bind("C", "", "", "copy its command or host", intent.TakeOut{}),
			bind("?", "", "", "show these keys", intent.Help{}),
			bind("esc q", "", "later", "leave it held", intent.Back{}),
		}),
		Between: {bind("esc", "", "back", "back to where the focus was; all other keys do nothing", intent.Back{})},
		Rule: {
			bind("j down", "", "", "next rule, a wider one", intent.Move{By: 1}),
			bind("k up", "", "", "previous rule", intent.Move{By: -1}),
			bind("g home", "", "", "the narrowest", intent.Top{}),
			bind("G end", "", "", "the widest", intent.Bottom{}),
			bind("tab right l", "", "", "for longer: this session, this project, always", intent.Extent{By: 1}),
			bind("shift+tab left h", "", "", "for less long", intent.Extent{By: -1}),
			bind("pgdown space", "", "", "scroll down", intent.Page{By: 1}),
			bind("pgup", "", "", "scroll up", intent.Page{By: -1}),
			bind("enter", "", "answer so", "answer, and make the rule", intent.Yes{}),
			bind("?", "", "", "show these keys", intent.Help{}),
			bind("esc q", "", "back", "back, nothing answered", intent.Back{}),
		},
		Rules: append(list("rule", "G end", "last rule"),
			bind("d D", "", "forget it", "forget the selected rule", intent.Deny{}),
			bind("?", "", "", "show these keys", intent.Help{}),
			bind("esc q", "", "close", "close", intent.Back{}),
		),
		Denial: {
			bind("enter", "", "deny", "deny, with the line as the reason", intent.Yes{}),
			bind("tab", "", "for how long", "for longer: once, this session, this project, always", intent.Extent{By: 1}),
			bind("shift+tab", "", "", "for less long", intent.Extent{By: -1}),
			bind("esc", "", "back", "back, nothing decided", intent.Back{}),
		},
		Form: {
			bind("enter", "", "start", "start it, with what is chosen", intent.Yes{}),
			bind("up ctrl+p", "", "", "previous choice", intent.Move{By: -1}),
			bind("down ctrl+n", "", "", "next choice", intent.Move{By: 1}),
			bind("tab", "", "next field", "next field; while a folder is typed: complete it as is chosen", intent.FocusStep{By: 1}),
			bind("shift+tab", "", "", "previous field", intent.FocusStep{By: -1}),
			bind("esc", "", "back", "back, nothing started", intent.Back{}),
		},
		Confirm: slices.Concat([]Binding{
			bind("y", "", "yes", "do it", intent.Yes{}),
			bind("n esc q enter", "", "no", "leave everything as it is", intent.Back{}),
			bind("?", "", "", "show these keys", intent.Help{}),
		}, text()),
		Plan: {
			bind("y", "", "yes", "carry out the plan that is shown", intent.Yes{}),
			bind("v", "", "I have looked", "say that the unreviewed changes have been looked at", intent.Seen{}),
			bind("m", "", "both", "a conflict: both changes, merged", intent.Choose{Way: api.WayMerge}),
			bind("w", "", "wanted", "a conflict: the file, or the place, as it is wanted", intent.Choose{Way: api.WayWanted}),
			bind("t", "", "there", "a conflict: the file, or the place, as it is there", intent.Choose{Way: api.WayThere}),
			bind("space", "", "next choice", "the next choice: of a conflict, or whether a check runs or commits are fetched", intent.Toggle{}),
			bind("c", "", "add a check", "add a command that must succeed before anything is written", intent.AddCheck{}),
			bind("enter", "", "edit", "edit the check", intent.Open{}),
			bind("f", "", "commits", "fetch the agent's commits, or don't", intent.Commits{}),
			bind("Z", "", "undo it…", "once it is applied: undo it, after showing a plan", intent.Applies{}),
			bind("r", "", "plan again", "make the plan anew", intent.Again{}),
			bind("j down", "", "", "next thing", intent.Move{By: 1}),
			bind("k up", "", "", "previous thing", intent.Move{By: -1}),
			bind("pgdown", "", "", "scroll what is beside it down; at its end, a page of things down", intent.Page{By: 1}),
			bind("pgup", "", "", "scroll what is beside it up; at its beginning, a page of things up", intent.Page{By: -1}),
			bind("g home", "", "", "first thing", intent.Top{}),
			bind("G end", "", "", "last thing", intent.Bottom{}),
			bind("?", "", "", "show these keys", intent.Help{}),
			bind("esc n q", "", "no", "leave everything as it is; while it is carried out: cancel", intent.Back{}),
		},
		Ended: {
			bind("enter", "", "review", "look at the changes", intent.Focus{Pane: intent.Changes}),
			bind("w", "", "apply…", "write them to the project folder, after showing a plan", intent.Apply{}),
			bind("x", "", "export", "write them as a patch, after asking where", intent.Export{}),
			bind("r", "", "resume", "have it go on, over these files", intent.Resume{}),
			bind("R", "", "replay", "replay it from its start", intent.Play{}),
			bind("f", "", "fork", "start a session on these files, after asking", intent.Fork{}),
			bind("?", "", "", "show these keys", intent.Help{}),
			bind("esc q", "", "later", "close; the changes stay in the record", intent.Back{}),
		},
		List: append(list("apply", "G end", "last apply"),
			bind("enter Z", "", "undo…", "undo the selected apply, after showing a plan", intent.Open{}),
			bind("?", "", "", "show these keys", intent.Help{}),
			bind("esc q", "", "close", "close", intent.Back{}),
		),
		File: append(list("line", "G end", "last line"),
			bind("enter", "", "its action", "go to the action that wrote the line", intent.Open{}),
			bind("b", "", "who wrote it", "show who wrote each line, or don't", intent.Blame{}),
			bind("s", "", "save as…", "save the file on your own machine, over nothing", intent.Save{}),
			bind("C", "", "", "copy its path or diff", intent.TakeOut{}),
			bind("?", "", "", "show these keys", intent.Help{}),
			bind("esc q", "", "back", "close", intent.Back{}),
		),
		Reading: append(reading(),
			bind("C", "", "copy", "copy the command, path, host or diff of what is selected", intent.TakeOut{}),
			bind("E", "", "", "an action: open its diff in your own pager", intent.Read{}),
			bind("?", "", "", "show these keys; again: no longer", intent.Help{}),
			bind("esc q enter", "", "close", "close", intent.Back{}),
		),
		Helping: slices.Concat([]Binding{
			bind("/", "", "search", "search the keys of all places, and the pages", intent.Search{}),
			bind("tab right", "", "next page", "next page: these keys, then one for each subject", intent.Turn{By: 1}),
			bind("shift+tab left", "", "", "previous page", intent.Turn{By: -1}),
		}, reading(), []Binding{
			bind("esc q ? enter", "", "close", "all again after a search; else close", intent.Back{}),
		}),
		Input: {
			bind("enter", "", "send", "send the line", intent.Yes{}),
			bind("esc", "", "back", "back, nothing sent", intent.Back{}),
		},
		Found: append(reading(),
			bind("enter", "", "go there", "go to the action in Actions", intent.Yes{}),
			bind("?", "", "", "show these keys", intent.Help{}),
			bind("esc q", "", "back", "close", intent.Back{}),
		),
		Picker: {
			bind("enter", "", "choose", "run the command", intent.Yes{}),
			bind("down ctrl+n tab", "", "select", "next command", intent.Move{By: 1}),
			bind("up ctrl+p", "", "", "previous command", intent.Move{By: -1}),
			bind("esc", "", "close", "close", intent.Back{}),
		},
	}
}

// Command is one of the palette's that there is only at times, and that has no key.
func Command(name, help string, i intent.Intent) Binding { return bind("", name, "", help, i) }

// Modes are the palette's commands that have no key.
func Modes() []Binding {
	return []Binding{
		bind("", "mode step", "", "hold every action, but what you let the agent start itself", intent.SetMode{Mode: api.ModeStep}),
		bind("", "mode watch", "", "let all pass, record all", intent.SetMode{Mode: api.ModeWatch}),
		bind("", "layout usual", "", "all panes, as they are at first", intent.Arrange{Preset: intent.Usual}),
		bind("", "layout watching", "", "the Terminal is large", intent.Arrange{Preset: intent.Watching}),
		bind("", "layout reviewing", "", "Changes is large", intent.Arrange{Preset: intent.Reviewing}),
		bind("", "layout deciding", "", "Actions is large", intent.Arrange{Preset: intent.Deciding}),
	}
}
