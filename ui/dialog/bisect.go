package dialog

import (
	"cmp"

	tea "charm.land/bubbletea/v2"
	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/session/api"
	"stepbox/themes"
	"stepbox/ui/intent"
	"stepbox/ui/keys"
	"stepbox/ui/paint"
)

// Bisect asks for a command, tells how the search for the action goes that broke it,
// and what was found.
type Bisect struct {
	Entry
	session api.Session
	how     []string // what was found out so far
	done    *api.Bisected
	diffs   []api.FileDiff // of the action that broke it
}

// NewBisect asks for the command that a session broke.
func NewBisect(s api.Session) *Bisect {
	d := &Bisect{Entry: Entry{Empty: "type a command", Do: something(func(c string) intent.Intent { return intent.BisectFor{Command: c} })}, session: s}
	d.Begin("", maxCheck)
	return d
}

// found is the action that broke it, when it is one.
func (d *Bisect) found() int {
	if d.done != nil && len(d.done.Steps) == 1 && len(d.done.Steps[0].Actions) > 0 {
		return d.done.Steps[0].Actions[0]
	}
	return 0
}

// Scope is a line's, until there is an answer to be read.
func (d *Bisect) Scope() keys.Scope {
	if d.done != nil {
		return keys.Found
	}
	return d.Entry.Scope()
}

// Handle begins the search, goes to what was found, or leaves, which ends a search.
func (d *Bisect) Handle(i intent.Intent) intent.Intent {
	if _, yes := i.(intent.Yes); yes && d.found() != 0 {
		return intent.GoTo{Action: d.found()}
	}
	if d.done != nil {
		return d.sheet.Handle(i)
	}
	return d.Entry.Handle(i)
}

// Tell takes word of how it goes: all that was found out so far.
func (d *Bisect) Tell(how []string) { d.how = how }

// End takes the answer with what the action changed, or why there is none.
func (d *Bisect) End(b *api.Bisected, diffs []api.FileDiff, problem string) {
	if b != nil && b.No != "" {
		problem = b.No
	}
	if problem != "" {
		d.how = nil
		d.Fail(problem)
		return
	}
	d.done, d.diffs, d.top = b, diffs, 0
}

func (d *Bisect) Draw(area uv.Rectangle, f paint.Frame) *tea.Cursor {
	b, title := d.begin(f, area, 100), titled("Find what broke this")
	b.gap()
	if !d.sent {
		b.say("A shell command that passed before the session's actions and fails now, as go test ./... may. It runs in throw-away sandboxes without a network, on the files as they were after one action and another.", themes.SurfaceMuted)
		return d.ask(b, area, f, title, []paint.Hint{hint(intent.Yes{}, keys.Input, "find it", false), leave("back")}, text{})
	}
	b.command(d.line.Value())
	b.gap()
	how := d.how
	if d.done == nil { // then all of it is scrolled
		how = how[max(0, len(how)-max(3, area.Dy()-16)):]
	}
	for _, w := range how {
		b.muted(b.short(w, b.width))
	}
	note, hints := text{"⋯ running it", themes.Info}, []paint.Hint{leave("stop")}
	if d.done != nil {
		there := "go there; " + keys.First(intent.Apply{Without: true}, keys.Actions) + " applies all but it"
		if d.session.Live() {
			there = "go there; " + keys.First(intent.Rollback{}, keys.Actions) + " rolls it back"
		}
		note, hints = text{}, []paint.Hint{hint(intent.Yes{}, keys.Found, there, d.found() == 0), hint(intent.Page{By: 1}, keys.Found, "scroll", false), leave("back")}
		b.gap()
		words := "This broke it:"
		if len(d.done.Steps) > 1 {
			words = "One of these broke it: what is between was skipped, or is flaky."
		}
		b.line(text{words, themes.Strong})
		for _, s := range d.done.Steps {
			b.say(s.Words(), themes.Denied)
			if s.Said != "" {
				b.say("said: "+s.Said, themes.SurfaceMuted)
			}
		}
		for _, f := range d.diffs {
			b.gap()
			b.line(text{f.Change.Status + " " + paint.Clean(f.Change.Path), themes.Strong})
			if len(f.Hunks) == 0 {
				b.muted(cmp.Or(paint.Clean(f.Note), f.Change.Words, "no lines differ"))
			}
			b.hunks(f.Hunks, mostRows)
		}
		if n := len(d.done.Inexact) + d.done.InexactMore; n > 0 {
			b.say(paint.Files(n)+" can't be had as then, and were as they are now: "+d.done.Inexact[0].Path, themes.Warn)
		}
	}
	b.gap()
	d.draw(b, area, f, title, hints, note)
	return nil
}
