package policy

import (
	"encoding/hex"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/zeebo/blake3"
)

// Bounds on what a file includes.
const (
	maxIncludes = 8  // files in one another
	maxSources  = 64 // files
)

// Load reads a layer from a file and from those that it includes. Read gives a file's
// content by its path, which is as absolute as the first one's. Errors are of type
// Problems: all that is wrong, each with file, line and column. Sources and Sum are set
// all the same, so that whoever waits for a better version knows where to look.
func Load(name, file string, read func(file string) ([]byte, error)) (Layer, error) {
	ld := loader{read: read, left: maxFile, dir: path.Dir(file), layer: Layer{Name: name, File: file}}
	ld.file(file, nil)
	l := ld.layer
	l.Sum, l.Texts = ld.sum(), ld.texts
	if err := ld.problems.err(); err != nil {
		return Layer{Name: name, File: file, Sources: l.Sources, Sum: l.Sum}, err
	}
	return l, nil
}

type loader struct {
	read     func(string) ([]byte, error)
	texts    [][]byte // of each of the layer's sources; nil of one that couldn't be read
	left     int      // bytes that may still be read
	dir      string   // the first file's
	layer    Layer
	problems Problems
}

// naming is where a file is named as one to include.
type naming struct {
	file string // which includes it
	at   text
}

// bad notes what is wrong with a file, which by leads to: at the place that names it.
func (ld *loader) bad(file string, by []naming, format string, a ...any) {
	e := &FileError{File: file, Err: fmt.Errorf(format, a...)}
	if len(by) > 0 {
		var chain strings.Builder
		for _, n := range by {
			chain.WriteString(n.file + " → ")
		}
		last := by[len(by)-1]
		e = &FileError{last.file, last.at.line, last.at.column, fmt.Errorf("cannot include %s%s: %w", &chain, file, e.Err)}
	}
	ld.problems = append(ld.problems, e)
}

// file reads one file, and then what it includes.
func (ld *loader) file(file string, by []naming) {
	switch {
	case slices.ContainsFunc(by, func(n naming) bool { return n.file == file }):
		ld.bad(file, by, "it is being read already: files include one another")
		return
	case slices.Contains(ld.layer.Sources, file):
		return // its rules are there already
	case len(by) > maxIncludes:
		ld.bad(file, by, "files are included in one another more than %d times", maxIncludes)
		return
	case len(ld.layer.Sources) >= maxSources:
		ld.bad(file, by, "more than %d files are included", maxSources)
		return
	}
	ld.layer.Sources = append(ld.layer.Sources, file)
	data, err := ld.read(file)
	ld.texts = append(ld.texts, data)
	switch {
	case err != nil:
		ld.bad(file, by, "%w", err)
		return
	case len(data) > ld.left:
		ld.bad(file, by, "files of rules have at most %d bytes, all together", maxFile)
		return
	}
	ld.left -= len(data)
	l, includes, err := parseLayer(ld.layer.Name, file, data)
	if err != nil {
		ld.problems = append(ld.problems, err.(Problems)...) // which is all that it returns
		return
	}
	ld.layer.join(&l)
	for _, t := range includes {
		name := t.s
		if name == "" || strings.HasPrefix(name, "~") {
			bad := t.bad("cannot include %q: name a file, relative to this one or absolute", name)
			bad[0].File = file
			ld.problems = append(ld.problems, bad...)
			continue
		}
		if !path.IsAbs(name) {
			name = path.Join(path.Dir(file), name)
		}
		ld.file(path.Clean(name), append(slices.Clip(by), naming{file, t}))
	}
}

// sum is of all that was read: of one file its own BLAKE3.
func (ld *loader) sum() string {
	h := blake3.New()
	for i, text := range ld.texts {
		if len(ld.texts) > 1 {
			fmt.Fprintf(h, "%q %d\n", relative(ld.dir, ld.layer.Sources[i]), len(text))
		}
		_, _ = h.Write(text) // never fails
	}
	return hex.EncodeToString(h.Sum(nil))
}

// relative is how a file is told apart wherever its folder is.
func relative(dir, file string) string {
	return strings.TrimPrefix(file, strings.TrimSuffix(dir, "/")+"/")
}

// join puts another file's rules behind a layer's own.
func (l *Layer) join(more *Layer) {
	l.Rules = append(l.Rules, more.Rules...)
	l.Network = append(l.Network, more.Network...)
	l.Hide = append(l.Hide, more.Hide...)
	l.ReadOnly = append(l.ReadOnly, more.ReadOnly...)
	l.Review = append(l.Review, more.Review...)
	l.Limits = append(l.Limits, more.Limits...)
	l.Pass = append(l.Pass, more.Pass...)
	l.Set = append(l.Set, more.Set...)
	l.Names = append(l.Names, more.Names...)
	l.Mounts = append(l.Mounts, more.Mounts...)
	l.Credentials = append(l.Credentials, more.Credentials...)
	l.Checks = append(l.Checks, more.Checks...)
	l.Asking = append(l.Asking, more.Asking...)
}
