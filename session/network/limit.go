package network

import (
	"context"
	"errors"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"stepbox/policy"
	"stepbox/runner/egress"
	"stepbox/session/api"
	"stepbox/session/budget"
)

// account is what a session's connections have used of one limit: those of one rule, or
// all. It may be used from any goroutine.
type account struct {
	id    string // of the rule and the limit's name
	rule  string // the rule, and whose it is; "": the limit is the session's
	limit atomic.Pointer[policy.Limit]
	bytes budget.Bytes
	rate  budget.Rate
	said  atomic.Bool // that it is used up

	mu    sync.Mutex
	given int // guarded by mu: times that it may be used
}

// accounts are a session's. There are no more than its rules have limits.
type accounts struct {
	mu  sync.Mutex
	all map[string]*account // guarded by mu
}

// of gives the account of a limit as it is now. What was used stays so when the limit
// becomes another.
func (l *accounts) of(rule string, limit policy.Limit) *account {
	l.mu.Lock()
	defer l.mu.Unlock()
	id := limit.Name + " of " + rule
	a := l.all[id]
	if a == nil {
		if l.all == nil {
			l.all = make(map[string]*account)
		}
		a = &account{id: id, rule: rule, given: 1}
		l.all[id] = a
	}
	if was := a.limit.Load(); was == nil || *was != limit {
		a.limit.Store(&limit)
		a.give(0)
	}
	return a
}

// give lets it be used more times.
func (a *account) give(more int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.given += more
	l := a.limit.Load()
	a.bytes.Give(int64(min(l.Amount*float64(a.given), math.MaxInt64/2)))
	a.rate.Give(int(l.Amount))
	if more > 0 {
		a.rate.Again()
		a.said.Store(false)
	}
}

// counted says whether bytes or tokens are, or how often in a minute something happens.
func (a *account) counted() (bytes bool) {
	name := a.limit.Load().Name
	return name == policy.LimitSent || name == policy.LimitReceived || a.spends()
}

// spends says whether tokens are counted, which only requests that are looked into wait for.
func (a *account) spends() bool { return a.limit.Load().Name == policy.LimitTokens }

// Spent counts tokens. How many an answer takes is known only when it has come, so that
// the last one may go beyond the limit. It may be called from any goroutine.
func (n *Network) Spent(tokens int64) {
	for _, l := range n.rules.Load().session {
		if l.Name == policy.LimitTokens {
			n.accounts.of("", l).take(int(tokens))
		}
	}
}

func (a *account) take(n int) int {
	if a.counted() {
		return a.bytes.Take(n)
	}
	return a.rate.Take(n, time.Now())
}

func (a *account) back(n int) {
	if a.counted() {
		a.bytes.Back(n)
	} else {
		a.rate.Back(n)
	}
}

// empty says whether there is nothing left.
func (a *account) empty() bool {
	n := a.take(1)
	a.back(n)
	return n == 0
}

// Why says that the limit is used up, and where it stands.
func (a *account) Why() string {
	whose := "this session"
	if _, rule, ok := strings.Cut(a.rule, ": "); ok {
		whose = rule
	}
	return "the limit of " + whose + " is used up: " + a.limit.Load().From()
}

// takeAll takes of several accounts alike, and says how many, and which has too little.
func takeAll(of []*account, n int, whole bool) (int, *account) {
	for i, a := range of {
		got := a.take(n)
		if got == 0 || whole && got < n {
			a.back(got)
			for _, b := range of[:i] {
				b.back(n)
			}
			return 0, a
		}
		for _, b := range of[:i] {
			b.back(n - got)
		}
		n = got
	}
	return n, nil
}

// limits are the accounts that a connection counts in.
func (n *Network) limits(j *policy.Judgement) (out []*account) {
	for _, l := range j.Limits {
		out = append(out, n.accounts.of(j.Budget, l))
	}
	for _, l := range n.rules.Load().session {
		out = append(out, n.accounts.of("", l))
	}
	return out
}

// named are those of some accounts with a limit's name.
func named(all []*account, name string) (out []*account) {
	for _, a := range all {
		if a.limit.Load().Name == name {
			out = append(out, a)
		}
	}
	return out
}

// Admit lets a try that may connect do so as far as its limits allow. Where one is used
// up it is denied, or has to be asked about.
func (n *Network) Admit(t *Try, v egress.Verdict) (egress.Verdict, bool) {
	r := n.rules.Load()
	j := r.connect(t)
	all := n.limits(&j)
	if len(all) == 0 || !v.Allow {
		return v, true
	}
	short := n.connects(all)
	switch {
	case short == nil:
	case r.mode == api.ModeWatch:
		n.reached(short)
	case short.limit.Load().At == policy.Deny:
		n.reached(short)
		return egress.Verdict{Rule: short.Why()}, true
	default:
		t.beyond(short)
		return egress.Verdict{}, false
	}
	v.Meter = &meter{
		n: n, at: t.At,
		tokens: named(all, policy.LimitTokens), sent: named(all, policy.LimitSent), received: named(all, policy.LimitReceived), requests: named(all, policy.LimitRequests),
	}
	return v, true
}

// connects counts one more connection, which has a request at least. It says of what there
// is nothing left for it.
func (n *Network) connects(all []*account) *account {
	for _, a := range all {
		if a.counted() && !a.spends() && a.empty() {
			return a
		}
	}
	_, short := takeAll(append(named(all, policy.LimitConnections), named(all, policy.LimitRequests)...), 1, true)
	return short
}

// reached tells a person once that something is used up.
func (n *Network) reached(a *account) {
	if n.Reached != nil && a.said.CompareAndSwap(false, true) {
		n.Reached(a.Why())
	}
}

// meter is that of one attempt.
type meter struct {
	n                        *Network
	at                       egress.Attempt
	sent, received, requests []*account
	tokens                   []*account
}

func (m *meter) Sent(ctx context.Context, n int, whole bool) (int, error) {
	return m.take(ctx, m.sent, n, whole)
}

func (m *meter) Received(ctx context.Context, n int, whole bool) (int, error) {
	return m.take(ctx, m.received, n, whole)
}

// Model lets a request leave if there is something left to be spent.
func (m *meter) Model(ctx context.Context) error {
	if _, err := m.take(ctx, m.requests, 1, true); err != nil {
		return err
	}
	got, err := m.take(ctx, m.tokens, 1, false)
	if err == nil {
		for _, a := range m.tokens {
			a.back(got)
		}
	}
	return err
}

// take takes what is left; of nothing it asks, and waits.
func (m *meter) take(ctx context.Context, of []*account, n int, whole bool) (int, error) {
	for {
		got, short := takeAll(of, n, whole)
		switch {
		case short == nil:
			return got, nil
		case m.n.rules.Load().mode == api.ModeWatch:
			m.n.reached(short)
			return n, nil
		case short.limit.Load().At == policy.Deny:
			m.n.reached(short)
			return 0, errors.New("stopped: " + short.Why())
		}
		t := newTry(m.at)
		t.flow = true
		t.beyond(short)
		if v := m.n.ask(ctx, t); !v.Allow {
			if ctx.Err() != nil {
				return 0, ctx.Err()
			}
			return 0, errors.New("stopped: " + v.Rule)
		}
	}
}
