package home

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"

	"github.com/zeebo/blake3"

	"stepbox/policy"
	"stepbox/runner/overlay/diff"
	"stepbox/runner/overlay/manifest"
	"stepbox/session/api"
	"stepbox/session/judge"
)

// A home that sessions share is in no checkpoint, and what a session writes there is the
// next one's. What programs obey of it is saved as a session begins, so that it can be told
// what the session made of that, and put back. Of all else, as sign-ins and transcripts,
// nothing is kept.

// Bounds on what is saved.
const (
	maxSaved  = 1 << 20  // bytes of one file
	maxAll    = 16 << 20 // of all
	maxBelow  = 200      // files of one folder
	savedFile = "obeyed.json"
)

// saved is one file or link of those.
type saved struct {
	Executable bool   `json:"executable,omitempty"`
	Link       string `json:"link,omitempty"` // what it leads to
	Data       []byte `json:"data,omitempty"`
	Not        string `json:"not,omitempty"` // why it can't be put back; another text is another file
}

// file is it as a side of a difference.
func (s saved) file(rel string) *diff.File {
	f := &diff.File{Path: rel, Entry: manifest.Entry{Kind: manifest.KindFile, Size: int64(len(s.Data))}}
	if f.Mode = 0o600; s.Executable {
		f.Mode = 0o700
	}
	if s.Link != "" {
		f.Kind, f.Target, f.Mode = manifest.KindSymlink, s.Link, 0o777
	}
	return f
}

// Save saves what programs obey of a home that is shared. Of a session that is resumed it was.
func (p Place) Save() error {
	if p.Saved == "" {
		return nil
	}
	file := filepath.Join(p.Saved, savedFile)
	if _, err := os.Lstat(file); err == nil {
		return nil
	}
	now, err := p.obeyed()
	if err != nil {
		return err
	}
	data, err := json.Marshal(now)
	if err == nil {
		err = os.MkdirAll(p.Saved, 0o700)
	}
	if err == nil {
		err = os.WriteFile(file+".new", data, 0o600)
	}
	if err == nil {
		err = os.Rename(file+".new", file)
	}
	if err != nil {
		return fmt.Errorf("cannot save what programs obey of the home: %w", err)
	}
	return nil
}

// saved is what Save did.
func (p Place) saved() (out map[string]saved, err error) {
	data, err := os.ReadFile(filepath.Join(p.Saved, savedFile))
	if errors.Is(err, fs.ErrNotExist) { // of a session of before
		return nil, errNotOwn
	}
	if err == nil {
		err = json.Unmarshal(data, &out)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read what programs obeyed of the home: %w", err)
	}
	return out, nil
}

// obeyed is what programs obey of the home now.
func (p Place) obeyed() (map[string]saved, error) {
	dir, err := Open(p.Folder)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	out, left := map[string]saved{}, int64(maxAll)
	for _, name := range judge.ObeyedNames() {
		if info, err := dir.Lstat(name); err != nil {
			continue
		} else if !info.IsDir() {
			dir.take(name, out, &left)
			continue
		}
		n := 0
		_ = fs.WalkDir(dir.FS(), name, func(rel string, e fs.DirEntry, err error) error {
			switch {
			case err != nil: // what can't be looked into isn't obeyed by who can't either
				return nil
			case e.IsDir():
				return nil
			}
			if n++; n > maxBelow {
				return fs.SkipAll
			}
			dir.take(rel, out, &left)
			return nil
		})
	}
	return out, nil
}

// take adds one file as it is to others, of which so many bytes are left.
func (d Dir) take(rel string, to map[string]saved, left *int64) {
	info, err := d.Lstat(rel)
	if _, has := to[rel]; has || err != nil {
		return
	}
	s := saved{Executable: info.Mode()&0o100 != 0}
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		if s.Link, err = d.Readlink(rel); err != nil {
			s.Not = "it is a link that can't be read"
		}
	case !info.Mode().IsRegular():
		s.Not = "it is neither a file nor a link"
	case info.Size() > maxSaved || info.Size() > *left:
		s.Not = fmt.Sprintf("it was too large to be saved: %d bytes of %s", info.Size(), info.ModTime().UTC())
	default:
		if s.Data, _, err = d.Read(rel, maxSaved); err != nil {
			s.Data, s.Not = nil, "it couldn't be read"
		}
		*left -= int64(len(s.Data))
	}
	to[rel] = s
}

// disobeyed is what differs of it, from how it was.
func (p Place) disobeyed() (differs map[string]difference, was, now map[string]saved, err error) {
	if was, err = p.saved(); err == nil {
		now, err = p.obeyed()
	}
	if err != nil {
		return nil, nil, nil, err
	}
	differs = map[string]difference{}
	for rel, s := range now {
		old, had := was[rel]
		switch {
		case !had:
			differs[rel] = difference{now: s.file(rel)}
		case !reflect.DeepEqual(s, old):
			differs[rel] = difference{now: s.file(rel), old: old.file(rel), content: true}
		}
	}
	for rel, s := range was {
		if _, has := now[rel]; !has {
			differs[rel] = difference{old: s.file(rel)}
		}
	}
	return differs, was, now, nil
}

// planObeyed is Plan for a home that is shared: of what programs obey there.
func (p Place) planObeyed(profile *policy.Profile, paths []string, of api.HomePaths) (*Plan, error) {
	differs, was, now, err := p.disobeyed()
	if err != nil {
		return nil, err
	}
	out := &Plan{takes: map[string]then{}}
	out.Shown = api.RollbackPlan{RollbackTarget: api.RollbackTarget{Home: &of}, Actions: []int{}, Files: []api.Change{}}
	h := blake3.New()
	for _, rel := range slices.Sorted(maps.Keys(differs)) {
		d := differs[rel]
		old, had := was[rel]
		switch {
		case !chosen(rel, paths):
			continue
		case had && old.Not != "":
			out.Shown.Problems = append(out.Shown.Problems, api.Trouble{Path: api.Escape(rel), Why: old.Not})
			continue
		case had:
			out.Shown.Restores++
		default:
			out.Shown.Removes++
		}
		out.takes[rel] = d.then()
		if len(out.Shown.Files) < maxListed {
			out.Shown.Files = append(out.Shown.Files, d.change(rel, d.traps(rel, profile.Brings())))
		}
		text, _ := json.Marshal([]saved{old, now[rel]}) // plain data
		_, _ = fmt.Fprintf(h, " %q %s", rel, text)      // a hash never fails
	}
	out.Shown.More = len(out.takes) - len(out.Shown.Files)
	out.Shown.Hash = hex.EncodeToString(h.Sum(nil)[:16])
	out.again = func() (*Plan, error) { return p.planObeyed(profile, paths, of) }
	return out, nil
}

// putBack carries such a plan out. The agent is frozen; other sessions of this home may not be.
func (p Place) putBack(plan *Plan, begin func(left []string) error) (failed []manifest.Problem, err error) {
	now, err := plan.again()
	if err != nil {
		return nil, err
	}
	if now.Shown.Hash != plan.Shown.Hash {
		return nil, errStale
	}
	was, err := p.saved()
	if err != nil {
		return nil, err
	}
	dir, err := Open(p.Folder)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	if err := begin(nil); err != nil {
		return nil, err
	}
	for _, rel := range slices.Sorted(maps.Keys(plan.takes)) {
		s, had := was[rel]
		if err := dir.put(rel, s, had); err != nil {
			failed = append(failed, manifest.Problem{Path: rel, Text: cause(err)})
		}
	}
	if len(failed) > 0 {
		return failed, fmt.Errorf("cannot roll all back: %d failed, the first is ~/%s: %s", len(failed), api.Escape(failed[0].Path), api.Escape(failed[0].Text))
	}
	return nil, nil
}

// put makes one file what it was.
func (d Dir) put(rel string, s saved, had bool) error {
	switch {
	case d.linked(rel):
		return errors.New("something else than a folder is above it, such as a link")
	case had && s.Link == "":
		return d.Write(rel, s.Data, s.Executable)
	}
	if err := d.Remove(rel); err != nil && !errors.Is(err, fs.ErrNotExist) || !had {
		return err
	}
	return d.Symlink(s.Link, rel)
}
