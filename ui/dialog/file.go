package dialog

import (
	"fmt"
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"
	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/ansi"

	"stepbox/session/api"
	"stepbox/themes"
	"stepbox/ui/intent"
	"stepbox/ui/keys"
	"stepbox/ui/paint"
	"stepbox/ui/syntax"
)

// maxFileColour bounds the bytes of a file that are coloured.
const maxFileColour = 256 << 10

// File reads a file as it was at a moment, with or without who wrote each line.
type File struct {
	sheet
	Key string     // the file's
	At  api.Moment // the moment

	blame api.Blame
	wide  int  // the longest line
	names int  // who has the longest name for the gutter
	who   bool // the gutter is shown
	at    int  // the line that the cursor is on
	lines [][]text
}

// NewFile opens the reading of a file.
func NewFile(b api.Blame, key string, at api.Moment, who bool) *File {
	d := &File{Key: key, At: at, blame: b, who: who}
	for _, a := range b.By {
		d.names = max(d.names, ansi.StringWidth(d.whose(a)))
	}
	colours, room := syntax.For(b.Path), maxFileColour
	for _, l := range b.Lines {
		words := paint.Clean(strings.ReplaceAll(l.Text, "\t", "    "))
		d.wide = max(d.wide, ansi.StringWidth(words))
		if room -= len(words); room < 0 {
			d.lines = append(d.lines, []text{{words, themes.Surface}})
			continue
		}
		var spans []text
		for _, s := range colours.Line(words) {
			k := s.Kind
			if k == themes.Text {
				k = themes.Surface
			}
			spans = append(spans, text{s.Text, k})
		}
		d.lines = append(d.lines, spans)
	}
	return d
}

func (d *File) Scope() keys.Scope { return keys.File }

// author is who wrote the line that the cursor is on.
func (d *File) author() (a api.Author) {
	if d.at < len(d.blame.Lines) {
		a = d.blame.By[d.blame.Lines[d.at].By]
	}
	return a
}

func (d *File) Why(i intent.Intent) string {
	a := d.author()
	switch _, open := i.(intent.Open); {
	case !open:
	case a.Session == "":
		return "no action wrote this line: it is the project's"
	case a.Action == 0:
		return a.Name + ", which this was forked from, or one before it wrote this: " + a.Title
	case a.Session != d.blame.Session:
		return "this session was forked from " + a.Name + ", which wrote it: stepbox log " + a.Session + " has its actions"
	}
	return ""
}

func (d *File) Handle(i intent.Intent) intent.Intent {
	switch i := i.(type) {
	case intent.Back, intent.Save, intent.TakeOut:
		return i
	case intent.Open:
		return intent.GoTo{Action: d.author().Action}
	case intent.Blame:
		d.who = !d.who
	case intent.Move:
		d.at += i.By
	case intent.Page:
		d.at += i.By * max(1, d.height-1)
	case intent.Top:
		d.at = 0
	case intent.Bottom:
		d.at = len(d.lines)
	}
	d.at = max(0, min(d.at, len(d.lines)-1))
	d.top = max(min(d.top, d.at), d.at-d.height+1)
	return nil
}

// Wheel moves the cursor: the view follows it.
func (d *File) Wheel(by int) { d.Handle(intent.Move{By: by}) }

func (d *File) Draw(area uv.Rectangle, f paint.Frame) *tea.Cursor {
	b := d.begin(f, area, 150)
	digits := len(strconv.Itoa(len(d.lines)))
	gutter := d.gutter(b.width - digits - 3)
	b.rows = make([]row, 0, len(d.lines))
	before := -1
	for i, spans := range d.lines {
		var r row
		if i < d.top || i > d.top+area.Dy() { // out of view
			b.add(r)
			continue
		}
		if by := d.blame.Lines[i].By; d.who {
			words := ""
			if by != before || i == d.top {
				words = d.whose(d.blame.By[by])
			}
			before = by
			r.spans = append(r.spans, text{b.pad(b.short(words, gutter-1), gutter), themes.SurfaceMuted})
		}
		mark := " "
		if r.inset = i == d.at; r.inset {
			mark = "›"
		}
		r.spans = append(r.spans, text{fmt.Sprintf("%*d %s ", digits, i+1, mark), themes.SurfaceMuted})
		r.spans = append(r.spans, spans...)
		b.add(r)
	}
	note := text{}
	a := d.author()
	switch {
	case d.blame.Note != "":
		b.rows = []row{{}, muted("it can't be shown line by line: " + d.blame.Note), {}}
	case len(b.rows) == 0:
		b.rows = []row{{}, muted("it is empty"), {}}
	case d.who && a.Session != "":
		note = text{d.whose(a), themes.Info}
		if !a.At.IsZero() {
			note.s = a.At.Local().Format("15:04:05") + "  " + note.s
		}
		if a.Said != "" {
			note.s = "“" + a.Said + "”  " + note.s
		}
	case d.who:
		note = text{"no action wrote it: it is the project's", themes.SurfaceMuted}
	}
	hints := Foot(keys.File, func(i intent.Intent) bool { return d.Why(i) != "" })
	title := []text{{d.blame.Path, themes.Strong}, {"  " + momentWords(d.At), themes.SurfaceMuted}}
	d.draw(b, area, f, title, hints, note)
	return nil
}

// gutter is how wide the names of who wrote lines are: as wide as the lines leave room
// for, or a third of it.
func (d *File) gutter(width int) int { return min(d.names+2, max(min(34, width/3), width-d.wide)) }

// whose names who wrote a line, for the gutter.
func (d *File) whose(a api.Author) string {
	words := "project"
	if a.Action != 0 {
		words = "#" + strconv.Itoa(a.Action)
		for _, n := range a.With {
			words += "/" + strconv.Itoa(n)
		}
		words += " " + a.Title
	} else if a.Session != "" {
		words = a.Title
	}
	if a.Session != "" && a.Session != d.blame.Session {
		words = a.Name + " " + words
	}
	return words
}

// momentWords say when a file was so.
func momentWords(m api.Moment) string {
	p, err := m.Parse()
	switch {
	case err != nil:
		return string(m)
	case p.Action != 0 && p.Before:
		return fmt.Sprintf("before #%d", p.Action)
	case p.Action != 0:
		return fmt.Sprintf("after #%d", p.Action)
	case p.Start:
		return "at the start"
	case p.Event != 0:
		return "as it was then"
	}
	return "as it is in the session"
}
