package cellstest

import (
	"sync"
	"testing"

	"github.com/charmbracelet/colorprofile"
	uv "github.com/charmbracelet/ultraviolet"

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

// Frame is one in the dark theme, on a screen.
func Frame(t testing.TB, dst uv.Screen) paint.Frame {
	p, err := dark()
	if err != nil {
		t.Fatal(err)
	}
	return paint.Frame{Screen: dst, P: p}
}
