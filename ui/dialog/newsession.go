package dialog

import (
	"path/filepath"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/session/api"
	"stepbox/themes"
	"stepbox/ui/intent"
	"stepbox/ui/keys"
	"stepbox/ui/paint"
)

// Choice is something that can be chosen for a new session.
type Choice struct {
	Value string   // a folder, a mode, or an agent's name
	Words string   // what it is, beside it
	Argv  []string // of an agent; nil is the person's shell
}

// field is one thing to be said of a new session: chosen from a list, typed, or both.
type field struct {
	name    string
	line    *Line // nil: it can't be typed
	empty   string
	choices []Choice
	at      int
}

// The fields of a new session.
const (
	fieldProject = iota
	fieldAgent
	fieldMode
	fieldName
	fields
)

// Bounds of what is typed in bytes, and of a list's rows in view.
const (
	maxFolder  = 4096
	maxName    = 256
	mostListed = 6
)

// NewSession asks what a new session is to be. Enter starts it from any of its fields, with
// what is chosen: nothing has to be.
type NewSession struct {
	sheet
	home    string // the person's, for ~
	fields  [fields]field
	at      int
	recent  []Choice // projects
	lacks   string   // the folder whose folders are to be listed
	in      string   // the folder that was listed
	folders []string // of that
	sent    bool
	why     string // it wasn't started, or ""
}

// modeChoices are the modes that can be chosen, with what each does.
func modeChoices() (out []Choice) {
	for _, m := range []api.Mode{api.ModeStep, api.ModePolicy, api.ModeWatch} {
		out = append(out, Choice{Value: string(m), Words: ModeWords(m)})
	}
	return out
}

// NewNewSession opens it with the projects that can be chosen, the first of which is the
// usual one; home is the person's home folder.
func NewNewSession(home string, projects []Choice, mode api.Mode) *NewSession {
	folder, name := NewLine(maxFolder), NewLine(maxName)
	n := &NewSession{home: home, recent: projects}
	n.fields = [fields]field{
		fieldProject: {name: "project", line: &folder, empty: "type a folder", choices: projects},
		fieldAgent:   {name: "agent", choices: []Choice{{Value: "your shell"}}},
		fieldMode:    {name: "mode", choices: modeChoices()},
		fieldName:    {name: "name", line: &name, empty: "the folder's"},
	}
	m := &n.fields[fieldMode]
	m.at = max(0, slices.IndexFunc(m.choices, func(c Choice) bool { return c.Value == string(mode) }))
	return n
}

// SetAgents takes the agents that can be chosen, of which one is the usual one.
func (n *NewSession) SetAgents(all []Choice, usual string) {
	f := &n.fields[fieldAgent]
	f.choices = append(slices.Clone(all), Choice{Value: "your shell"})
	f.at = slices.IndexFunc(f.choices, func(c Choice) bool { return c.Value == usual })
	if f.at < 0 {
		f.at = len(f.choices) - 1
	}
}

func (n *NewSession) Scope() keys.Scope { return keys.Form }
func (n *NewSession) Leave() string     { return "back, nothing started" }
func (n *NewSession) Fail(words string) { n.sent, n.why = false, words }
func (n *NewSession) Wheel(int)         {}

// Lacks is a folder whose folders the list of projects lacks, once; "" is none.
func (n *NewSession) Lacks() string {
	dir := n.lacks
	n.lacks = ""
	return dir
}

// SetFolders takes the folders of a folder.
func (n *NewSession) SetFolders(dir string, names []string) {
	n.in, n.folders = dir, names
	n.complete()
}

// Type takes text for the field that has the keys.
func (n *NewSession) Type(k tea.KeyPressMsg) {
	n.edit(func(l *Line) { l.Type(k) })
}

// Paste takes pasted text for it.
func (n *NewSession) Paste(s string) {
	n.edit(func(l *Line) { l.Insert(s) })
}

func (n *NewSession) edit(how func(*Line)) {
	f := &n.fields[n.at]
	if f.line == nil || n.sent {
		return
	}
	before := f.line.Value()
	how(f.line)
	if n.why = ""; n.at != fieldProject || f.line.Value() == before {
		return
	}
	if dir := n.folder(); dir != n.in {
		n.lacks, n.in, n.folders = dir, dir, nil
	}
	f.at = 0
	n.complete()
}

// expand is a folder as it was typed, whole.
func (n *NewSession) expand(s string) string {
	if rest, ok := strings.CutPrefix(s, "~"); ok && n.home != "" && (rest == "" || rest[0] == '/') {
		return n.home + rest
	}
	return s
}

// folder is the one that what is typed is completed in.
func (n *NewSession) folder() string {
	dir, _ := filepath.Split(n.expand(n.fields[fieldProject].line.Value()))
	return dir
}

// complete lists what fits to what is typed: that itself, folders that begin so, and projects
// that have it in their names.
func (n *NewSession) complete() {
	f := &n.fields[fieldProject]
	typed := strings.TrimSpace(f.line.Value())
	if typed == "" {
		f.choices = n.recent
		return
	}
	f.choices = []Choice{{Value: n.expand(typed)}}
	dir, begin := filepath.Split(n.expand(typed))
	for _, name := range n.folders {
		if strings.HasPrefix(name, begin) && (begin != "" || name[0] != '.') {
			f.choices = append(f.choices, Choice{Value: dir + name})
		}
	}
	for _, c := range n.recent {
		if strings.Contains(filepath.Base(c.Value), typed) {
			f.choices = append(f.choices, c)
		}
	}
	f.at = max(0, min(f.at, len(f.choices)-1))
}

func (f *field) chosen() Choice {
	if f.at < len(f.choices) {
		return f.choices[f.at]
	}
	if f.line != nil {
		return Choice{Value: strings.TrimSpace(f.line.Value())}
	}
	return Choice{}
}

// Handle chooses, and starts.
func (n *NewSession) Handle(i intent.Intent) intent.Intent {
	f := &n.fields[n.at]
	switch i := i.(type) {
	case intent.Back:
		return i
	case intent.Move:
		f.at = max(0, min(f.at+i.By, len(f.choices)-1))
	case intent.FocusStep:
		if n.at == fieldProject && i.By > 0 && f.line.Value() != "" && f.at > 0 { // takes what is chosen into the line first
			f.line.SetValue("")
			n.edit(func(l *Line) { l.Insert(f.chosen().Value + "/") })
			return nil
		}
		n.at = (n.at + i.By + fields) % fields
	case intent.Yes:
		if n.sent {
			return nil
		}
		n.sent, n.why = true, ""
		agent := n.fields[fieldAgent].chosen()
		return intent.Begin{
			Folder: n.fields[fieldProject].chosen().Value, Argv: agent.Argv,
			Mode: api.Mode(n.fields[fieldMode].chosen().Value), Name: n.fields[fieldName].chosen().Value,
		}
	}
	return nil
}

func (n *NewSession) Draw(area uv.Rectangle, f paint.Frame) *tea.Cursor {
	b, at := n.begin(f, area, 92), 0
	const column = 10
	b.gap()
	for i := range n.fields {
		fd := &n.fields[i]
		value, k := paint.Clean(fd.chosen().Value), themes.Surface
		if value == "" {
			value, k = fd.empty, themes.SurfaceMuted
		}
		name := text{b.pad(fd.name, column), themes.SurfaceMuted}
		if i != n.at {
			b.line(name, text{value, k})
			continue
		}
		name.k, at = themes.Key, len(b.rows)
		if fd.line != nil {
			value = "" // the line is drawn there
		}
		b.line(name, text{value, themes.Strong})
		b.choices(fd, column)
	}
	b.gap()
	if n.why != "" {
		b.say("! "+paint.Clean(n.why), themes.Warn)
	}
	hints := []paint.Hint{
		hint(intent.Yes{}, keys.Form, "start", n.sent), {Key: "↑↓", Words: "choose"},
		hint(intent.FocusStep{By: 1}, keys.Form, "next field", false), leave("back"),
	}
	note := text{}
	if n.sent {
		note = text{"⋯ starting", themes.Info}
	}
	n.top = 0
	in := n.draw(b, area, f, titled("New session"), hints, note)
	if l := n.fields[n.at].line; l != nil && in.Min.Y+at < in.Max.Y {
		return l.Draw(f, in.Min.X+column, in.Min.Y+at, in.Max.X, n.fields[n.at].hint())
	}
	return nil
}

// hint stands in an empty line.
func (f *field) hint() string {
	if len(f.choices) > 0 {
		return f.empty + ", or choose below"
	}
	return f.empty
}

// choices adds those of a field that are in view.
func (b *paper) choices(f *field, indent int) {
	first := max(0, min(f.at-mostListed/2, len(f.choices)-mostListed))
	for i := first; i < min(first+mostListed, len(f.choices)); i++ {
		c := f.choices[i]
		mark, k := "○ ", themes.Surface
		if i == f.at {
			mark, k = "● ", themes.Strong
		}
		words := paint.Clean(c.Value)
		if over := paint.Width(b.dst, words) - (b.width-indent)*2/3; over > 0 { // a folder's end says more
			words = "…" + paint.From(b.dst, words, over+1)
		}
		b.add(row{indent: indent, spans: []text{{mark, themes.Key}, {words, k}, {"  " + c.Words, themes.SurfaceMuted}}})
	}
}
