package policy

import (
	"cmp"
	"slices"
	"strings"
)

// deaf are programs that start others, and none because of what they read from their standard input or
// terminal. A program that isn't known to be deaf may be told there what to run.
var deaf = []string{
	"cat", "chmod", "cp", "cut", "diff", "grep", "egrep", "fgrep", "head", "ln", "ls", "mkdir", "mv", "rg", "rm", "rmdir", "sort", "tail", "tee",
	"touch", "tr", "uniq", "wc", // these start none
	"git", "find", "tar", "make", "gmake", "ninja", "meson", "cmake", "ctest", "pkg-config", "cargo", "rustc", "rustdoc", "go", "javac",
	"cc", "c++", "gcc", "g++", "clang", "clang++", "collect2", "ld", "ld.bfd", "ld.gold", "lld", "mold", "dpkg-architecture",
}

// deafModules are modules of python that are deaf.
var deafModules = []string{"pytest", "unittest", "tox", "nox", "pip", "venv", "virtualenv", "build", "compileall", "mypy", "black", "ruff", "flake8", "isort", "http.server", "json.tool"}

// Deaf says whether a command is known to take no orders from what others write to its standard input
// or its terminal: a shell or an interpreter that was given its program, a wrapper, which only becomes
// or starts what it is told by its arguments, a build's programs. program is the file that will run.
func Deaf(argv []string, program string) bool {
	if len(argv) == 0 {
		return false
	}
	return !slices.ContainsFunc(names(argv[0], program), func(name string) bool { return !deafAs(name, argv[1:]) })
}

// deafAs is Deaf of a program by one of its names.
func deafAs(name string, argv []string) bool {
	g, args := grammarOf([]string{name}), words(argv)
	switch {
	case inProcess(name):
		return len(argv) > 0 && !strings.HasPrefix(argv[0], "-") && Deaf(argv, "")
	case g.Shell:
		_, given, file, unsure := shellArgs(args)
		return !unsure && (given || len(file) > 0 && !isInput(file[0].text)) && g.told(args).quiet
	case slices.ContainsFunc(argv, takesInput), slices.Contains(relays, name):
		return false
	case g.Interpreter:
		t := g.told(args)
		return t.quiet && !t.reads() && (t.module == "" || slices.Contains(deafModules, t.module))
	case g.Runs != nil && len(g.Runs.After) == 0:
		return !g.Runs.Input
	}
	if _, of, cross := strings.Cut(name, "-linux-"); cross { // x86_64-linux-gnu-gcc
		_, name, _ = strings.Cut(of, "-")
	}
	return slices.Contains(deaf, name) || slices.Contains(deaf, strings.TrimRight(name, "0123456789.-"))
}

// relays are wrappers that give what they read to what they start, at a terminal of their own.
var relays = []string{"script", "unbuffer", "rlwrap", "sudo", "su", "xvfb-run"}

// told is what a shell or an interpreter is told by its arguments.
type told struct {
	quiet   bool   // its options are all known to leave it obeying nothing but the program that it is given
	program bool   // that is in an option
	module  string // or a module,
	script  string // or the name of a file
}

// told takes the arguments of a shell or an interpreter apart as far as its program, and on where options may follow.
func (p *program) told(args []word) (out told) {
	out.quiet = true
	for i := 0; i < len(args); i++ {
		arg := args[i].text
		switch last := i+1 == len(args); {
		case arg == "--" && !last && !out.program:
			out.script = args[i+1].text
			return out
		case arg == "--version", arg == "--help": // it says that, and ends
			out.program = true
			return out
		case arg == "--":
			return out
		case (len(arg) < 2 || arg[0] != '-' && arg[0] != '+') && out.program:
			continue
		case len(arg) < 2 || arg[0] != '-' && arg[0] != '+':
			out.quiet = out.quiet && arg != "inspect" && arg != "debug" // node's
			out.script = arg
			return out
		}
		o := p.option(arg)
		if o.takes && i+1 == len(args) { // node -p reads its program then
			out.quiet = false
			return out
		}
		if o.takes {
			i++
			o.value = args[i].text
			o.known = o.known && (!p.Shell || slices.Contains(p.Quiet, "-o "+o.value))
		}
		out.quiet = out.quiet && o.known
		if out.program = out.program || o.program; !o.program {
			continue
		}
		if p.Runs != nil && o.name == p.Runs.Module {
			out.program, out.module = false, o.value
		}
		if p.Apart {
			return out
		}
	}
	return out
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
}

func (p *program) option(arg string) option {
	if name, value, attached := strings.Cut(arg, "="); strings.HasPrefix(arg, "--") {
		o := option{name: name, value: value, takes: slices.Contains(p.Values, name) && !attached}
		o.program = slices.Contains(p.Values, name) && !slices.Contains(p.Flags, name)
		o.known = slices.ContainsFunc(p.Quiet, func(q string) bool {
			begin, open := strings.CutSuffix(q, "*")
			return name == q || open && attached && strings.HasPrefix(name, begin)
		})
		return o
	}
	o := option{known: true}
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

// takesInput says whether an argument has a program take in its standard input.
func takesInput(arg string) bool {
	_, value, _ := strings.Cut(arg, "=")
	if len(arg) == 3 && arg[0] == '-' { // -f-
		value = arg[2:]
	}
	return arg == "-" || value == "-" || isInput(arg) || isInput(value) || isInput(strings.TrimPrefix(arg, "@")) || len(arg) > 2 && arg[0] == '-' && isInput(arg[2:])
}

// interpreted is the program that an interpreter is given by its name, and whether that is one of a module,
// which it looks for in several folders; "" for none.
func interpreted(argv []string, program string) (name string, searched bool) {
	g := grammarOf(names(argv[0], program))
	if !g.Interpreter {
		return "", false
	}
	to := g.told(words(argv[1:]))
	return cmp.Or(to.module, to.script), to.module != ""
}

// Script is the file that a shell is given to run; "" for none, or another program. argv isn't empty.
func Script(argv []string, program string) string {
	if g := grammarOf(names(argv[0], program)); g.Shell {
		if _, _, file, _ := shellArgs(words(argv[1:])); len(file) > 0 {
			return file[0].text
		}
	}
	return ""
}

// IsShell says whether a file is called as a shell is.
func IsShell(file string) bool { return grammarOf(names(file)).Shell }
