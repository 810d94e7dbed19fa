package bring

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"unicode/utf8"

	"stepbox/policy"
	"stepbox/policy/git"
	"stepbox/runner/overlay/manifest"
	"stepbox/session/api"
)

// real is what a listed path leads to, over any links of the person's; "" where nothing
// is there, or what is there isn't brought, which is told.
func (b *bringer) real(rel, from string, folder bool) string {
	if _, err := os.Lstat(from); err != nil {
		return "" // most people have few of them
	}
	refuse := func(format string, args ...any) string {
		b.left(api.LeftFile, rel, fmt.Sprintf(format, args...))
		return ""
	}
	real, err := filepath.EvalSymlinks(from)
	if err != nil {
		return refuse("it is a link that leads nowhere")
	}
	info, err := os.Lstat(real)
	switch {
	case err != nil:
		return refuse("it can't be looked at: %v", err)
	case b.hides(real):
		return refuse("it is a link to where secrets are")
	case folder && !info.IsDir():
		return refuse("it isn't a folder")
	case !folder && !info.Mode().IsRegular():
		return refuse("it isn't a regular file")
	case real != from && !b.persons(real, info):
		return refuse("it is a link to a file that isn't yours, or isn't for all to read")
	}
	return real
}

// hides says whether a resolved path is one of a secret's.
func (b *bringer) hides(real string) bool {
	rel, err := filepath.Rel(b.Home, real)
	if err != nil || !filepath.IsLocal(rel) {
		rel = strings.TrimPrefix(real, "/")
	}
	return policy.Secret(rel) || slices.ContainsFunc(b.secrets, func(s string) bool { return manifest.Within(real, s) })
}

// persons says whether what a link leads to is the person's own: theirs and in their home,
// or anybody's to read, as in a package store.
func (b *bringer) persons(real string, info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	home, err := filepath.EvalSymlinks(b.Home)
	mine := ok && int(st.Uid) == os.Getuid()
	return ok && err == nil && (mine && manifest.Within(real, home) || (mine || st.Uid == 0) && info.Mode().Perm()&0o004 != 0)
}

// file brings a listed file as it is, without secrets.
func (b *bringer) file(rel string) { b.text(rel, b.at(rel), api.BroughtItem{Name: path.Base(rel)}) }

func (b *bringer) text(rel, from string, item api.BroughtItem) {
	if real := b.real(rel, from, false); real != "" {
		if real != from {
			item.From = api.Escape(real)
		}
		item.Name = api.Escape(item.Name)
		b.copy(rel, real, item)
	}
}

// copy brings a regular file. In a text, words stand for the secrets that are found.
func (b *bringer) copy(rel, real string, item api.BroughtItem) bool {
	data, info, err := b.read(real, maxFile)
	if err != nil {
		b.left(api.LeftFile, rel, "it isn't read: "+cause(err))
		return false
	}
	if clean := b.without(string(data)); clean != string(data) {
		if !utf8.Valid(data) {
			b.left(api.LeftToken, rel, "it isn't a text, and has a secret in it: all of it is left out")
			return false
		}
		b.left(api.LeftToken, rel, "words stand in its place")
		data = []byte(clean)
	}
	return b.write(rel, data, info.Mode()&0o111 != 0, item)
}

// read reads a file of the person's. One that has another name may be a secret by that:
// only what is nobody's secret, as in a package store, may have some.
func (b *bringer) read(real string, most int64) ([]byte, fs.FileInfo, error) {
	info, err := os.Lstat(real)
	if err != nil {
		return nil, nil, err
	}
	home, _ := filepath.EvalSymlinks(b.Home)
	if st := info.Sys().(*syscall.Stat_t); st.Nlink > 1 && (manifest.Within(real, home) || info.Mode().Perm()&0o004 == 0) {
		return nil, nil, errors.New("it has another name (a hard link), which may be a secret's; a copy of it has none")
	}
	data, err := git.ReadFile(real, most)
	return data, info, err
}

// cause is an error without the path, which is told already.
func cause(err error) string {
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(err) {
		err = inner
	}
	return err.Error()
}

// folder brings a listed folder with what is in it.
func (b *bringer) folder(rel string) {
	from := b.at(rel)
	top := b.real(rel, from, true)
	if top == "" {
		return
	}
	w := walker{bringer: b, top: top}
	entries := w.entries(top)
	item := named(rel, from, top)
	for _, e := range entries {
		before := w.files
		w.entry(path.Join(rel, e.Name()), filepath.Join(top, e.Name()), e, 1)
		if w.files > before {
			item.Count++
		}
	}
	if w.more > 0 {
		b.left(api.LeftFile, rel, fmt.Sprintf("it has more than %d files: the others aren't brought", maxFiles))
	}
	if item.Path = api.Escape(rel); item.Count > 0 {
		b.out.Items = append(b.out.Items, item)
	}
}

// walker goes through a listed folder.
type walker struct {
	*bringer
	top         string // resolved
	files, more int    // brought; passed over for want of room
}

// entries are a folder's, in order; no more than may be brought.
func (w *walker) entries(dir string) []fs.DirEntry {
	f, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer f.Close()
	entries, _ := f.ReadDir(4 * maxFiles)
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries
}

// apart are folders that hold other people's code, or git's own.
var apart = []string{".git", "node_modules", ".venv", "__pycache__"}

func (w *walker) entry(rel, full string, e fs.DirEntry, level int) {
	switch name := e.Name(); {
	case w.files >= maxFiles:
		w.more++
	case w.without(name) != name || policy.Secret(name):
		w.left(api.LeftToken, path.Join(path.Dir(rel), "…"), "the name of a file there says that it holds a secret")
	case e.IsDir() && slices.Contains(apart, name):
		w.left(api.LeftFile, rel, "such folders aren't brought")
	case e.IsDir() && level >= maxLevels:
		w.left(api.LeftFile, rel, "it is too deep")
	case e.IsDir():
		for _, below := range w.entries(full) {
			w.entry(path.Join(rel, below.Name()), filepath.Join(full, below.Name()), below, level+1)
		}
	case e.Type()&fs.ModeSymlink != 0:
		w.link(rel, full)
	case !e.Type().IsRegular():
		w.left(api.LeftFile, rel, "it isn't a regular file")
	case w.copy(rel, full, api.BroughtItem{}):
		w.files++
	}
}

// link brings what a link in the folder leads to, if that is a file in it: what is in
// such folders comes from others, too, whose links lead anywhere.
func (w *walker) link(rel, full string) {
	real, err := filepath.EvalSymlinks(full)
	if err != nil || !manifest.Within(real, w.top) || w.hides(real) {
		w.left(api.LeftLink, rel, "it is a link out of "+path.Base(w.top)+": put the file there, or link the whole folder")
		return
	}
	if info, err := os.Lstat(real); err != nil || !info.Mode().IsRegular() {
		w.left(api.LeftLink, rel, "it is a link to a folder")
	} else if w.copy(rel, real, api.BroughtItem{}) {
		w.files++
	}
}
