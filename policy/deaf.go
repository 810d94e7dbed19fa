package policy

import (
	"cmp"
	"slices"
	"strings"
)

// deaf are programs that start others, and none because of what they read from their standard input or
// terminal. A program that isn't known to be deaf may be told there what to run.
var deaf = slices.Concat(compilers, []string{
	"cat", "chmod", "cp", "cut", "diff", "grep", "egrep", "fgrep", "head", "ln", "ls", "mkdir", "mv", "rg", "rm", "rmdir", "sort", "tail", "tee",
	"touch", "tr", "uniq", "wc", // these start none
	"git", "find", "tar", "make", "gmake", "ninja", "meson", "cmake", "ctest", "pkg-config", "cargo", "go", "cgo", "link", "dpkg-architecture",
})

// compilers are those of them that obey none of the files that they are given but by an option.
var compilers = []string{"cc", "c++", "gcc", "g++", "clang", "clang++", "collect2", "ld", "ld.bfd", "ld.gold", "lld", "mold", "rustc", "rustdoc", "javac"}

// deafModules are modules of python that are deaf.
var deafModules = []string{"pytest", "unittest", "tox", "nox", "pip", "ensurepip", "venv", "virtualenv", "build", "compileall", "mypy", "black", "ruff", "flake8", "isort", "http.server", "json.tool"}

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
	case inProcess(name) && strings.HasPrefix(name, "ld"): // what it runs is no program of its own
		return false
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
	return among(deaf, name)
}

// among says whether a program is one of some, in whatever version, and for whatever machine.
func among(list []string, name string) bool {
	if _, of, cross := strings.Cut(name, "-linux-"); cross { // x86_64-linux-gnu-gcc
		_, name, _ = strings.Cut(of, "-")
	}
	return slices.Contains(list, name) || slices.Contains(list, strings.TrimRight(name, "0123456789.-"))
}

// data are the beginnings of options of compilers whose values aren't obeyed, and of those that have none.
var data = []string{"-I", "-L", "-D", "-U", "-M", "-l", "-isystem", "-iquote", "-idirafter", "-plugin-opt=", "-c", "-S", "-E", "-g", "-O", "-W", "-std", "-m", "-pipe", "-shared", "-static", "-pie"}

// Obeyed are the arguments of a program that is known to be deaf which may name what it obeys all the same: all but what it
// writes, and the files that a compiler reads.
func Obeyed(argv []string, program string) (out []string) {
	called := names(argv[0], program)
	is := func(list ...string) bool {
		return slices.ContainsFunc(called, func(name string) bool { return among(list, name) })
	}
	compiles := is(compilers...)
	writes := compiles || is("go", "link")
	for i := 1; i < len(argv); i++ {
		arg, before := argv[i], argv[i-1]
		begins := func(begin string) bool { return strings.HasPrefix(arg, begin) }
		after := func(begin string) bool { return strings.HasPrefix(before, begin) }
		switch {
		case arg == "", writes && before == "-o" && arg[0] != '@', writes && begins("-o") && !begins("-o@"):
		case compiles && slices.ContainsFunc(data, begins):
		case compiles && arg[0] != '-' && arg[0] != '@' && (i == 1 || before == "" || before[0] != '-' || after("-o") || slices.ContainsFunc(data, after)):
		default:
			out = append(out, arg)
		}
	}
	return out
}

// ObeysFolder says whether a program that is known to be deaf, by its name and its file, may obey what it finds in the folder where it
// works: a Makefile, a repository, modules. A shell or a wrapper that is given what it runs, and a compiler, don't.
func ObeysFolder(called, program string) bool {
	return slices.ContainsFunc(names(called, program), func(name string) bool {
		g := grammarOf([]string{name})
		wraps := g.Runs != nil && len(g.Runs.After) == 0 && !g.Interpreter
		return !g.Shell && !wraps && !among(compilers, name) && name != "find" && name != "tar"
	})
}

// relays are wrappers that give what they read to what they start, at a terminal of their own.
var relays = []string{"script", "unbuffer", "rlwrap", "sudo", "su", "xvfb-run"}

// takesInput says whether an argument, or a variable's value, has a program take in its standard input.
func takesInput(arg string) bool {
	if arg == "-" || strings.HasSuffix(arg, "=-") || strings.HasPrefix(arg, "-") && strings.HasSuffix(arg, "-") && arg != "--" {
		return true
	}
	for i := range arg {
		if arg[i] == '/' && isInput(arg[i:]) {
			return true
		}
	}
	return false
}

// TakesInput says whether a variable names the standard input of whoever has it.
func TakesInput(variable string) bool {
	_, value, _ := strings.Cut(variable, "=")
	return slices.ContainsFunc(strings.Fields(value), takesInput)
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

// Script is the file that a shell or an interpreter is given to run; "" for none, or another program. argv isn't empty.
func Script(argv []string, program string) string {
	g := grammarOf(names(argv[0], program))
	if g.Shell {
		if _, _, file, _ := shellArgs(words(argv[1:])); len(file) > 0 {
			return file[0].text
		}
	}
	if !g.Interpreter {
		return ""
	}
	return g.told(words(argv[1:])).script
}

// IsShell says whether a file is called as a shell is.
func IsShell(file string) bool { return grammarOf(names(file)).Shell }
