package workbench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"

	"stepbox/session/api"
	"stepbox/themes"
	"stepbox/ui/dialog"
	"stepbox/ui/intent"
	"stepbox/ui/link"
	"stepbox/ui/paint"
	"stepbox/ui/pane/changes"
)

// Pauses before fetching again what keeps changing.
const (
	changesPause = 150 * time.Millisecond
	diffPause    = 60 * time.Millisecond
	failurePause = 2 * time.Second // after a request that failed
)

// fetching keeps at most one request for changes and one for a diff under way.
type fetching struct {
	waiting, running         bool
	failed                   bool // the last request for changes
	diffWaiting, diffRunning bool
}

func sprintf(format string, args ...any) string { return fmt.Sprintf(format, args...) }

// problemWords says in words why a request failed.
func problemWords(err error) string {
	var p *api.Problem
	if !errors.As(err, &p) {
		if errors.Is(err, context.DeadlineExceeded) {
			return "no answer in time"
		}
		return paint.Clean(err.Error())
	}
	switch p.Code {
	case api.CodeDecided:
		return "someone else answered first"
	case api.CodeStale:
		return "what is held isn't what you saw any more: look again"
	case api.CodeGone:
		return "nothing is held any more: what asked went away"
	case api.CodeNotLive:
		return "the session has ended"
	}
	return paint.Clean(p.Message)
}

// decide sends an answer, unless what it answers isn't what is held.
func (s *Screen) decide(d intent.Decide) tea.Cmd {
	q, ok := s.st.Question(d.Question)
	switch {
	case !ok:
		s.refused(d.Question, "not answered: "+s.whyClosed(d.Question))
		return nil
	case q.Hash != d.Hash:
		s.refused(d.Question, "not answered: the question changed: look again")
		return nil
	case s.pending[q.ID]:
		s.tell(themes.Info, "the answer to #%d is on its way", q.Action)
		return nil
	}
	s.pending[q.ID] = true
	return s.long("answering", func(ctx context.Context, c link.Client, id string) func(*Screen) tea.Cmd {
		closed, err := c.Decide(ctx, id, api.Decision{
			Question: d.Question, Hash: d.Hash, Answer: d.Answer, Reason: d.Reason, By: "tui",
		})
		return func(s *Screen) tea.Cmd {
			delete(s.pending, q.ID)
			if err != nil {
				s.refused(q.ID, sprintf("#%d not answered: %s", q.Action, problemWords(err)))
				return nil
			}
			s.tell(answerToken(d.Answer), "%s #%d", answerWords(d.Answer), q.Action)
			s.st.Answered(closed)
			s.closeFor(q.ID)
			s.follow()
			return nil
		}
	})
}

// refused says that an answer didn't count, where the person looks.
func (s *Screen) refused(question int64, words string) {
	for _, d := range s.dialogs {
		if d.Target().Question == question {
			d.Fail(words)
		}
	}
	s.tell(themes.Warn, "%s", words)
}

// closeFor closes the dialogs of a question that this interface answered.
func (s *Screen) closeFor(id int64) {
	s.dialogs = slices.DeleteFunc(s.dialogs, func(d dialog.Dialog) bool { return d.Target().Question == id })
}

func answerWords(a api.Answer) string {
	switch a {
	case api.AnswerApprove:
		return "✓ approved"
	case api.AnswerApproveKeep:
		return "✓ approved and kept"
	case api.AnswerDeny:
		return "✗ denied"
	case api.AnswerStepInto:
		return "✓ stepping into"
	case api.AnswerStepOver:
		return "✓ stepping over"
	case api.AnswerKeep:
		return "✓ kept"
	case api.AnswerRollback:
		return "↶ rolled back"
	}
	return "answered"
}

func answerToken(a api.Answer) themes.Token {
	switch a {
	case api.AnswerDeny:
		return themes.Denied
	case api.AnswerRollback:
		return themes.Undone
	}
	return themes.OK
}

// simple sends a request whose only answer is whether it worked.
func (s *Screen) simple(doing string, token themes.Token, done string, f func(context.Context, link.Client, string) (api.Event, error)) tea.Cmd {
	return s.long(doing, func(ctx context.Context, c link.Client, id string) func(*Screen) tea.Cmd {
		e, err := f(ctx, c, id)
		return func(s *Screen) tea.Cmd {
			if err != nil {
				s.tell(themes.Warn, "%s", problemWords(err))
				return nil
			}
			s.st.Apply(e)
			s.tell(token, "%s", done)
			return nil
		}
	})
}

func (s *Screen) keep(n int) tea.Cmd {
	return s.simple("keeping", themes.OK, sprintf("✓ kept #%d", n), func(ctx context.Context, c link.Client, id string) (api.Event, error) {
		a, err := c.Keep(ctx, id, n)
		return api.Event{Action: &a}, err
	})
}

func (s *Screen) kill(n int) tea.Cmd {
	if n == 0 {
		return s.simple("ending the sandbox", themes.Warn, "the sandbox was killed", func(ctx context.Context, c link.Client, id string) (api.Event, error) {
			ses, err := c.Kill(ctx, id)
			return api.Event{Session: &ses}, err
		})
	}
	return s.simple("killing", themes.Warn, sprintf("killed #%d", n), func(ctx context.Context, c link.Client, id string) (api.Event, error) {
		a, err := c.KillAction(ctx, id, n)
		return api.Event{Action: &a}, err
	})
}

func (s *Screen) setMode(m api.Mode) tea.Cmd {
	thaw := s.st.Session.State == api.SessionPaused && m == api.ModePolicy
	return s.simple("changing the mode", themes.OK, sprintf("mode %s: %s", m, dialog.ModeWords(m)), func(ctx context.Context, c link.Client, id string) (api.Event, error) {
		ses, err := c.SetMode(ctx, id, m)
		if err == nil && thaw {
			ses, err = c.Continue(ctx, id)
		}
		return api.Event{Session: &ses}, err
	})
}

func (s *Screen) pause() tea.Cmd {
	if s.st.Session.State == api.SessionPaused {
		return s.simple("letting it go on", themes.OK, "✓ goes on", func(ctx context.Context, c link.Client, id string) (api.Event, error) {
			ses, err := c.Continue(ctx, id)
			return api.Event{Session: &ses}, err
		})
	}
	return s.simple("freezing", themes.Info, "frozen: p goes on", func(ctx context.Context, c link.Client, id string) (api.Event, error) {
		ses, err := c.Pause(ctx, id)
		return api.Event{Session: &ses}, err
	})
}

// plan asks about a roll back, once what it would do was fetched.
func (s *Screen) plan(action int, later bool) tea.Cmd {
	r := dialog.NewRollback(action, later)
	s.open(r)
	return s.long("finding out what would go back", func(ctx context.Context, c link.Client, id string) func(*Screen) tea.Cmd {
		p, err := c.RollbackPlan(ctx, id, action)
		return func(*Screen) tea.Cmd {
			if err != nil {
				r.Fail(problemWords(err))
				return nil
			}
			r.SetPlan(p)
			return nil
		}
	})
}

func (s *Screen) rollback(r intent.DoRollback, d dialog.Dialog) tea.Cmd {
	return s.long("rolling back", func(ctx context.Context, c link.Client, id string) func(*Screen) tea.Cmd {
		done, err := c.Rollback(ctx, id, api.RollbackRequest{ToBefore: r.ToBefore, Hash: r.Hash, By: "tui"})
		return func(s *Screen) tea.Cmd {
			var p *api.Problem
			failure := paint.Clean(done.Failure)
			switch {
			case errors.As(err, &p) && p.Code == api.CodeStale:
				// The files moved on since the list was made: show the new one.
				s.tell(themes.Warn, "files changed since the list was made: here is the new one")
				s.closeDialog(d)
				return s.plan(r.Action, r.Later)
			case err != nil:
				failure = problemWords(err)
			}
			if failure != "" {
				d.Fail(failure)
				s.tell(themes.Warn, "not rolled back: %s", failure)
				return nil
			}
			s.closeDialog(d)
			s.tell(themes.Undone, "↶ rolled back %s%s", paint.Count(done.Files, "file", "files"), leftWords(done))
			return nil
		}
	})
}

// leftWords says what a roll back left as it is, with the first name.
func leftWords(r api.Rollback) string {
	n := len(r.Left) + r.LeftMore
	switch {
	case n == 0:
		return ""
	case n == 1:
		return "; " + r.Left[0] + " changed meanwhile and was left"
	}
	return fmt.Sprintf("; %d files changed meanwhile and were left: %s, …", n, r.Left[0])
}

func (s *Screen) closeDialog(gone dialog.Dialog) {
	s.dialogs = slices.DeleteFunc(s.dialogs, func(d dialog.Dialog) bool { return d == gone })
}

// execs fetches the programs of an action, for its details.
func (s *Screen) execs(n int, d *dialog.Details) tea.Cmd {
	return s.do(func(ctx context.Context, c link.Client, id string) func(*Screen) tea.Cmd {
		execs, err := c.Execs(ctx, id, n)
		return func(*Screen) tea.Cmd {
			words := ""
			if err != nil {
				words = problemWords(err)
			}
			d.SetExecs(execs, words)
			return nil
		}
	})
}

// catchUp fetches the changes of the scope that is shown for as long as what is
// shown isn't all that is known to be there. It is asked after every message, and
// compares versions instead of waiting for word: whatever was missed or came in
// the wrong order, the next message puts it right.
func (s *Screen) catchUp() tea.Cmd {
	lacks := s.changes.Lacks(s.st.Changes, s.Over())
	if s.fetch.waiting || s.fetch.running || lacks == changes.Nothing {
		return nil
	}
	s.fetch.waiting = true
	switch {
	case s.fetch.failed:
		return s.after(failurePause, (*Screen).fetchChanges)
	case lacks == changes.News:
		return s.after(changesPause, (*Screen).fetchChanges)
	}
	return s.fetchChanges()
}

func (s *Screen) fetchChanges() tea.Cmd {
	s.fetch.waiting, s.fetch.running = false, true
	action, most := s.changes.Action, s.changes.Rows()
	return s.do(func(ctx context.Context, c link.Client, id string) func(*Screen) tea.Cmd {
		got, err := c.Changes(ctx, id, action, most)
		return func(s *Screen) tea.Cmd {
			s.fetch.running, s.fetch.failed = false, err != nil
			if err == nil {
				s.changes.SetChanges(action, got)
			} else if action == s.changes.Action {
				s.changes.Loading, s.changes.Problem = false, problemWords(err)
			}
			return s.wantDiff(0)
		}
	})
}

// wantDiff fetches the selected file's diff when it isn't shown yet.
func (s *Screen) wantDiff(pause time.Duration) tea.Cmd {
	if _, ok := s.changes.Wanted(); !ok || s.fetch.diffWaiting || s.fetch.diffRunning {
		return nil
	}
	s.fetch.diffWaiting = true
	if pause <= 0 {
		return s.fetchDiff()
	}
	return s.after(pause, (*Screen).fetchDiff)
}

func (s *Screen) fetchDiff() tea.Cmd {
	s.fetch.diffWaiting = false
	w, ok := s.changes.Wanted()
	if !ok {
		return nil
	}
	s.fetch.diffRunning = true
	return s.do(func(ctx context.Context, c link.Client, id string) func(*Screen) tea.Cmd {
		got, err := c.Diff(ctx, id, w.Key, w.Action)
		var d *changes.Diff
		words := ""
		if err != nil {
			words = problemWords(err)
		} else {
			d = changes.Prepare(got)
		}
		return func(s *Screen) tea.Cmd {
			s.fetch.diffRunning = false
			s.changes.SetDiff(w, d, words)
			return s.wantDiff(0)
		}
	})
}
