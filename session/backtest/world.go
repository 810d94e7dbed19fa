package backtest

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"stepbox/policy"
	"stepbox/session/api"
	"stepbox/session/network"
	"stepbox/session/rules"
)

// World is a session as it would have gone by some rules, as far as these say: what is
// covered by an approval, and what was answered.
type World struct {
	home     string // of the sandbox
	profiles *policy.Profiles
	layers   []policy.Layer // of files, from the general to the specific
	agent    string
	rules    []api.Rule // by which policy was made
	policy   *policy.Policy
	covers   map[int]cover
	answers  map[string]time.Time // when a destination, or a nested command, was asked about
}

// cover is what an action's verdict says of what it starts.
type cover byte

const (
	judgedEach cover = iota // each is judged
	covered                 // all of it goes with the action, but what is denied
	never                   // the action doesn't run
)

// NewWorld begins a session by the rules of these layers, which stand over those of the
// agent's profile.
func NewWorld(home string, ps *policy.Profiles, layers ...policy.Layer) *World {
	return &World{home: home, profiles: ps, layers: layers, covers: make(map[int]cover), answers: make(map[string]time.Time)}
}

// at has the rules be those that held when a deed was done.
func (w *World) at(s *api.Session) error {
	if w.policy != nil && w.agent == s.Agent && slices.EqualFunc(w.rules, s.Rules, func(a, b api.Rule) bool { return a == b }) {
		return nil
	}
	// Those that were put into a file are in it, or were taken out again.
	made, err := rules.Layer("the session", slices.DeleteFunc(slices.Clone(s.Rules), api.Rule.Kept))
	if err != nil {
		return fmt.Errorf("cannot use the rules of session %s: %w", s.ID, err)
	}
	made.Origin = policy.Given
	w.agent, w.rules = s.Agent, s.Rules
	profile := cmp.Or(w.profiles.Named(s.Agent), w.profiles.Named("")) // of another version, it may be gone
	named, _ := rules.Named(s.Hosts)                                   // they were read when it started
	w.policy = policy.Of(profile.Layer()).With(w.layers...).With(named, made)
	return nil
}

// Says is what the rules say of the next deed of the session.
func (w *World) Says(d *Deed) (Says, error) {
	if err := w.at(d.Session); err != nil {
		return Says{}, err
	}
	if len(w.covers) > maxOpen {
		clear(w.covers)
	}
	if len(w.answers) > maxOpen {
		clear(w.answers)
	}
	switch {
	case d.Kind == Connected:
		return w.connection(d), nil
	case d.Kind == Nested:
		return w.nested(d), nil
	case d.Upkeep:
		w.covers[d.Action] = covered
		return Says{Judgement: policy.Judgement{Verdict: policy.Allow, Rule: "housekeeping"}, Within: true}, nil
	}
	j := job(d.Starts, w.policy, d.Session.Folder, w.home)
	stepped := j.Verdict != policy.Deny // as each program is that begins or joins an action
	if d.Kind == Began {
		switch {
		case j.Verdict == policy.Deny:
			w.covers[d.Action] = never
		case j.Verdict != policy.Allow || j.NestedAllowed:
			w.covers[d.Action] = covered
		default:
			delete(w.covers, d.Action)
		}
	}
	return Says{Judgement: j, Stepped: stepped}, nil
}

func (w *World) nested(d *Deed) Says {
	within := func(rule string) Says {
		return Says{Judgement: policy.Judgement{Verdict: policy.Allow, Rule: rule}, Within: true}
	}
	if w.covers[d.Action] == never {
		s := within("what would have started it is denied")
		s.Verdict = policy.Deny
		return s
	}
	j := job(d.Starts, w.policy, d.Session.Folder, w.home)
	switch {
	case j.Verdict == policy.Deny:
		return Says{Judgement: j}
	case w.covers[d.Action] == covered && d.Upkeep && d.Question != 0:
		// Housekeeping that started what it isn't known to: no rule says anything of that.
		return Says{Judgement: policy.Judgement{Verdict: policy.Ask, Rule: d.Rule}}
	case w.covers[d.Action] == covered:
		return within("part of action " + strconv.Itoa(d.Action))
	}
	s := Says{Judgement: j}
	if j.Verdict == policy.Ask {
		var key strings.Builder
		key.WriteString(strconv.Itoa(d.Action) + " " + d.Starts[0].Cwd)
		for _, a := range d.Starts[0].Argv {
			key.WriteString("\x00" + a)
		}
		_, s.Again = w.answers[key.String()]
		w.answers[key.String()] = d.At
	}
	return s
}

func (w *World) connection(d *Deed) Says {
	s := Says{Judgement: w.policy.Connect(d.To, d.Program)}
	if s.Verdict == policy.Allow && s.Origin == policy.Needs && d.Action != 0 { // it is none of the agent's own
		s.Verdict = policy.Ask
	}
	if d.To.Name == "" && !d.To.Addr.IsValid() {
		s.Judgement = unknown("where it led wasn't recorded")
	}
	// In step mode what the person gave for this session passes, and what the agent's own
	// processes need.
	passes := s.Origin == policy.Given || s.Origin == policy.Needs && d.Action == 0
	if s.Verdict == policy.Deny || s.Verdict == policy.Allow && passes {
		return s
	}
	who := "pid " + strconv.Itoa(d.Pid)
	if d.Action != 0 {
		who = "action " + strconv.Itoa(d.Action)
	}
	key := who + " " + d.Program + " " + place(d.To)
	again := w.asked(key, d.At)
	stepped := again
	if d.Flood { // one question is about all that rules ask about
		flood := "question " + strconv.FormatInt(d.Question, 10)
		stepped = w.asked(flood+" in step mode", d.At) || again
		again = s.Verdict == policy.Ask && w.asked(flood, d.At) || again
	}
	s.Again, s.Stepped = s.Verdict == policy.Ask && again, !stepped
	return s
}

// asked notes that something is asked about, and says whether it was before, so that the
// same answer serves.
func (w *World) asked(what string, at time.Time) bool {
	last, ok := w.answers[what]
	if ok && at.Sub(last) <= network.Patience {
		return true
	}
	w.answers[what] = at
	return false
}
