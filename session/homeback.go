package session

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"stepbox/runner/overlay/manifest"
	"stepbox/session/api"
	"stepbox/session/files"
	"stepbox/session/home"
	"stepbox/session/loop"
)

// homePlan says what a roll back of the home would do.
func (s *Session) homePlan(ctx context.Context, req api.RollbackRequest) (api.RollbackPlan, error) {
	if req.ToBefore != 0 || req.Selection != nil || req.Redo != 0 || len(req.Resolve) > 0 {
		return api.RollbackPlan{}, api.Problemf(api.CodeInvalid, "a rollback of the home is one by itself: no action, selection or earlier rollback goes with it")
	}
	if err := s.loop.Request(ctx, func() {}); err != nil {
		return api.RollbackPlan{}, err
	}
	p, err := s.home.Plan(ctx, s.box, s.profile, *req.Home)
	if err != nil {
		return api.RollbackPlan{}, err
	}
	err = s.loop.Call(ctx, func() {
		same := func(o *home.Plan) bool { return o.Shown.Hash == p.Shown.Hash }
		s.shownHome = append(slices.DeleteFunc(s.shownHome, same), p)
		s.shownHome = s.shownHome[max(len(s.shownHome)-maxShown, 0):]
	})
	return p.Shown, err
}

// homeRollback carries out the plan that was shown. It is a job of the worker's, as a
// roll back of the project is, so that there is one at a time.
func (s *Session) homeRollback(ctx context.Context, req api.RollbackRequest) (api.Rollback, error) {
	var p *home.Plan
	if err := s.loop.Request(ctx, func() {
		for _, o := range s.shownHome {
			if o.Shown.Hash == req.Hash && reflect.DeepEqual(o.Shown.RollbackTarget, req.RollbackTarget) {
				p = o
			}
		}
	}); err != nil {
		return api.Rollback{}, err
	}
	switch {
	case p == nil:
		return api.Rollback{}, files.ErrStale
	case p.Files() == 0:
		return api.Rollback{}, api.Problemf(api.CodeInvalid, "nothing was done: nothing in the home is to be rolled back")
	}
	rec := api.Rollback{RollbackTarget: p.Shown.RollbackTarget, Actions: []int{}, Files: p.Files(), Took: p.Took(maxLeft, maxReason), By: api.Escape(api.Trim(req.By, 64)), Reason: api.Escape(api.Trim(strings.TrimSpace(req.Reason), maxReason))}
	ctx = context.WithoutCancel(ctx) // once begun it isn't stopped halfway
	return loop.Ask(ctx, s.loop, func(reply func(api.Rollback, error)) {
		begun := false
		var failed []manifest.Problem
		s.loop.Alone(func() error {
			thaw, err := s.freezer.Freeze(ctx)
			if err != nil {
				return fmt.Errorf("cannot freeze the agent, so nothing was rolled back: %w", err)
			}
			failed, err = s.home.CarryOut(ctx, s.box, p, func(left []string) error {
				return s.loop.Do(ctx, func(done func(error)) { begun = true; s.homeBegins(&rec, left, done) })
			})
			return errors.Join(err, thaw())
		}, func(err error, next func()) {
			if !begun {
				next()
				reply(rec, err)
				return
			}
			s.homeEnds(p, &rec, failed, err, func(late error) {
				next()
				reply(rec, errors.Join(err, late))
			})
		})
	})
}

// homeBegins records that a roll back of the home begins.
func (s *Session) homeBegins(rec *api.Rollback, left []string, done func(error)) {
	s.shownHome = nil
	s.rollbacks++
	rec.ID, rec.At = s.rollbacks, time.Now().UTC()
	rec.Left, rec.LeftMore = api.EscapeAll(left[:min(len(left), maxLeft)]), max(len(left)-maxLeft, 0)
	started := *rec
	started.Open = true
	s.record(done, api.Event{Kind: "rollback.started", Rollback: &started})
}

// homeEnds records how it went, and has the agent told.
func (s *Session) homeEnds(p *home.Plan, rec *api.Rollback, failed []manifest.Problem, err error, then func(error)) {
	copied := *rec
	done := api.Event{Kind: "rollback.done", Rollback: &copied}
	if err != nil {
		done.Kind = "rollback.failed"
		copied.Failure, copied.Failed = api.Escape(err.Error()), files.Troubles(failed)
		rec.Failure, rec.Failed = copied.Failure, copied.Failed
	} else {
		s.info.Rollbacks++
		s.word = "changes in the home folder were rolled back by the person: " + listed(p.Took(toldFiles, toldPath), p.Files(), toldFiles)
		if rec.Reason != "" {
			s.word += "; the reason: " + rec.Reason
		}
		s.note(false, "the agent is told with its next command: %s", s.word)
	}
	s.record(then, done, s.changed("counted"))
}

// trapped tells a person that an action ended and programs obey what was
// written meanwhile to a home that other sessions have as well, and how it goes back. It looks
// once at a time, and once more for all actions that ended meanwhile.
func (s *Session) trapped(a *action) {
	if s.home.Saved == "" {
		return
	}
	if s.trapsOf++; s.trapsOf > 1 {
		return
	}
	was := s.homeWas
	s.loop.Aside(func() func() {
		var found map[string]string
		var err error
		if was == nil {
			was, err = s.home.Was()
		}
		if err == nil {
			found, err = s.home.Disobeyed(was)
		}
		return func() {
			again := s.trapsOf > 1
			s.homeWas, s.trapsOf = was, 0
			s.tellTraps(a, found, err)
			if again {
				s.trapped(a)
			}
		}
	})
}

// tellTraps tells what of it wasn't so as the action before ended.
func (s *Session) tellTraps(a *action, found map[string]string, err error) {
	text := "what programs obey, in this session and the next ones, is another by now"
	if err != nil {
		text, found = "what programs obey of the home can't be looked at", map[string]string{err.Error(): ""}
	}
	var told []string
	for _, file := range slices.Sorted(maps.Keys(found)) {
		if was, before := s.traps[file]; !before || was != found[file] {
			told = append(told, api.Escape(api.Trim(file, toldPath)))
		}
	}
	if s.traps = found; len(told) > 0 {
		s.note(true, "#%d ended, and %s: %s; stepbox diff --home %s lists it, stepbox rollback --home %s rolls it back",
			a.N, text, listed(told[:min(len(told), toldFiles)], len(told), toldFiles), s.cfg.ID, s.cfg.ID)
	}
}

// leftInHome sums up what was changed in a home of the session's own, or of what programs
// obey in a shared one; nil: nothing was.
func (s *Session) leftInHome() *api.HomeLeft {
	if s.home.Upper == "" && s.home.Saved == "" {
		return nil
	}
	changes, err := s.home.Changes(context.Background(), s.profile)
	if err != nil {
		s.log.Error("what the session changed in its home isn't known", "error", err)
	}
	return changes.Left()
}
