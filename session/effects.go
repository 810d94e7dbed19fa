package session

import (
	"cmp"
	"context"
	"encoding/hex"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"weak"

	"stepbox/runner/overlay/content"
	"stepbox/runner/overlay/diff"
	"stepbox/runner/overlay/manifest"
	"stepbox/session/api"
	"stepbox/session/base"
	"stepbox/session/effects"
	"stepbox/session/files"
	"stepbox/session/said"
)

// effects says in words what an action did, and puts beside it what the agent
// announced. What it returns runs outside the loop.
func (s *Session) effects(a *action) func(*files.Told) {
	var hash content.Hash
	if s.info.Base != nil {
		_, _ = hex.Decode(hash[:], []byte(s.info.Base.Hash)) // it was written as such
	}
	var folders []string
	for _, c := range a.commands {
		if !c.Unclear {
			folders = append(folders, c.Cwd)
		}
	}
	announced := s.announced(a.commands, a.StartedAt)
	return func(t *files.Told) {
		in := effects.Input{
			Changed: t.Changed, More: t.More, From: t.From, To: t.Until, Project: s.cfg.Workspace, Folders: folders, Ignored: s.ignores.Ignored,
			Open: func(f *diff.File, most int64) ([]byte, bool) { return s.files.Read(context.Background(), f, most) },
		}
		if !hash.IsZero() && slices.ContainsFunc(t.Changed, func(c diff.Change) bool { return c.Old != nil || strings.HasSuffix(c.Path, ".git/logs/HEAD") }) {
			in.Base = s.baseRecord(hash)
		}
		var commit *effects.Commit
		t.Effects, commit = effects.Of(in)
		all := announced(s.deeds(t.Changed))
		if commit != nil {
			all = append(all, said.Announcement{Text: commit.Message, Source: said.FromCommit, Deeds: s.deeds(commit.Changes)})
		}
		t.Said = said.Of(all)
	}
}

// baseRecord is what the project was; nil when that can't be read. It may be
// large: it is kept until the next collection, for actions that follow soon.
func (s *Session) baseRecord(hash content.Hash) *base.Record {
	if kept := s.recent.Load(); kept != nil && kept.Value() != nil {
		return kept.Value()
	}
	rec, err := base.Load(context.Background(), files.Bodies{Store: s.store}, hash)
	if err != nil {
		s.log.Warn("what the project was can't be read", "error", err)
		return nil
	}
	kept := weak.Make(rec)
	s.recent.Store(&kept)
	return rec
}

// announced finds what the agent said of a command, in its own transcripts and in
// the command. What it returns runs outside the loop.
func (s *Session) announced(commands []api.Command, began time.Time) func([]said.Deed) []said.Announcement {
	from := s.info.StartedAt
	return func(deeds []said.Deed) []said.Announcement {
		if len(commands) == 0 {
			return nil
		}
		find := said.Command{Project: s.cfg.Workspace, From: from, To: began.Add(time.Second)}
		comment := ""
		for _, c := range commands {
			lines := append([]string{c.Line}, c.Argv[max(len(c.Argv)-1, 0):]...) // the last may be a shell's script
			find.Lines = append(find.Lines, lines...)
			for _, line := range lines {
				comment = cmp.Or(comment, said.Comment(line))
			}
		}
		home := filepath.Join(s.cfg.DataDir, "homes", s.profile.Name)
		called := said.InTranscript(home, find)
		return []said.Announcement{{Text: called.Text, Source: called.Source, Deeds: deeds}, {Text: comment, Source: said.FromComment, Deeds: deeds}}
	}
}

// hear tells what the agent announced of an action that a person is asked about.
func (s *Session) hear(a *action, commands []api.Command) {
	announced := s.announced(commands, time.Now())
	s.loop.Aside(func() func() {
		found := said.Of(announced(nil))
		return func() {
			if found != nil && a.Said == nil {
				a.Said = found
				s.record(nil, s.actionEvent(a, "counted"))
			}
		}
	})
}

// listen looks once more for what the agent announced of the action that ended
// before a, or of the last one when a is nil: agents write their transcripts late,
// and a quick command is over by then.
func (s *Session) listen(a *action) {
	again := s.unheard
	s.unheard = nil
	if a != nil && len(a.commands) > 0 && (a.Said == nil || a.Said.Mismatch == "" && !said.InTranscripts(a.Said.Source)) {
		announced := s.announced(a.commands, a.StartedAt)
		s.unheard = func() {
			s.loop.Aside(func() func() {
				found := said.Of(announced(nil))
				if found == nil || !said.InTranscripts(found.Source) {
					return nil
				}
				return func() {
					s.told(a, func(t files.Told) {
						a.Said = said.Of([]said.Announcement{{Text: found.Text, Source: found.Source, Deeds: s.deeds(t.Changed)}})
						s.record(nil, s.actionEvent(a, "counted"))
					})
				}
			})
		}
	}
	if again != nil {
		again()
	}
}

// deeds are an action's changes that its words must cover.
func (s *Session) deeds(changed []diff.Change) (out []said.Deed) {
	for _, c := range changed {
		if _, internal := effects.InGit(c.Path); !internal && !(c.Old != nil && c.Old.Kind == manifest.KindDir) && !(c.New != nil && c.New.Kind == manifest.KindDir) && !s.ignores.Ignored(c.Path, false) {
			out = append(out, said.Deed{Path: c.Path, What: c.Status[0]})
		}
	}
	return out
}

// baseKnown says again what actions did that ended before it was known what the
// project was: of those nothing could be said to be lost.
func (s *Session) baseKnown() {
	for _, a := range s.actions.all {
		if a.State == api.ActionEnded && a.Effects != nil {
			s.told(a, func(t files.Told) {
				if t.Err == nil && t.To >= a.toldTo {
					a.Effects = t.Effects
					s.record(nil, s.actionEvent(a, "counted"))
				}
			})
		}
	}
}
