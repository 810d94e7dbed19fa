// Package intent lists what a person can mean by a key or a click. Screens and
// panes handle intents, never keys, so that a binding can change without them.
//
// Intents are plain values. The set is sealed: a switch over them is a switch
// over everything that can be asked for.
package intent

import (
	"slices"
	"time"

	"stepbox/session/api"
)

// Intent is one thing a person asks for.
type Intent interface{ intent() }

// sealed makes an intent of a type without fields.
type sealed struct{}

func (sealed) intent() {}

// Pane names a pane of the workbench.
type Pane int

// The panes, in the order of their number keys.
const (
	NoPane Pane = iota
	Terminal
	Changes
	Network
	Actions
)

// Panes are all of them.
var Panes = [...]Pane{Terminal, Changes, Network, Actions}

// String is the pane's name.
func (p Pane) String() string {
	return [...]string{"", "Terminal", "Changes", "Network", "Actions"}[max(NoPane, min(p, Actions))]
}

// Preset names a way to divide the workbench.
type Preset string

// The presets, in the order in which a key goes through them.
const (
	Usual     Preset = "usual"
	Watching  Preset = "watching"  // the Terminal is large
	Reviewing Preset = "reviewing" // Changes is
	Deciding  Preset = "deciding"  // Actions is
)

// Presets are all of them.
var Presets = []Preset{Usual, Watching, Reviewing, Deciding}

// Valid says whether there is such a preset.
func (p Preset) Valid() bool { return slices.Contains(Presets, p) }

// Border is a border between panes that can be moved.
type Border int

// The borders.
const (
	NoBorder Border = iota
	Columns         // left and right of it are the Terminal and the side column
	Strip           // above Actions
	Between         // between Changes and Network
)

// Moving about.
type (
	Focus     struct{ Pane Pane }     // give a pane the focus
	FocusStep struct{ By int }        // the next or previous pane
	FocusTo   struct{ DX, DY int }    // the pane in that direction
	Zoom      struct{ sealed }        // the focused pane alone, or all again
	SideCycle struct{ sealed }        // another side pane, where only one fits
	Resize    struct{ DX, DY int }    // move the border beside, or above or below, the focused pane
	Arrange   struct{ Preset Preset } // divide the workbench so; "" is the next way
	Move      struct{ By int }        // rows up or down
	Page      struct{ By int }        // pages up or down
	Top       struct{ sealed }        // the first row
	Bottom    struct{ sealed }        // the last row; lists follow again
	Slide     struct{ By int }        // columns left or right
	Scroll    struct{ Back int }      // terminal: pages up, or down when negative
	CopyMode  struct{ sealed }        // read the terminal's scrollback, search it and copy of it
	Open      struct{ sealed }        // what is selected
	Back      struct{ sealed }        // leave: dialog, zoom, pane, screen
	Help      struct{ sealed }        // every key of this place
	Tour      struct{ End bool }      // begin the tour, go on with it, or end it
	Turn      struct{ By int }        // help: the next or previous page
	Palette   struct{ sealed }        // every command by name
	Themes    struct{ sealed }        // choose a theme, which is seen at once
	Theme     struct{ Name string }   // this one
	Facts     struct{ sealed }        // what holds for this session
	Detach    struct{ sealed }        // leave the session running
	Home      struct{ sealed }        // to the list of sessions
	Quit      struct{ sealed }        // leave stepbox
	New       struct{ sealed }        // start a session
	Leader    struct{ sealed }        // send the leader key itself to the agent
	Scope     struct{ sealed }        // changes: session, since looked at last, or selected action
	Looked    struct{ sealed }        // changes: what is shown has been looked at
	Toggle    struct{ sealed }        // select what the cursor is on, or no longer; in plans: the next choice
	ToggleAll struct{ sealed }        // changes: select all, or nothing
	Hunk      struct{ By int }        // changes: the next or previous hunk
	Beside    struct{ By int }        // changes: scroll the diff from the list, or move in the list from the diff
	Sides     struct{ sealed }        // changes: side by side, or unified
	Flat      struct{ sealed }        // changes: a tree, or a list of files
	Fold      struct{ sealed }        // actions: show or hide housekeeping
	Raw       struct{ sealed }        // decision: the arguments as they are
	HeldStep  struct{ By int }        // the next or previous held thing
	Filter    struct{ sealed }        // ask which rows of the list are shown
	Match     struct{ By int }        // the next or previous row that the filter has
	Related   struct{ To Pane }       // what belongs to what is selected, in another pane
	Return    struct{ sealed }        // to where one was before that
	FirstHeld struct{ sealed }        // open the first question, without answering it
	Quick     struct{ Yes bool }      // answer the question that the Actions strip shows
)

// Reading the terminal's scrollback.
type (
	HalfPage  struct{ By int } // half pages up or down
	LineStart struct{ sealed }
	LineEnd   struct{ sealed }
	Word      struct { // the next or previous word's beginning, or the end of this one or the next
		By  int
		End bool
	}
	SelectText struct{ Mode int }  // by characters, lines or as a block, as package selection has them
	OtherEnd   struct{ sealed }    // of what is selected
	Printed    struct{ sealed }    // to where the selected action began
	Find       struct{ Back bool } // type what to search for, down or up
)

// Deciding.
type (
	Approve     struct{ Keep bool } // Keep: what it changes is kept without a question
	Deny        struct{ sealed }
	Always      struct{ sealed } // approve, and make a rule of it
	Extent      struct{ By int } // for how long an answer is to hold: the next or the one before
	Forget      struct{ sealed } // take the newest rule back
	Rules       struct{ sealed } // list those that were made in this session
	StepInto    struct{ sealed }
	StepOver    struct{ sealed }
	Pause       struct{ sealed }
	Rollback    struct{ Later bool } // one action, or it and all later ones
	Keep        struct{ sealed }
	KillAction  struct{ sealed }
	KillSandbox struct{ sealed }
	SetMode     struct{ Mode api.Mode }
	Yes         struct{ sealed } // confirm what a dialog asks
)

// The agent's servers, and pages that it wants opened.
type (
	Publish   struct{ Port int } // of the sandbox
	Unpublish struct{ Port int } // no longer
	Copy      struct {           // to the clipboard
		Text string
		What string // in words, where that isn't the text itself
	}
	TakeOut     struct{ sealed }     // copy what is selected: a menu where that may be several things
	CopyDiff    struct{ sealed }     // of what is selected, as git apply takes it
	AgentCopies struct{ sealed }     // ask whether the agent may copy to the clipboard
	Edit        struct{ sealed }     // open the file in the person's editor, at its line
	Read        struct{ sealed }     // open the diff in the person's pager
	Browse      struct{ URL string } // open a page in the person's browser
	WebPage     struct {             // show a page's address, to open or copy it
		Page api.WebPage
		Open bool
	}
	DoPage struct{ WebPage } // do that
)

// Bringing work home, and back.
type (
	Apply   struct{ Without bool } // plan to write the selection to the project folder, or all but it
	Applies struct{ sealed }       // list the applies, to undo one
	Redo    struct{ sealed }       // bring again what was rolled back last
	// RollbackHome takes back what was changed in a home of the session's own.
	RollbackHome struct{ sealed }
	Export       struct{ sealed } // write a patch of the session
	Resume       struct{ sealed } // go on over the files of a session that has ended
)

// Looking at what was.
type (
	Replay     struct{ sealed }           // at the newest moment
	Jump       struct{ sealed }           // to when what is selected began
	Play       struct{ sealed }           // go on from there, or stand still
	Seek       struct{ By time.Duration } // on or back
	ActionStep struct{ By int }           // to the next or previous action
	FrameStep  struct{ By int }           // to the next or previous piece of output
	Speed      struct{ By int }           // faster or slower
	Beginning  struct{ sealed }           // of the session
	Present    struct{ sealed }           // back to how it stands now
	Search     struct{ sealed }           // ask what to search for; in the list of sessions, also which are listed
	SearchFor  struct{ Text string }      // the line of that
	Hit        struct{ By int }           // to the next or previous place that was found
)

// In the list of sessions.
type (
	Demo  struct{ sealed } // start the demo
	Begin struct {         // start a session as it was chosen
		Folder string
		Argv   []string // nil: the person's shell
		Mode   api.Mode
		Name   string // "": the folder's
	}
	Order   struct{ sealed }        // the next order of the list
	Here    struct{ sealed }        // only those of this folder, or all
	Place   struct{ By int }        // the next or previous place that has what was searched
	Fork    struct{ At api.Moment } // start another on its files as they were; At "" is where the screen is
	Preview struct{ sealed }        // show what the selected one did, or don't
	Rename  struct{ sealed }        // give it another name
	Tag     struct{ sealed }        // edit its tags
	Note    struct{ sealed }        // edit its note
	Pin     struct{ sealed }        // keep it whatever the rules of retention say, or no longer
	Trash   struct{ sealed }        // put it into the trash
	Restore struct{ sealed }        // not, after all
	Label   struct {                // what is said of a session, as it was edited
		Session string
		Is      api.Label
	}
)

// Files as they were, and what broke something.
type (
	View   struct{ sealed } // read the file as it was
	Blame  struct{ sealed } // with who wrote each line
	Save   struct{ sealed } // ask where the file is saved
	SaveAs struct {         // the line of that
		Key, Name string
		At        api.Moment
	}
	GoTo      struct{ Action int }     // select an action
	Bisect    struct{ sealed }         // ask for the command that fails
	BisectFor struct{ Command string } // the line of that
)

// In a plan.
type (
	Choose   struct{ Way api.Way } // resolve a conflict
	Seen     struct{ sealed }      // what is unreviewed was looked at
	Commits  struct{ sealed }      // fetch the agent's commits too, or not
	AddCheck struct{ sealed }
	Again    struct{ sealed } // make the plan anew
)

// Results of plans. What they are of is the plan that is open.
type (
	Replan   struct{ sealed } // the choices aren't those of the plan that is shown
	CarryOut struct{ sealed } // do what is shown
	Stop     struct{ sealed } // cancel that
	AskCheck struct {         // edit a check
		At      int
		Command string
	}
	SetCheck struct { // it was edited
		At      int
		Command string
	}
	UndoApply struct{ ID int64 } // plan to undo an apply
)

// Results of dialogs: what was decided, bound to what was shown.
type (
	// Decide answers the question with that ID whose content had that Hash when
	// it was on the screen.
	Decide struct {
		Question int64
		Hash     string
		Answer   api.Answer
		Reason   string
		For      api.Extent // "" is once
		Equal    bool       // it is for all that read the same, too
		Pattern  string     // of the rule that it becomes; "": exactly what was asked about
	}
	// AskRule opens what asks which rule the answer to a question becomes.
	AskRule struct {
		Question int64
		Print    string
	}
	// MakeRule makes a rule on what was not asked about, DropRule takes one back.
	MakeRule struct{ Rule api.Rule }
	DropRule struct{ Rule api.Rule }
	// AskReason opens the input for the reason of a denial of a question with all
	// its text, whose fingerprint was Print, and with Equal of those that read the same.
	AskReason struct {
		Question int64
		Print    string
		Equal    bool
	}
	// ExportTo writes a patch of a session to a new file.
	ExportTo struct{ Session, File string }
	// AskBack opens the plan that takes an edit back that waits.
	AskBack struct{ Question int64 }
	// DoResume goes on with the session that was asked about.
	DoResume struct{ sealed }
	// DoFork starts the fork that was asked about.
	DoFork struct{ sealed }
	// DoKill kills an action's processes, or for Action 0 the whole sandbox: of the session
	// that is shown, or in the list of this one.
	DoKill struct {
		Action  int
		Session string
	}
	// DoMode follows another mode.
	DoMode struct{ Mode api.Mode }
	// DoCopies lets the session's agent copy to the person's clipboard from now on, first
	// the text that was shown; "" is none.
	DoCopies struct{ Text string }
	// Run is a command picked from the palette.
	Run struct{ Intent Intent }
)

// Decides says whether an intent answers a question.
func Decides(i Intent) bool {
	switch i.(type) {
	case Approve, Always, Deny, StepInto, StepOver, Keep, Rollback:
		return true
	}
	return false
}

// Asks says whether an intent opens a plan, or asks once more, before anything is decided.
func Asks(i Intent) bool {
	switch i.(type) {
	case Rollback, Deny, Always, KillAction, KillSandbox, Apply, Applies, Redo, RollbackHome, Export, Resume, Fork, Quick:
		return true
	}
	return false
}

// Acts says whether an intent changes something of a session or of its project.
func Acts(i Intent) bool {
	switch i.(type) {
	case Quick, KillAction, KillSandbox, Pause, SetMode, Apply, Applies, Redo, RollbackHome, Publish, Unpublish, WebPage, AgentCopies, Resume, Forget:
		return true
	}
	return Decides(i)
}

// AnswerTo is the answer that an intent gives at once, or "".
func AnswerTo(i Intent) api.Answer {
	switch i := i.(type) {
	case Approve:
		if i.Keep {
			return api.AnswerApproveKeep
		}
		return api.AnswerApprove
	case StepInto:
		return api.AnswerStepInto
	case StepOver:
		return api.AnswerStepOver
	case Keep:
		return api.AnswerKeep
	}
	return ""
}

func (Publish) intent()    {}
func (Unpublish) intent()  {}
func (Copy) intent()       {}
func (Browse) intent()     {}
func (WebPage) intent()    {}
func (Begin) intent()      {}
func (Fork) intent()       {}
func (HalfPage) intent()   {}
func (Word) intent()       {}
func (SelectText) intent() {}
func (Find) intent()       {}
func (Focus) intent()      {}
func (FocusStep) intent()  {}
func (FocusTo) intent()    {}
func (Resize) intent()     {}
func (Arrange) intent()    {}
func (Theme) intent()      {}
func (Tour) intent()       {}
func (Turn) intent()       {}
func (Move) intent()       {}
func (Page) intent()       {}
func (Slide) intent()      {}
func (Scroll) intent()     {}
func (HeldStep) intent()   {}
func (Match) intent()      {}
func (Related) intent()    {}
func (Hunk) intent()       {}
func (Beside) intent()     {}
func (Approve) intent()    {}
func (Rollback) intent()   {}
func (SetMode) intent()    {}
func (Decide) intent()     {}
func (AskReason) intent()  {}
func (AskRule) intent()    {}
func (AskBack) intent()    {}
func (ExportTo) intent()   {}
func (Quick) intent()      {}
func (MakeRule) intent()   {}
func (DropRule) intent()   {}
func (Extent) intent()     {}
func (Apply) intent()      {}
func (Choose) intent()     {}
func (AskCheck) intent()   {}
func (SetCheck) intent()   {}
func (UndoApply) intent()  {}
func (Place) intent()      {}
func (Label) intent()      {}
func (DoKill) intent()     {}
func (DoMode) intent()     {}
func (DoCopies) intent()   {}
func (Run) intent()        {}
func (Seek) intent()       {}
func (ActionStep) intent() {}
func (FrameStep) intent()  {}
func (Speed) intent()      {}
func (SearchFor) intent()  {}
func (Hit) intent()        {}
func (SaveAs) intent()     {}
func (GoTo) intent()       {}
func (BisectFor) intent()  {}
