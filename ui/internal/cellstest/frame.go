package cellstest

import (
	"sync"
	"testing"

	"github.com/charmbracelet/colorprofile"

	"stepbox/themes"
	"stepbox/ui/paint"
)

var dark = sync.OnceValues(func() (*paint.Palette, error) {
	th, err := themes.Load("dark", "")
	if err != nil {
		return nil, err
	}
	return paint.NewPalette(th, colorprofile.TrueColor), nil
})

// Frame is one in the dark theme.
func Frame(t testing.TB) paint.Frame {
	p, err := dark()
	if err != nil {
		t.Fatal(err)
	}
	return paint.Frame{P: p}
}
