package policy

import (
	"cmp"
	_ "embed"
	"slices"
	"strings"
	"sync"
)

// program is how one program reads its arguments, as far as rules need it.
type program struct {
	// Values are options that take the next argument.
	Values []string `yaml:"values"`
	// Flags are options that take none. An option of a wrapper that is neither
	// makes it unsure where its command begins, and then every place is tried;
	// of others, it is tried whether the option takes the next argument.
	Flags []string `yaml:"flags"`
	// Same are options by all of their names: a rule about one is about each.
	Same [][]string `yaml:"same"`
	// Words says that several letters after one dash are one option.
	Words bool `yaml:"words"`
	// Shell says that it reads scripts: -c SCRIPT, a file, or its input.
	Shell bool `yaml:"shell"`
	// Interpreter says that it reads a program from its input when it has no
	// operand.
	Interpreter bool `yaml:"interpreter"`
	// Quiet are the options with which a shell or an interpreter obeys nothing but the program that it is given: letters, long
	// options and what those begin with that have their value attached (--max-*), and settings of a shell's (-o NAME). Of others that isn't known.
	Quiet []string `yaml:"quiet"`
	// Apart says that what follows the program isn't its options, however that was given.
	Apart bool `yaml:"apart"`
	// Stem says that another program by the name stem-WORD is this one with
	// WORD as its first argument.
	Stem bool `yaml:"stem"`
	// Settings are options whose next argument is a setting of git's. One with a setting that
	// only turns something off is none.
	Settings []string `yaml:"settings"`
	// Commands are the words that it knows as its first operand. It can be set to take
	// another for the nearest of them.
	Commands []string `yaml:"commands"`
	// Runs says that it is a wrapper: its arguments hold a command.
	Runs *runs `yaml:"runs"`
}

// runs is where in a wrapper's arguments its command is.
type runs struct {
	Skip        int      `yaml:"skip"`        // operands before the command
	Assignments bool     `yaml:"assignments"` // NAME=VALUE may stand before it
	Input       bool     `yaml:"input"`       // it gets more arguments from its standard input
	Joined      bool     `yaml:"joined"`      // its arguments are joined with spaces and given to a shell
	Scripts     []string `yaml:"scripts"`     // options whose value is given to a shell
	Split       []string `yaml:"split"`       // options whose value is split into arguments
	Module      string   `yaml:"module"`      // the command is what follows this option; otherwise there is none
	Named       []string `yaml:"named"`       // options whose value is what the command is called; its arguments follow, and behind all but the first option a script's name before them
	After       []string `yaml:"after"`       // it follows one of these: words that come first, or options; otherwise there is none
	Lookup      []string `yaml:"lookup"`      // options with which it runs nothing
	Options     bool     `yaml:"options"`     // options may stand among the skipped operands
}

//go:embed grammar.yaml
var grammarYAML string

// grammar is what reads each program's entry, by its names. Reading all of them takes
// longer than anything else that a session's start has to parse, and few are asked for.
var grammar = sync.OnceValue(func() map[string]func() *program {
	out := map[string]func() *program{}
	for _, entry := range strings.Split(grammarYAML, "\n  - names: [")[1:] {
		names, says, _ := strings.Cut(entry, "]\n")
		read := sync.OnceValue(func() *program {
			p := &program{}
			if err := Decode("grammar.yaml", []byte(says), p); err != nil {
				panic(err) // the file is part of the program, and tested
			}
			return p
		})
		for name := range strings.SplitSeq(names, ", ") {
			out[name] = read
		}
	}
	return out
})

var noGrammar = &program{}

// usual are the names of the links by which one starts programs whose own files are
// called otherwise.
var usual = map[string]string{
	"npm-cli.js": "npm", "npx-cli.js": "npx", "npm.js": "npm", "npx.js": "npx", "pnpm.cjs": "pnpm", "pnpm.js": "pnpm", "pnpx.cjs": "pnpx",
	"yarn.js": "yarn", "yarnpkg.js": "yarn", "corepack.js": "corepack",
}

// grammarOf finds how a program reads its arguments, whichever of its names is known.
func grammarOf(names []string) *program {
	g := grammar()
	for _, n := range names {
		n = cmp.Or(usual[n], n)
		if read := g[n]; read != nil {
			return read()
		}
		// python3.12, bash5 and the like
		if read := g[strings.TrimRight(n, "0123456789.-")]; read != nil && n != "" {
			return read()
		}
	}
	return noGrammar
}

// invoke takes arguments apart into options and operands.
func (p *program) invoke(names []string, args []word, at site) *invocation {
	v := &invocation{names: names, args: args, at: at}
	odd := "" // an option that stands before and may take a value
	for i := 0; i < len(args); i++ {
		w := args[i]
		switch {
		case w.text == "--":
			v.operands = append(v.operands, args[i+1:]...)
			return v
		case len(w.text) < 2 || w.text[0] != '-':
			if odd != "" {
				v.options = append(v.options, word{text: odd + "=" + w.text})
				w.value = true
			}
			if len(v.operands) == 0 && w.known() && !slices.Contains(p.Commands, w.text) {
				w.near = mistaken(w.text, p.Commands)
			}
			v.operands = append(v.operands, w)
			odd = ""
		case slices.Contains(p.Values, w.text) && i+1 < len(args):
			i++
			odd = ""
			if !slices.Contains(p.Settings, w.text) || !args[i].known() || !settingCurbs(args[i].text) {
				v.options = append(v.options, word{text: w.text + "=" + args[i].text})
			}
		default:
			v.options = append(v.options, p.attached(w))
			if odd = w.text; strings.Contains(odd, "=") || slices.Contains(p.Flags, odd) {
				odd = ""
			}
		}
	}
	return v
}

// options are the options that one word of a rule stands for, each with all its names: "-rf"
// is -r and -f, however they are written.
func (p *program) options(alts []glob) (out [][]glob) {
	var all []glob
	for _, a := range alts {
		option := p.attached(word{text: string(a)}).text
		if len(alts) == 1 && !p.Words && len(option) > 2 && letters(option[1:]) {
			for _, letter := range option[1:] {
				out = append(out, p.spelled("-"+string(letter)))
			}
			return out
		}
		all = append(all, p.spelled(option)...)
	}
	return [][]glob{all}
}

// spelled is an option, maybe with a value, by all its names.
func (p *program) spelled(option string) []glob {
	out := []glob{glob(option)}
	name, value, valued := strings.Cut(option, "=")
	for _, names := range p.Same {
		for _, n := range names {
			if !slices.Contains(names, name) || n == name {
				continue
			}
			if valued {
				n += "=" + value
			}
			out = append(out, glob(n))
		}
	}
	return out
}

// attached makes -nVALUE into -n=VALUE where -n is known to take a value.
func (p *program) attached(w word) word {
	for _, o := range p.Values {
		if len(o) == 2 && len(w.text) > 2 && strings.HasPrefix(w.text, o) && w.text[1] != '-' {
			w.text = o + "=" + strings.TrimPrefix(w.text[2:], "=")
			break
		}
	}
	return w
}
