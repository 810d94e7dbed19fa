// Package ui is Stepbox's terminal interface: the list of sessions, the
// workbench of one, and the program that runs them.
//
// There is one tea.Model; screens and panes are plain structs that draw into
// cells and handle intents. Updating never does IO, and commands never change
// state: they fetch, and return what they found as a message. Keys for the agent
// are not commands, whose order isn't kept; they go through a Link's queue.
//
// What comes out of a sandbox is hostile. It is escaped by whoever serves the
// API, again when it is drawn, and it can't move the cursor, name a link or
// answer a question.
//
// The package knows sessions only through link.Client, and terminals only
// through link.Emulator.
package ui

import (
	"context"
	"io"
	"time"

	"stepbox/session/api"
	"stepbox/ui/config"
	"stepbox/ui/dialog"
	"stepbox/ui/intent"
	"stepbox/ui/kept"
	"stepbox/ui/link"
)

// Replay is where a session's replay begins. Without a moment it plays from the start.
type Replay struct {
	At    api.Moment
	Speed float64 // so many seconds in one
}

// Options say what the interface works with. Client, NewTerminal, Config and Kept are needed.
type Options struct {
	Client      link.Client
	NewTerminal link.NewEmulator
	Session     string   // the session to join; empty for the list
	Replay      *Replay  // begin with the session's replay; nil shows it as it is
	ThemeDir    string   // a folder of the person's own themes, or empty
	Folders     []string // something in them changes whenever the list of sessions does
	Here        string   // the folder that the program runs in, exact; empty where that isn't known
	Version     string   // shown on the list
	Watching    bool     // nothing is decided, typed or changed from here
	NoTour      bool     // the session itself shows around
	NoFarewell  bool     // the caller has the last word on where Session went

	// Config is what the person has set. Its keys are in force by the caller's
	// word. Reload reads it anew once its file has changed, off the drawing goroutine.
	Config *config.Config
	Reload func() *config.Config

	// Kept has what is remembered from one run to the next.
	Kept kept.Folder

	// Begin makes the session to join, while the interface says so already, and returns its
	// ID; nil where that is Session. It runs off the drawing goroutine and has returned when
	// Run does: its context is done when the person leaves. Its error is Run's, as it is.
	Begin func(ctx context.Context) (id string, err error)

	// Start starts a session as it was chosen and returns its ID; nil when none can be
	// started. It runs off the drawing goroutine.
	Start func(ctx context.Context, b intent.Begin) (id string, err error)
	// Agents are the agents that are installed here; nil: nobody looks. It runs off the
	// drawing goroutine.
	Agents func(ctx context.Context) []dialog.Choice
	// Demo starts the demo's session; nil where that can't be done.
	Demo func(ctx context.Context) (id string, err error)

	// Resume has a session go on that has ended, and returns its ID; nil when none
	// can. It runs off the drawing goroutine.
	Resume func(ctx context.Context, session string) (id string, err error)
	// Fork starts a session on the files that another had at a moment, with the rules
	// and the command of that one, and returns its ID; nil when none can be started.
	Fork func(ctx context.Context, session string, at api.Moment) (id string, err error)
	// Export writes a session's changes as a patch to a new file of the person's; nil
	// where that can't be done. It runs off the drawing goroutine.
	Export func(ctx context.Context, session, file string) error

	// Save writes a session's file as it was at a moment to a new file of the person's. It
	// runs off the drawing goroutine.
	Save func(ctx context.Context, session, key string, at api.Moment, name string) error

	// Copy fills the person's clipboard with a program of theirs, in the way that the
	// setting of Config says, and names the program; "" where there is none. Nil: never.
	// It runs off the drawing goroutine.
	Copy func(ctx context.Context, setting, text string) (by string, err error)

	// Browse opens a page in the person's browser; nil where there is none. It runs off the
	// drawing goroutine.
	Browse func(ctx context.Context, url string) error

	In      io.Reader                // nil for standard input
	Out     io.Writer                // nil for standard output
	Environ []string                 // nil for the process's own
	Now     func() time.Time         // nil for time.Now
	Getenv  func(name string) string // nil for os.Getenv
}
