package policy

import (
	"slices"
	"strings"
)

// wrapped is what was found in a wrapper's arguments.
type wrapped struct {
	scripts []word // given to a shell
	split   *word  // to be split into arguments, before rest
	rest    []word // the command
	unsure  bool   // it may begin later in rest
}

// unwrap finds the command in a wrapper's arguments.
func (g *program) unwrap(args []word) wrapped {
	u := unwrapping{program: g, args: args, skip: g.Runs.Skip, module: g.Runs.Module == "", after: len(g.Runs.After) == 0}
	for u.i < len(args) && u.before() {
	}
	if u.done {
		return u.out
	}
	for u.assigns() {
		u.i++
	}
	if u.i < len(args) && args[u.i].text == "--" {
		u.i++
	}
	if u.i < len(args) && u.module && u.after {
		u.out.rest = args[u.i:]
	}
	return u.out
}

// unwrapping is a wrapper's arguments as far as they were read.
type unwrapping struct {
	*program
	args   []word
	i      int  // which comes next
	skip   int  // operands that still come before the command
	module bool // the option that the command follows was there, or there is none
	after  bool // likewise the words
	out    wrapped
	done   bool // out is all that there is to find
}

// before reads what comes before the command, a word or an option with its value. It says
// whether more of it may come.
func (u *unwrapping) before() (more bool) {
	w := u.args[u.i]
	if slices.Contains(u.Runs.Lookup, w.text) {
		u.out, u.done = wrapped{}, true
		return false
	}
	if !u.after {
		n := u.Runs.begins(u.args[u.i:])
		if late := u.Runs.After[0][0] == '-'; n > 0 || late {
			u.after = n > 0
			u.i += max(n, 1)
			return true
		}
	}
	switch {
	case w.wild():
		u.out.unsure = true
		if u.skip == 0 {
			return false
		}
		u.skip--
		u.i++
		return true
	case w.text == "--":
		u.i += 1 + u.skip
		return false
	case len(w.text) > 1 && w.text[0] == '-':
		return u.option(w)
	case u.assigns(), slices.Contains(u.Flags, w.text): // words such as pipx' run, and a hyphen
		u.i++
		return true
	case u.skip == 0:
		return false
	}
	u.i++
	u.skip--
	return u.skip > 0 || u.Runs.Options
}

// assigns says whether NAME=VALUE comes next, where that may stand before the command.
func (u *unwrapping) assigns() bool {
	return u.Runs.Assignments && u.i < len(u.args) && strings.IndexByte(u.args[u.i].text, '=') > 0
}

// option reads one with its value.
func (u *unwrapping) option(w word) (more bool) {
	r := u.Runs
	opt, val, attached := strings.Cut(w.text, "=")
	u.i++
	switch {
	case !u.module && takes([]string{r.Module}, &opt, &val, attached):
		u.module = true
		if val != "" { // python -mtwine
			u.out.rest, u.done = append([]word{{text: val}}, u.args[u.i:]...), true
		}
		return false
	case attached && slices.Contains(r.Named, opt):
		if opt != r.Named[0] && u.i < len(u.args) {
			u.i++
		}
		u.out.rest, u.done = append([]word{{text: val}}, u.args[u.i:]...), true
		return false
	case takes(r.Scripts, &opt, &val, attached), takes(r.Split, &opt, &val, attached):
		value := word{text: val}
		if val == "" && !attached {
			if u.i == len(u.args) {
				return false
			}
			value = u.args[u.i]
			u.i++
		}
		if slices.Contains(r.Split, opt) {
			u.out.split, u.out.rest, u.done = &value, u.args[u.i:], true
			return false
		}
		u.out.scripts = append(u.out.scripts, value)
	case slices.Contains(u.Values, w.text):
		u.i++
	case !u.known(w.text, opt, attached):
		u.out.unsure = true
	}
	return true
}

// known says whether an option takes no value beside what is attached to it.
func (u *unwrapping) known(s, opt string, attached bool) bool {
	switch {
	case slices.Contains(u.Flags, s), slices.Contains(u.Flags, opt), attached && slices.Contains(u.Values, opt):
		return true
	case len(s) > 2 && s[1] != '-':
		return slices.Contains(u.Values, s[:2]) || bundle(s[1:], u.Flags)
	}
	return false
}

// begins is how many words at the beginning of args say that the command comes next.
func (r *runs) begins(args []word) int {
next:
	for _, a := range r.After {
		ws := strings.Fields(a)
		if len(ws) > len(args) {
			continue
		}
		for i, w := range ws {
			if args[i].text != w || !args[i].known() {
				continue next
			}
		}
		return len(ws)
	}
	return 0
}

// takes says whether an option is one of those that take a value, also when the
// value is attached or flags are in front.
func takes(options []string, opt, val *string, attached bool) bool {
	return slices.Contains(options, *opt) || !attached && short(options, opt, val)
}

// short finds a one-letter option with its value attached, or at the end of a bundle.
func short(options []string, opt, val *string) bool {
	s := *opt
	if len(s) < 3 || s[1] == '-' {
		return false
	}
	for _, o := range options {
		if len(o) != 2 {
			continue
		}
		if i := strings.IndexByte(s, o[1]); i > 0 && letters(s[1:i+1]) {
			*opt, *val = o, s[i+1:]
			return true
		}
	}
	return false
}

// bundle says whether s is made of one-letter flags only.
func bundle(s string, flags []string) bool {
	for i := range len(s) {
		if !slices.Contains(flags, "-"+s[i:i+1]) {
			return false
		}
	}
	return true
}
