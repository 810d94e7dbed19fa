package network

import (
	"cmp"
	"slices"
	"time"

	"stepbox/policy"
	"stepbox/runner/egress"
)

const (
	// Patience is how long after its last try a question stands, and how long after
	// it an answer serves: programs give up and try again.
	Patience = 10 * time.Minute
	// MaxHeld destinations are asked about one by one. Those beyond are one question.
	MaxHeld = 32
	// MaxFlood names are kept of those beyond; all are counted.
	MaxFlood = 100
)

// Key is what one question is about. The zero Key is the flood's.
type Key struct {
	Program string // its path; "" isn't known
	Written bool   // this session wrote that file: it is another program than the one that was there
	To      policy.Destination
	Sends   string // what its command was seen to send: another thing is another question
	Limit   string // what is used up; then it is about that, whoever uses it
}

// Try is an attempt that waits for its verdict.
type Try struct {
	At     egress.Attempt
	To     policy.Destination
	Key    Key
	Action int    // 0: none
	Own    bool   // it is the agent that the session was started for
	Why    string // it is asked, in words
	Sends  []string
	// Written: this session wrote the program's file.
	Written bool

	over    *account // what is used up; nil: nothing
	flow    bool     // it is open, and goes on
	held    *Held
	verdict chan egress.Verdict // has room for it
}

func newTry(at egress.Attempt) *Try {
	to := Destination(at)
	return &Try{At: at, To: to, Key: Key{Program: at.Program, To: to}, verdict: make(chan egress.Verdict, 1)}
}

// beyond makes it one that is asked about since something is used up.
func (t *Try) beyond(a *account) { t.over, t.Key, t.Why = a, Key{Limit: a.id}, a.Why() }

// who is whose later tries an answer for once covers as well.
func (t *Try) who() int {
	if t.Action != 0 {
		return -t.Action
	}
	return t.At.PID
}

// Answer gives a try its verdict, once.
func (t *Try) Answer(v egress.Verdict) { t.verdict <- v }

// Held is a question's tries: all those with one key, or the flood's.
type Held struct {
	Key     Key
	Last    *Try // the newest one
	Tries   int
	LastTry time.Time
	Others  []policy.Destination // the flood's, at most MaxFlood

	waiting map[*Try]bool
	all     map[int]bool // who tried

	programs map[string]bool // of a flood, at most MaxFlood
}

// Waiting is how many tries wait now.
func (h *Held) Waiting() int { return len(h.waiting) }

// Flood says whether it stands for many destinations.
func (h *Held) Flood() bool { return h.Key == Key{} }

// Limit is what is used up when the question is about that, in words; "": it isn't.
func (h *Held) Limit() string {
	if h.Key.Limit == "" {
		return ""
	}
	return h.Last.over.limit.Load().String()
}

// once is an answer that wasn't made a rule.
type once struct {
	key     Key
	who     int // 0: whoever tries next
	verdict egress.Verdict
	until   time.Time
}

// Tries are a session's that were asked about. They are owned by its loop.
type Tries struct {
	Admit func(*Try, egress.Verdict) (egress.Verdict, bool) // see Answer

	held  map[Key]*Held
	given []once // the oldest first
}

// maxOnce answers are remembered: those that are lost are asked for again.
const maxOnce = 1024

// Answered gives the verdict that an earlier answer has for a try.
func (l *Tries) Answered(t *Try, now time.Time) (egress.Verdict, bool) {
	l.given = slices.DeleteFunc(l.given, func(o once) bool { return now.After(o.until) })
	i := slices.IndexFunc(l.given, func(o once) bool { return o.key == t.Key && (o.who == 0 || o.who == t.who()) })
	if i < 0 {
		return egress.Verdict{}, false
	}
	o := l.given[i]
	if l.given[i].who = t.who(); t.who() == 0 { // it is this one's from now on, which can't be known again
		l.given = slices.Delete(l.given, i, i+1)
	}
	return o.verdict, true
}

// Hold has a try wait for a person's answer. First says that its question is new.
func (l *Tries) Hold(t *Try, now time.Time) (h *Held, first bool) {
	if l.held == nil {
		l.held = make(map[Key]*Held)
	}
	key := t.Key
	if l.held[key] == nil && key.Limit == "" && l.many(t) { // of limits there are few
		key = Key{}
	}
	h = l.held[key]
	if first = h == nil; first {
		h = &Held{Key: key, waiting: make(map[*Try]bool), all: make(map[int]bool), programs: make(map[string]bool)}
		l.held[key] = h
	}
	if h.Flood() {
		h.names(t.Key.To)
		if len(h.programs) < MaxFlood {
			h.programs[t.At.Program] = true
		}
	}
	h.Last, h.LastTry = t, now
	h.Tries++
	h.waits(t)
	return h, first
}

// waits has a try be one of the question's. Of those who tried no more are kept than an
// answer is remembered for.
func (h *Held) waits(t *Try) {
	t.held, h.waiting[t] = h, true
	if len(h.all) < maxOnce {
		h.all[t.who()] = true
	}
}

// many says whether a new destination isn't asked about by itself: too many are
// already, or its program is one of those that flood.
func (l *Tries) many(t *Try) bool {
	flood := l.held[Key{}]
	return len(l.held) >= MaxHeld || flood != nil && flood.programs[t.At.Program]
}

// names notes one of a flood's destinations.
func (h *Held) names(d policy.Destination) {
	if len(h.Others) < MaxFlood && !slices.Contains(h.Others, d) {
		h.Others = append(h.Others, d)
	}
}

// Absorb has a flood stand for what else its program is asked about, as far as that may
// be, and gives the questions that are over so: of a thousand names one is left.
func (l *Tries) Absorb(flood *Held, may func(*Held) bool) (over []*Held) {
	for _, h := range l.held {
		if !h.Flood() && h.Key.Limit == "" && h.Last.At.Program == flood.Last.At.Program && may(h) {
			over = append(over, h)
		}
	}
	slices.SortFunc(over, func(a, b *Held) int { return cmp.Compare(a.Last.At.ID, b.Last.At.ID) })
	for _, h := range over {
		flood.names(h.Key.To)
		flood.Tries += h.Tries
		for _, t := range l.Take(h) {
			flood.waits(t)
		}
	}
	return over
}

// Leave forgets a try whose program gave up, and gives what it waited with, if it did.
func (l *Tries) Leave(t *Try) *Held {
	if t.held == nil || !t.held.waiting[t] {
		return nil
	}
	delete(t.held.waiting, t)
	return t.held
}

// Stale says whether a question has stood for long enough without a try.
func (h *Held) Stale(now time.Time) bool {
	return len(h.waiting) == 0 && now.Sub(h.LastTry) >= Patience
}

// Answer gives all that wait one verdict. With remember it serves those who asked
// when they try again, but for those of whom it isn't known who they are, and when none
// of them waits, whoever does so next. A question
// that was answered or dropped before is left as it is. Admit, unless it is nil, has the
// last word on each that would be let through; those of which it has none are returned.
func (l *Tries) Answer(h *Held, v egress.Verdict, remember bool, now time.Time) (beyond []*Try) {
	if l.held[h.Key] != h {
		return nil
	}
	if remember && !h.Flood() {
		if delete(h.all, 0); len(h.waiting) == 0 {
			h.all[0] = true
		}
		for who := range h.all {
			l.given = append(l.given, once{h.Key, who, v, now.Add(Patience)})
		}
		l.given = l.given[max(0, len(l.given)-maxOnce):]
	}
	for _, t := range l.Take(h) {
		v, ok := v, true
		if l.Admit != nil {
			v, ok = l.Admit(t, v)
		}
		if ok {
			t.Answer(v)
		} else {
			beyond = append(beyond, t)
		}
	}
	return beyond
}

// Take gives what waits, which the caller answers, and forgets the question.
func (l *Tries) Take(h *Held) (waited []*Try) {
	for t := range h.waiting {
		waited = append(waited, t)
	}
	slices.SortFunc(waited, func(a, b *Try) int { return cmp.Compare(a.At.ID, b.At.ID) }) // first come
	l.Drop(h)
	return waited
}

// Drop forgets a question, with what waits for it: that was answered, or is over.
func (l *Tries) Drop(h *Held) {
	clear(h.waiting)
	if l.held[h.Key] == h {
		delete(l.held, h.Key)
	}
}

// Rejudge gives those that wait for an answer their verdict where judge has one now.
func (h *Held) Rejudge(judge func(*Try) (egress.Verdict, bool)) {
	for t := range h.waiting {
		if v, ok := judge(t); ok {
			t.Answer(v)
			delete(h.waiting, t)
		}
	}
}
