package screen

import "testing"

// A vowel sign that takes a column is a cell of its own, which can be erased and
// written over alone; what belongs to an emoji isn't.
func TestWhatIsOneCell(t *testing.T) {
	for in, want := range map[string][]string{
		"का":                  {"क", "ा"},
		"স্ত্রী":              {"স্", "ত্", "র", "ী"},
		"a\u0301\u0302b":      {"a\u0301\u0302", "b"},
		"🇩🇪🇫🇷🇬":               {"🇩🇪", "🇫🇷", "🇬"},
		"👨\u200d👩\u200d👧x":    {"👨\u200d👩\u200d👧", "x"},
		"👍🏽a🏽":                {"👍🏽", "a", "🏽"},
		"क\u094d\u200dष":      {"क\u094d\u200d", "ष"},
		"☺\ufe0f☺":            {"☺\ufe0f", "☺"},
		"\u1112\u1161\u11abx": {"\u1112\u1161\u11ab", "x"},
		"\u0600\u0661":        {"\u0600", "\u0661"},
	} {
		s := write(t, 20, 2, in)
		var got []string
		for _, c := range s.page.grid.lines[0].cells[:s.cursor.x] {
			if c.width > 0 {
				got = append(got, c.text)
			}
		}
		if len(got) != len(want) {
			t.Errorf("%q is in %q, want %q", in, got, want)
			continue
		}
		for i := range got {
			if got[i] != want[i] {
				t.Errorf("%q is in %q, want %q", in, got, want)
			}
		}
	}
}

// An emoji that had no room to become wide stays narrow wherever it is moved,
// for who reads a keyframe too.
func TestNarrowEmojiStaysNarrow(t *testing.T) {
	s := write(t, 5, 2, "abcd☺\ufe0f\x1b[H\x1b[P")
	s.Resize(8, 2)
	k := New(8, 2)
	k.Write(s.Keyframe())
	for _, s := range []*Screen{s, k} {
		if got := s.Text()[0]; got != "bcd☺\ufe0f" || s.page.grid.cell(3, 0).width != 1 {
			t.Errorf("the row is %q, the emoji %d wide", got, s.page.grid.cell(3, 0).width)
		}
	}
}
