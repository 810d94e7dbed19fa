package project

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"stepbox/runner/overlay/manifest"
)

// move is the rename that a step takes. Whether it was made can be told from the
// files alone, so that it can be taken up again after a crash.
type move struct {
	step int
	how  how
	dir  string // the folder of the step's path
	name string // its last name
	at   string // the folder of the name beside
	temp string // the name beside
	tree []int  // its step, and those inside a new folder, parents first
}

// beside is where what a step of the move's tree makes lies until the move is made; top is
// the move's own step.
func (m *move) beside(top, s *Step) string {
	return manifest.Join(m.dir, m.temp) + s.Path[len(top.Path):]
}

type how uint8

const (
	moveOut  how = iota // from its place to beside: what goes
	moveIn              // from beside to its place: what is new
	moveSwap            // exchanged with what is beside: what is replaced
)

// tempPrefix begins the names beside.
const tempPrefix = ".stepbox-"

// order compares paths so that a folder comes right before all that is in it.
func order(a, b string) int {
	return cmp.Compare(strings.ReplaceAll(a, "/", "\x00"), strings.ReplaceAll(b, "/", "\x00"))
}

// valid says why sorted steps contradict each other or may not be, or nil.
func valid(steps []Step) error {
	var above []*Step // the steps of the folders that lead to this one
	for i := range steps {
		s := &steps[i]
		why := Never(s.Path)
		for _, state := range []State{s.Old, s.New} {
			switch state.Kind {
			case 0, manifest.KindFile, manifest.KindDir:
			case manifest.KindSymlink:
				if state.Target == "" || len(state.Target) > 4095 || strings.IndexByte(state.Target, 0) >= 0 {
					why = "no link can lead to where it does"
				}
			default:
				why = fmt.Sprintf("a %s isn't carried", state.Kind)
			}
			if state.Size < 0 || state.Mode > 0o7777 {
				why = "it has an impossible size or mode"
			}
		}
		for len(above) > 0 && !manifest.Within(s.Path, above[len(above)-1].Path) {
			above = above[:len(above)-1]
		}
		if len(above) > 0 {
			up := above[len(above)-1]
			if up.Old.Kind != manifest.KindDir && !s.Old.Absent() || up.New.Kind != manifest.KindDir && !s.New.Absent() {
				why = fmt.Sprintf("%q is no folder then", up.Path)
			}
		}
		if i > 0 && order(steps[i-1].Path, s.Path) >= 0 {
			why = "it has two steps" // or, in a journal, is out of order
		}
		if why != "" {
			return fmt.Errorf("cannot write %q: %s", s.Path, why)
		}
		above = append(above, s)
	}
	return nil
}

// layout gives the moves of sorted, valid steps, in the order in which they are
// made: what goes, from the inside out, then what comes. id makes the names beside
// unlike any other.
func layout(steps []Step, id string) []move {
	var outs, others []move
	going := map[string]bool{} // folders that go or become something else
	for i := 0; i < len(steps); i++ {
		s := &steps[i]
		m := move{step: i, tree: []int{i}, how: moveSwap, temp: fmt.Sprintf("%s%s-%d", tempPrefix, id, i)}
		m.dir, m.name = manifest.Split(s.Path)
		m.at = m.dir
		switch {
		case s.Old.Kind == manifest.KindDir && s.New.Kind == manifest.KindDir:
			continue // only its mode
		case s.Old.Absent():
			m.how = moveIn
		case s.New.Absent():
			m.how = moveOut
			for going[m.at] {
				m.at, _ = manifest.Split(m.at)
			}
		}
		going[s.Path] = s.Old.Kind == manifest.KindDir
		for s.New.Kind == manifest.KindDir && i+1 < len(steps) && manifest.Within(steps[i+1].Path, s.Path) {
			i++
			m.tree = append(m.tree, i)
		}
		if m.how == moveOut {
			outs = append(outs, m)
		} else {
			others = append(others, m)
		}
	}
	slices.Reverse(outs)
	return append(outs, others...)
}

// Never says why nothing is ever written at path, in words, or "" when it may be.
func Never(path string) string {
	if path == "" || !manifest.ValidPath(path) {
		return "it isn't a path inside the project"
	}
	for name := range strings.SplitSeq(path, "/") {
		if gitFolder(name) {
			return "it belongs to git's own folder, where files run as programs or say what git does"
		}
	}
	return ""
}

// gitFolder says whether some file system takes name for .git: any that folds
// case; HFS+ and ext4's casefolded folders, which leave out code points that
// can't be seen; NTFS and FAT, which leave out dots and blanks at the end, have
// short names, streams after a colon, and folders before a backslash (git's
// protectHFS and protectNTFS, CVE-2014-9390, CVE-2019-1353).
func gitFolder(name string) bool {
	var b strings.Builder
	for i, r := range name {
		if r == utf8.RuneError && name[i] != "\uFFFD"[0] {
			b.WriteByte(name[i])
		} else if !unicode.In(r, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector) {
			b.WriteRune(r)
		}
	}
	for plain := range strings.SplitSeq(b.String(), `\`) {
		plain, _, _ = strings.Cut(plain, ":")
		plain = strings.TrimRight(plain, ". ")
		short := strings.TrimRight(plain, "0123456789")
		if strings.EqualFold(plain, ".git") || len(short) < len(plain) && strings.EqualFold(short, "git~") {
			return true
		}
	}
	return false
}
