package themes

// Token names a role that text or a surface has. Meaning is never carried by a
// token's colour alone: a glyph or a word always says the same.
type Token int

const (
	Text   Token = iota // ordinary text
	Muted               // text that supports other text
	Faint               // separators and marks that may be overlooked
	Strong              // names and headings

	Border      // a pane's border
	BorderFocus // the focused pane's border
	Title       // a pane's title
	TitleFocus  // the focused pane's title
	Bar         // the title line's ground
	Brand       // the product's name in it
	BarMuted    // facts in it

	Selected      // the selected row of the focused pane
	SelectedIdle  // the selected row of another pane
	Surface       // a dialog's ground
	SurfaceMuted  // supporting text on it
	SurfaceBorder // its border
	Inset         // a block inside a dialog: a command, an input
	Key           // a key that can be pressed
	KeyOff        // a key that does nothing now
	Hint          // what a key does

	OK      // went through
	Fail    // ended badly
	Denied  // was refused
	Held    // waits for a person
	Running // goes on now
	Undone  // was rolled back
	Warn    // a protection is weaker, or something needs care
	Info    // news without weight
	Loss    // what was deleted, or would be: it stands out
	Odd     // escapes and characters that could deceive

	ModeStep
	ModePolicy
	ModeWatch
	StatePaused // the session is frozen
	StateEnded  // the session is over or out of reach

	Added       // a line that came
	Removed     // a line that went
	AddedMark   // what came inside of a line
	RemovedMark // what went inside of a line
	Hunk        // a diff's position line
	AddedWord   // counts of added lines, outside of diffs
	RemovedWord // counts of removed lines, outside of diffs

	SyntaxKeyword
	SyntaxString
	SyntaxComment
	SyntaxNumber
	SyntaxName // functions, types, keys

	Count // how many tokens there are
)

var tokenNames = [Count]string{
	Text: "text", Muted: "muted", Faint: "faint", Strong: "strong",
	Border: "border", BorderFocus: "border_focus", Title: "title", TitleFocus: "title_focus",
	Bar: "bar", Brand: "brand", BarMuted: "bar_muted",
	Selected: "selected", SelectedIdle: "selected_idle",
	Surface: "surface", SurfaceMuted: "surface_muted", SurfaceBorder: "surface_border", Inset: "inset",
	Key: "key", KeyOff: "key_off", Hint: "hint",
	OK: "ok", Fail: "fail", Denied: "denied", Held: "held", Running: "running", Undone: "undone",
	Warn: "warn", Info: "info", Loss: "loss", Odd: "odd",
	ModeStep: "mode_step", ModePolicy: "mode_policy", ModeWatch: "mode_watch",
	StatePaused: "state_paused", StateEnded: "state_ended",
	Added: "added", Removed: "removed", AddedMark: "added_mark", RemovedMark: "removed_mark", Hunk: "hunk",
	AddedWord: "added_word", RemovedWord: "removed_word",
	SyntaxKeyword: "syntax_keyword", SyntaxString: "syntax_string", SyntaxComment: "syntax_comment",
	SyntaxNumber: "syntax_number", SyntaxName: "syntax_name",
}

// String is the token's name in theme files.
func (k Token) String() string {
	if k < 0 || k >= Count {
		return "unknown"
	}
	return tokenNames[k]
}
