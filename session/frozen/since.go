package frozen

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"stepbox/runner/overlay/inode"
	"stepbox/runner/overlay/manifest"
	"stepbox/session/base"
)

// Back is a file of a project that is to be in a session as it was.
type Back struct {
	Path       string
	Repository string         // its repository's, from the project
	Was        manifest.Entry // a whiteout: it wasn't there
	Blob       []byte         // where the content is the index's: git's hash of it; else it is Was's
}

// since compares what a project was with what it is now.
type since struct {
	then, now map[string]*base.Entry
	tracked   map[string]tracked // by its index then
	covered   func(path string) bool
	out       []Back
}

type tracked struct {
	repository string
	*base.Tracked
}

// Since lists what of a project has to be put back for a session to see all that git has
// as it was: what was in the indexes then and is another by now, or gone, and what the
// host's git has now and hadn't then. Then and now go by the same indexes. Covered are the
// paths that the session has a version of its own of; added says whether the host's git
// has one that it hadn't.
func Since(then, now *base.Record, covered func(path string) bool, added func(repository, path string) bool) []Back {
	s := &since{then: entries(then), now: entries(now), tracked: map[string]tracked{}, covered: covered}
	for i := range now.Repositories {
		r := &now.Repositories[i]
		for j := range r.Tracked {
			if t := &r.Tracked[j]; t.Stage == 0 && !t.Sparse && t.Mode != base.ModeSubmodule {
				s.tracked[path.Join(r.Path, t.Path)] = tracked{r.Path, t}
			}
		}
	}
	for at, t := range s.tracked {
		s.known(at, t)
	}
	for at, e := range s.now {
		if _, known := s.tracked[at]; known || e.Kind == manifest.KindDir || e.Kind == manifest.KindWhiteout || s.then[at] != nil || s.covered(at) {
			continue
		}
		if r := repositoryOf(now, at); added(r, at) {
			s.out = append(s.out, Back{Path: at, Repository: r, Was: manifest.Entry{Kind: manifest.KindWhiteout}})
		}
	}
	return s.clear()
}

// clear are those that can be had together: what comes back where a file stands in the
// place of its folder by now, or a folder in its own, hides that as well.
func (s *since) clear() []Back {
	back, folders := map[string]bool{}, map[string]bool{}
	for _, b := range s.out {
		if b.Was.Kind == manifest.KindWhiteout {
			continue
		}
		back[b.Path] = true
		for dir := path.Dir(b.Path); dir != "."; dir = path.Dir(dir) {
			folders[dir] = true
		}
	}
	return slices.DeleteFunc(s.out, func(b Back) bool {
		hidden := folders[b.Path]
		for dir := path.Dir(b.Path); dir != "."; dir = path.Dir(dir) {
			hidden = hidden || back[dir]
		}
		return hidden && b.Was.Kind == manifest.KindWhiteout
	})
}

func entries(r *base.Record) map[string]*base.Entry {
	out := make(map[string]*base.Entry, len(r.Entries))
	for i := range r.Entries {
		out[r.Entries[i].Path] = &r.Entries[i]
	}
	return out
}

// at is what a record says of a path: nil, that it is as the index has it.
func at(of map[string]*base.Entry, p string) *base.Entry {
	if e := of[p]; e != nil {
		return e
	}
	for dir := path.Dir(p); dir != "."; dir = path.Dir(dir) {
		if e := of[dir]; e != nil && e.Kind != manifest.KindDir {
			return &base.Entry{Path: p, Entry: manifest.Entry{Kind: manifest.KindWhiteout}}
		}
	}
	return nil
}

// known puts a file back that git had, unless it is as it was.
func (s *since) known(p string, t tracked) {
	was, is := at(s.then, p), at(s.now, p)
	if same(was, is) || s.covered(p) {
		return
	}
	b := Back{Path: p, Repository: t.repository}
	if was == nil {
		b.Was, b.Blob = entryOf(t), t.Hash
	} else {
		b.Was = was.Entry
	}
	s.out = append(s.out, b)
}

func entryOf(t tracked) manifest.Entry {
	switch t.Mode {
	case base.ModeLink:
		return manifest.Entry{Kind: manifest.KindSymlink}
	case base.ModeExecutable:
		return manifest.Entry{Kind: manifest.KindFile, Meta: manifest.Meta{Mode: 0o755}}
	}
	return manifest.Entry{Kind: manifest.KindFile, Meta: manifest.Meta{Mode: 0o644}}
}

func same(a, b *base.Entry) bool {
	if a == nil || b == nil {
		return a == b
	}
	if a.Kind != b.Kind || a.Mode != b.Mode || a.Target != b.Target {
		return false
	}
	if a.Hash.IsZero() || b.Hash.IsZero() {
		return a.Size == b.Size && a.MTime == b.MTime
	}
	return a.Hash == b.Hash
}

// repositoryOf is the innermost repository that a path is in.
func repositoryOf(r *base.Record, p string) (found string) {
	for i := range r.Repositories {
		if at := r.Repositories[i].Path; len(at) > len(found) && strings.HasPrefix(p, at+"/") {
			found = at
		}
	}
	return found
}

// Converting are the attributes by which git has files in another form than it checks them out.
var Converting = []string{"filter", "working-tree-encoding", "ident", "text", "eol"}

// Attributes are what git check-attr -z says, by path.
func Attributes(said string) map[string]map[string]string {
	out := map[string]map[string]string{}
	fields := strings.Split(said, "\x00")
	for i := 0; i+2 < len(fields); i += 3 {
		p := fields[i]
		if out[p] == nil {
			out[p] = map[string]string{}
		}
		out[p][fields[i+1]] = fields[i+2]
	}
	return out
}

// Converts says whether git checks a file with such attributes out in another form: see
// gitattributes(5). Auto and crlf are core.autocrlf and core.eol.
func Converts(attributes map[string]string, auto, crlf bool) bool {
	for _, by := range []string{"filter", "working-tree-encoding"} {
		if !slices.Contains([]string{"", "unspecified", "unset", "set"}, attributes[by]) {
			return true
		}
	}
	return attributes["ident"] == "set" || returns(attributes["text"], attributes["eol"], auto, crlf)
}

// returns says whether lines are checked out with a carriage return.
func returns(text, eol string, auto, crlf bool) bool {
	switch {
	case text == "unset" || eol == "lf":
		return false
	case eol == "crlf" || auto:
		return true
	}
	return crlf && (text == "set" || text == "auto")
}

// Contents reads what is put back: body what a record has, blobs what git has. Blobs
// calls take for each in turn, or with nil for one that is gone.
type Contents struct {
	Body  func(context.Context, *manifest.Entry) ([]byte, error)
	Blobs func(ctx context.Context, repository string, hashes [][]byte, take func(i int, content io.Reader) error) error
}

// PutBack has the layer show files as they were, and nothing else. It gives those that
// can't be had any more.
func (g Git) PutBack(ctx context.Context, list []Back, c Contents) (lost []string, err error) {
	if err := g.NothingBack(); err != nil {
		return nil, err
	}
	blobs := make(map[string][]int)
	for i := range list {
		b := &list[i]
		switch {
		case b.Blob != nil:
			blobs[b.Repository] = append(blobs[b.Repository], i)
		case b.Was.Kind == manifest.KindFile:
			body, failure := c.Body(ctx, &b.Was)
			if failure != nil {
				lost = append(lost, b.Path)
				continue
			}
			err = g.put(b, bytes.NewReader(body))
		default:
			err = g.put(b, strings.NewReader(b.Was.Target))
		}
		if err != nil {
			return nil, putBad(b, err)
		}
	}
	for repository, of := range blobs {
		var hashes [][]byte
		for _, i := range of {
			hashes = append(hashes, list[i].Blob)
		}
		err := c.Blobs(ctx, repository, hashes, func(n int, content io.Reader) error {
			b := &list[of[n]]
			if content == nil {
				lost = append(lost, b.Path)
				return nil
			}
			if err := g.put(b, content); err != nil {
				return putBad(b, err)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return lost, nil
}

func putBad(b *Back, err error) error {
	return fmt.Errorf("cannot have %q as it was: %w", b.Path, err)
}

// NothingBack has the layer show nothing.
func (g Git) NothingBack() error { return empty(Restored(g.Folder)) }

// put writes one file of the layer.
func (g Git) put(b *Back, content io.Reader) error {
	top := Restored(g.Folder)
	for i, c := range b.Path {
		if c != '/' {
			continue
		}
		dir := filepath.Join(top, b.Path[:i])
		switch err := os.Mkdir(dir, 0o755); {
		case errors.Is(err, fs.ErrExist):
		case err != nil:
			return err
		default:
			theirs := filepath.Join(g.Project, b.Path[:i])
			if info, err := os.Lstat(theirs); err == nil && info.IsDir() {
				if err := inode.Look(dir, theirs); err != nil {
					return err
				}
				if err := os.Chmod(dir, info.Mode().Perm()|0o300); err != nil {
					return err
				}
			}
		}
	}
	to := filepath.Join(top, b.Path)
	switch b.Was.Kind {
	case manifest.KindWhiteout:
		return unix.Mknod(to, unix.S_IFCHR, 0)
	case manifest.KindSymlink:
		target, err := io.ReadAll(io.LimitReader(content, unix.PathMax))
		if err != nil {
			return err
		}
		return os.Symlink(string(target), to)
	case manifest.KindFile:
		out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		_, err = io.Copy(out, content)
		return errors.Join(err, out.Chmod(fs.FileMode(b.Was.Mode&0o777)), out.Close())
	}
	return nil
}
