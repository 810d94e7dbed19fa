package screen

import (
	"strings"
	"testing"

	"github.com/charmbracelet/x/vt"
)

// notAsInVT are the sequences that x/vt shows otherwise. They, and what a
// keyframe needs to know of an emulator's inside, are why it isn't what this
// package is made of, but only what it is compared with.
var notAsInVT = map[string]string{
	"title with a curly quote": "ends the title at any character that has the byte 0x9c, and prints the rest: titles that agents set have such",
	"escape k is a title":      "prints it",
	"8-bit controls are text":  "runs them",
	"invalid bytes":            "takes the bytes after a broken character for part of it, controls too",
	"wide wraps whole":         "loses a wide character at the right edge",
	"insert before wide":       "breaks wide characters when it inserts",
	"delete wide":              "likewise when it deletes",
	"delete half a wide":       "likewise",
	"insert wide":              "has no insert mode",
	"insert mode":              "likewise",
	"insert mode pushes out":   "likewise",
	"shift out":                "has no SO",
	"single shift":             "has no ESC N",
	"mark joins over colours":  "loses the mark, as it does between two writes",
	"repeat to the end":        "repeats without bound",
	"alignment":                "has no DECALN",
}

func TestSequencesDoAsInVT(t *testing.T) {
	for name, c := range sequences {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if v := recover(); v != nil {
					t.Errorf("x/vt panics: %v", v)
				}
			}()
			if why := notAsInVT[name]; why != "" {
				t.Skip(why)
			}
			em := vt.NewEmulator(10, 5)
			em.WriteString(c.in)
			got := strings.TrimRight(strings.ReplaceAll(em.String(), "\n", "|"), "|")
			em.Close()
			if got != c.want {
				t.Errorf("%q: here %q, in x/vt %q", c.in, c.want, got)
			}
		})
	}
}
