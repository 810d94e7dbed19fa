package keys

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"charm.land/bubbles/v2/key"

	"stepbox/ui/intent"
	"stepbox/ui/near"
)

// Change gives bindings other keys than the usual ones.
type Change struct {
	Place Scope // one alone; "": each where Name is a binding's
	// Name is a binding's, which its intent has in other places too, where the usual keys
	// are the same; in a Place it may be one of the usual keys instead.
	Name string
	Keys []string // as Clean makes them, at least one
}

// Arrangement is which keys mean what. It doesn't change.
type Arrangement struct {
	leader string
	table  map[Scope][]Binding
}

// Usual is the arrangement that nobody changed.
func Usual() *Arrangement { return &Arrangement{UsualLeader, bindings(UsualLeader)} }

// Arrange makes an arrangement with a leader and changes, as many of them as go together.
// It says of each change why it doesn't hold, or nil; and of the leader, which then is
// the usual one.
func Arrange(leader string, changes []Change) (a *Arrangement, of []error, ofLeader error) {
	of = make([]error, len(changes))
	if leader = cmp.Or(leader, UsualLeader); leader != UsualLeader {
		ofLeader = leads(leader)
	}
	for {
		l := leader
		if ofLeader != nil {
			l = UsualLeader
		}
		a = &Arrangement{l, bindings(l)}
		by := map[*Binding]int{} // which change gave it its keys, from 1
		for i, c := range changes {
			if of[i] == nil {
				of[i] = a.apply(c, i+1, by)
			}
		}
		switch i, why := a.clash(by); {
		case why == nil:
			return a, of, ofLeader
		case i == 0:
			ofLeader = why
		default:
			of[i-1] = why
		}
	}
}

// apply gives bindings new keys.
func (a *Arrangement) apply(c Change, nth int, by map[*Binding]int) error {
	found := a.named(c)
	if len(found) == 0 {
		where := "nothing is called"
		if c.Place != "" {
			where = fmt.Sprintf("in %q nothing has the key or is called", c.Place.Short())
		}
		return fmt.Errorf("%s %q%s; docs/keys.md lists all", where, c.Name, near.Words(c.Name, names(c.Place)))
	}
	for _, f := range found {
		if Typed(f.scope) {
			for _, k := range c.Keys {
				if k == "space" || len([]rune(k)) == 1 {
					return fmt.Errorf("%s is typed as text in %q: use a key with ctrl or alt, or one like f5", k, f.scope.Short())
				}
			}
		}
	}
	for _, f := range found {
		all := c.Keys
		if slices.Contains(f.b.Keys(), "esc") { // it always leaves
			all = append(slices.Clone(all), "esc")
		}
		by[f.b] = nth
		rebind(f.b, all)
	}
	return nil
}

func rebind(b *Binding, all []string) {
	var shown []string
	for _, k := range all {
		shown = append(shown, Pretty(k))
	}
	b.Binding = key.NewBinding(key.WithKeys(all...), key.WithHelp(strings.Join(shown, " "), b.Help().Desc))
}

// place is a binding and where it is.
type place struct {
	scope Scope
	b     *Binding
}

// named are the bindings that a change is about.
func (a *Arrangement) named(c Change) (out []place) {
	usual := Usual().table
	each := func(f func(s Scope, was Binding, b *Binding)) {
		for _, s := range Scopes {
			for i := range a.table[s] {
				f(s, usual[s][i], &a.table[s][i])
			}
		}
	}
	if c.Place != "" {
		each(func(s Scope, was Binding, b *Binding) {
			if s == c.Place && was.Intent != intent.Intent(intent.Leader{}) && (was.Name == c.Name && c.Name != "" || slices.Contains(was.Keys(), c.Name)) {
				out = append(out, place{s, b})
			}
		})
		return out
	}
	var like []Binding
	each(func(_ Scope, was Binding, _ *Binding) {
		if was.Name == c.Name && c.Name != "" {
			like = append(like, was)
		}
	})
	each(func(s Scope, was Binding, b *Binding) {
		if slices.ContainsFunc(like, func(x Binding) bool {
			return x.Intent == was.Intent && slices.Equal(x.Keys(), was.Keys())
		}) {
			out = append(out, place{s, b})
		}
	})
	return out
}

// clash is a key that means two things in one place, or the leader that does, and which
// change made it so; 0 is the leader.
func (a *Arrangement) clash(by map[*Binding]int) (int, error) {
	for _, s := range Scopes {
		had := map[string]*Binding{}
		for i := range a.table[s] {
			b := &a.table[s][i]
			for _, k := range b.Keys() {
				taken := func(by *Binding) error { return fmt.Errorf("%s is taken in %q: %s", k, s.Short(), by.Help().Desc) }
				switch other := had[k]; {
				case other == nil:
					had[k] = b
				case other == b:
				case by[b] >= by[other]:
					return by[b], taken(other)
				default:
					return by[other], taken(b)
				}
				switch leads := s != Leader && a.Leads(pressed(k)); {
				case leads && by[b] > 0:
					return by[b], fmt.Errorf("%s is the leader key", k)
				case leads:
					return 0, taken(b)
				}
			}
		}
	}
	return 0, nil
}

// leads says why a key can't be the leader.
func leads(k string) error {
	mod, last := cutMods(k)
	switch {
	case slices.Contains([]string{"ctrl+m", "ctrl+i", "ctrl+[", "ctrl+3", "ctrl+h", "ctrl+8"}, k):
		return fmt.Errorf("%s arrives as enter, tab, esc or backspace: use another, like ctrl+g or ctrl+\\", k)
	case mod == "" && !(len(last) > 1 && last[0] == 'f'):
		return fmt.Errorf("%s is needed for typing: use a key with ctrl or alt, like ctrl+g, or one like f12", k)
	case mod == "shift+":
		return fmt.Errorf("%s is needed for typing: use a key with ctrl or alt, like ctrl+g", k)
	}
	return nil
}

// same are keys that terminals send as one control character, as DEC's did.
var same = [][]string{
	{"ctrl+]", "ctrl+5"}, {`ctrl+\`, "ctrl+4"}, {"ctrl+^", "ctrl+6"}, {"ctrl+_", "ctrl+7", "ctrl+/"}, {"ctrl+@", "ctrl+2", "ctrl+space"},
}

// Leads says whether a key is the leader: by its name, or as what most terminals send for it.
func (a *Arrangement) Leads(k fmt.Stringer) bool {
	name := k.String()
	return name == a.leader || slices.ContainsFunc(same, func(l []string) bool {
		return slices.Contains(l, name) && slices.Contains(l, a.leader)
	})
}

// special are the keys that have a name of more than one letter.
var special = strings.Fields("up down left right enter tab esc backspace space delete insert home end pgup pgdown begin " +
	"f1 f2 f3 f4 f5 f6 f7 f8 f9 f10 f11 f12 f13 f14 f15 f16 f17 f18 f19 f20")

// Clean is a key by the name that the screens know it by.
func Clean(k string) (string, error) {
	mod, last := cutMods(strings.ReplaceAll(k, "control+", "ctrl+"))
	runes := []rune(last)
	switch {
	case len(runes) == 0 || len(runes) > 1 && !slices.Contains(special, strings.ToLower(last)) || len(runes) == 1 && runes[0] <= ' ':
		return "", fmt.Errorf("%q is no key: write one like a, A, ctrl+g, alt+x, enter, space or f5", k)
	case len(runes) > 1:
		last = strings.ToLower(last)
	case mod == "shift+":
		mod, last = "", strings.ToUpper(last)
	case strings.Contains(mod, "ctrl+"):
		last = strings.ToLower(last)
	}
	if last == "esc" {
		return "", errors.New("esc always leaves: it can't be given to anything")
	}
	return mod + last, nil
}

// cutMods splits a key's name; the modifiers are in the order in which keys are named.
func cutMods(k string) (mod, last string) {
	held := map[string]bool{}
	for {
		before, after, ok := strings.Cut(k, "+")
		before = strings.ToLower(before) + "+"
		if !ok || after == "" || !slices.Contains([]string{"ctrl+", "alt+", "shift+"}, before) {
			break
		}
		held[before], k = true, after
	}
	for _, m := range []string{"ctrl+", "alt+", "shift+"} {
		if held[m] {
			mod += m
		}
	}
	return mod, k
}

// names are what bindings can be called.
func names(p Scope) (out []string) {
	for _, s := range Scopes {
		for _, b := range Usual().table[s] {
			if b.Name != "" && (p == "" || p == s) && !slices.Contains(out, b.Name) {
				out = append(out, b.Name)
			}
		}
	}
	return out
}
