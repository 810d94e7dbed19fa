package judge

import (
	"path"
	"sync"
	"time"

	"stepbox/policy"
	"stepbox/runner/overlay/manifest"
	"stepbox/session/api"
)

// source is a file that a wrapper, or the shell in it, reads commands from.
type source struct {
	file   string
	own    bool // the project's, or through a link of the project
	found  look
	leaves bool // what is in it leaves the command what it shows, as it always did
}

// sources are the files that a peeled command of an agent reads commands from. Those that
// a login shell reads at its start count where this session wrote them.
func (j *Judge) sources(peeled policy.Peeled, p *policy.Profile, l *looks) (out []source) {
	made := func(file string) bool { return j.untrusted(file, l) }
	add := func(file string) {
		s := source{file: file, own: manifest.Within(path.Clean(file), l.places.Project), found: l.at(file)}
		if s.found.there {
			text := l.places.text(file)
			s.leaves = text != nil && j.settled.still(s) && p.Leaves(string(text), made, j.loose)
		}
		out = append(out, s)
	}
	for _, f := range peeled.Sources {
		add(f)
	}
	for _, f := range peeled.Startup {
		if f = path.Join(l.places.Home, f); l.wrote(f) {
			add(f)
		}
	}
	return out
}

// settled are files that commands are read from, with when each was changed last before the
// first of these commands: one that is changed later isn't what it was.
type settled struct {
	mu    sync.Mutex
	files map[string]time.Time // guarded by mu; at most maxSettled
}

// maxSettled bounds the files that are remembered. Others are suspect.
const maxSettled = 256

// still says whether a file is as it was when it was first asked for.
func (k *settled) still(s source) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	was, known := k.files[s.file]
	if !known && len(k.files) < maxSettled {
		if k.files == nil {
			k.files = make(map[string]time.Time)
		}
		was, known = s.found.changed, true
		k.files[s.file] = was
	}
	return known && was.Equal(s.found.changed)
}

// suspects are the sources that may hold commands which nobody was shown.
func suspects(all []source) (out []string) {
	for _, s := range all {
		if s.own || s.found.unclear || s.found.region == elsewhere || s.found.there && !s.leaves {
			out = append(out, api.Escape(s.file))
		}
	}
	return out
}

// doubted has what reads commands from where others may have put them be judged as what
// isn't all known.
func (x *Exec) doubted() {
	if s := x.Command.Sources; len(s) > 0 {
		x.Judgement = x.policy.Doubted(x.Judgement, readsFrom(s[0]))
	}
}

// Moves says whether a second look at an exec can find anything else than the
// first: it reads commands from files that the gate doesn't compare.
func (x *Exec) Moves() bool { return len(x.peeled.Sources)+len(x.peeled.Startup) > 0 }

// Again looks a second time at the files that an exec reads commands from. Like
// Exec it runs outside the session's loop.
func (j *Judge) Again(x *Exec) *Exec {
	out := *x
	out.sources = j.sources(x.peeled, x.Profile, j.looks())
	out.Command.Sources, out.Judgement = suspects(out.sources), x.ruled
	out.doubted()
	return &out
}
