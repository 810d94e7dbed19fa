package screen

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"image"
	_ "image/gif"  // their sizes are told
	_ "image/jpeg" // likewise
	_ "image/png"  // likewise
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// Pictures aren't drawn: a line of text says what was there. Of one that is longer than
// other strings may be, only the beginning is kept and the rest counted.

// sixel is the beginning of a sixel picture, with its size where that is told.
var sixel = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[0-9;]{0,32}q(?:"[0-9]{0,5};[0-9]{0,5};([0-9]{1,5});([0-9]{1,5}))?`)
})

// pictured says whether a string is a picture, by its beginning.
func pictured(kind byte, data []byte) bool {
	switch kind {
	case 'P':
		return sixel().Match(data)
	case '_':
		return bytes.HasPrefix(data, []byte("G"))
	}
	return kind == ']' && bytes.HasPrefix(data, []byte("1337;"))
}

// sixels tells of a sixel picture.
func (s *Screen) sixels(data []byte) {
	m := sixel().FindSubmatch(data)
	if m == nil {
		return
	}
	w, _ := strconv.Atoi(string(m[1])) // 0 where it isn't told
	h, _ := strconv.Atoi(string(m[2]))
	s.picture("sixel", w, h, len(data)+s.scan.more)
}

// kitty tells of a picture in kitty's way, when it is shown: not when it is only sent, nor
// of its further pieces, nor of one that stands for itself in characters.
func (s *Screen) kitty(data string) {
	control, payload, _ := strings.Cut(data, ";")
	keys := make(map[string]string)
	for kv := range strings.SplitSeq(control, ",") {
		k, v, _ := strings.Cut(kv, "=")
		keys[k] = v
	}
	if a := keys["a"]; a != "T" && a != "p" || keys["U"] == "1" {
		return
	}
	w, _ := strconv.Atoi(keys["s"])
	h, _ := strconv.Atoi(keys["v"])
	if keys["f"] == "100" {
		w, h = imageSize(payload)
	}
	size := 0
	if keys["m"] != "1" {
		size = (len(payload) + s.scan.more) / 4 * 3
	}
	s.picture("kitty", w, h, size)
}

// inline tells of a picture in iTerm2's way. Files that are only sent are no pictures.
func (s *Screen) inline(rest string) {
	args, data, _ := strings.Cut(rest, ":")
	args, ok := strings.CutPrefix(strings.TrimPrefix(args, "Multipart"), "File=")
	if !ok || !strings.Contains(";"+args+";", ";inline=1;") {
		return
	}
	w, h := imageSize(data)
	s.picture("iTerm2", w, h, (len(data)+s.scan.more)/4*3)
}

// imageSize is a picture's size by the beginning of its file; 0 when that can't be told.
func imageSize(data string) (w, h int) {
	data = data[:len(data)/4*4]
	file, _ := base64.StdEncoding.DecodeString(data) // what is before an error will do
	c, _, err := image.DecodeConfig(bytes.NewReader(file))
	if err != nil {
		return 0, 0
	}
	return c.Width, c.Height
}

// picture prints what was there, as far as there is room in the line.
func (s *Screen) picture(way string, w, h, size int) {
	words := "[image: " + way
	if w > 0 && h > 0 {
		words += fmt.Sprintf(" %d×%d", w, h)
	}
	switch {
	case size >= 1<<20:
		words += fmt.Sprintf(", %d MB", size>>20)
	case size >= 1<<10:
		words += fmt.Sprintf(", %d KB", size>>10)
	case size > 0:
		words += fmt.Sprintf(", %d B", size)
	}
	s.part()
	for _, r := range words + "]" {
		if s.cursor.wrap {
			break
		}
		s.place(string(r), 1, true)
	}
	s.part()
}
