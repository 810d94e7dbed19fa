package judge

import (
	"path"
	"slices"

	"stepbox/policy"
	"stepbox/runner/gate"
)

// Identity is the program of an agent's own process, as it is known again when
// the agent starts that program once more: Node programs do to get more memory,
// launchers to run a native program that is called as they are. Taking a program
// for the agent makes what that starts be judged, so a guess does no harm.
type Identity struct {
	script gate.File // without an inode: it is none
	name   string    // what its file is called; "": as others are, an interpreter
}

// scriptsSeen are the files among an interpreter's arguments that may be its
// program.
type scriptsSeen struct {
	files      []gate.File
	interprets bool // it is an interpreter
}

// mostTried is how many arguments are looked at for an agent's script.
const mostTried = 8

// Closer is the exec with its arguments looked at, which Identity and Again need.
// Like Judge.Exec it runs outside the session's loop.
func (x *Exec) Closer() *Exec {
	if x.scripts != nil {
		return x
	}
	list := policy.Scripts(x.Argv, x.Program.Path)
	seen := &scriptsSeen{interprets: len(list) > 0}
	for _, argument := range list[:min(len(list), mostTried)] {
		if f, err := x.Lookup(argument); err == nil {
			seen.files = append(seen.files, f)
		}
	}
	out := *x
	out.scripts = seen
	return &out
}

// Identity is what the program is known by when it is the agent's.
func (x *Exec) Identity() *Identity {
	switch {
	case len(x.Prefix) > 0: // the kernel runs it as a script
		return &Identity{script: x.Files[0], name: path.Base(x.Path)}
	case x.scripts == nil:
		return nil
	case len(x.scripts.files) > 0:
		return &Identity{script: x.scripts.files[0]}
	case x.scripts.interprets:
		return &Identity{}
	}
	return &Identity{name: path.Base(x.Path)}
}

// Scripted says that the program is known by a file that an interpreter runs, so
// that another exec has to be looked at closer to be told from it. A nil identity
// is nobody's.
func (i *Identity) Scripted() bool { return i != nil && i.script.Ino != 0 }

// Is says whether an exec starts the program that this identity is.
func (i *Identity) Is(x *Exec) bool {
	if i == nil {
		return false
	}
	if i.name != "" && i.name == path.Base(x.Path) {
		return true
	}
	if !i.Scripted() {
		return false
	}
	if len(x.Prefix) > 0 && i.script.Same(x.Files[0]) {
		return true
	}
	return x.scripts != nil && slices.ContainsFunc(x.scripts.files, i.script.Same)
}
