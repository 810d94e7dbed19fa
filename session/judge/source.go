package judge

import (
	"path"
	"slices"
	"strings"
	"time"

	"stepbox/policy"
	"stepbox/runner/overlay/manifest"
	"stepbox/session/api"
)

// source is a file that a wrapper, or the shell in it, reads commands from.
type source struct {
	file  string
	own   bool // the project's, or through a link of the project
	found look
}

// Written is when one of the agent's housekeeping programs ran, and what it was
// told to write.
type Written struct {
	From, To time.Time
	Script   string // a shell's, of a known sum; it names the files
}

// Times of files may be behind the clock that processes read, since the kernel brings
// theirs up to date at its ticks, which come late on a machine that is busy or that
// shares its processors: behind is how far. They are never ahead of it, but for a tick.
const (
	behind = 100 * time.Millisecond
	ahead  = 20 * time.Millisecond
)

// sources are the files that a peeled command reads commands from. Those that a
// login shell reads at its start count where this session wrote them.
func (l *looks) sources(peeled policy.Peeled) (out []source) {
	add := func(file string) {
		out = append(out, source{file, manifest.Within(path.Clean(file), l.places.Project), l.at(file)})
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

// suspect says whether a source may hold other commands than the agent's own
// housekeeping put there.
func (s source) suspect(upkeep []Written) bool {
	if s.own || s.found.unclear {
		return true
	}
	return s.found.there && !slices.ContainsFunc(upkeep, func(u Written) bool {
		return strings.Contains(u.Script, s.file) &&
			!s.found.changed.Before(u.From.Add(-behind)) && !s.found.changed.After(u.To.Add(ahead))
	})
}

// Beside is the exec when these housekeeping programs had run: what it reads
// commands from is told, and asked about, unless they wrote it.
func (x *Exec) Beside(upkeep []Written) *Exec {
	var suspects []string
	for _, s := range x.sources {
		if s.suspect(upkeep) {
			suspects = append(suspects, api.Escape(s.file))
		}
	}
	if slices.Equal(suspects, x.Command.Sources) {
		return x
	}
	out := *x
	out.Command.Sources, out.Judgement = suspects, x.ruled
	out.doubted()
	return &out
}

// doubted has an exec be asked about that would be let through, but reads commands from
// where others may have put them.
func (x *Exec) doubted() {
	if s := x.Command.Sources; len(s) > 0 && x.Judgement.Verdict == policy.Allow {
		x.Judgement.Verdict = policy.Ask
		x.Judgement.Rule = readsFrom(s[0])
	}
}

// Moves says whether a second look at an exec can find anything else than the
// first: it reads commands from files that the gate doesn't compare.
func (x *Exec) Moves() bool { return len(x.peeled.Sources)+len(x.peeled.Startup) > 0 }

// Reads says whether an exec reads commands from where others may have put them.
func (x *Exec) Reads() bool { return len(x.Command.Sources) > 0 }

// Again looks a second time at the files that an exec reads commands from. Like
// Exec it runs outside the session's loop.
func (j *Judge) Again(x *Exec) *Exec {
	out := *x
	out.sources = j.looks().sources(x.peeled)
	return &out
}
