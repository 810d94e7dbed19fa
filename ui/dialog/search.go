package dialog

import (
	"strings"

	tea "charm.land/bubbletea/v2"
	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/themes"
	"stepbox/ui/intent"
	"stepbox/ui/keys"
	"stepbox/ui/paint"
)

// maxSearch bounds what is searched for, in bytes.
const maxSearch = 200

// Search takes what is to be searched for in a session.
type Search struct {
	sheet
	line Line
}

// NewSearch opens the input for a search.
func NewSearch() *Search { return &Search{line: NewLine(maxSearch)} }

func (s *Search) Scope() keys.Scope      { return keys.Input }
func (s *Search) Type(k tea.KeyPressMsg) { s.line.Type(k) }
func (s *Search) Paste(text string)      { s.line.Insert(text) }

// Handle hands the line over or goes back.
func (s *Search) Handle(i intent.Intent) intent.Intent {
	switch i.(type) {
	case intent.Back:
		return i
	case intent.Yes:
		if words := strings.TrimSpace(s.line.Value()); words != "" {
			return intent.SearchFor{Text: words}
		}
	}
	return nil
}

func (s *Search) Draw(dst uv.Screen, area uv.Rectangle, f paint.Frame) *tea.Cursor {
	s.measure(area, 72)
	rows := []row{{}, muted("Words of commands, paths, hosts, or the terminal's text."), {}, {}}
	hints := []paint.Hint{{Key: "enter", Words: "search"}, {Key: "esc", Words: "back"}}
	body := s.draw(dst, area, f, []text{{"Search this session", themes.Strong}}, rows, hints, text{})
	return s.line.Draw(dst, body.Min.X, body.Max.Y-1, body.Max.X, f.P, "type some words; n and N go through the places")
}
