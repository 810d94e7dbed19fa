package judge

import (
	"path"
	"sync"

	"github.com/zeebo/blake3"

	"stepbox/policy"
	"stepbox/runner/overlay/manifest"
	"stepbox/session/api"
)

// source is a file that a wrapper, or the shell in it, reads commands from.
type source struct {
	file     string
	own      bool // the project's, or through a link of the project
	found    look
	sum      [32]byte // of what is in it; zero: it can't be read
	same     bool     // it is as it was when it was looked at first
	approved bool     // a person has approved a command that read it as it is
}

// sources are the files that a peeled command of an agent reads commands from. Those that
// a login shell reads at its start count where this session wrote them.
func (j *Judge) sources(peeled policy.Peeled, l *looks) (out []source) {
	add := func(file string) {
		s := source{file: file, own: manifest.Within(path.Clean(file), l.places.Project), found: l.at(file)}
		if text := l.places.text(file); s.found.there && text != nil {
			s.sum = blake3.Sum256(text)
		}
		j.read.compare(&s)
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

// read are files that commands are read from, by what was in them. Its methods may be called from any goroutine.
type read struct {
	mu              sync.Mutex
	first, approved map[string][32]byte // guarded by mu; at most maxRead
}

// maxRead bounds the files that are remembered. Others are suspect.
const maxRead = 256

// compare says of a source whether it is as it was first, or as it was approved.
func (k *read) compare(s *source) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, known := k.first[s.file]; !known && len(k.first) < maxRead {
		if k.first == nil {
			k.first = make(map[string][32]byte)
		}
		k.first[s.file] = s.sum
	}
	readable := s.sum != [32]byte{}
	s.approved = readable && k.approved[s.file] == s.sum
	s.same = readable && k.first[s.file] == s.sum || s.approved
}

// approve notes that a person has approved what reads some sources.
func (k *read) approve(all []source) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, s := range all {
		if k.approved == nil {
			k.approved = make(map[string][32]byte)
		}
		if _, known := k.approved[s.file]; known || len(k.approved) < maxRead {
			k.approved[s.file] = s.sum
		}
	}
}

// readFrom are the sources that a person is told of: those that may hold commands which they haven't approved. Suspects are those
// of them that aren't as they were when this session read them first, or that others than the agent may have written.
func readFrom(all []source) (told, suspects []string) {
	for _, s := range all {
		any := s.own || s.found.unclear || s.found.region == elsewhere
		if any || s.found.there && !s.approved {
			told = append(told, api.Escape(s.file))
		}
		if any || s.found.there && !s.same {
			suspects = append(suspects, api.Escape(s.file))
		}
	}
	return told, suspects
}

// doubted has what reads commands from where others may have put them be judged as what
// isn't all known.
func (x *Exec) doubted() {
	if len(x.suspects) > 0 {
		x.Judgement = x.policy.Doubted(x.Judgement, readsFrom(x.suspects[0]))
	}
}

// Moves says whether a second look at an exec can find anything else than the
// first: it reads commands from files that the gate doesn't compare.
func (x *Exec) Moves() bool { return len(x.peeled.Sources)+len(x.peeled.Startup) > 0 }

// Again looks a second time at the files that an exec reads commands from. Like
// Exec it runs outside the session's loop.
func (j *Judge) Again(x *Exec) *Exec {
	out := *x
	out.sources = j.sources(x.peeled, j.looks())
	out.Command.Sources, out.suspects = readFrom(out.sources)
	out.Judgement = x.ruled
	out.doubted()
	return &out
}
