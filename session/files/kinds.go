package files

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"stepbox/runner/overlay/diff"
	"stepbox/runner/overlay/manifest"
	"stepbox/session/merge"
)

// headBytes is how much of a file is read to tell what it is.
const headBytes = 64 << 10

// typeOf says what the contents of a change that isn't text are, as far as their
// first bytes tell: "PNG image, 640×480 → 800×600"; "" when that says nothing.
func (f *Files) typeOf(ctx context.Context, c diff.Change) string {
	var types, sizes []string
	for _, e := range []*diff.File{c.Old, c.New} {
		if e == nil || e.Kind != manifest.KindFile || e.Unsaved != "" {
			continue
		}
		if head, err := f.head(ctx, e); err == nil && len(head) > 0 {
			is, size := sniff(head)
			types, sizes = append(types, is), append(sizes, size)
		}
	}
	switch {
	case len(types) == 0:
		return ""
	case len(types) == 2 && types[0] != types[1]:
		return both(types[0], sizes[0]) + " → " + both(types[1], sizes[1])
	case len(types) == 2 && sizes[0] != sizes[1]:
		return types[0] + ", " + sizes[0] + " → " + sizes[1]
	}
	return both(types[0], sizes[0])
}

func both(is, size string) string {
	if size == "" {
		return is
	}
	return is + ", " + size
}

// head reads the first bytes of a file.
func (f *Files) head(ctx context.Context, e *diff.File) ([]byte, error) {
	r, _, err := f.open(ctx, e)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(io.LimitReader(r, headBytes))
}

// facts say in words what can't be shown as lines: what it is, how large it was
// and is, and the hashes of both contents as far as they are known.
func facts(is string, c diff.Change) string {
	words := []string{is, "", ""}
	var sizes, hashes []string
	for _, e := range []*diff.File{c.Old, c.New} {
		if e == nil || e.Kind != manifest.KindFile {
			continue
		}
		sizes = append(sizes, sizeWords(e.Size))
		if !e.Hash.IsZero() {
			hashes = append(hashes, e.Hash.String()[:12])
		}
	}
	words[1] = strings.Join(slices.Compact(sizes), " → ")
	if len(hashes) > 0 {
		words[2] = "blake3 " + strings.Join(slices.Compact(hashes), " → ")
	}
	return strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" }), ", ")
}

// sizeWords writes a size for people.
func sizeWords(n int64) string {
	if n < 1<<10 {
		return strconv.FormatInt(n, 10) + " B"
	}
	f, units := float64(n), []string{"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}
	for i := 0; ; i++ {
		if f /= 1 << 10; f < 999.5 || i == len(units)-1 {
			if f < 9.95 {
				return strings.TrimSuffix(strconv.FormatFloat(f, 'f', 1, 64), ".0") + " " + units[i]
			}
			return strconv.FormatFloat(f, 'f', 0, 64) + " " + units[i]
		}
	}
}

// longLines is what text is that no person would read.
const longLines = "text with very long lines"

// sniff says what a file is by how it begins, and of images how large they are.
// The bytes are hostile: nothing is decoded.
func sniff(b []byte) (is, size string) {
	if name, at := imageOf(b); name != "" {
		w, h := at(b)
		if w > 0 && h > 0 {
			size = fmt.Sprintf("%d×%d", w, h)
		}
		return name + " image", size
	}
	for _, m := range [...]struct{ begins, is string }{
		{"%PDF-", "PDF document"}, {"PK\x03\x04", "ZIP archive"}, {"PK\x05\x06", "ZIP archive"}, {"\x1f\x8b", "gzip data"}, {"BZh", "bzip2 data"},
		{"\xfd7zXZ\x00", "xz data"}, {"\x28\xb5\x2f\xfd", "zstd data"}, {"7z\xbc\xaf\x27\x1c", "7z archive"}, {"\x7fELF", "ELF program"},
		{"MZ", "Windows program"}, {"\xcf\xfa\xed\xfe", "macOS program"}, {"\xca\xfe\xba\xbe", "Java class or macOS program"},
		{"\x00asm", "WebAssembly"}, {"SQLite format 3\x00", "SQLite database"}, {"wOFF", "font"}, {"wOF2", "font"}, {"OTTO", "font"},
		{"\x00\x01\x00\x00\x00", "font"}, {"ID3", "MP3 sound"}, {"OggS", "Ogg sound"}, {"fLaC", "FLAC sound"}, {"!<arch>\n", "library"},
		{"\x80\x04\x95", "Python pickle"}, {"DIRC", "git index"}, {"PACK", "git pack"},
	} {
		if bytes.HasPrefix(b, []byte(m.begins)) {
			return m.is, ""
		}
	}
	switch {
	case len(b) > 12 && string(b[4:8]) == "ftyp":
		return "MP4 video", ""
	case len(b) > 262 && string(b[257:262]) == "ustar":
		return "tar archive", ""
	case readable(b) && merge.Binary(b):
		return longLines, ""
	case readable(b):
		return "text", ""
	}
	return "data", ""
}

// imageOf says which kind of image bytes begin, and how its width and height are read.
func imageOf(b []byte) (name string, size func([]byte) (w, h int)) {
	le16 := func(at int) func([]byte) (int, int) {
		return func(b []byte) (int, int) {
			if len(b) < at+4 {
				return 0, 0
			}
			return int(binary.LittleEndian.Uint16(b[at:])), int(binary.LittleEndian.Uint16(b[at+2:]))
		}
	}
	switch {
	case bytes.HasPrefix(b, []byte("\x89PNG\r\n\x1a\n")):
		return "PNG", func(b []byte) (int, int) {
			if len(b) < 24 || string(b[12:16]) != "IHDR" {
				return 0, 0
			}
			return int(binary.BigEndian.Uint32(b[16:])), int(binary.BigEndian.Uint32(b[20:]))
		}
	case bytes.HasPrefix(b, []byte("GIF87a")), bytes.HasPrefix(b, []byte("GIF89a")):
		return "GIF", le16(6)
	case bytes.HasPrefix(b, []byte("BM")) && len(b) >= 26:
		return "BMP", func(b []byte) (int, int) {
			h := int(int32(binary.LittleEndian.Uint32(b[22:])))
			return int(int32(binary.LittleEndian.Uint32(b[18:]))), max(h, -h)
		}
	case len(b) >= 16 && string(b[:4]) == "RIFF" && string(b[8:12]) == "WEBP":
		return "WebP", webpSize
	case bytes.HasPrefix(b, []byte("\xff\xd8\xff")):
		return "JPEG", jpegSize
	case bytes.HasPrefix(b, []byte("\x00\x00\x01\x00")):
		return "icon", func([]byte) (int, int) { return 0, 0 }
	}
	return "", nil
}

// webpSize reads the size of the three kinds of WebP images.
func webpSize(b []byte) (w, h int) {
	if len(b) < 30 {
		return 0, 0
	}
	switch string(b[12:16]) {
	case "VP8 ":
		return int(binary.LittleEndian.Uint16(b[26:]) & 0x3fff), int(binary.LittleEndian.Uint16(b[28:]) & 0x3fff)
	case "VP8L":
		n := binary.LittleEndian.Uint32(b[21:])
		return int(n&0x3fff) + 1, int(n>>14&0x3fff) + 1
	case "VP8X":
		return 1 + int(b[24]) + int(b[25])<<8 + int(b[26])<<16, 1 + int(b[27]) + int(b[28])<<8 + int(b[29])<<16
	}
	return 0, 0
}

// jpegSize looks for the frame header among the segments that come before the image.
func jpegSize(b []byte) (w, h int) {
	for at := 2; at+9 < len(b) && b[at] == 0xff; {
		kind := b[at+1]
		if kind >= 0xc0 && kind <= 0xcf && kind != 0xc4 && kind != 0xc8 && kind != 0xcc {
			return int(binary.BigEndian.Uint16(b[at+7:])), int(binary.BigEndian.Uint16(b[at+5:]))
		}
		at += 2 + max(2, int(binary.BigEndian.Uint16(b[at+2:])))
	}
	return 0, 0
}
