package display

import (
	"image/color"
	"strings"
	"testing"

	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/ansi"
)

func TestUnderlineColours(t *testing.T) {
	for in, want := range map[string]string{
		"\x1b[58;2;255;0;0;4:3m":          "\x1b[4m\x1b[58:2::255:0:0m\x1b[4:3m",
		"\x1b[1;58;5;196;31mx":            "\x1b[1;31m\x1b[58:5:196mx",
		"\x1b[38;2;58;5;1m":               "\x1b[38;2;58;5;1m",
		"\x1b[48;5;58;58;5;1m":            "\x1b[48;5;58m\x1b[58:5:1m",
		"\x1b[38;2;58;5;1;58;2;58;5;38;m": "\x1b[38;2;58;5;1;m\x1b[58:2::58:5:38m",
		"\x1b[4:2m":                       "\x1b[4m\x1b[4:2m",
		"58;5;1m":                         "58;5;1m",
		"\x1b[58;m":                       "\x1b[58;m",
	} {
		if got := string(whole([]byte(in))); got != want {
			t.Errorf("%q becomes %q, not %q", in, got, want)
		}
	}
	for _, c := range []color.Color{color.RGBA{R: 255, A: 255}, ansi.IndexedColor(196)} {
		text := bytesOf(t, 20, 2, func(dst uv.ScreenBuffer) Frame {
			dst.SetCell(0, 0, &uv.Cell{Content: "x", Width: 1, Style: uv.Style{Underline: uv.UnderlineCurly, UnderlineColor: c}})
			return Frame{}
		})
		if !strings.Contains(text, "4:3") || !strings.Contains(text, "58:") || strings.Contains(text, "58;") {
			t.Errorf("the frame is %q", text)
		}
	}
}
