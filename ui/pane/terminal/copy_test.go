package terminal

import (
	"fmt"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/session/screen"
	"stepbox/ui/intent"
	"stepbox/ui/internal/cellstest"
	"stepbox/ui/keys"
	"stepbox/ui/link"
)

// reading is copy mode in a terminal that printed something, with so many rows in view.
func reading(t *testing.T, text string, cols, rows, height int) *Copy {
	t.Helper()
	emu := screen.New(cols, rows)
	_, _ = emu.Write([]byte(strings.ReplaceAll(text, "\n", "\r\n")))
	return newCopy(emu, height, max(0, rows-height))
}

// press presses keys of copy mode, and types where something is searched for. It returns
// what was copied.
func press(t *testing.T, c *Copy, all ...string) (text string, over bool, why string) {
	t.Helper()
	for _, name := range all {
		k := tea.KeyPressMsg{Code: []rune(name)[0], Text: name}
		switch name {
		case "enter":
			k = tea.KeyPressMsg{Code: tea.KeyEnter}
		case "esc":
			k = tea.KeyPressMsg{Code: tea.KeyEscape}
		default:
			if rest, ok := strings.CutPrefix(name, "ctrl+"); ok {
				k = tea.KeyPressMsg{Code: []rune(rest)[0], Mod: tea.ModCtrl}
			}
		}
		scope := keys.CopyMode
		if c.Asking() {
			scope = keys.Input
		}
		b, ok := keys.Find(k, scope)
		if !ok && c.Asking() {
			c.Type(k)
			continue
		}
		if !ok {
			t.Fatalf("%s is no key", name)
		}
		text, over, why = c.Handle(b.Intent)
	}
	return text, over, why
}

const prose = "first line here\nsecond  line: a/b.go:12 (x)\n\nlast 漢字 line\nend"

func TestCopyMode(t *testing.T) {
	wrapped := strings.Repeat("0123456789", 5) // 30 columns: two rows
	for _, tt := range []struct {
		name, text, keys string
		want             string
	}{
		{"a word", prose, "g v e y", "first"},
		{"two words", prose, "g v e e y", "first line"},
		{"to the next word", prose, "g w v e y", "line"},
		{"back a word", prose, "g w w b v e y", "line"},
		{"over an empty row", prose, "g j $ v w y", ")\n\nl"},
		{"a row", prose, "g j V y", "second  line: a/b.go:12 (x)"},
		{"rows", prose, "g V j j enter", "first line here\nsecond  line: a/b.go:12 (x)\n"},
		{"to the end of a row", prose, "g l l v $ y", "rst line here"},
		{"a block", prose, "g ctrl+v l l j y", "fir\nsec"},
		{"the other end", prose, "g w v e o h y", " line"},
		{"a wide character", prose, "G k 0 w v l y", "漢字"},
		{"left over a wide one", prose, "G k 0 w l h v y", "漢"},
		{"a wrapped line from its second row", wrapped + "\nx", "g j V y", wrapped},
		{"over the wrap", wrapped + "\nx", "g $ v l j 0 y", "90"},
		{"a word over the wrap", wrapped + "\nx", "g v e y", wrapped},
		{"a search", prose, "g / l i n e enter v e y", "line"},
		{"its next place", prose, "g / l i n e enter n v $ y", "line: a/b.go:12 (x)"},
		{"and round to the first", prose, "g / l i n e enter n n n v l l l l l y", "line h"},
		{"back", prose, "G ? l i n e enter n v $ y", "line: a/b.go:12 (x)"},
		{"and back of back", prose, "G ? l i n e enter n N v $ y", "line"},
		{"capitals", "one\nOne\none", "G / O n e enter V y", "One"},
		{"small letters find capitals", "one\nOne\ntwo", "G / o n e enter n V y", "One"},
		{"over a wrap", wrapped + "\nx", "g / 8 9 0 1 enter n n v j 0 l y", "8901"},
		{"wide characters", prose, "g / 字 enter v y", "字"},
		{"selecting to what is found", prose, "g v / 漢 enter y", "first line here\nsecond  line: a/b.go:12 (x)\n\nlast 漢"},
		{"half pages", lines(60), "g ctrl+d ctrl+d ctrl+u V y", "line f"},
		{"nothing beyond the last row", prose, "G j j j V y", "end"},
		{"nothing before the first", prose, "g k b ctrl+u V y", "first line here"},
		{"no more words", prose, "G $ w w v y", "d"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := reading(t, tt.text, 30, 5, 10)
			got, over, why := press(t, c, strings.Fields(tt.keys)...)
			if got != tt.want || !over || why != "" {
				t.Errorf("%q (over: %v, %q), want %q", got, over, why, tt.want)
			}
		})
	}
}

func TestCopyModeSaysWhy(t *testing.T) {
	for _, tt := range []struct{ keys, why string }{
		{"y", "nothing is selected"},
		{"n", "nothing was searched for"},
		{"/ z z z enter", `"zzz" isn't in the scrollback`},
		{"]", "no action began there"},
	} {
		_, over, why := press(t, reading(t, prose, 30, 5, 5), strings.Fields(tt.keys)...)
		if over || !strings.Contains(why, tt.why) {
			t.Errorf("%s: it says %q (over: %v)", tt.keys, why, over)
		}
	}
	if text, over, _ := press(t, reading(t, prose, 30, 5, 5), "v", "esc"); text != "" || over {
		t.Error("esc left what was only to be deselected")
	}
	if _, over, _ := press(t, reading(t, prose, 30, 5, 5), "/", "l", "esc"); over {
		t.Error("esc left what was only a search")
	}
	if _, over, _ := press(t, reading(t, prose, 30, 5, 5), "q"); !over {
		t.Error("q doesn't leave")
	}
}

// What is read stands still, however much is printed; and it is the agent's own text that
// is drawn, with what was found, the selection and where actions began.
func TestCopyModeStandsStill(t *testing.T) {
	p, l := pane(t, emulator, lines(26), 30, 5)
	s := uv.NewScreenBuffer(60, 7)
	area := uv.Rect(0, 0, 60, 7)
	p.Draw(area, frame(t, s))
	p.Read(l.Still(p.Screen))
	p.Copy.Marks = []link.Mark{{Action: 7, At: 15}}
	press(t, p.Copy, "ctrl+u", "ctrl+u", "ctrl+u", "ctrl+u", "/", "p", "enter")
	for range 2 {
		s.Clear()
		c := p.Draw(area, frame(t, s))
		for _, words := range []string{"line p", "#7  copy mode  16/26", "▸line p", "/p  1 of 1"} {
			if got := s.String(); !strings.Contains(got, words) {
				t.Errorf("%q isn't to be seen:\n%s", words, got)
			}
		}
		if c == nil || s.CellAt(c.X, c.Y).Content != "p" {
			t.Errorf("the cursor is %+v", c)
		}
		p.Screen.With(func(e link.Emulator) {
			for i := range 3000 {
				_, _ = fmt.Fprintf(e, "\r\nnew %d", i)
			}
			e.Resize(20, 3)
		})
	}
	p.Copy = nil
	s.Clear()
	p.Draw(area, frame(t, s))
	if !strings.Contains(s.String(), "new 2999") {
		t.Error("it doesn't go on")
	}
}

// No terminal and no size of the pane can do any harm.
func TestCopyModeHostile(t *testing.T) {
	for _, emu := range []link.Emulator{hostile{screen.New(50, 10)}, screen.New(1, 1), screen.New(300, 2)} {
		for _, size := range [][2]int{{60, 20}, {20, 5}, {3, 3}, {2, 2}, {0, 0}} {
			s := uv.NewScreenBuffer(size[0]+4, size[1]+4)
			area := uv.Rect(2, 2, size[0], size[1])
			c := newCopy(emu, size[1]-2, 0)
			c.Marks = []link.Mark{{Action: 1, At: -5}, {Action: 2}, {Action: 3, At: 99}}
			p := &Pane{Copy: c}
			for _, k := range strings.Fields("v g G w b e $ 0 ctrl+u ctrl+d ctrl+v ] [ o / x") {
				press(t, c, k)
				p.Draw(area, frame(t, s))
				cellstest.Check(t, s, area)
			}
			press(t, c, "enter", "N", "V", "y")
			c.Scroll(-99)
			c.Select(0, c.At(-9, -9), c.At(99, 99))
			c.Text()
			p.Draw(area, frame(t, s))
			cellstest.Check(t, s, area)
		}
	}
}

// Every key of copy mode has something that it does.
func TestCopyModeKeys(t *testing.T) {
	for _, b := range keys.In(keys.CopyMode) {
		c := reading(t, strings.Repeat("line x yz\n", 60), 30, 5, 5)
		c.Marks = []link.Mark{{Action: 1}, {Action: 2, At: 58}}
		press(t, c, "g", "ctrl+d", "/", "l", "enter", "v", "w")
		was := *c
		text, over, why := c.Handle(b.Intent)
		same := was.cur == c.cur && was.on == c.on && was.is == c.is && was.asked == c.asked && was.find.at == c.find.at
		if text == "" && !over && same && b.Intent != intent.Intent(intent.Yes{}) {
			t.Errorf("%v does nothing (%q)", b.Keys(), why)
		}
	}
}
