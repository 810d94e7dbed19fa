// Package intent lists what a person can mean by a key or a click. Screens and
// panes handle intents, never keys, so that a binding can change without them.
//
// Intents are plain values. The set is sealed: a switch over them is a switch
// over everything that can be asked for.
package intent

import "stepbox/session/api"

// Intent is one thing a person asks for.
type Intent interface{ intent() }

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

// String is the pane's name.
func (p Pane) String() string {
	return [...]string{"", "Terminal", "Changes", "Network", "Actions"}[max(NoPane, min(p, Actions))]
}

// Moving about.
type (
	Focus     struct{ Pane Pane }    // give a pane the focus
	FocusStep struct{ By int }       // the next or previous pane
	FocusTo   struct{ DX, DY int }   // the pane in that direction
	Zoom      struct{}               // the focused pane alone, or all again
	SideCycle struct{}               // another side pane, where only one fits
	Split     struct{ By int }       // move the border between columns
	Move      struct{ By int }       // rows up or down
	Page      struct{ By int }       // pages up or down
	Top       struct{}               // the first row
	Bottom    struct{}               // the last row; lists follow again
	Slide     struct{ By int }       // columns left or right
	Scroll    struct{ Back, By int } // terminal: Back 1 up, -1 down, in pages when By is 0
	Open      struct{}               // what is selected
	Back      struct{}               // leave: dialog, zoom, pane, screen
	Help      struct{}               // every key of this place
	Palette   struct{}               // every command by name
	Facts     struct{}               // what holds for this session
	Detach    struct{}               // leave the session running
	Home      struct{}               // to the list of sessions
	Quit      struct{}               // leave stepbox
	New       struct{}               // start a session
	Leader    struct{}               // send the leader key itself to the agent
	Scope     struct{}               // changes: session or selected action
	Fold      struct{}               // actions: show or hide housekeeping
	Raw       struct{}               // decision: the arguments as they are
	HeldStep  struct{ By int }       // the next or previous held thing
	FirstHeld struct{}               // open the first question, without answering it
)

// Deciding.
type (
	Approve     struct{ Keep bool } // Keep: what it changes is kept without a question
	Deny        struct{}
	StepInto    struct{}
	StepOver    struct{}
	Continue    struct{}
	Pause       struct{}
	Rollback    struct{ Later bool } // one action, or it and all later ones
	Keep        struct{}
	KillAction  struct{}
	KillSandbox struct{}
	SetMode     struct{ Mode api.Mode }
	Yes         struct{}             // confirm what a dialog asks
	Unavailable struct{ Why string } // a key that is known and does nothing yet
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
	}
	// AskReason opens the input for the reason of a denial of a question with all
	// its text, whose fingerprint was Print.
	AskReason struct {
		Question int64
		Print    string
	}
	// DoRollback carries out the plan with that Hash, which was shown for an
	// action, or for it and all later ones.
	DoRollback struct {
		Action   int
		Later    bool
		ToBefore int
		Hash     string
	}
	// DoKill kills an action's processes, or for Action 0 the whole sandbox.
	DoKill struct{ Action int }
	// Run is a command picked from the palette.
	Run struct{ Intent Intent }
)

// Decides says whether an intent answers a question.
func Decides(i Intent) bool {
	switch i.(type) {
	case Approve, Deny, StepInto, StepOver, Keep, Rollback:
		return true
	}
	return false
}

func (Focus) intent()       {}
func (FocusStep) intent()   {}
func (FocusTo) intent()     {}
func (Zoom) intent()        {}
func (SideCycle) intent()   {}
func (Split) intent()       {}
func (Move) intent()        {}
func (Page) intent()        {}
func (Top) intent()         {}
func (Bottom) intent()      {}
func (Slide) intent()       {}
func (Scroll) intent()      {}
func (Open) intent()        {}
func (Back) intent()        {}
func (Help) intent()        {}
func (Palette) intent()     {}
func (Facts) intent()       {}
func (Detach) intent()      {}
func (Home) intent()        {}
func (Quit) intent()        {}
func (New) intent()         {}
func (Leader) intent()      {}
func (Scope) intent()       {}
func (Fold) intent()        {}
func (Raw) intent()         {}
func (HeldStep) intent()    {}
func (FirstHeld) intent()   {}
func (Approve) intent()     {}
func (Deny) intent()        {}
func (StepInto) intent()    {}
func (StepOver) intent()    {}
func (Continue) intent()    {}
func (Pause) intent()       {}
func (Rollback) intent()    {}
func (Keep) intent()        {}
func (KillAction) intent()  {}
func (KillSandbox) intent() {}
func (SetMode) intent()     {}
func (Yes) intent()         {}
func (Unavailable) intent() {}
func (Decide) intent()      {}
func (AskReason) intent()   {}
func (DoRollback) intent()  {}
func (DoKill) intent()      {}
func (Run) intent()         {}
