package session

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"stepbox/runner"
	"stepbox/runner/overlay/diff"
	"stepbox/runner/overlay/manifest"
	"stepbox/session/api"
	"stepbox/session/files"
	"stepbox/session/ledger"
	"stepbox/session/project"
)

// past is what is known of a session that goes on after its end. Nothing of it
// is recorded before the agent is known to start: a resume that fails leaves the
// record as it was, unless files were let go of, which goes on after a sealed end.
type past struct {
	*ledger.Past
	next    api.Session // it, as its agent starts again
	running []*action   // commands that were interrupted
	left    []*action   // those whose survivors are gone by now

	last    *files.Checkpoint // the last that was recorded; nil: none can be read
	found   *files.Checkpoint // the files as they were found
	changed []diff.Change     // between the two
	kept    bool              // found is recorded already

	gitWords []string // what became of git meanwhile
}

// takeUp loads a session that has ended and looks at its files, before they are
// mounted again.
func (s *Session) takeUp(ctx context.Context, prepared *runner.Prepared) error {
	rec, err := ledger.Recall(ctx, s.store, s.cfg.ID)
	if err != nil {
		return err
	}
	if err := s.setAside(ctx, rec.Session); err != nil {
		return err
	}
	s.past = &past{Past: rec, next: s.info}
	s.info = rec.Session
	s.spend.Begin(s.info.Spend)
	s.roster.execs, s.ends.told, s.notes, s.claims.last, s.asked, s.network.Last, s.rollbacks = rec.Execs, rec.Ends, rec.Notes, rec.Claims, rec.Questions, rec.Attempts, rec.Rolled
	s.judge.Places.Began = s.info.StartedAt // what it wrote in its home before is its own
	s.line.Recall(rec.Checkpoints, rec.Rollbacks)
	s.recallActions(rec.Actions)
	for i := range rec.Rollbacks {
		s.actions.moved(&rec.Rollbacks[i])
	}
	s.past.unclaimed(&s.actions, &s.line)
	if s.past.last, err = s.past.newest(ctx, s.files); err != nil {
		return err
	}
	upper := filepath.Join(s.store.SessionDir(s.cfg.ID), "upper")
	if _, err := os.Lstat(upper); err != nil {
		return &runner.StartError{Reason: fmt.Sprintf("its files aren't there any more (%v); what it changed is in the record: stepbox diff %s", err, s.cfg.ID)}
	}
	s.files.Lower().Ask(prepared.OpenLower)
	if err := s.files.Attach(upper, prepared.OpenUpper, s.outfit.Ignores.Ignored, time.Now()); err != nil {
		return err
	}
	return s.catchUp(ctx)
}

// setAside sets output aside that a record which is over doesn't know of: it was added since.
// It is the session's own where that was interrupted and nobody sealed it yet, or couldn't
// record all of its end.
func (s *Session) setAside(ctx context.Context, was api.Session) error {
	over, err := s.store.Over(ctx, s.cfg.ID)
	if err != nil || !over || was.EndedBy == api.ByFailure || strings.HasPrefix(was.Reason, incomplete) {
		return err
	}
	j, err := s.store.Journal(s.cfg.ID) // by the record it has no other output
	if err != nil {
		return err
	}
	return j.Close()
}

// recallActions takes up the actions; what was going on at an interruption is over.
func (s *Session) recallActions(list []api.Action) {
	p, now := s.past, time.Now().UTC()
	s.info.Actions, s.info.Unreviewed, s.info.Denials, s.info.Rollbacks = 0, 0, 0, 0
	for _, r := range p.Rollbacks {
		if r.Failure == "" && !r.Open {
			s.info.Rollbacks++
		}
	}
	for _, was := range list {
		for len(s.actions.all) < was.N-1 { // its number was given, and nothing recorded
			a := &action{profile: s.profile}
			s.actions.add(a)
			a.Kind, a.State, a.Housekeeping, a.Title, a.Reason = api.KindCommand, api.ActionAbandoned, true, "(not recorded)", api.CutOff
		}
		a := &action{Action: was, profile: s.profile}
		a.Spans = nil
		for _, span := range was.Spans {
			a.spans = append(a.spans, files.Span(span))
		}
		if len(was.Spans) == 0 && was.Before != 0 && was.After > was.Before && !a.apart() {
			a.made(was.Before, was.After)
		}
		if a.Review == api.ReviewRolledBack {
			a.Reviewed = cmp.Or(a.Reviewed, api.ReviewOpen)
		}
		s.actions.all = append(s.actions.all, a)
		if a.LeftRunning > 0 {
			a.LeftRunning, p.left = 0, append(p.left, a)
		}
		switch a.State {
		case api.ActionHeld:
			_ = a.to(api.ActionAbandoned) // the table has it
			a.EndedAt, a.Reason = now, api.CutOff
			p.left = append(p.left, a)
		case api.ActionRunning:
			_ = a.to(api.ActionEnded) // the table has it
			a.EndedAt, a.Reason = now, api.CutOff
			p.left = append(p.left, a)
			if !a.apart() && a.Before != 0 {
				a.untold, p.running = true, append(p.running, a)
			}
		}
		s.actions.noted(a)
		s.sum(a)
	}
}

// unclaimed gives what changed between checkpoints, and is recorded as nobody's,
// to the commands that ran when the session was interrupted: of one that runs it
// isn't recorded before its end.
func (p *past) unclaimed(actions *actions, line *files.Line) {
	if len(p.running) == 0 {
		return
	}
	claimed, left := make(map[int64]bool), make(map[int64]bool) // left by roll backs: nobody else made them
	for _, r := range p.Rollbacks {
		left[r.After] = true
	}
	for _, a := range actions.all {
		for _, span := range a.spans {
			for id := span.To; id > span.From && !claimed[id]; id = line.From(id) {
				claimed[id] = true
			}
		}
	}
	for _, cp := range p.Checkpoints {
		from := line.From(cp.ID)
		if cp.Action != 0 || from == 0 || claimed[cp.ID] || left[cp.ID] {
			continue
		}
		for _, a := range p.running {
			if a.Before <= from {
				a.made(from, cp.ID)
				a.Shared = a.Shared || len(p.running) > 1
			}
		}
	}
}

// newest finds the last checkpoint of all files that can be read; nil: there is none.
func (p *past) newest(ctx context.Context, f *files.Files) (*files.Checkpoint, error) {
	for _, rec := range slices.Backward(p.Checkpoints) {
		if rec.Action != 0 {
			continue
		}
		cp, err := f.Checkpoint(ctx, rec.ID)
		if err == nil || ctx.Err() != nil {
			return &cp, ctx.Err()
		}
		p.Words = append(p.Words, api.Escape(api.Trim(err.Error(), maxReason)))
	}
	return nil, nil
}

// catchUp compares the files with the last checkpoint, and lets go of what the
// project has by now.
func (s *Session) catchUp(ctx context.Context) error {
	p := s.past
	if p.last != nil {
		s.files.GoOn(*p.last)
		s.line.Last = p.last
	}
	now, err := s.files.Look(ctx)
	if err != nil {
		return err
	}
	switch {
	case p.last == nil:
		p.found = s.newCheckpoint(now.Root, now.Manifest, 0)
	case now.Root == p.last.Root:
		now.ID = p.last.ID
		p.found = &now
	default:
		if p.changed, err = s.files.Between(ctx, p.last.Manifest, now.Manifest); err != nil {
			return err
		}
		p.found = s.newCheckpoint(now.Root, now.Manifest, p.last.ID)
	}
	s.line.Last = p.found
	return s.letGo(ctx)
}

// letGo lets go of what the project has by now, as after an apply. It is in a
// checkpoint, in case it changes there.
func (s *Session) letGo(ctx context.Context) error {
	drop, own, err := s.catchUpGit(ctx)
	s.files.Mounting(s.outfit.Ignores.Ignored, time.Now())
	if err != nil || own {
		return err
	}
	paths, err := s.files.LetGo(ctx, drop, func(left *manifest.Manifest) error {
		var events []api.Event
		if p := s.past; p.last == nil || p.found.ID > p.last.ID {
			p.kept = true
			events = append(events, s.line.Event(p.found, 0))
		}
		root, err := s.files.Save(ctx, left)
		if err == nil {
			err = s.resumed()
		}
		if err != nil {
			return err
		}
		s.line.Last = s.newCheckpoint(root, left, s.past.found.ID)
		return s.recorded(append(events, s.line.Event(s.line.Last, 0))...)()
	})
	if err == nil {
		err = s.outfit.Git.Settle()
	}
	if paths = slices.DeleteFunc(paths, func(path string) bool { return project.Never(path) != "" }); len(paths) > 0 {
		s.note(false, "let go of what the project has as it was here (%s): the agent sees the project's own, and what becomes of it", few(paths))
	}
	return err
}

// resumed records that the session goes on, once. What else is recorded of it then
// comes after that: nothing but an apply may follow an end that is sealed.
func (s *Session) resumed() error {
	if s.listed {
		return nil
	}
	s.info = s.past.again(s.info)
	err := s.recorded(s.changed("resumed"))()
	s.listed = err == nil
	return err
}

// again is a session that goes on, as its agent starts.
func (p *past) again(was api.Session) api.Session {
	out := p.next
	out.Number, out.StartedAt, out.Commit, out.Branch, out.Base = was.Number, was.StartedAt, was.Commit, was.Branch, was.Base
	out.Parent, out.Bases, out.Rules, out.Spend = was.Parent, was.Bases, was.Rules, was.Spend
	out.Actions, out.Unreviewed, out.LastAction, out.Applies = was.Actions, was.Unreviewed, was.LastAction, was.Applies
	out.Denials, out.Rollbacks, out.Changed = was.Denials, was.Rollbacks, was.Changed
	out.Resumed, out.ResumedAt = was.Resumed+1, time.Now().UTC()
	// It stays what it was first, for who looks for it.
	out.Agent, out.Command = was.Agent, was.Command
	if p.next.Command != was.Command {
		out.ResumedWith = p.next.Command
	}
	if was.Live() { // it was interrupted some time after that
		was.EndedAt = p.Ran
	}
	out.RanBefore = was.Ran(was.EndedAt)
	return out
}

// goOn records what became of the session while it wasn't live. It runs in the
// loop, when the agent is about to run.
func (s *Session) goOn() {
	p := s.past
	events := append([]api.Event{s.changed("started")}, p.Closing...)
	for _, a := range p.left {
		kind := "left"
		if a.Reason == api.CutOff {
			kind = string(a.State)
		}
		events = append(events, s.standing(a, kind)...)
	}
	if !p.kept && (p.last == nil || p.found.ID > p.last.ID) {
		events = append(events, s.line.Event(p.found, 0))
	}
	s.record(nil, events...)
	s.goesOnWith(s.actions.all)
	s.note(p.Session.Live(), "%s", p.said(s.info.Runs()))
	for _, words := range append(p.gitWords, p.Words...) {
		s.note(true, "%s", words)
	}
	if len(p.changed) > 0 {
		var shared []int
		for _, a := range p.running {
			shared = append(shared, a.N)
		}
		s.record(nil, s.edited(p.last, p.found, p.changed, shared)...)
		s.note(true, "the files weren't as they are in the last checkpoint: #%d is what was changed since", len(s.actions.all))
	}
	s.takeBase()
	p.Past, p.changed, p.last = nil, nil, nil // not needed any more
}

// asks says whether the person is asked again what nobody answered before the end: what becomes of
// changes. Where both modes are step mode, they are to be asked before the agent's next command.
func (p *past) asks(now api.Mode) bool {
	return p.Session.Mode == api.ModeStep && now == api.ModeStep
}

// beyondKept says whether there are changes of an action after those that were kept.
func (a *action) beyondKept() bool {
	n := len(a.spans)
	return a.KeptTo != 0 && n > 0 && a.spans[n-1].To > a.KeptTo
}

// goesOnWith takes up the actions of before the end: what they changed, if that isn't known yet, and what
// the person is to be asked about it.
func (s *Session) goesOnWith(all []*action) {
	asks := s.past.asks(s.info.Mode)
	for _, a := range all {
		if a.untold || asks && !a.apart() && (a.Review == api.ReviewOpen || a.Review == api.ReviewKept && a.beyondKept()) {
			s.takesUp(a, asks)
		}
	}
}

func (s *Session) takesUp(a *action, asks bool) {
	s.edits++
	s.told(a, func(t files.Told) {
		if a.untold || a.Review == api.ReviewKept {
			s.own(a, t)
			a.untold = false
			s.record(nil, s.actionEvent(a, "ended"), s.changed("counted"))
		}
		if asks && a.Review == api.ReviewOpen {
			s.open(s.sharedBy(reviewOf(a, t.Listed, t.To)))
		}
		s.asksEdit()
	})
}

// said is how a session goes on, in words.
func (p *past) said(command string) string {
	how := "it had ended"
	if p.Session.Live() {
		how = "it had been interrupted"
		if len(p.running) > 0 {
			var ns []int
			for _, a := range p.running {
				ns = append(ns, a.N)
			}
			how += fmt.Sprintf(" while %s ran", api.Numbered(ns))
		}
	}
	return fmt.Sprintf("resumed with %s: %s", command, how)
}
