package rows

import (
	"testing"

	"stepbox/ui/intent"
)

func TestList(t *testing.T) {
	const total, height = 20, 5
	for _, c := range []struct {
		name    string
		do      func(l *List)
		at, top int
		follows bool
	}{
		{"follows the end", func(*List) {}, 19, 15, true},
		{"moves up within the view", func(l *List) { l.Move(-2, total) }, 17, 15, false},
		{"takes the view along", func(l *List) { l.Move(-10, total) }, 9, 9, false},
		{"follows again from the last row", func(l *List) { l.Move(-2, total); l.Move(2, total) }, 19, 15, true},
		{"stops at the first", func(l *List) { l.Move(-100, total) }, 0, 0, false},
		{"a page keeps a row in view", func(l *List) { l.Handle(intent.Page{By: -1}, total) }, 15, 15, false},
		{"the wheel moves the view", func(l *List) { l.Scroll(-3, total) }, 16, 12, false},
		{"to the end, too", func(l *List) { l.Scroll(-3, total); l.Scroll(9, total) }, 19, 15, true},
		{"a selected row stays", func(l *List) { l.Select(3) }, 3, 3, false},
		{"until told", func(l *List) { l.Select(3); l.Follow() }, 19, 15, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			var l List
			l.fit(total, height)
			c.do(&l)
			l.fit(total, height)
			if l.At() != c.at || l.Top() != c.top || l.Follows() != c.follows {
				t.Errorf("at %d, top %d, follows %v; want %d, %d, %v", l.At(), l.Top(), l.Follows(), c.at, c.top, c.follows)
			}
		})
	}
	var l List
	l.fit(0, height)
	if l.At() != 0 || l.Top() != 0 {
		t.Errorf("an empty list is at %d of %d", l.At(), l.Top())
	}
}
