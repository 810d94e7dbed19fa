package dialog

import (
	"cmp"
	"path"
	"strings"

	tea "charm.land/bubbletea/v2"
	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/session/api"
	"stepbox/themes"
	"stepbox/ui/intent"
	"stepbox/ui/keys"
	"stepbox/ui/paint"
	"stepbox/ui/state"
)

// Entry takes a line of text: a name, tags, a note, a command, what is searched for.
// Where what follows from it can be refused, it stays open until that is known.
type Entry struct {
	sheet
	Title, About string
	Empty        string       // what stands in the line while nothing does
	Yes          string       // what enter does
	Shown        state.Target // what enter decides, or writes on the host; zero: nothing
	// Do makes of the text what follows from it: nil while that is nothing.
	Do func(text string) intent.Intent

	line Line
	sent bool   // what follows is under way: the text stays as it is
	why  string // what was sent last was refused, or ""
}

// Begin opens the line with a text, of at most so many bytes.
func (e *Entry) Begin(text string, most int) *Entry {
	e.line = NewLine(most)
	e.line.Insert(text)
	return e
}

func (e *Entry) Scope() keys.Scope    { return keys.Input }
func (e *Entry) Fail(words string)    { e.sent, e.why = false, words }
func (e *Entry) Target() state.Target { return e.Shown }

// Care: what decides, or writes on the host, must have been in view, with what the line begins with; the
// keyboard needn't be quiet, as it is typed and then sent.
func (e *Entry) Care(i intent.Intent) state.Care {
	if _, yes := i.(intent.Yes); yes && e.Shown != (state.Target{}) {
		return state.InView
	}
	return state.AtOnce
}

func (e *Entry) Type(k tea.KeyPressMsg) {
	if !e.sent {
		e.line.Type(k)
	}
}

func (e *Entry) Paste(s string) {
	if !e.sent {
		e.line.Insert(s)
	}
}

// Handle hands the text over or goes back.
func (e *Entry) Handle(i intent.Intent) intent.Intent {
	switch i.(type) {
	case intent.Back:
		return i
	case intent.Yes:
		if e.sent {
			return nil
		}
		do := e.Do(e.line.Value())
		e.sent, e.why = do != nil, ""
		return do
	}
	return nil
}

func (e *Entry) Draw(area uv.Rectangle, f paint.Frame) *tea.Cursor {
	b := e.begin(f, area, 92)
	b.gap()
	b.say(e.About, themes.SurfaceMuted)
	return e.ask(b, area, f, titled(e.Title), []paint.Hint{hint(intent.Yes{}, keys.Input, e.Yes, e.sent), leave("back")}, text{})
}

// ask draws the rows and, below them, the line and why what it had was refused.
func (e *Entry) ask(b *paper, area uv.Rectangle, f paint.Frame, title []text, hints []paint.Hint, note text) *tea.Cursor {
	b.gap()
	b.gap()
	line := len(b.rows)
	if e.why != "" {
		b.say("! "+paint.Clean(e.why), themes.Warn)
	}
	e.top = len(b.rows) // where there isn't room for all, the line is what stays
	in := e.draw(b, area, f, title, hints, note)
	return e.line.Draw(f, in.Min.X, in.Max.Y-1-(len(b.rows)-line), in.Max.X, e.Empty)
}

// NewSaveFile asks where the file that is read is saved, with a name to begin with.
func NewSaveFile(f *File) *Entry {
	name, _ := api.PathOf(f.Key)
	return (&Entry{
		Shown: confirms("save " + f.Key),
		Title: "Save this file as it was", Empty: "a file's name", Yes: "save",
		About: "It is written on your own machine, outside of the session, below the folder that Stepbox was started in, or where the name leads. Nothing is written over.",
		Do:    something(func(name string) intent.Intent { return intent.SaveAs{Key: f.Key, At: f.At, Name: name} }),
	}).Begin(path.Base(name), 4000)
}

// NewExport asks which file a session's patch is written to. The name is relative to the folder,
// which is "" where it isn't known.
func NewExport(s api.Session, folder string) *Entry {
	what := "All that it changed"
	if n := s.Changed; n > 0 && !s.Live() {
		what += ", " + paint.Files(n)
	}
	return (&Entry{
		Shown: confirms("export " + s.ID),
		Title: "Write a patch of " + paint.Clean(label(s)), Empty: "a file's name", Yes: "write it",
		About: what + ": git apply takes it. It is written on your own machine, to " + cmp.Or(paint.Clean(folder), "the folder that Stepbox was started in") + ", or where the name leads. Nothing is written over.",
		Do:    something(func(name string) intent.Intent { return intent.ExportTo{Session: s.ID, File: name} }),
	}).Begin(label(s)+".patch", 4000)
}

// NewSearch asks what is to be searched for in a session.
func NewSearch() *Entry {
	return (&Entry{
		Title: "Search this session", Empty: "type some words; " + keys.First(intent.Hit{By: 1}, keys.Replay) + " and " + keys.First(intent.Hit{By: -1}, keys.Replay) + " go through the places", Yes: "search",
		About: "Words of commands, paths, hosts, or the terminal's text.",
		Do:    something(func(words string) intent.Intent { return intent.SearchFor{Text: words} }),
	}).Begin("", 200)
}

// maxCheck bounds a check's command, in bytes.
const maxCheck = 2000

// NewCheck asks for the command of a check of the plan below. What is typed runs
// nothing before the plan that has it is confirmed.
func NewCheck(ask intent.AskCheck) *Entry {
	return (&Entry{
		Title: "A check", Empty: "type a command", Yes: "take it into the plan",
		About: "A shell command that must succeed, as go test ./... does. It runs without network, in a sandbox of its own, on exactly what would be in the project folder.",
		Do:    func(command string) intent.Intent { return intent.SetCheck{At: ask.At, Command: command} },
	}).Begin(ask.Command, maxCheck)
}

// something makes of a text without blanks around it what follows, and of none nothing.
func something(do func(string) intent.Intent) func(string) intent.Intent {
	return func(s string) intent.Intent {
		if s = strings.TrimSpace(s); s == "" {
			return nil
		}
		return do(s)
	}
}

// ConfirmResume asks before a session that has ended goes on.
func ConfirmResume(s api.Session) *Confirm {
	return &Confirm{
		Title: "Resume " + paint.Clean(label(s)) + "?", Do: intent.DoResume{}, YesFor: "resume it",
		Shown: confirms("resume " + s.ID),
		build: runs(s, "Its command runs again in a sandbox of its own, over the files as the session left them. Its actions and checkpoints stay."),
	}
}

// ConfirmTrash asks before a session goes that is pinned, or has what the project hasn't.
func ConfirmTrash(s api.Session, do intent.Intent) *Confirm {
	var why []string
	if s.Pinned {
		why = append(why, "It is pinned.")
	}
	if s.Unapplied > 0 {
		why = append(why, paint.Count(s.Unapplied, "file that it changed isn't", "files that it changed aren't")+" in the project, and can't be had back without it.")
	}
	if s.Unfetched != "" {
		why = append(why, "It has what was never fetched: "+paint.Clean(s.Unfetched)+"; an apply with commits fetches it, or says what it can't.")
	}
	if s.Undone != "" {
		why = append(why, "It put back what it had committed, and didn't commit that: "+paint.Clean(s.Undone)+".")
	}
	return &Confirm{
		Title: "Put " + paint.Clean(label(s)) + " into the trash?", Do: do, YesFor: "trash it",
		Shown: confirms("trash " + s.ID),
		build: says(strings.Join(why, " ")+" It is removed when you leave Stepbox; until then u brings it back.", themes.Warn),
	}
}

// ConfirmFork asks before a session starts on the files that another had at a moment, in
// words; "" is its newest state.
func ConfirmFork(s api.Session, when string) *Confirm {
	switch {
	case when != "":
	case s.Live():
		when = "now"
	default:
		when = "its end"
	}
	return &Confirm{
		Title: "Fork " + paint.Clean(label(s)) + " at " + when + "?", Do: intent.DoFork{}, YesFor: "fork it",
		Shown: confirms("fork " + s.ID),
		build: runs(s, "Its command starts as a session of its own, on the files as they were then. What was in memory, in /tmp and on connections isn't there."),
	}
}

// runs says how a session's command runs, and shows it.
func runs(s api.Session, how string) passage {
	return func(b *paper) {
		b.say(how, themes.Surface)
		b.gap()
		b.command(s.Command)
	}
}

func label(s api.Session) string { return cmp.Or(s.Name, s.ID) }
