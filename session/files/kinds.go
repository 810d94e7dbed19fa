package files

import (
	"bytes"
	"context"
	"fmt"
	"image"
	_ "image/gif" // these read images' headers
	_ "image/jpeg"
	_ "image/png"
	"io"
	"slices"
	"strconv"
	"strings"

	_ "golang.org/x/image/bmp"
	_ "golang.org/x/image/webp"

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

// sniff says what a file is by how it begins, and of images how large they are. The
// bytes are hostile: of an image only its header is decoded.
func sniff(b []byte) (is, size string) {
	begins := func(with string) bool { return bytes.HasPrefix(b, []byte(with)) }
	if c, kind, err := image.DecodeConfig(bytes.NewReader(b)); err == nil && c.Width > 0 && c.Height > 0 {
		return imageNames[kind] + " image", fmt.Sprintf("%d×%d", c.Width, c.Height)
	}
	for _, m := range [...]struct{ begins, is string }{
		{"\x89PNG\r\n\x1a\n", "PNG image"}, {"GIF87a", "GIF image"}, {"GIF89a", "GIF image"}, {"\xff\xd8\xff", "JPEG image"},
		{"\x00\x00\x01\x00", "icon image"},
		{"%PDF-", "PDF document"}, {"PK\x03\x04", "ZIP archive"}, {"PK\x05\x06", "ZIP archive"}, {"\x1f\x8b", "gzip data"}, {"BZh", "bzip2 data"},
		{"\xfd7zXZ\x00", "xz data"}, {"\x28\xb5\x2f\xfd", "zstd data"}, {"7z\xbc\xaf\x27\x1c", "7z archive"}, {"\x7fELF", "ELF program"},
		{"MZ", "Windows program"}, {"\xcf\xfa\xed\xfe", "macOS program"}, {"\xca\xfe\xba\xbe", "Java class or macOS program"},
		{"\x00asm", "WebAssembly"}, {"SQLite format 3\x00", "SQLite database"}, {"wOFF", "font"}, {"wOF2", "font"}, {"OTTO", "font"},
		{"\x00\x01\x00\x00\x00", "font"}, {"ID3", "MP3 sound"}, {"OggS", "Ogg sound"}, {"fLaC", "FLAC sound"}, {"!<arch>\n", "library"},
		{"\x80\x04\x95", "Python pickle"}, {"DIRC", "git index"}, {"PACK", "git pack"},
	} {
		if begins(m.begins) {
			return m.is, ""
		}
	}
	switch {
	case begins("RIFF") && len(b) > 12 && string(b[8:12]) == "WEBP":
		return "WebP image", ""
	case len(b) > 12 && string(b[4:8]) == "ftyp":
		return "MP4 video", ""
	case len(b) > 262 && string(b[257:262]) == "ustar":
		return "tar archive", ""
	case merge.Readable(b) && merge.Binary(b):
		return longLines, ""
	case merge.Readable(b):
		return "text", ""
	}
	return "data", ""
}

// imageNames are the kinds of images whose headers can be read.
var imageNames = map[string]string{"png": "PNG", "gif": "GIF", "jpeg": "JPEG", "webp": "WebP", "bmp": "BMP"}
