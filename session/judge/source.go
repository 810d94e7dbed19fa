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

// clockSlop is how far the clocks of a file system and of this process may be
// apart: a tick of the slowest kernel.
const clockSlop = 20 * time.Millisecond

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
			!s.found.changed.Before(u.From.Add(-clockSlop)) && !s.found.changed.After(u.To.Add(clockSlop))
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
	if len(suspects) > 0 && out.Judgement.Verdict == policy.Allow {
		out.Judgement.Verdict = policy.Ask
		out.Judgement.Rule = "it reads commands from " + suspects[0] + ", which the agent can write"
	}
	return &out
}

// Moves says whether a second look at an exec can find anything else than the
// first: it reads commands from files that the gate doesn't compare.
func (x *Exec) Moves() bool { return len(x.peeled.Sources)+len(x.peeled.Startup) > 0 }

// Again looks a second time at the files that an exec reads commands from. Like
// Exec it runs outside the session's loop.
func (j *Judge) Again(x *Exec) *Exec {
	out := *x
	out.sources = j.looks().sources(x.peeled)
	return &out
}
