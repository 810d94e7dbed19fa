package dialog

import (
	"strings"
	"testing"

	"stepbox/session/api"
	"stepbox/ui/intent"
)

// Who wrote a line has the room that the lines leave.
func TestFileUsesTheRoom(t *testing.T) {
	by := []api.Author{{}, {Session: "s", Action: 12, Title: strings.Repeat("long ", 8) + "command"}} // 51 columns
	for _, c := range []struct{ line, width, want int }{{20, 75, 53}, {20, 60, 40}, {70, 75, 25}, {200, 140, 34}, {20, 140, 53}} {
		d := NewFile(api.Blame{Session: "s", By: by, Lines: []api.BlameLine{{By: 1, Text: strings.Repeat("x", c.line)}}}, "", "", true)
		if got := d.gutter(c.width); got != c.want {
			t.Errorf("beside lines of %d of %d columns it has %d, want %d", c.line, c.width, got, c.want)
		}
	}
}

// A line leads to its action when that is one of the session that is looked at, and
// else says why not.
func TestFileLeadsToItsOwnActions(t *testing.T) {
	d := NewFile(api.Blame{
		Session: "fork", Lines: []api.BlameLine{{By: 1}, {By: 0}, {By: 2}, {By: 3}},
		By: []api.Author{{}, {Session: "fork", Name: "f", Action: 4}, {Session: "was", Name: "first", Action: 7, Title: "make"}, {Session: "gone", Name: "older", Title: "its record was removed"}},
	}, "", "", true)
	for _, c := range []struct{ why, whose string }{{"", "#4 "}, {"the project's", "project"}, {"forked from first", "first #7 make"}, {"before it wrote this: its record was removed", "older its record was removed"}} {
		why, whose := d.Why(intent.Open{}), d.whose(d.author())
		if (why == "") != (c.why == "") || !strings.Contains(why, c.why) || whose != c.whose {
			t.Errorf("%q, and %q", why, whose)
		}
		d.Handle(intent.Move{By: 1})
	}
	d.Handle(intent.Top{})
	if got := d.Handle(intent.Open{}); got != (intent.GoTo{Action: 4}) {
		t.Errorf("it leads to %v", got)
	}
}
