package session

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"stepbox/runner/gate"
	"stepbox/session/api"
	"stepbox/session/files"
	"stepbox/session/judge"
)

// actions are a session's. What is asked of them at each exec doesn't take longer
// the more there were. They are owned by the session's loop.
type actions struct {
	all     []*action              // all[i].N == i+1
	forming []*action              // without a number yet, or not shown yet
	waiting map[*gate.Exec]*action // those of which a held exec is a member
	running []*action              // those that are alive, and maybe others
	last    map[string]*action     // the last with a title that was denied or has ended
}

func newActions() actions {
	return actions{waiting: make(map[*gate.Exec]*action), last: make(map[string]*action)}
}

// at is an action by its number; nil when there is none.
func (l *actions) at(n int) *action {
	if n < 1 || n > len(l.all) {
		return nil
	}
	return l.all[n-1]
}

// add gives an action its number.
func (l *actions) add(a *action) {
	l.all = append(l.all, a)
	a.N = len(l.all)
}

// hold makes an exec a member of an action, where it stands in its job: a shell
// forks them in order.
func (l *actions) hold(a *action, x *judge.Exec) {
	a.members = append(a.members, x)
	slices.SortStableFunc(a.members, func(x, y *judge.Exec) int { return procOf(x).forked(procOf(y)) })
	l.waiting[x.Exec] = a
}

// lost takes away a member whose process is gone, and says whose it was; nil: no
// action's.
func (l *actions) lost(e *gate.Exec) *action {
	a := l.waiting[e]
	if a != nil {
		delete(l.waiting, e)
		a.members = slices.DeleteFunc(a.members, func(x *judge.Exec) bool { return x.Exec == e })
	}
	return a
}

// decided ends an action's time of forming and being held: it has a verdict, or
// there is nothing to decide on. It returns its members, which it has no more.
func (l *actions) decided(a *action) []*judge.Exec {
	l.shown(a)
	members := a.members
	a.members = nil
	for _, x := range members {
		delete(l.waiting, x.Exec)
	}
	return members
}

// shown ends the time in which others may join an action.
func (l *actions) shown(a *action) {
	l.forming = slices.DeleteFunc(l.forming, func(f *action) bool { return f == a })
	if a.forming != nil {
		a.forming.Stop()
		a.forming = nil
	}
}

// noted keeps in order what depends on an action's state. It is called whenever
// that was changed.
func (l *actions) noted(a *action) {
	if a.alive() && !slices.Contains(l.running, a) {
		l.running = append(l.running, a)
		slices.SortFunc(l.running, func(a, b *action) int { return cmp.Compare(a.N, b.N) })
	}
	over := a.State == api.ActionDenied || a.State == api.ActionEnded && a.Exit != nil
	if was := l.last[a.Title]; over && (was == nil || was.N < a.N) {
		l.last[a.Title] = a
	}
}

// alive lists the commands that can make changes: those that run, and those that
// left something running.
func (l *actions) alive() []*action {
	l.running = slices.DeleteFunc(l.running, func(a *action) bool { return !a.alive() })
	return slices.Clone(l.running)
}

// job finds the action whose job an exec belongs to: the same process group as
// a shell with job control makes them, or joined to it by a pipe. That says what
// it is shown with, and nothing about its verdict: the agent chooses its groups
// and pipes.
func (l *actions) job(x *judge.Exec, parent *process) *action {
	joined := func(a *action, m seat) bool {
		if parent != nil && a.parent != nil && parent.proc == a.parent.proc && m.pgid == x.PGID && x.PGID != parent.pgid {
			return true
		}
		return m.stdout != 0 && m.stdout == x.Stdin || m.stdin != 0 && m.stdin == x.Stdout
	}
	for _, a := range l.forming {
		if !a.becomes && len(a.members) < maxSeats && slices.ContainsFunc(a.members, func(m *judge.Exec) bool { return joined(a, seatOf(m)) }) {
			return a
		}
	}
	for _, a := range l.running {
		if a.State == api.ActionRunning && !a.undone && len(a.seats) < maxSeats && slices.ContainsFunc(a.seats, func(m seat) bool { return joined(a, m) }) {
			return a
		}
	}
	return nil
}

// lastTime says what the last action with the same line did.
func (l *actions) lastTime(title string) string {
	a := l.last[title]
	switch {
	case a == nil:
		return ""
	case a.State == api.ActionDenied:
		return fmt.Sprintf("#%d: denied", a.N)
	}
	return fmt.Sprintf("#%d: %s, %s changed", a.N, cmp.Or(a.Exit.Words(), "ended"), api.Counted(a.Files, "file"))
}

// commands are those alive as the accountant of changes sees them.
func (l *actions) commands() []files.Command {
	var out []files.Command
	for _, a := range l.alive() {
		c := files.Command{
			N: a.N, Runs: a.State == api.ActionRunning && a.atExit == nil,
			Ending: a.exiting, Itself: a.itself, Beside: a.beside, Released: a.ReleasedAt,
		}
		if a.answered.After(c.Released) {
			c.Released = a.answered
		}
		out = append(out, c)
	}
	return out
}

// goesOn notes of those that are held or run when an action forms that another has begun after them,
// which didn't wait for them.
func (l *actions) goesOn(a *action) {
	for _, o := range slices.AppendSeq(l.alive(), maps.Values(l.waiting)) {
		o.beside = o.beside || o != a
	}
}

// since lists the actions from one on, for a roll back.
func (l *actions) since(n int) []files.Past {
	out := make([]files.Past, 0, len(l.all)-n+1)
	for _, a := range l.all[n-1:] {
		out = append(out, files.Past{
			N: a.N, State: a.State, Apart: a.apart(), Lingers: a.lingers,
			TakenBack: a.Review == api.ReviewRolledBack, Files: a.Files, Spans: slices.Clone(a.spans),
			Before: a.Before, After: a.After,
		})
	}
	return out
}

// were notes of all actions which had made something of a state that goes on from some
// checkpoints.
func (l *actions) were(all []files.Past, there map[int64]bool) {
	for i, a := range l.all {
		all[i].Was = a.isIn(there)
	}
}

// moved notes which actions alone a roll back took out or put in again.
func (l *actions) moved(r *api.Rollback) {
	if r.ToBefore != 0 || r.After == 0 || r.Failure != "" {
		return
	}
	for _, n := range r.Actions {
		if a := l.at(n); a != nil {
			a.moves = append(a.moves, move{r.After, !r.PutsIn()})
		}
	}
}

// isIn says whether something of an action's changes is in a state that goes on from
// some checkpoints.
func (a *action) isIn(there map[int64]bool) bool {
	for _, m := range slices.Backward(a.moves) {
		if there[m.at] {
			return !m.out
		}
	}
	return slices.ContainsFunc(a.spans, func(s files.Span) bool {
		for id := s.From + 1; id <= s.To; id++ {
			if there[id] {
				return true
			}
		}
		return false
	})
}

// restored are the actions of whose changes something is back, when the files went
// forward again to what goes on from some checkpoints: that is so if one of these is
// among those made of them, and not one that they alone were taken out of since.
// Its review is what it was before it was taken back.
func (l *actions) restored(there map[int64]bool) (out []*action) {
	for _, a := range l.all {
		if a.Review == api.ReviewRolledBack && a.isIn(there) {
			out = append(out, a)
		}
	}
	return out
}
