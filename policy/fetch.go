package policy

import (
	"path"
	"slices"

	"mvdan.cc/sh/v3/syntax"
)

// fetchers are programs that write what another machine sends.
var fetchers = []string{"curl", "wget", "wget2", "aria2c", "http", "https", "xh", "fetch", "lynx", "w3m", "nc", "ncat", "netcat", "socat"}

// What is asked about where a program gets another machine's text as its own.
const (
	networkShell   = "it pipes the network into a shell, which runs whatever another machine sends"
	networkProgram = "it pipes the network into an interpreter, which runs whatever another machine sends"
)

// fetches says whether commands in a node get something from another machine.
func fetches(n syntax.Node) bool {
	found := false
	syntax.Walk(n, func(n syntax.Node) bool {
		c, ok := n.(*syntax.CallExpr)
		if !ok || len(c.Args) == 0 {
			return !found
		}
		named := c.Args[:1]
		if g := grammarOf([]string{path.Base(c.Args[0].Lit())}); g.Runs != nil { // sudo curl
			named = c.Args
		}
		found = found || slices.ContainsFunc(named, func(w *syntax.Word) bool {
			return slices.Contains(fetchers, path.Base(w.Lit()))
		})
		return !found
	})
	return found
}

// fetched says whether one of some words is made of what another machine sends.
func fetched(ws []word) bool { return slices.ContainsFunc(ws, func(w word) bool { return w.fetched }) }

// fromNetwork says whether an interpreter's program is what another machine sends: its
// input, its code or the file that it is given.
func fromNetwork(called []string, g *program, args []word, at site) bool {
	if at.fetched && (g.Interpreter && readsInput(g, args) || slices.ContainsFunc(called, obeysPiped(args))) {
		return true
	}
	for i := 0; g.Interpreter && i < len(args); i++ {
		t := args[i].text
		switch {
		case args[i].fetched:
			return true
		case len(t) < 2 || t[0] != '-': // its file; the rest is for that
			return false
		case slices.Contains(g.Values, t) && i+1 < len(args):
			if i++; !slices.Contains(g.Flags, t) {
				return args[i].fetched
			}
		}
	}
	return false
}

// obeysPiped is obeysInput for words.
func obeysPiped(args []word) func(name string) bool {
	argv := make([]string, len(args))
	for i, a := range args {
		argv[i] = a.text
	}
	return obeysInput(argv)
}
