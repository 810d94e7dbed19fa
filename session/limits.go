package session

import (
	"context"
	"fmt"
	"hash/maphash"
	"math"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"stepbox/policy"
	"stepbox/runner"
	"stepbox/runner/overlay/diff"
	"stepbox/runner/overlay/manifest"
	"stepbox/session/api"
	"stepbox/session/files"
	"stepbox/session/loop"
)

const (
	// usedEvery is how often it is looked at what actions use, if anything limits that.
	usedEvery = time.Second
	// changedEvery is how often at most the files are looked at for that, while an
	// action writes all the time.
	changedEvery = 5 * time.Second
	// mostFiles are told apart for an action; no limit on files counts further.
	mostFiles = 1 << 20
)

// used is what an action has used of its limits.
type used struct {
	wall, cpu  time.Duration
	memory     int64
	last, gone time.Duration // processor time at the last look, and of what is gone by now
	dipped     bool          // it was less at the last look than before
	files      map[uint64]struct{}
	written    int64
	times      map[string]float64 // for how many times a limit the person let it go on
	asking     bool
}

var pathSeed = maphash.MakeSeed()

// limit notes which limits hold now for actions, and which a person is told of.
func (s *Session) limit(p *policy.Policy) {
	s.limits = nil
	s.info.Limits.Rules = nil
	for _, l := range p.Limits() {
		s.info.Limits.Rules = append(s.info.Limits.Rules, api.Escape(l.From()))
		switch l.Name {
		case policy.LimitActionWall, policy.LimitActionCPU, policy.LimitActionMemory, policy.LimitActionFiles, policy.LimitActionWritten:
			s.limits = append(s.limits, l)
		}
	}
}

// watchActions looks at what actions use until the session ends.
func (s *Session) watchActions(box *runner.Sandbox) {
	tick := time.NewTicker(usedEvery)
	defer tick.Stop()
	last := time.Now()
	for {
		select {
		case now := <-tick.C:
			wanted := false
			if err := s.loop.Call(context.Background(), func() { wanted = s.limited() }); err != nil {
				return
			}
			if wanted {
				uses := box.Used()
				passed := now.Sub(last)
				s.loop.Submit(func() { s.lookAtUse(uses, passed) })
			}
			last = now
		case <-s.loop.In(loop.Stopping):
			return
		}
	}
}

// limited says whether an action runs that has a limit.
func (s *Session) limited() bool {
	return len(s.limits) > 0 && s.loop.Now() == loop.Running && len(s.actions.alive()) > 0
}

// lookAtUse counts what the actions that run have used, and asks about those that used
// all that they may. Time in which the agent stands still, or an action waits for a
// person, isn't counted.
func (s *Session) lookAtUse(uses map[uint64]runner.Use, passed time.Duration) {
	if s.loop.Now() != loop.Running || s.thaw != nil {
		return
	}
	if slices.ContainsFunc(s.questions, func(q *question) bool { return q.thaw != nil }) {
		return
	}
	for _, a := range s.actions.alive() {
		var cpu time.Duration
		a.used.memory = 0
		for _, k := range a.kins {
			cpu += uses[k.mark].CPU
			a.used.memory += uses[k.mark].Memory
		}
		a.used.ran(cpu)
		waits := slices.ContainsFunc(s.questions, func(q *question) bool { return q.Action == a.N && q.state != questionClosed })
		if a.State == api.ActionRunning && !waits {
			a.used.wall += passed
		}
		s.checkUse(a)
	}
	if s.moved && time.Since(s.looked) >= changedEvery && s.limitsFiles() {
		s.looked = time.Now()
		s.checkpoint(func(*files.Checkpoint, error) {})
	}
}

// ran notes the processor time of the processes that live. What those took along that are
// gone stays counted; a look may fall between a child's end and its parent's notice of it.
func (u *used) ran(cpu time.Duration) {
	switch {
	case cpu >= u.last:
		u.last, u.dipped = cpu, false
	case !u.dipped:
		u.dipped = true
	default:
		u.gone += u.last - cpu
		u.last, u.dipped = cpu, false
	}
	u.cpu = u.gone + u.last
}

// limitsFiles says whether a limit is on what actions write.
func (s *Session) limitsFiles() bool {
	return slices.ContainsFunc(s.limits, func(l policy.Limit) bool {
		return l.Name == policy.LimitActionFiles || l.Name == policy.LimitActionWritten
	})
}

// wrote counts what an action changed between two looks at the files.
func (s *Session) wrote(a *action, changed []diff.Change) {
	if !s.limitsFiles() {
		return
	}
	u := &a.used
	if u.files == nil {
		u.files = make(map[uint64]struct{})
	}
	for i := range changed {
		c := &changed[i]
		if c.Kind() == manifest.KindDir {
			continue
		}
		if len(u.files) < mostFiles {
			u.files[maphash.String(pathSeed, c.Path)] = struct{}{}
		}
		if c.New != nil && (c.Content || c.Old == nil) {
			u.written += c.New.Size
		}
	}
	s.checkUse(a)
}

// of is what was used of a limit, and that in words.
func (u *used) of(name string) (float64, string) {
	switch name {
	case policy.LimitActionWall:
		return u.wall.Seconds(), "it ran for " + u.wall.Round(time.Second).String()
	case policy.LimitActionCPU:
		return u.cpu.Seconds(), "it took " + u.cpu.Round(time.Second/10).String() + " of processor time"
	case policy.LimitActionMemory:
		return float64(u.memory), fmt.Sprintf("its programs have %d MiB of memory", u.memory>>20)
	case policy.LimitActionFiles:
		return float64(len(u.files)), "it changed " + api.Counted(len(u.files), "file")
	case policy.LimitActionWritten:
		return float64(u.written), fmt.Sprintf("it wrote %d KiB into files of the project", u.written>>10)
	}
	return 0, ""
}

// checkUse asks about an action, or ends it, once it has used all that it may.
func (s *Session) checkUse(a *action) {
	if a.used.asking || s.loop.Now() != loop.Running {
		return
	}
	for _, l := range s.limits {
		n, words := a.used.of(l.Name)
		if n < l.Amount*(1+a.used.times[l.Name]) {
			continue
		}
		why := words + ", which is its limit: " + l.From()
		switch {
		case s.info.Mode == api.ModeWatch:
			a.used.again(l.Name, math.Inf(1))
			s.note(true, "#%d goes on in watch mode: %s", a.N, api.Escape(why))
		case l.At == policy.Deny:
			a.used.asking = true
			s.note(true, "#%d is ended: %s", a.N, api.Escape(why))
			s.endAction(a, why, func() {})
		default:
			s.askBeyond(a, l, why)
		}
		return
	}
}

// again lets an action use a limit more times.
func (u *used) again(name string, times float64) {
	if u.times == nil {
		u.times = make(map[string]float64)
	}
	u.times[name] += times
}

// askBeyond asks whether an action may go on beyond a limit. The agent is frozen
// meanwhile: an action can't be apart from it.
func (s *Session) askBeyond(a *action, l policy.Limit, why string) {
	a.used.asking = true
	s.loop.Aside(func() func() {
		thaw, err := s.freezer.Freeze(context.Background())
		return func() {
			q := &question{
				Question: api.Question{Action: a.N, Subject: api.SubjectLimit, Title: a.Title, Rule: api.Escape(why)},
				about:    &aboutLimit{name: l.Name}, action: a, thaw: thaw,
			}
			switch {
			case s.loop.Now() != loop.Running || !a.alive():
				s.unfreeze(q)
				return
			case err != nil:
				s.note(true, "#%d runs on while it is asked about: it can't be frozen: %v", a.N, err)
			}
			s.open(q)
		}
	})
}

// aboutLimit is whether an action goes on that has used all that it may.
type aboutLimit struct {
	plain
	name string
}

func (*aboutLimit) fault(q *question, d api.Decision) error {
	return eitherOr(d, "#%d runs, and is at a limit: approve lets it go on, deny ends it", q.Action)
}

func (*aboutLimit) rules(*Session, *question, api.Decision, api.Rule) ([]api.Rule, error) {
	return nil, api.Problemf(api.CodeUsage, "an action goes on beyond a limit once; the limit itself stands in a policy, see stepbox policy show")
}

func (l *aboutLimit) follows(s *Session, q *question, d api.Decision) (next func(), also []api.Event) {
	return func() { s.beyond(q, l.name, d) }, nil
}

// beyond carries out the answer: the action may use the limit once more, or ends.
func (s *Session) beyond(q *question, limit string, d api.Decision) {
	if q.Closed != "allow" {
		s.endAction(q.action, q.Rule+" ("+reason(d)+")", func() { s.unfreeze(q) })
		return
	}
	n, _ := q.action.used.of(limit)
	for _, l := range s.limits {
		if l.Name == limit { // it may be far beyond by now
			q.action.used.again(limit, max(1, math.Floor(n/l.Amount)-q.action.used.times[limit]))
		}
	}
	q.action.used.asking = false
	s.unfreeze(q)
}

// endAction kills what an action runs.
func (s *Session) endAction(a *action, why string, then func()) {
	s.endedByLimit(a, why)
	s.loop.Aside(func() func() {
		err := s.killTree(context.Background(), a)
		return func() {
			if err != nil && s.loop.Now() == loop.Running {
				s.note(true, "#%d can't be ended: %v", a.N, err)
			}
			then()
		}
	})
}

// endedByLimit notes of an action that it was ended by a limit. The agent is told with
// its next command.
func (s *Session) endedByLimit(a *action, why string) {
	a.Reason = api.Escape(api.Trim("ended at a limit: "+why, maxReason))
	s.word = fmt.Sprintf("#%d (%s) was ended by a limit of this session: %s", a.N, api.Trim(a.Title, 80), api.Trim(why, maxReason))
}

// starvation is why a program was killed, if it was the kernel that did it for want of
// memory; "" else. It says so once for each.
func (s *Session) starvation(code int, signal string) string {
	if signal != "SIGKILL" && code != 128+int(unix.SIGKILL) { // a shell gives its program's end on
		return ""
	}
	was := s.starved
	if s.starved = s.box.Starved(); s.starved == was {
		return ""
	}
	if limit := s.info.Limits.Memory; limit > 0 {
		return fmt.Sprintf("the kernel killed it for want of memory: the session may have %d MiB", limit>>20)
	}
	return "the kernel killed it for want of memory: this machine had no more"
}

// cramped is what may have crashed an agent that rlimits bound, in words; "" where that
// can't be. Runtimes abort when the kernel refuses memory, which rlimits count as soon
// as it is reserved: opencode reserves 7.6 GiB where it can, and uses 1.
func cramped(limits api.Limits, signal string) string {
	switch signal {
	case "SIGILL", "SIGTRAP", "SIGABRT", "SIGBUS", "SIGSEGV":
	default:
		return ""
	}
	if limits.Memory == 0 || !strings.Contains(limits.Source, "rlimits") {
		return ""
	}
	return fmt.Sprintf("it may have been want of memory: without cgroups each program may have %d MiB, and what it reserves without using it counts; a larger --memory gives it more",
		limits.Memory>>20)
}

// notBeyond closes the question about an action's limit when the action is over.
func (s *Session) notBeyond(a *action) {
	for _, q := range slices.Clone(s.questions) {
		if _, is := q.about.(*aboutLimit); is && q.action == a {
			s.withdraw(q)
		}
	}
}
