package session

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zeebo/blake3"

	"stepbox/session/api"
	"stepbox/session/judge"
	"stepbox/session/ledger"
	"stepbox/session/loop"
	"stepbox/store"
)

// question is an api.Question with what waits for its answer.
type question struct {
	api.Question
	about  subject
	execs  []*judge.Exec // held programs; empty for all but commands
	action *action       // that it is about; nil: none
	thaw   func() error  // the agent is frozen until it is answered
	traps  []string      // what programs obey that this session wrote, as it was opened
	since  time.Time     // as HeldAt, by the clock that nobody sets: how long it waits is counted from here
	state  questionState
}

// subject is what a question is about. Each kind has a type, in the file of what it is about.
type subject interface {
	// binds puts what a decision covers besides what every question shows.
	binds(put func(parts ...string))
	// fault is why a question can't be answered so, or nil.
	fault(q *question, d api.Decision) error
	// rules are what an answer is made that is to hold for longer than once; r has its verdict, and for how long.
	rules(s *Session, q *question, d api.Decision, r api.Rule) ([]api.Rule, error)
	// follows is what an answer does once it is recorded, and what is recorded with it.
	follows(s *Session, q *question, d api.Decision) (next func(), also []api.Event)
}

// plain is what most subjects have in common.
type plain struct{}

func (plain) binds(func(...string)) {}

func (plain) rules(*Session, *question, api.Decision, api.Rule) ([]api.Rule, error) { return nil, nil }

// eitherOr is why an answer is neither approve nor deny, said of what it is about; nil: it is one.
func eitherOr(d api.Decision, format string, args ...any) error {
	if d.Answer == api.AnswerApprove || d.Answer == api.AnswerDeny {
		return nil
	}
	return api.Problemf(api.CodeInvalid, format, args...)
}

// maxReason bounds what is handed to the agent with a denial, in bytes.
const maxReason = 500

// ask shows a formed action to the person.
func (s *Session) ask(a *action) {
	if a.regards > 0 { // its verdict is being looked after, and then it waits again
		return
	}
	if s.edits > 0 { // the agent's own changes come first: they are to be answered first
		s.behind = append(s.behind, func() { s.ask(a) })
		return
	}
	s.actions.shown(a)
	if a.State != api.ActionHeld || a.question != nil && a.question.state != questionClosed || len(a.members) == 0 {
		return
	}
	first := a.members[0].Command
	first.Before = a.Before
	first.LastTime, first.Itself = s.actions.lastTime(a.Title), a.itself
	if len(a.members) > 1 {
		first.Line = a.Title
		first.Pipeline = commandsOf(a.members[1:])
	}
	q := &question{
		Question: api.Question{Action: a.N, Subject: api.SubjectCommand, Title: a.Title, Rule: a.Rule, Command: &first},
		about:    aboutCommand{}, execs: slices.Clone(a.members), action: a,
	}
	a.question = q
	s.open(q, s.actionEvent(a, "held"))
}

func commandsOf(members []*judge.Exec) (out []api.Command) {
	for _, x := range members {
		out = append(out, x.Command)
	}
	return out
}

// open puts a question into the record and so before the person.
func (s *Session) open(q *question, also ...api.Event) {
	s.asked++
	q.ID = s.asked
	q.since = time.Now()
	q.HeldAt = q.since.UTC()
	if q.Command != nil {
		if q.traps = s.judge.Places.Traps(); len(q.traps) > 0 {
			q.Command.Unpinned = append(q.Command.Unpinned, "programs obey what this session wrote to: "+strings.Join(q.traps, ", "))
		}
	}
	q.Hash, q.Same = q.digests()
	s.questions = append(s.questions, q)
	if !q.edit() {
		s.offered(q)
	}
	s.record(func(error) {}, append(also, q.event("opened"), s.changed("counted"))...)
	s.unasked(q)
}

// event is the event that says how a question stands.
func (q *question) event(kind string) api.Event {
	copied := q.Question
	return api.Event{Kind: "question." + kind, Question: &copied}
}

// digests are two. Hash covers everything that a decision on the question covers: what was
// shown, and the exact bytes behind it, those of the files that would run or be
// read as scripts included. An approval holds for these contents only. Same covers what of
// that other questions may have in common, also those of another session over the same folder,
// so that one answer can be for all of them; only one about programs has it.
func (q *question) digests() (hash, same string) {
	h, alike := blake3.New(), blake3.New()
	to := io.MultiWriter(h, alike)
	put := func(parts ...string) {
		for _, p := range parts {
			var n [8]byte
			binary.LittleEndian.PutUint64(n[:], uint64(len(p)))
			_, _ = to.Write(n[:]) // a hash never fails
			_, _ = io.WriteString(to, p)
		}
	}
	put(string(q.Subject), q.Title, q.Rule)
	for _, e := range q.execs {
		put("exec", e.Path, e.Cwd, e.Program.Path, strconv.FormatUint(e.Program.Ino, 16), string(e.Digest[:]))
		elsewhere, contents := e.Elsewhere(), e.Cover()
		_, _ = alike.Write(elsewhere[:])
		_, _ = h.Write(contents[:]) // with the devices, which are this sandbox's own
	}
	if q.Command != nil {
		put(q.Command.Env...)
	}
	if len(q.execs) > 0 {
		same = hex.EncodeToString(alike.Sum(nil)[:16])
	}
	put(strconv.FormatInt(q.ID, 10), strconv.Itoa(q.Action))
	for _, e := range q.execs {
		put(strconv.Itoa(e.PID), strconv.FormatUint(e.Start, 10))
	}
	q.about.binds(put)
	if q.action != nil {
		put("checkpoints", strconv.FormatInt(q.action.Before, 10), strconv.FormatInt(q.action.After, 10))
	}
	for _, c := range q.Changes {
		put(c.Key, c.Status)
	}
	return hex.EncodeToString(h.Sum(nil)[:16]), same
}

// Decide answers a question. The first answer that names what is really held
// wins; everyone else is told what became of it. It returns once the decision
// is in the record.
func (s *Session) Decide(ctx context.Context, d api.Decision) (api.Question, error) {
	d.Reason = api.Escape(api.Trim(strings.TrimSpace(d.Reason), maxReason))
	if err := s.mayStick(ctx, d); err != nil {
		return api.Question{}, err
	}
	other, err := s.another(ctx, d)
	if err != nil {
		return api.Question{}, err
	}
	var made []api.Rule
	out, err := loop.Ask(ctx, s.loop, func(done func(api.Question, error)) {
		q, err := s.questions.decidable(d, s.info.Mode == api.ModeStep)
		if err != nil {
			done(api.Question{}, err)
			return
		}
		if d.Answer != api.AnswerDeny && q.Command != nil && !slices.Equal(q.traps, s.judge.Places.Traps()) {
			s.again(q)
			done(api.Question{}, api.Problemf(api.CodeStale, "#%d is asked about again: since you were asked this session wrote what programs obey", q.Action))
			return
		}
		d.At, d.Action = time.Now().UTC(), q.Action
		if d.By = api.Escape(api.Trim(d.By, 64)); d.By == "" {
			d.By = "client"
		}
		reply := func(err error) { done(q.Question, err) }
		if d.Answer == api.AnswerRollback {
			s.undo(context.WithoutCancel(ctx), q, d, reply)
			return
		}
		if made, err = s.rulesFrom(q, d); err == nil && len(made) > 0 {
			var all []api.Rule
			if all, err = withRules(s.info.Rules, made...); err == nil {
				s.info.Rules = all
				s.enter(made)
			}
		}
		if err != nil {
			done(api.Question{}, err)
			return
		}
		s.close(q, d, reply)
	})
	if p := (*api.Problem)(nil); errors.As(err, &p) && p.Code == api.CodeNotFound {
		return out, answered(ctx, s.store, s.cfg.ID, d.Question, err)
	}
	if err == nil {
		err = s.keep(ctx, made...)
	}
	if err == nil && len(made) > 0 {
		s.beaten(ctx, made...)
	}
	if err == nil && other != nil {
		err = api.Problemf(api.CodeStale, "#%d was approved and does not start: %s", out.Action, api.Escape(api.Trim(other.Error(), maxReason)))
	}
	return out, err
}

// again asks anew what a question about programs is about.
func (s *Session) again(q *question) {
	s.withdraw(q)
	if p, nested := q.about.(*aboutProgram); nested {
		for _, x := range q.execs {
			s.askNested(p.kin, x, q.Rule, p.joins)
		}
		return
	}
	q.action.question = nil
	s.ask(q.action)
}

// another says what of the programs that a decision approves isn't as it was shown any more:
// such an approval is recorded, and the gate doesn't let them run.
func (s *Session) another(ctx context.Context, d api.Decision) (changed, err error) {
	if d.Answer == api.AnswerDeny {
		return nil, nil
	}
	var approved []*judge.Exec
	err = s.loop.Call(ctx, func() {
		if q, err := s.questions.decidable(d, s.info.Mode == api.ModeStep); err == nil { // else it is told why not
			approved = slices.Clone(q.execs)
		}
	})
	if err != nil {
		return nil, err
	}
	for _, x := range approved {
		if changed = x.Same(); changed != nil {
			return changed, nil
		}
	}
	return nil, nil
}

// mayStick says why an answer can't be made the rules that it is to be in a file.
func (s *Session) mayStick(ctx context.Context, d api.Decision) error {
	if d.For != api.ExtentProject && d.For != api.ExtentAlways {
		return nil
	}
	var made []api.Rule
	err := s.loop.Call(ctx, func() {
		if q, err := s.questions.decidable(d, s.info.Mode == api.ModeStep); err == nil { // else it is told why not
			made, _ = s.rulesFrom(q, d)
		}
	})
	if err != nil {
		return err
	}
	return s.mayKeep(made...)
}

// undo answers a review with a roll back. Meanwhile no other answer counts; one
// that is refused or fails leaves the question open.
func (s *Session) undo(ctx context.Context, q *question, d api.Decision, reply func(error)) {
	if err := q.to(questionAnswering, d.By, ""); err != nil {
		reply(err)
		return
	}
	s.record(func(err error) {
		if err != nil {
			reply(err)
			return
		}
		s.loop.Aside(func() func() {
			err := s.takeBack(ctx, q, d)
			return func() {
				if q.state != questionAnswering {
					reply(err)
					return
				}
				// It didn't happen: the question stands again.
				if terr := q.to(questionOpen, "", ""); terr != nil {
					s.fail(terr)
				}
				s.record(func(rerr error) { reply(errors.Join(err, rerr)) }, q.event("reopened"))
			}
		})
	}, q.event("answering"))
}

// answered says what became of a question that isn't held any more. Those that
// were answered are in the record only.
func answered(ctx context.Context, st *store.Store, session string, id int64, none error) error {
	q, err := ledger.Doc[api.Question](ctx, st, session, store.KindQuestion, id)
	if err != nil || q.Open() {
		return none
	}
	return over(&q)
}

// over says what became of a closed question.
func over(q *api.Question) error {
	if q.Closed == "withdrawn" {
		return api.Problemf(api.CodeGone, "#%d is no longer held: what was asked about went away", q.Action)
	}
	return api.Problemf(api.CodeDecided, "%s already answered: %s", q.ClosedBy, q.Closed)
}

// questions are those that aren't closed in the record.
type questions []*question

// about says whether an action has one that is open.
func (l questions) about(a *action) bool {
	return slices.ContainsFunc(l, func(q *question) bool { return q.action == a && q.Open() })
}

// forget drops a question that is closed in the record too.
func (l *questions) forget(q *question) {
	*l = slices.DeleteFunc(*l, func(o *question) bool { return o == q })
	if q.action != nil && q.action.question == q && q.action.State != api.ActionHeld {
		q.action.question = nil
	}
}

// forget drops a question that is closed in the record too, and has what waited for it go on.
func (s *Session) forget(q *question) {
	s.questions.forget(q)
	if q.edit() {
		s.pastEdits()
	}
}

// decidable finds the question that a decision names. The error says why it may
// not be answered so. In step mode reviews come before commands.
func (l questions) decidable(d api.Decision, step bool) (*question, error) {
	i := slices.IndexFunc(l, func(q *question) bool { return q.ID == d.Question })
	if i < 0 {
		return nil, api.Problemf(api.CodeNotFound, "there is no question %d", d.Question)
	}
	q := l[i]
	switch {
	case q.state == questionClosed || q.Closed == "withdrawn":
		return q, over(&q.Question)
	case q.state == questionAnswering:
		return q, api.Problemf(api.CodeDecided, "%s is answering already: rolling back #%d is under way", q.Answering, q.Action)
	case d.Hash != q.Hash:
		return q, api.Problemf(api.CodeStale, "#%d isn't what was shown any more; look at it again", q.Action)
	}
	if !slices.Contains([]api.Answer{api.AnswerApprove, api.AnswerApproveKeep, api.AnswerStepInto, api.AnswerStepOver, api.AnswerDeny, api.AnswerKeep, api.AnswerRollback}, d.Answer) {
		return q, api.Problemf(api.CodeInvalid, "there is no answer %q: use approve, approve-keep, deny, into, over, keep or rollback", api.Escape(api.Trim(string(d.Answer), 40)))
	}
	if err := q.about.fault(q, d); err != nil {
		return q, err
	}
	if step && d.Answer != api.AnswerDeny && len(q.execs) > 0 {
		if o := l.edit(); o != nil {
			return q, api.Problemf(api.CodeBusy, "the changes of #%d come first: keep them or roll them back", o.Action)
		}
	}
	return q, nil
}

// commands says whether programs wait for an answer, and no changes do.
func (l questions) commands() bool {
	return l.edit() == nil && slices.ContainsFunc(l, func(q *question) bool { return q.Open() && len(q.execs) > 0 })
}

// edits is the open question about an action's changes; nil for none.
func (l questions) edits(a *action) *question {
	for _, q := range l {
		if q.edit() && q.action == a && q.Open() {
			return q
		}
	}
	return nil
}

// edit is the first open question about changes, which holds up what is to run; nil for none.
func (l questions) edit() *question {
	for _, o := range l {
		if o.Open() && o.edit() {
			return o
		}
	}
	return nil
}

// close records the answer to a question and then carries it out.
func (s *Session) close(q *question, d api.Decision, then func(error)) {
	closed := map[api.Answer]string{
		api.AnswerApprove: "allow", api.AnswerApproveKeep: "allow", api.AnswerStepInto: "allow", api.AnswerStepOver: "allow",
		api.AnswerDeny: "deny", api.AnswerKeep: "keep", api.AnswerRollback: "rollback",
	}
	if err := q.to(questionClosed, d.By, closed[d.Answer]); err != nil {
		then(err)
		return
	}
	next, also := q.about.follows(s, q, d)
	events := append([]api.Event{{Kind: "decision", Decision: &d}, q.event("closed")}, also...)
	s.record(func(err error) {
		s.forget(q)
		if err == nil {
			s.habits.answered(&q.Question, &d)
			next()
			if d.For != "" && d.For != api.ExtentOnce {
				s.ruled() // others are judged by what this was made
			}
		}
		then(err)
	}, append(events, s.changed("counted"))...)
}

func reason(d api.Decision) string {
	if d.Reason == "" {
		return "the person who supervises this session said no"
	}
	return d.Reason
}

// withdraw closes a question whose subject went away.
func (s *Session) withdraw(q *question) {
	if q.state != questionOpen || q.to(questionClosed, "", "withdrawn") != nil {
		return
	}
	var also []api.Event
	if c, is := q.about.(*call); is {
		var err error
		if also, err = c.gone(s, q); err != nil {
			s.fail(err)
			return
		}
	}
	s.record(func(error) {
		s.forget(q)
		s.unfreeze(q)
	}, append(also, q.event("closed"), s.changed("counted"))...)
}

// unfreeze lets the agent go on after a review, unless another still waits.
func (s *Session) unfreeze(q *question) {
	if q.thaw == nil {
		return
	}
	s.thaws = append(s.thaws, q.thaw)
	q.thaw = nil
	if s.loop.Now() >= loop.Stopping {
		s.thawAll()
		return
	}
	s.pastEdits()
}
