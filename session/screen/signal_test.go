package screen

import (
	"bytes"
	"encoding/base64"
	"image"
	"image/png"
	"slices"
	"strings"
	"testing"

	"stepbox/session/e2e/must"
)

// What the guest wants told is bounded text, and nothing asks for the clipboard.
func TestSignals(t *testing.T) {
	copied := base64.StdEncoding.EncodeToString([]byte("some text"))
	notice := func(title, text string) []string {
		return []string{"notify " + title + "|" + text}
	}
	for in, want := range map[string][]string{
		"a\ab":                                {"bell"},
		"\x1b[1\am":                           {"bell"},
		"\x1b]0;title\a":                      nil,
		"\x1b]9;it is done\x1b\\":             notice("", "it is done"),
		"\x1b]9;3 files\a":                    notice("", "3 files"),
		"\x1b]9;4;1;50\a":                     nil, // a progress bar
		"\x1b]777;notify;agent;it; is done\a": notice("agent", "it; is done"),
		"\x1b]777;other;x\a":                  nil,
		"\x1b]9;a\u202e\x01b\a":               notice("", "ab"),
		"\x1b]9;" + strings.Repeat("x", 3000) + "\a":            notice("", strings.Repeat("x", maxNotice)),
		"\x1b]52;c;" + copied + "\a":                            {"copy some text"},
		"\x1b]52;;" + strings.TrimRight(copied, "=") + "\x1b\\": {"copy some text"},
		"\x1b]52;c;?\a":           nil,
		"\x1b]52;c;\a":            nil,
		"\x1b]52;c;not base64!\a": nil,
		"\x1b]52;c;/w==\a":        nil, // no text
	} {
		s := New(20, 3)
		var got []string
		s.OnReply(func(p []byte) { t.Errorf("%q is answered by %q", in, p) })
		s.OnSignal(func() { got = append(got, "bell") },
			func(title, text string) { got = append(got, "notify "+title+"|"+text) },
			func(text string) { got = append(got, "copy "+text) })
		_, _ = s.Write([]byte(in))
		if !slices.Equal(got, want) {
			t.Errorf("%q tells %q, not %q", in, got, want)
		}
		if text := s.Text()[0]; strings.Trim(text, "ab") != "" {
			t.Errorf("%q shows %q", in, text)
		}
	}
}

// In place of a picture a line says what was there, also of one that never ends.
func TestPictures(t *testing.T) {
	var file bytes.Buffer
	must.OK(t, png.Encode(&file, image.NewGray(image.Rect(0, 0, 30, 20))))
	small := base64.StdEncoding.EncodeToString(file.Bytes())
	long := strings.Repeat("#1~~@@vv@@~~$-", 5000)
	for name, c := range map[string]struct{ in, want string }{
		"sixel":             {"a\x1bP0;1;q\"1;1;640;480#0;2;0;0;0~~~\x1b\\b", "a[image: sixel 640×480, 30 B]b"},
		"sixel, no size":    {"\x1bPq~~~\x1b\\", "[image: sixel, 4 B]"},
		"large sixel":       {"\x1bPq\"1;1;64;48" + long + "\x1b\\b", "[image: sixel 64×48, 68 KB]b"},
		"sixel, broken off": {"\x1bPq\"1;1;64;48" + long + "\x18b", "b"},
		"not a sixel":       {"\x1bP1$tx" + long + "\x1b\\b", "b"},
		"kitty":             {"\x1b_Ga=T,f=24,s=10,v=20;" + strings.Repeat("A", 400) + "\x1b\\b", "[image: kitty 10×20, 300 B]b"},
		"kitty, a file":     {"\x1b_Gf=100,a=T;" + small + "\x1b\\", "[image: kitty 30×20, "},
		"kitty, in pieces":  {"\x1b_Ga=T,f=32,s=10,v=20,m=1;AAAA\x1b\\\x1b_Gm=1;AAAA\x1b\\\x1b_Gm=0;AAAA\x1b\\b", "[image: kitty 10×20]b"},
		"kitty, only sent":  {"\x1b_Ga=t,s=10,v=20;AAAA\x1b\\\x1b_Ga=q,i=1;AAAA\x1b\\b", "b"},
		"iTerm2":            {"\x1b]1337;File=name=eA==;inline=1:" + small + "\a", "[image: iTerm2 30×20, "},
		"large iTerm2":      {"\x1b]1337;File=inline=1:" + strings.Repeat("A", 1<<22) + "\a", "[image: iTerm2, 3 MB]"},
		"iTerm2, only sent": {"\x1b]1337;File=name=eA==:" + small + "\ab", "b"},
		"iTerm2, something": {"\x1b]1337;CurrentDir=/x\ab", "b"},
		"no room":           {"\x1b[75Gx\x1bPq~~~\x1b\\", strings.Repeat(" ", 74) + "x[imag"},
	} {
		s := New(80, 3)
		_, _ = s.Write([]byte(c.in))
		if got := s.Text()[0]; !strings.HasPrefix(got, c.want) || got != c.want && !strings.HasSuffix(c.want, " ") {
			t.Errorf("%s: shows %q, not %q", name, got, c.want)
		}
		if n := cap(s.scan.buf); n > 2*keepSpace {
			t.Errorf("%s: %d bytes are kept", name, n)
		}
		// Cut anywhere, a keyframe goes on to the same.
		for at := 0; at < len(c.in); at += max(1, len(c.in)/50) {
			first, then := New(80, 3), New(80, 3)
			_, _ = first.Write([]byte(c.in[:at]))
			_, _ = then.Write(first.Keyframe())
			_, _ = then.Write([]byte(c.in[at:]))
			if got := then.Text()[0]; got != s.Text()[0] {
				t.Errorf("%s: cut at %d it shows %q", name, at, got)
			}
		}
	}
}
