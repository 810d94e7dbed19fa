package home

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

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
	maxFiles  = 4_000
	savedFile = "programs-obey.json"
)

// saved is one file or link of those.
type saved struct {
	Executable bool   `json:"executable,omitempty"`
	Link       string `json:"link,omitempty"` // what it leads to
	Data       []byte `json:"data,omitempty"`
	Size       int64  `json:"size,omitempty"`
	Seen       string `json:"seen"`              // which file it is, and when its status last changed, which no program can set
	Not        string `json:"not,omitempty"`     // why it can't be put back
	By         string `json:"by,omitempty"`      // the link through which programs get there; "": they do by its name
	Unknown    string `json:"unknown,omitempty"` // why it isn't known what else is in it, or what it leads to
}

// Saved is what programs obeyed of a home as a session began.
type Saved struct {
	Inside string           `json:"inside"` // where the home is in the sandbox
	Files  map[string]saved `json:"files"`
}

// file is it as a side of a difference.
func (s saved) file(rel string) *diff.File {
	f := &diff.File{Path: rel, Entry: manifest.Entry{Kind: manifest.KindFile, Size: s.Size, Unsaved: s.Unknown}}
	if f.Mode = 0o600; s.Executable {
		f.Mode = 0o700
	}
	switch {
	case s.Link != "":
		f.Kind, f.Target, f.Mode = manifest.KindSymlink, s.Link, 0o777
	case s.Unknown != "":
		f.Kind, f.Mode = manifest.KindDir, 0o700
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
	dir, err := Open(p.Folder)
	if err != nil {
		return err
	}
	defer dir.Close()
	found := dir.lookAt(p.Inside).files
	dir.take(found)
	data, err := json.Marshal(Saved{p.Inside, found})
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

// take reads what is in files: first of those that have a name of their own, then of what is not as deep
// in folders, where settings are, and of that the smallest.
func (d Dir) take(files map[string]saved) {
	named := map[string]bool{}
	for _, name := range judge.ObeyedNames() {
		named[name] = true
	}
	last := func(rel string) int {
		if named[rel] || named[files[rel].By] {
			return 0
		}
		return 1 + strings.Count(rel, "/")
	}
	left, taken := int64(maxAll), 0
	order := slices.SortedFunc(maps.Keys(files), func(a, b string) int {
		return cmp.Or(cmp.Compare(last(a), last(b)), cmp.Compare(files[a].Size, files[b].Size), cmp.Compare(a, b))
	})
	for _, rel := range order {
		s := files[rel]
		switch {
		case s.Link != "" || s.Not != "" || s.Unknown != "":
			continue
		case s.Size > maxSaved || s.Size > left:
			s.Not = fmt.Sprintf("it was too large to be saved, with %d bytes", s.Size)
		case taken >= maxFiles:
			s.Not = fmt.Sprintf("of so many files only %d were saved", maxFiles)
		default:
			taken++
			var err error
			if s.Data, _, err = d.Read(rel, maxSaved); err != nil {
				s.Data, s.Not = nil, "it couldn't be read"
			}
			left -= int64(len(s.Data))
		}
		files[rel] = s
	}
}

// Was reads what Save saved.
func (p Place) Was() (out *Saved, err error) {
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

// disobeyed is what differs of it from how it was.
type disobeyed struct {
	differs  map[string]difference
	was, now map[string]saved
}

func (p Place) disobeyed() (*disobeyed, error) {
	was, err := p.Was()
	if err != nil {
		return nil, err
	}
	return p.since(was)
}

func (p Place) since(was *Saved) (*disobeyed, error) {
	dir, err := Open(p.Folder)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	l := dir.lookAt(was.Inside)
	for rel, s := range was.Files { // what was saved is found, however much there is by now
		if _, has := l.files[rel]; has {
			continue
		}
		if info, err := dir.Lstat(rel); err == nil && !info.IsDir() && !dir.linked(rel) {
			l.add(rel, s.By, stat(info))
		}
	}
	out := &disobeyed{differs: map[string]difference{}, was: was.Files, now: l.files}
	for rel, s := range out.now {
		old, had := out.was[rel]
		switch {
		case s.Unknown == "" && had && dir.same(rel, old, s):
		case had && (old.Unknown == "" || old.Link != ""):
			out.differs[rel] = difference{now: s.file(rel), old: old.file(rel), content: true, obeyed: true}
		default:
			out.differs[rel] = difference{now: s.file(rel), obeyed: true}
		}
	}
	for rel, s := range out.was {
		if _, has := out.now[rel]; !has && s.Unknown == "" {
			out.differs[rel] = difference{old: s.file(rel), obeyed: true}
		}
	}
	return out, nil
}

// same says whether a file is what it was. Only one that may be another is read.
func (d Dir) same(rel string, old, now saved) bool {
	switch {
	case old.Seen == now.Seen:
		return true
	case old.Link != "" || now.Link != "":
		return old.Link == now.Link
	case old.Not != "" || old.Size != now.Size || old.Executable != now.Executable:
		return false
	}
	data, _, err := d.Read(rel, maxSaved)
	return err == nil && bytes.Equal(data, old.Data)
}

// Disobeyed names what differs of a home that is shared from how it was, and what isn't known of it,
// each with what it is now: another text is another change.
func (p Place) Disobeyed(was *Saved) (map[string]string, error) {
	found, err := p.since(was)
	if err != nil {
		return nil, err
	}
	out := make(map[string]string)
	for rel := range found.differs {
		name, now := "~/"+rel, found.now[rel]
		if now.Unknown != "" {
			name += " (not all of it can be looked at)"
		}
		out[name] = now.Seen
	}
	return out, nil
}

// stays says why a file that differs can't go back, or needn't; "": it goes back.
func (d *disobeyed) stays(rel string) string {
	old, had := d.was[rel]
	now := d.now[rel]
	switch {
	case had && old.Not != "":
		return old.Not
	case now.Unknown != "" && (now.Link == "" || now.Link == old.Link):
		return now.Unknown
	case had:
		return ""
	}
	for by := now.By; by != ""; by = d.now[by].By {
		if _, another := d.differs[by]; another {
			return "programs obey it only through a link that wasn't there, ~/" + by + ": it stays, and the link goes"
		}
	}
	for up := path.Dir(rel); up != "."; up = path.Dir(up) {
		if d.was[up].Unknown != "" {
			return "it may have been there: " + d.was[up].Unknown
		}
	}
	return ""
}

// planObeyed is Plan for a home that is shared: of what programs obey there.
func (p Place) planObeyed(profile *policy.Profile, paths []string, of api.HomePaths) (*Plan, error) {
	found, err := p.disobeyed()
	if err != nil {
		return nil, err
	}
	out := &Plan{takes: map[string]then{}}
	out.Shown = api.RollbackPlan{RollbackTarget: api.RollbackTarget{Home: &of}, Actions: []int{}, Files: []api.Change{}}
	h := blake3.New()
	for _, rel := range slices.Sorted(maps.Keys(found.differs)) {
		if !chosen(rel, paths) {
			continue
		}
		if why := found.stays(rel); why != "" {
			out.Shown.Problems = append(out.Shown.Problems, api.Trouble{Path: api.Escape(rel), Why: api.Escape(why)})
			continue
		}
		d := found.differs[rel]
		if d.old != nil {
			out.Shown.Restores++
		} else {
			out.Shown.Removes++
		}
		out.takes[rel] = d.then()
		if len(out.Shown.Files) < maxListed {
			out.Shown.Files = append(out.Shown.Files, d.change(rel, d.traps(rel, profile.Brings())))
		}
		text, _ := json.Marshal([]saved{found.was[rel], found.now[rel]}) // plain data
		_, _ = fmt.Fprintf(h, " %q %s", rel, text)                       // a hash never fails
	}
	out.Shown.More = len(out.takes) - len(out.Shown.Files)
	out.Shown.Hash = hex.EncodeToString(h.Sum(nil)[:16])
	out.again = func() (*Plan, error) { return p.planObeyed(profile, paths, of) }
	return out, nil
}

// putBack carries such a plan out. The agent is frozen; other sessions of this home may not be.
func (p Place) putBack(plan *Plan, begin func(left []string) error) (failed []manifest.Problem, err error) {
	fails := func(rel string, err error) {
		if err != nil {
			failed = append(failed, manifest.Problem{Path: rel, Text: cause(err)})
		}
	}
	now, err := plan.again()
	if err != nil {
		return nil, err
	}
	if now.Shown.Hash != plan.Shown.Hash {
		return nil, errStale
	}
	was, err := p.Was()
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
	all := slices.Sorted(maps.Keys(plan.takes))
	for _, rel := range slices.Backward(all) { // what is in a folder first, and what is in the way of others
		if _, had := was.Files[rel]; !had {
			fails(rel, dir.drop(rel))
		}
	}
	for _, rel := range all {
		if s, had := was.Files[rel]; had {
			fails(rel, dir.put(rel, s))
		}
	}
	after, err := p.since(was)
	if err != nil {
		return failed, fmt.Errorf("cannot tell whether the home was rolled back: %w", err)
	}
	for _, rel := range all {
		if _, still := after.differs[rel]; still && !slices.ContainsFunc(failed, func(f manifest.Problem) bool { return f.Path == rel }) {
			fails(rel, errors.New("it isn't what it was to be"))
		}
	}
	if len(failed) > 0 {
		return failed, fmt.Errorf("cannot roll all back: %d failed, the first is ~/%s: %s", len(failed), api.Escape(failed[0].Path), api.Escape(failed[0].Text))
	}
	return nil, nil
}

// errLinked says that a file isn't where its name says.
var errLinked = errors.New("something else than a folder is above it, such as a link")

// drop removes one file.
func (d Dir) drop(rel string) error {
	if d.linked(rel) {
		return errLinked
	}
	if err := d.Remove(rel); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// put makes one file what it was.
func (d Dir) put(rel string, s saved) error {
	switch {
	case d.linked(rel):
		return errLinked
	case s.Link == "":
		return d.Write(rel, s.Data, s.Executable)
	}
	err := d.drop(rel)
	if err == nil {
		err = d.MkdirAll(path.Dir(rel), 0o700)
	}
	if err == nil {
		err = d.Symlink(s.Link, rel)
	}
	return err
}
