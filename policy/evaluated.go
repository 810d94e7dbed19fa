package policy

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// evaluated finds the command in a shell's script that does nothing else by itself: it reads
// files, has builtins of the shell set it up, evaluates one text that is known, and notes
// where that left it in a file of the agent's. Any other word of it leaves it as it is.
type evaluated struct {
	agent   string // its name, by which its own files in /tmp begin
	shell   string
	src     string
	sources []string
	line    string
	noted   bool
}

// Told is the line that a shell is told to run, where its options say no more than that, and
// what it reads first as a login or an interactive shell.
func Told(argv []string) (line string, first []string, ok bool) {
	if len(argv) < 3 || !slices.Contains([]string{"bash", "zsh", "sh", "dash"}, path.Base(argv[0])) {
		return "", nil, false
	}
	flags, line := strings.Join(argv[1:len(argv)-1], " "), argv[len(argv)-1]
	if !slices.Contains([]string{"-c", "-c -l", "-l -c", "-lc", "-i -c", "--norc --noprofile -c"}, flags) || strings.TrimSpace(line) == "" || strings.Trim(line[:1], "-+") == "" {
		return "", nil, false
	}
	if strings.ContainsAny(flags, "li") && !strings.HasPrefix(flags, "--") {
		first = startup(path.Base(argv[0]))
	}
	return line, first, true
}

// evaluates is peel for such a script.
func evaluates(agent string, argv []string) (Peeled, bool) {
	script, first, ok := Told(argv)
	if !ok {
		return Peeled{}, false
	}
	plain := Peeled{Line: script, Argv: []string{argv[0], "-c", script}, Wrapped: true, Startup: first}
	if !slices.Contains([]string{"bash", "zsh"}, path.Base(argv[0])) || len(script) > maxBytes || nests(script) > maxNests {
		return plain, true
	}
	file, err := syntax.NewParser().Parse(strings.NewReader(script), "")
	e := evaluated{agent: agent, shell: path.Base(argv[0]), src: script}
	if err != nil || len(file.Stmts) != 1 || !e.follows(file.Stmts[0]) || strings.TrimSpace(e.line) == "" {
		return plain, true
	}
	plain.Line, plain.Argv, plain.Sources = e.line, []string{argv[0], "-c", e.line}, e.sources
	return plain, true
}

// follows says whether a statement is of such a script, in the order in which it runs.
func (e *evaluated) follows(st *syntax.Stmt) bool {
	if st.Negated || st.Background || st.Coprocess {
		return false
	}
	switch c := st.Cmd.(type) {
	case *syntax.BinaryCmd:
		return (c.Op == syntax.AndStmt || c.Op == syntax.OrStmt) && len(st.Redirs) == 0 && e.follows(c.X) && e.follows(c.Y)
	case *syntax.Block:
		return e.line == "" && e.quiet(st) && !slices.ContainsFunc(c.Stmts, func(in *syntax.Stmt) bool { return !e.setsUp(in) })
	case *syntax.CallExpr:
		return e.setsUp(st) || e.reads(st) || e.runs(st) || e.notes(st)
	}
	return false
}

// words are those of a simple command that are known; nil where one isn't. What has a
// builtin be one is left out.
func (e *evaluated) words(st *syntax.Stmt) (out []string) {
	c, ok := st.Cmd.(*syntax.CallExpr)
	if !ok || len(c.Assigns) > 0 || st.Negated || st.Background || st.Coprocess {
		return nil
	}
	for i, a := range c.Args {
		text := e.src[a.Pos().Offset():a.End().Offset()]
		if i == 0 && text == `\builtin` && len(c.Args) > 1 && c.Args[1].Lit() != "eval" {
			continue
		}
		if strings.HasPrefix(text, "-") && strings.Trim(text, "-abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") == "" {
			out = append(out, text)
			continue
		}
		word, rest, ok := shellWord(text)
		if !ok || rest != "" {
			return nil
		}
		out = append(out, word)
	}
	return out
}

// quiet says whether a command reads nothing and writes nowhere.
func (e *evaluated) quiet(st *syntax.Stmt) bool {
	return !slices.ContainsFunc(st.Redirs, func(r *syntax.Redirect) bool {
		to := r.Word.Lit()
		switch r.Op {
		case syntax.RdrOut, syntax.RdrIn:
			return to != "/dev/null"
		case syntax.DplOut:
			return to != "1" && to != "2"
		}
		return true
	})
}

// setsUp says whether a command, before the one that is evaluated, turns something of the
// shell off by which names become more files, or does nothing. Without other options the same text may
// be other commands.
func (e *evaluated) setsUp(st *syntax.Stmt) bool {
	ws := e.words(st)
	if len(ws) == 0 || e.line != "" || !e.quiet(st) {
		return false
	}
	switch ws[0] {
	case "true":
		return len(ws) == 1
	case "shopt":
		return e.shell == "bash" && len(ws) > 2 && ws[1] == "-u" && within(ws[2:], "extglob")
	case "unset":
		return len(ws) == 4 && ws[1] == "-f" && ws[2] == "--"
	case "unalias":
		return len(ws) == 3 && ws[1] == "--"
	case "setopt":
		return e.shell == "zsh" && within(ws[1:], "NO_EXTENDED_GLOB", "NO_BARE_GLOB_QUAL")
	}
	return false
}

// within says whether words are some of those that are known.
func within(words []string, known ...string) bool {
	return !slices.ContainsFunc(words, func(w string) bool { return !slices.Contains(known, w) })
}

func dashed(word string) bool { return strings.HasPrefix(word, "-") }

// reads notes a file that commands are read from.
func (e *evaluated) reads(st *syntax.Stmt) bool {
	ws := e.words(st)
	if len(ws) != 2 || ws[0] != "source" || e.line != "" || !e.quiet(st) || !path.IsAbs(ws[1]) || path.Clean(ws[1]) != ws[1] {
		return false
	}
	e.sources = append(e.sources, ws[1])
	return true
}

// runs notes the command. It is the only one.
func (e *evaluated) runs(st *syntax.Stmt) bool {
	ws := e.words(st)
	if len(ws) != 2 || ws[0] != "eval" || dashed(ws[1]) || e.line != "" || !e.quiet(st) {
		return false
	}
	e.line = ws[1]
	return true
}

// notes says whether a command behind it writes the working folder into a file of the
// agent's own.
func (e *evaluated) notes(st *syntax.Stmt) bool {
	ws := e.words(st)
	if !slices.Equal(ws, []string{"pwd", "-P"}) || e.line == "" || e.noted || len(st.Redirs) != 1 || st.Redirs[0].Op != syntax.RdrClob || st.Redirs[0].N != nil {
		return false
	}
	to := st.Redirs[0].Word.Lit()
	e.noted = true
	return path.Dir(to) == "/tmp" && strings.HasPrefix(path.Base(to), e.agent+"-") && path.Clean(to) == to
}
