package policy

import (
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
	"mvdan.cc/sh/v3/syntax"
)

// Peeled is a command without what an agent put around it.
type Peeled struct {
	// Line is the command as a person would write it: where something was
	// peeled off, exactly what remains, which may be many lines; else
	// Line(argv). It isn't escaped.
	Line string
	// Argv is what to judge: a shell with what remains, or all of argv.
	Argv    []string
	Wrapped bool
	// Sources are files that it reads commands from before, in the sandbox.
	Sources []string
	// Startup are the files, relative to the home folder, from which the
	// shell reads commands first because it is a login or an interactive shell.
	Startup []string
}

// wrapFile is what an agent puts around the commands it runs.
type wrapFile struct {
	// Shells are the shells that it is run with, and Flags what stands before
	// the script, in any of these forms.
	Shells []string `yaml:"shells"`
	Flags  []string `yaml:"flags"`
	// Script is the whole script, exactly, with holes: «payload!» is all the rest
	// as it is; «commands NAME» are whole commands as they are, up to fixed text at
	// the end, that don't say NAME, which the wrapper uses itself; «path GLOB» is a
	// file.
	Script text `yaml:"script"`
	// Run is a wrapper without a shell: a command whose arguments from Rest
	// on are the command that runs. The one before them names its program.
	Run  textList `yaml:"run"`
	Rest int      `yaml:"rest"`
}

// wrap is a wrapFile, checked.
type wrap struct {
	wrapFile
	flags  [][]string
	pieces []piece
	run    []Rule
}

// piece is literal text, or a hole.
type piece struct {
	literal string
	hole    string // payload!, commands, path
	glob    string // of a file, or the name that commands don't say
}

func (f *wrapFile) compile() (w wrap, bad Problems) {
	w.wrapFile = *f
	if w.run, bad = f.Run.rules(); bad != nil {
		return w, bad
	}
	if len(w.run) > 0 {
		if f.Rest < 2 {
			return w, f.Run[0].bad("rest says from which argument on the command stands")
		}
		return w, nil
	}
	for _, s := range f.Flags {
		w.flags = append(w.flags, strings.Fields(s))
	}
	payloads := 0
	for s := f.Script.s; s != ""; {
		before, after, found := strings.Cut(s, "«")
		if before != "" {
			w.pieces = append(w.pieces, piece{literal: before})
		}
		if !found {
			break
		}
		hole, rest, ok := strings.Cut(after, "»")
		if !ok {
			return w, f.Script.bad("a hole isn't closed")
		}
		kind, glob, _ := strings.Cut(hole, " ")
		switch kind {
		case "payload!", "commands":
			payloads++
			if kind == "payload!" && rest != "" {
				return w, f.Script.bad("nothing can follow the rest")
			}
			if kind == "commands" && (glob == "" || rest == "" || strings.Contains(rest, "«")) {
				return w, f.Script.bad("commands need the name that they don't say, and fixed text behind them")
			}
		case "path":
			if !doublestar.ValidatePattern(glob) || !path.IsAbs(glob) {
				return w, f.Script.bad("a hole for a file needs a pattern of absolute paths")
			}
		default:
			return w, f.Script.bad("no such hole")
		}
		w.pieces = append(w.pieces, piece{hole: kind, glob: glob})
		s = rest
	}
	if payloads != 1 {
		return w, f.Script.bad("a wrapper has one payload")
	}
	return w, nil
}

// Peel takes off what the agent puts around its commands, if it is exactly what
// the profile knows, or by what it does no more than that: a shell with its line, and see evaluated. What it returns is never less than what runs: text that
// isn't known before it runs, an odd quote or a file elsewhere leaves the
// command as it is.
func (p *Profile) Peel(argv []string) Peeled {
	for i := range p.wraps {
		out, ok := p.wraps[i].peel(argv)
		if !ok {
			continue
		}
		if len(p.wraps[i].run) > 0 { // another may be in it
			if in := p.Peel(out.Argv); in.Wrapped {
				return in
			}
		}
		out.Wrapped = true
		return out
	}
	if out, ok := evaluates(p.Name, argv); ok {
		return out
	}
	return Peeled{Line: Line(argv), Argv: argv}
}

func (w *wrap) peel(argv []string) (Peeled, bool) {
	if len(argv) < 3 {
		return Peeled{}, false
	}
	if len(w.run) > 0 {
		return w.command(argv)
	}
	if !slices.Contains(w.Shells, path.Base(argv[0])) {
		return Peeled{}, false
	}
	script := argv[len(argv)-1]
	flags := argv[1 : len(argv)-1]
	if strings.HasPrefix(script, "-") || strings.HasPrefix(script, "+") || // an option, to some shells
		!slices.ContainsFunc(w.flags, func(f []string) bool { return slices.Equal(f, flags) }) {
		return Peeled{}, false
	}
	out, ok := w.match(script)
	if !ok {
		return Peeled{}, false
	}
	out.Argv = []string{argv[0], "-c", out.Line}
	if strings.HasPrefix(out.Line, "-") || strings.HasPrefix(out.Line, "+") {
		return Peeled{}, false
	}
	for _, f := range flags {
		if letters, short := strings.CutPrefix(f, "-"); short && !strings.HasPrefix(letters, "-") && strings.ContainsAny(letters, "li") {
			out.Startup = startup(path.Base(argv[0]))
		}
	}
	return out, true
}

// startup are the files in its home folder that a shell may read as a login or an
// interactive one.
func startup(shell string) []string {
	switch shell {
	case "bash":
		return []string{".bash_profile", ".bash_login", ".profile", ".bashrc"}
	case "zsh":
		return []string{".zshenv", ".zprofile", ".zlogin", ".zshrc"}
	}
	return []string{".profile"}
}

// command peels a wrapper that isn't a shell.
func (w *wrap) command(argv []string) (Peeled, bool) {
	v := invocation{names: []string{argv[0]}, args: words(argv[1:])}
	if len(argv) <= w.Rest || !anyMatches(w.run, &v) {
		return Peeled{}, false
	}
	rest := argv[w.Rest:]
	if argv[w.Rest-1] != rest[0] { // it would run under another name
		return Peeled{}, false
	}
	return Peeled{Line: Line(rest), Argv: rest}, true
}

// match fits the template to a script.
func (w *wrap) match(script string) (out Peeled, ok bool) {
	s := script
	for i, p := range w.pieces {
		switch p.hole {
		case "":
			if s, ok = strings.CutPrefix(s, p.literal); !ok {
				return out, false
			}
			continue
		case "payload!":
			out.Line, s = s, ""
			continue
		case "commands":
			end := w.pieces[i+1].literal
			if out.Line, ok = strings.CutSuffix(s, end); !ok || !wholeCommands(out.Line, p.glob) {
				return out, false
			}
			s = end
			continue
		}
		text, rest, ok := shellWord(s)
		if !ok {
			return out, false
		}
		s = rest
		if in, err := doublestar.Match(p.glob, text); err != nil || !in || path.Clean(text) != text {
			return out, false
		}
	}
	return out, s == "" && strings.TrimSpace(out.Line) != ""
}

// wholeCommands says whether text is commands that stand by themselves, so that
// what is put around them stays what it is. A function could take the place of a
// command of the wrapper's; so could another value of a name that it uses.
func wholeCommands(text, name string) bool {
	if strings.Contains(text, name) || strings.HasSuffix(text, `\`) {
		return false
	}
	file, err := syntax.NewParser().Parse(strings.NewReader(text), "")
	if err != nil {
		return false
	}
	whole := true
	syntax.Walk(file, func(n syntax.Node) bool {
		_, function := n.(*syntax.FuncDecl)
		whole = whole && !function
		return whole
	})
	return whole
}
