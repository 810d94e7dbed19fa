package base

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"stepbox/policy/git"
	"stepbox/runner/overlay/lower"
	"stepbox/runner/overlay/manifest"
)

// scope is a part of the project that one repository says about, or none.
type scope struct {
	path    string          // from the project
	git     *git.Repository // nil outside of a repository
	record  Repository
	tracked []git.Entry    // of the project, their paths relative to path
	at      map[string]int // the first of each path in tracked
	seen    []bool         // of tracked
	written git.Stamp      // of the index

	// Paths relative to path.
	folders map[string]bool // that were looked into
	there   map[string]bool // that aren't tracked, and no folders
	apart   map[string]bool // of which nothing can be said, nor of what is below
	secret  map[string]bool // those of them that are hidden
}

func newScope(path string, r *git.Repository) *scope {
	s := &scope{path: path, folders: map[string]bool{}, there: map[string]bool{}, apart: map[string]bool{}, secret: map[string]bool{}}
	root, prefix := r.Root()
	if root == "" {
		return s
	}
	s.git = r
	s.record = Repository{Path: path, Prefix: prefix}
	s.record.Commit, s.record.Branch = r.Head()
	if err := s.index(prefix); err != nil {
		s.record.Unread, s.tracked = err.Error(), nil
	}
	r.ReadFolder(".")
	return s
}

// index reads what is tracked of the project.
func (s *scope) index(prefix string) error {
	all, written, err := s.git.Index()
	if err != nil {
		return err
	}
	s.written = written
	if prefix != "" {
		prefix += "/"
	}
	s.at, s.tracked = make(map[string]int, len(all)), make([]git.Entry, 0, len(all))
	for _, e := range all {
		path, ok := strings.CutPrefix(e.Path, prefix)
		if path = strings.TrimSuffix(path, "/"); !ok || path == "" {
			continue
		}
		if !validPath(path) {
			return fmt.Errorf("the index names %q", e.Path)
		}
		if n := len(s.tracked); n > 0 {
			last := s.tracked[n-1]
			if path < last.Path || path == last.Path && e.Stage <= last.Stage {
				return fmt.Errorf("the index isn't in order at %q", e.Path)
			}
		}
		e.Path = path
		if _, ok := s.at[path]; !ok {
			s.at[path] = len(s.tracked)
		}
		s.tracked = append(s.tracked, e)
	}
	s.seen = make([]bool, len(s.tracked))
	return nil
}

// knows says whether the scope's repository tells what is tracked.
func (s *scope) knows() bool { return s.git != nil && s.record.Unread == "" }

// see notes that a path is there, and gives what the index has of it.
func (s *scope) see(rel string) *git.Entry {
	first, ok := s.at[rel]
	if !ok {
		return nil
	}
	for i := first; i < len(s.tracked) && s.tracked[i].Path == rel; i++ {
		s.seen[i] = true
	}
	return &s.tracked[first]
}

// deleted lists what is tracked and isn't there: of folders that are gone with
// all that is tracked in them, the topmost.
func (s *scope) deleted() []string {
	var out []string
	for i := range s.tracked {
		e := &s.tracked[i]
		if s.seen[i] || e.Sparse {
			continue
		}
		if rel, ok := s.missing(e.Path); ok && (len(out) == 0 || out[len(out)-1] != rel) {
			out = append(out, rel)
		}
	}
	return out
}

// missing says which part of a path is the first that isn't there; ok is false
// when that is none, or can't be told.
func (s *scope) missing(path string) (rel string, ok bool) {
	for i := 0; i <= len(path); i++ {
		if i < len(path) && path[i] != '/' {
			continue
		}
		at := path[:i]
		if s.apart[at] {
			return "", false
		}
		if i == len(path) || !s.folders[at] {
			return at, !s.there[at]
		}
	}
	return "", false
}

// hide fills in what the record has of the index, without the hashes of what is
// hidden from the agent.
func (s *scope) hide() {
	s.record.Tracked = make([]Tracked, len(s.tracked))
	for i := range s.tracked {
		e := &s.tracked[i]
		t := Tracked{Path: e.Path, Mode: e.Mode, Stage: e.Stage, Sparse: e.Sparse, Hash: e.Hash}
		if s.hidden(e.Path) {
			t.Hash = nil
		}
		s.record.Tracked[i] = t
	}
}

func (s *scope) hidden(path string) bool {
	if len(s.secret) == 0 {
		return false
	}
	for i := range len(path) {
		if path[i] == '/' && s.secret[path[:i]] {
			return true
		}
	}
	return s.secret[path]
}

// Modes, as git has them.
const (
	ModeFile       = 0o100644
	ModeExecutable = 0o100755
	ModeLink       = 0o120000
	ModeSubmodule  = 0o160000
)

// same says whether a file is what the index has: by its looks, when it hasn't
// been touched since git looked, else by its content.
func (t *taker) same(s *scope, noted *git.Entry, n *lower.Found) (bool, error) {
	e := &n.Entry
	if noted.Stage != 0 || noted.Mode != ModeOf(e) {
		return false, nil
	}
	size := e.Size
	if e.Kind == manifest.KindSymlink {
		size = int64(len(e.Target))
	}
	if noted.Size == uint32(size) && stamp(e.MTime) == noted.MTime && stamp(n.CTime) == noted.CTime && before(noted.MTime, s.written) {
		return true, nil
	}
	if noted.Size != uint32(size) && noted.Size != 0 {
		return false, nil
	}
	if e.Kind == manifest.KindSymlink {
		sum := git.Object("blob", size, len(noted.Hash))
		io.WriteString(sum, e.Target) // hashes take all
		return bytes.Equal(sum.Sum(nil), noted.Hash), nil
	}
	if size > t.left.read {
		return false, nil
	}
	t.left.read -= size
	r, size, err := n.Open(t.ctx)
	if err != nil {
		return false, t.ctx.Err() // content says why it can't be read
	}
	defer r.Close()
	sum := git.Object("blob", size, len(noted.Hash))
	if _, err := io.Copy(sum, io.LimitReader(r, size+1)); err != nil {
		return false, t.ctx.Err()
	}
	return bytes.Equal(sum.Sum(nil), noted.Hash), nil
}

// ModeOf is what git makes of a file's looks.
func ModeOf(e *manifest.Entry) uint32 {
	switch {
	case e.Kind == manifest.KindSymlink:
		return ModeLink
	case e.Kind != manifest.KindFile:
		return 0
	case e.Mode&0o100 != 0:
		return ModeExecutable
	}
	return ModeFile
}

func stamp(t manifest.Time) git.Stamp { return git.Stamp{Sec: uint32(t.Sec), Nsec: t.Nsec} }

func before(a, b git.Stamp) bool { return a.Sec < b.Sec || a.Sec == b.Sec && a.Nsec < b.Nsec }
