package policy

import (
	"slices"
	"strings"
)

// told is what a shell or an interpreter is told by its arguments.
type told struct {
	quiet   bool   // its options are all known to leave it obeying nothing but the program that it is given
	program bool   // that is in an option
	module  string // or a module,
	script  string // or the name of a file
}

// told takes the arguments of a shell or an interpreter apart as far as its program, and on where options may follow.
func (p *program) told(args []word) told {
	out := told{quiet: true}
	for i := 0; i < len(args); i++ {
		arg := args[i].text
		if len(arg) < 2 || arg[0] != '-' && arg[0] != '+' {
			if out.program {
				continue
			}
			out.quiet = out.quiet && arg != "inspect" && arg != "debug" // node's
			out.script = arg
			return out
		}
		if arg == "--" {
			if i+1 < len(args) && !out.program {
				out.script = args[i+1].text
			}
			return out
		}
		o := p.option(arg)
		if o.takes {
			if i++; i == len(args) { // node -p reads its program then
				out.quiet = false
				return out
			}
			o.value = args[i].text
			o.known = o.known && !(o.program && strings.HasPrefix(o.value, "-")) // which node doesn't take for that
		}
		if p.gives(&out, o) {
			return out
		}
	}
	return out
}

// gives adds what an option says, and says whether what comes isn't for the interpreter any more.
func (p *program) gives(out *told, o option) (last bool) {
	if p.Shell && o.takes {
		o.known = o.known && slices.Contains(p.Quiet, "-o "+o.value)
	}
	if out.quiet = out.quiet && o.known; o.ends {
		out.program = true
		return true
	}
	if !o.program {
		return false
	}
	if p.Runs != nil && o.name == p.Runs.Module {
		out.module = o.value
	} else {
		out.program = true
	}
	return p.Apart
}

// reads says whether that is neither a file nor a program: it comes from the standard input then.
func (t told) reads() bool {
	return !t.program && t.module == "" && (t.script == "" || t.script == "-" || isInput(t.script))
}

// option is one of these arguments.
type option struct {
	name, value string
	known       bool // it is quiet
	program     bool // it gives a program
	takes       bool // its value is the next argument
	ends        bool // it has a few words said, and nothing else
}

func (p *program) option(arg string) option {
	if strings.HasPrefix(arg, "--") {
		return p.long(arg)
	}
	o := option{known: true}
	if slices.Contains(p.Quiet, arg) { // the rest is a value to some letters
		return o
	}
	for i := 1; i < len(arg); i++ {
		o.name = "-" + arg[i:i+1]
		last := i+1 == len(arg)
		if p.Shell && arg[i] == 'o' && last {
			o.takes = true
			return o
		}
		o.known = o.known && len(p.Quiet) > 0 && strings.Contains(p.Quiet[0], arg[i:i+1])
		if slices.Contains(p.Values, o.name) { // the rest is its value
			o.value, o.program, o.takes = arg[i+1:], !slices.Contains(p.Flags, o.name), last
			return o
		}
	}
	return o
}

func (p *program) long(arg string) option {
	name, value, attached := strings.Cut(arg, "=")
	takes := slices.Contains(p.Values, name)
	return option{
		name: name, value: value, takes: takes && !attached, program: takes && !slices.Contains(p.Flags, name),
		ends: arg == "--version" || arg == "--help",
		known: slices.ContainsFunc(p.Quiet, func(q string) bool {
			begin, open := strings.CutSuffix(q, "*")
			return name == q || open && attached && strings.HasPrefix(name, begin)
		}),
	}
}
