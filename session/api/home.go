package api

import (
	"fmt"
	"slices"
	"strings"
)

// HomeKind says what home folder the agent has in the place of the person's.
type HomeKind string

const (
	HomeProfile HomeKind = "profile" // the one that all sessions of its profile share
	HomeFresh   HomeKind = "fresh"   // an empty one, which goes with the session
	HomeSession HomeKind = "session" // a view of the profile's: what it changes is the session's until a person keeps it
)

// Valid says whether there is such a kind.
func (k HomeKind) Valid() bool { return k == HomeProfile || k == HomeFresh || k == HomeSession }

// Words say what becomes of what the agent writes there.
func (k HomeKind) Words() string {
	switch k {
	case HomeFresh:
		return "fresh: it was empty, and goes with the session"
	case HomeSession:
		return "session: what is changed there stays in this session; stepbox diff --home lists it, stepbox keep --home takes it over"
	}
	return "profile: shared by all sessions of this profile, what is changed there stays"
}

// Brought is what came along of the person's own to the agent's home as the session
// started, and what didn't. All of it is escaped.
type Brought struct {
	Items []BroughtItem `json:"items,omitempty"`
	Left  []LeftOut     `json:"left_out,omitempty"`
	More  int           `json:"more,omitempty"` // further ones that were left out
}

// BroughtItem is a file or a folder that came along.
type BroughtItem struct {
	Path  string `json:"path"`            // below the home folder
	Name  string `json:"name"`            // in words
	Count int    `json:"count,omitempty"` // of what is in a folder
	From  string `json:"from,omitempty"`  // where it is, when that is elsewhere
}

// Kinds of what was left out.
const (
	LeftToken   = "token"
	LeftHook    = "hook"
	LeftProgram = "program"
	LeftSetting = "setting"
	LeftFile    = "file"
	LeftLink    = "link"
)

// LeftOut is something that didn't come along.
type LeftOut struct {
	Kind string `json:"kind"`
	What string `json:"what"` // a file below the home folder, or what of it
	Why  string `json:"why"`
}

// Line tells all of it in one, what is missing first, which a narrow screen mustn't cut;
// "" when there was nothing.
func (b *Brought) Line() string {
	if b == nil || len(b.Items)+len(b.Left) == 0 {
		return ""
	}
	var items, left []string
	for _, i := range b.Items {
		if i.Count > 0 {
			items = append(items, Counted(i.Count, strings.TrimSuffix(i.Name, "s")))
		} else {
			items = append(items, i.Name)
		}
	}
	for _, kind := range []string{LeftHook, LeftToken, LeftProgram, LeftSetting, LeftLink, LeftFile} {
		n, git := 0, 0 // git's are said to be that: they aren't the agent's own
		for _, l := range b.Left {
			switch {
			case l.Kind == kind && strings.HasPrefix(l.What, "git "):
				git++
			case l.Kind == kind:
				n++
			}
		}
		if n > 0 {
			left = append(left, Counted(n, kind))
		}
		if git > 0 {
			left = append(left, Counted(git, kind)+" of git")
		}
	}
	if b.More > 0 {
		left = append(left, fmt.Sprintf("%d more", b.More))
	}
	if len(items) == 0 {
		items = []string{"nothing"}
	}
	line := "brought: " + strings.Join(slices.Compact(items), ", ")
	if len(left) > 0 {
		line = "left out: " + strings.Join(left, ", ") + " · " + line
	}
	return line
}

// Counted is a number of things in words, of which one ends in s when they are many.
func Counted(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}

// HomeChange is a file of a session's home that differs from the profile's.
type HomeChange struct {
	Path   []byte   `json:"path"` // below the home folder, exact
	Kind   string   `json:"kind"` // added, modified, deleted
	Size   int64    `json:"size,omitempty"`
	Why    string   `json:"why,omitempty"`    // it can't be kept; in words
	Beware []string `json:"beware,omitempty"` // what needs care, in words
	Kept   bool     `json:"kept,omitempty"`   // it was just taken over
}

// HomeChanges are those of a session's home.
type HomeChanges struct {
	Files []HomeChange `json:"files"`
	More  int          `json:"more,omitempty"` // further ones that aren't listed
}

// HomeLeft is what a session left in a home of its own.
type HomeLeft struct {
	Changed int      `json:"changed"`         // files that differ from the profile's
	Beware  int      `json:"beware"`          // those of them that can be run, or that programs or the agent obey
	First   []string `json:"first,omitempty"` // the first of these, escaped
}

// Left sums the changes up; nil when there are none.
func (c HomeChanges) Left() *HomeLeft {
	const most, long = 4, 100
	out := &HomeLeft{Changed: len(c.Files) + c.More}
	for _, f := range c.Files {
		if len(f.Beware) == 0 || f.Kept {
			continue
		}
		if out.Beware++; out.Beware <= most {
			out.First = append(out.First, "~/"+Escape(Trim(string(f.Path), long)))
		}
	}
	if out.Changed == 0 {
		return nil
	}
	return out
}

// Traps says what of it needs a look; "" when nothing does.
func (l *HomeLeft) Traps() string {
	if l == nil || l.Beware == 0 {
		return ""
	}
	words := strings.Join(l.First, ", ")
	if more := l.Beware - len(l.First); more > 0 {
		words += fmt.Sprintf(" and %d more", more)
	}
	return Counted(l.Beware, "file") + " changed in its home can be run, or programs or the agent obey them: " + words
}

// HomePaths are files and folders of a home, exact, below it; none: all of it, but for
// what the agent lives on, see HomeChanges.
type HomePaths struct {
	Paths [][]byte `json:"paths,omitempty"`
}

// KeepHome asks for some of them, files or folders, to be taken over; none: for all.
type KeepHome struct {
	Paths [][]byte `json:"paths,omitempty"`
}
