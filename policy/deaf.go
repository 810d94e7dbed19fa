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
		return !unsure && (given || len(file) > 0 && !isInput(file[0].text)) && g.quiet(args)
	case slices.ContainsFunc(argv, takesInput), slices.Contains(relays, name):
		return false
	case g.Interpreter:
		m := givenTo(g, args).module
		return !readsInput(g, args) && g.quiet(args) && (m == "" || slices.Contains(deafModules, m))
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

// quiet says whether the options of a shell or an interpreter are all known to leave it obeying nothing but the program that it is given.
func (p *program) quiet(args []word) bool {
	given := false // by an option: others may follow
	for i := 0; i < len(args); i++ {
		arg := args[i].text
		if arg == "--" {
			return true
		}
		if len(arg) < 2 || arg[0] != '-' && arg[0] != '+' {
			if given {
				continue
			}
			return arg != "inspect" && arg != "debug" // node's
		}
		known, program, takes := p.option(arg)
		if takes && p.Shell {
			known = known && i+1 < len(args) && slices.Contains(p.Quiet, "-o "+args[i+1].text)
		}
		switch {
		case !known, takes && i+1 == len(args): // node -p reads its program then
			return false
		case program && p.Apart:
			return true
		case takes:
			i++
		}
		given = given || program
	}
	return true
}

// option says of one of these arguments whether it is quiet, whether it gives a program, and whether it takes the next
// argument.
func (p *program) option(arg string) (known, program, takes bool) {
	if name, _, attached := strings.Cut(arg, "="); strings.HasPrefix(arg, "--") {
		value := slices.Contains(p.Values, name)
		return slices.ContainsFunc(p.Quiet, func(q string) bool {
			begin, open := strings.CutSuffix(q, "*")
			return name == q || open && attached && strings.HasPrefix(name, begin)
		}), value && !slices.Contains(p.Flags, name), value && !attached
	}
	for i := 1; i < len(arg); i++ {
		opt, last := "-"+arg[i:i+1], i+1 == len(arg)
		switch {
		case p.Shell && arg[i] == 'o' && last:
			return true, false, true
		case len(p.Quiet) == 0 || !strings.Contains(p.Quiet[0], opt[1:]):
			return false, false, false
		case slices.Contains(p.Values, opt): // the rest is its value
			return true, !slices.Contains(p.Flags, opt), last
		}
	}
	return true, false, false
}

// takesInput says whether an argument has a program take in its standard input.
func takesInput(arg string) bool {
	_, value, _ := strings.Cut(arg, "=")
	if len(arg) == 3 && arg[0] == '-' { // -f-
		value = arg[2:]
	}
	return arg == "-" || value == "-" || isInput(arg) || isInput(value) || isInput(strings.TrimPrefix(arg, "@")) || len(arg) > 2 && arg[0] == '-' && isInput(arg[2:])
}

// given is what an interpreter is given to run: a module, a name, or neither if the program itself is among
// its arguments, or comes by its input.
type given struct{ module, name string }

// givenTo takes an interpreter's arguments apart as far as its program.
func givenTo(g *program, args []word) (out given) {
	by := "" // the option whose value is a module
	if g.Runs != nil {
		by = g.Runs.Module
	}
	for i := 0; i < len(args); i++ {
		opt, last := args[i].text, i+1 == len(args)
		switch value, attached := strings.CutPrefix(opt, by); {
		case !strings.HasPrefix(opt, "-"):
			out.name = opt
			return out
		case by != "" && attached:
			if out.module = value; value == "" && !last {
				out.module = args[i+1].text
			}
			return out
		case slices.Contains(g.Values, opt) && !slices.Contains(g.Flags, opt):
			return out
		case slices.Contains(g.Values, opt):
			i++
		}
	}
	return out
}

// interpreted is the program that an interpreter is given by its name, and whether that is one of a module,
// which it looks for in several folders; "" for none.
func interpreted(argv []string, program string) (name string, searched bool) {
	g := grammarOf(names(argv[0], program))
	if !g.Interpreter {
		return "", false
	}
	to := givenTo(g, words(argv[1:]))
	return cmp.Or(to.module, to.name), to.module != ""
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
