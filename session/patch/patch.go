// Package patch writes changes of files as a patch that git apply takes: text as
// unified differences, all else as binary ones, with the modes that git knows.
// See git-diff(1), "Generating patch text with -p", and the comments in git's
// apply.c for binary patches.
//
// Contents are read as streams; only text up to a bound is held in memory. What
// git can't express (empty folders, FIFOs, modes but the executable bit) is named
// in lines before the first difference, which git skips.
package patch

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"strings"

	"stepbox/policy/git"
	"stepbox/runner/overlay/diff"
	"stepbox/runner/overlay/manifest"
	"stepbox/session/api"
	"stepbox/session/merge"
)

// maxText bounds each side of a difference in lines, in bytes; what is larger is
// written as a binary one.
const maxText = 4 << 20

// maxRead bounds what is read of larger ones for one patch, in bytes: git takes no patch of more than
// 1 GiB, and a sparse file of a terabyte, which an agent makes with one call, is zeros
// to be read, compressed and written for hours.
const maxRead = 4 << 30

// Open opens a side's content and says how long it is.
type Open func(ctx context.Context, f *diff.File) (io.ReadCloser, int64, error)

// Write writes changes, which are sorted by path. Those that a patch can't hold are
// named in its first lines, and one whose content turns out to be lost or damaged in
// its place. An error means that the patch isn't whole.
func Write(ctx context.Context, w io.Writer, open Open, changes []diff.Change) error {
	p := &writer{ctx: ctx, w: w, source: open}
	var fit []diff.Change
	internal := 0 // of repositories
	left := int64(maxRead)
	for _, c := range changes {
		switch why := unfit(&c); {
		case why == "" && large(&c) > left:
			p.line("# not in this patch: %s: a patch is made of at most %d GiB in large files, and it goes beyond; stepbox checkout writes it", quote(c.Path), maxRead>>30)
		case why == "":
			left -= large(&c)
			fit = append(fit, c)
		case why == gits:
			internal++
		case c.New != nil && c.New.Unsaved != "":
			p.line("%s%s: %s", api.PatchLost, quote(c.Path), api.Escape(c.New.Unsaved))
		default:
			p.line("# not in this patch: %s: %s", quote(c.Path), why)
		}
	}
	if internal > 0 {
		p.line("# not in this patch: %d of git's own files, below .git", internal)
	}
	// What goes makes room for what comes: a folder's files for a file of its name.
	for _, gone := range []bool{true, false} {
		for i := range fit {
			if c := &fit[i]; (c.Status == diff.Deleted) == gone && p.err == nil {
				p.change(c)
			}
		}
	}
	return p.err
}

// large is how many bytes those sides of a change have that are too large for text.
func large(c *diff.Change) (n int64) {
	for _, f := range []*diff.File{c.Old, c.New} {
		if f != nil && f.Kind == manifest.KindFile && f.Size > maxText {
			n += min(f.Size, maxRead+1) // so that no sum overflows
		}
	}
	return n
}

// gits is why a change below .git is left out.
const gits = "it is part of a repository's own data"

// unfit says why a change can't be in a patch; "" when it can.
func unfit(c *diff.Change) string {
	for part := range strings.SplitSeq(c.Path, "/") {
		if strings.EqualFold(part, ".git") {
			return gits
		}
	}
	for _, f := range []*diff.File{c.Old, c.New} {
		switch {
		case f == nil:
		case f.Unsaved != "":
			return "its content isn't in the record"
		case f.Kind == manifest.KindDir && (c.Status == diff.Added || c.Status == diff.Deleted):
			return "git keeps no empty folders"
		case f.Kind == manifest.KindDir && c.Status != diff.Retyped:
			return "git keeps no modes of folders"
		case f.Kind != manifest.KindFile && f.Kind != manifest.KindSymlink && f.Kind != manifest.KindDir:
			return "git keeps no " + f.Kind.String()
		}
	}
	if c.Status == diff.Modified && !c.Content && mode(c.Old) == mode(c.New) {
		return "git keeps only whether a file is executable"
	}
	return ""
}

// mode is what git has for a file; "" for none.
func mode(f *diff.File) string {
	switch {
	case f == nil || f.Kind == manifest.KindDir:
		return ""
	case f.Kind == manifest.KindSymlink:
		return "120000"
	case f.Mode&0o100 != 0:
		return "100755"
	}
	return "100644"
}

// writer keeps the first error.
type writer struct {
	ctx    context.Context
	w      io.Writer
	source Open
	err    error
}

func (p *writer) line(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format+"\n", args...)
	}
}

// change writes one; another kind of file is the old one's end and a new one.
func (p *writer) change(c *diff.Change) {
	if c.Status == diff.Retyped {
		if mode(c.Old) != "" {
			p.file(c.Path, c.Path, c.Old, nil, false)
		}
		if mode(c.New) != "" {
			p.file(c.Path, c.Path, nil, c.New, false)
		}
		return
	}
	from := c.Path
	if c.From != "" {
		from = c.From
	}
	p.file(from, c.Path, c.Old, c.New, c.Status == diff.Renamed)
}

// file writes the difference between two versions of a file; nil is none.
func (p *writer) file(from, to string, before, after *diff.File, renamed bool) {
	if p.err != nil {
		return
	}
	a, b := p.read(before), p.read(after)
	if p.err != nil && p.ctx.Err() == nil {
		why := p.err.Error()
		p.err = nil
		p.line("%s%s: %s", api.PatchLost, quote(to), api.Escape(why))
		return
	}
	p.line("diff --git %s %s", quote("a/"+from), quote("b/"+to))
	was, is := mode(before), mode(after)
	switch {
	case before == nil:
		p.line("new file mode %s", is)
	case after == nil:
		p.line("deleted file mode %s", was)
	case was != is:
		p.line("old mode %s", was)
		p.line("new mode %s", is)
	}
	if p.err != nil {
		return
	}
	same := before != nil && after != nil && a.name == b.name
	if renamed {
		similar := 50 // git reads the number and doesn't check it
		if same {
			similar = 100
		}
		p.line("similarity index %d%%", similar)
		p.line("rename from %s", quote(from))
		p.line("rename to %s", quote(to))
	}
	if same {
		return
	}
	p.line("index %s..%s%s", a.name, b.name, map[bool]string{true: " " + is}[was == is])
	if a.text && b.text {
		p.text(from, to, before, after, a.bytes, b.bytes)
		return
	}
	p.line("GIT binary patch")
	p.binary(after, b)
	p.binary(before, a)
}

// text writes hunks.
func (p *writer) text(from, to string, before, after *diff.File, a, b []byte) {
	if len(a) == 0 && len(b) == 0 {
		return
	}
	p.line("--- %s", name("a/", from, before))
	p.line("+++ %s", name("b/", to, after))
	for _, h := range merge.Hunks(string(a), merge.Edits(string(a), string(b))) {
		p.line("@@ -%s +%s @@", span(h.OldLine, h.OldCount), span(h.NewLine, h.NewCount))
		for _, l := range h.Lines {
			text, whole := strings.CutSuffix(l.Text, "\n")
			p.line("%c%s", l.Op, text)
			if !whole {
				p.line(`\ No newline at end of file`)
			}
		}
	}
}

// span is a hunk's lines on one side, as diff -u has it.
func span(line, count int) string {
	if count == 1 {
		return fmt.Sprint(line)
	}
	return fmt.Sprintf("%d,%d", line, count)
}

// name is a side's in the lines above the hunks. One with a space ends in a tab,
// so that nobody takes what follows for a time.
func name(prefix, path string, f *diff.File) string {
	if f == nil {
		return "/dev/null"
	}
	q := quote(prefix + path)
	if strings.ContainsRune(q, ' ') {
		q += "\t"
	}
	return q
}

// content is one side of a change.
type content struct {
	name  string // as git names the blob, 40 digits
	size  int64
	text  bool
	bytes []byte // of text
}

// noBlob is how git names the side that isn't there.
const noBlob = "0000000000000000000000000000000000000000"

// read names a content, and holds it if it is text.
func (p *writer) read(f *diff.File) content {
	if f == nil {
		return content{name: noBlob, text: true}
	}
	r, size := p.open(f)
	if p.err != nil {
		return content{}
	}
	defer r.Close()
	c := content{size: size}
	h := git.Object("blob", size, 0)
	var held bytes.Buffer
	to := io.Writer(h)
	if size <= maxText {
		to = io.MultiWriter(h, &held)
	}
	n, err := io.Copy(to, r)
	if err == nil && n != size {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		p.err = fmt.Errorf("cannot read %q: %w", f.Path, err)
		return c
	}
	c.name = hex.EncodeToString(h.Sum(nil))
	if size <= maxText && (f.Kind == manifest.KindSymlink || !merge.Binary(held.Bytes())) {
		c.text, c.bytes = true, held.Bytes()
	}
	return c
}

func (p *writer) open(f *diff.File) (io.ReadCloser, int64) {
	if p.err = p.ctx.Err(); p.err != nil {
		return nil, 0
	}
	r, size, err := p.source(p.ctx, f)
	p.err = err
	return r, size
}

// quote writes a path as git reads it: in quotes and C's escapes if it has
// anything but printable characters in it, or a folder whose name ends in a blank:
// git can't tell the end of such a path in a patch of its own either.
func quote(path string) string {
	odd := strings.Contains(path, " /")
	var b strings.Builder
	for i := range len(path) {
		switch c := path[i]; {
		case c == '"' || c == '\\':
			odd = true
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < 0x20 || c >= 0x7f:
			odd = true
			fmt.Fprintf(&b, `\%03o`, c)
		default:
			b.WriteByte(c)
		}
	}
	if !odd {
		return path
	}
	return `"` + b.String() + `"`
}
