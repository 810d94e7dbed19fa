package policy

import (
	"path"
	"slices"
	"strings"
)

// standardInput is the name that any program has for its standard input.
const standardInput = "/dev/stdin"

// Scripts lists the arguments of a command from which a shell or another
// interpreter may read its program, if they are files, and its standard input:
// `sh FILE`, `env python -m x FILE`, `node --require=FILE`. Any argument may be
// one, as scripts take others in; the caller looks which are files, and what an interpreter makes
// of a name that leads to none is among them. program is
// the file that will run, env its variables, of which some name scripts too.
// There are none when no interpreter runs.
func Scripts(argv []string, program string, env ...string) []string {
	if len(argv) == 0 {
		return nil
	}
	args := argv[1:]
	if called := names(argv[0], program); interprets(called) {
		if onlyData(argv[0], args) && onlyData(program, args) {
			return nil
		}
	} else if g := grammarOf(called); g.Runs == nil || len(g.Runs.After) > 0 ||
		!slices.ContainsFunc(args, func(a string) bool { return interprets([]string{path.Base(a)}) }) {
		return nil
	}
	var out []string
	add := func(a string) {
		if a != "" && len(a) < maxPath {
			out = append(out, a)
		}
	}
	if name, module := interpreted(argv, program); module {
		file := strings.ReplaceAll(name, ".", "/")
		out = append(out, file+".py", file+"/__main__.py", file+"/__init__.py")
	} else if name != "" && path.Ext(name) == "" {
		out = append(out, name+".js", name+".json", name+"/package.json", name+"/index.js") // as node looks for it
	}
	for _, a := range args {
		add(a)
		add(attached(a))
	}
	for _, v := range env {
		if name, file, _ := strings.Cut(v, "="); file != "" && slices.Contains(startups, name) {
			out = append(out, file)
		}
	}
	return append(out, standardInput)
}

// attached is the value in the word of an option; "" for none.
func attached(arg string) string {
	if option, value, ok := strings.Cut(arg, "="); ok && strings.HasPrefix(option, "-") {
		return value
	}
	if len(arg) > 2 && arg[0] == '-' && arg[1] != '-' { // -fFILE
		return arg[2:]
	}
	return ""
}

// startups are variables that name a file which an interpreter runs first.
var startups = []string{"BASH_ENV", "ENV", "PYTHONSTARTUP"}

// ReadsInput says whether a command is a shell or another program that is told
// by its standard input what to run.
func ReadsInput(argv []string, program string) bool {
	if len(argv) == 0 {
		return false
	}
	called := names(argv[0], program)
	if slices.ContainsFunc(called, inProcess) {
		for i, a := range argv[1:] {
			if !strings.HasPrefix(a, "-") && ReadsInput(argv[i+1:], "") {
				return true
			}
		}
	}
	for _, r := range readings(called, words(argv[1:])) {
		switch {
		case r.g.Shell:
			if _, has, file, _ := shellArgs(r.args); !has && (len(file) == 0 || isInput(file[0].text)) {
				return true
			}
		case r.g.Interpreter:
			if t := r.g.told(r.args); !t.quiet || t.reads() {
				return true
			}
		case r.g.Runs != nil && r.g.Runs.Input, slices.ContainsFunc(called, obeysInput(argv[1:])):
			return true
		}
	}
	return false
}

// inProcess says whether a program becomes the one in its arguments without
// another exec: the dynamic linker does, and what is many programs in one file.
func inProcess(name string) bool {
	return name == "busybox" || name == "toybox" || name == "coreutils" || strings.HasPrefix(name, "ld-") || strings.HasPrefix(name, "ld.so")
}

// obeysInput says of a name whether that program, with these arguments, takes
// its own from its standard input.
func obeysInput(args []string) func(name string) bool {
	return func(name string) bool {
		if !slices.Contains(alsoInterpret, strings.TrimRight(name, "0123456789.-")) || onlyData(name, args) {
			return false
		}
		if slices.Contains(prompting, strings.TrimRight(name, "0123456789.-")) &&
			!slices.ContainsFunc(args, func(a string) bool { return !strings.HasPrefix(a, "-") }) {
			return true
		}
		return slices.ContainsFunc(args, takesInput)
	}
}

// prompting are those of alsoInterpret that, without a file, take commands.
var prompting = []string{"lua", "luajit", "tclsh", "expect", "deno", "bun", "tsx", "ts-node", "julia", "groovy"}

// maxPath is what the kernel takes for a path, in bytes (PATH_MAX).
const maxPath = 4096

// alsoInterpret are programs that run what is in their arguments' files, and
// whose arguments the rules need not understand.
var alsoInterpret = []string{
	"awk", "gawk", "mawk", "nawk", "sed", "make", "gmake", "ninja", "lua", "luajit", "tclsh", "expect", "deno", "bun",
	"tsx", "ts-node", "Rscript", "julia", "java", "groovy", "gdb",
}

// options are letters and beginnings of long names.
type options struct {
	letters string
	long    []string
}

// scriptOptions are of programs whose first argument is their program unless
// one of these options names a file with it.
var scriptOptions = map[string]options{
	"sed":  {"f", []string{"--f"}},
	"awk":  {"fEil", []string{"--f", "--e", "--i", "--l"}},
	"gawk": {"fEil", []string{"--f", "--e", "--i", "--l"}},
	"mawk": {"fW", []string{"--f", "--e"}},
	"nawk": {"f", []string{"--f"}},
}

// onlyData says whether a program of that name has its own program among its
// arguments, so that the files there are what it works on.
func onlyData(program string, args []string) bool {
	o, ok := scriptOptions[strings.TrimRight(path.Base(program), "0123456789.-")]
	return ok && !slices.ContainsFunc(args, o.in)
}

// in says whether an argument may hold one of the options: letters can stand
// together, so a letter anywhere after one dash counts.
func (o options) in(arg string) bool {
	if strings.HasPrefix(arg, "--") {
		return slices.ContainsFunc(o.long, func(l string) bool { return strings.HasPrefix(arg, l) })
	}
	return strings.HasPrefix(arg, "-") && strings.ContainsAny(arg, o.letters)
}

// interprets says whether a program of one of these names runs what it reads.
func interprets(names []string) bool {
	g := grammarOf(names)
	return g.Shell || g.Interpreter || slices.ContainsFunc(names, func(n string) bool {
		return slices.Contains(alsoInterpret, strings.TrimRight(n, "0123456789.-"))
	})
}
