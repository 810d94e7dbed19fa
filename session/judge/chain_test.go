package judge

import (
	"slices"
	"testing"
	"time"

	"stepbox/runner/gate"
)

// chainOf knows exactly what env(1) does next, or nothing.
func TestChainOf(t *testing.T) {
	j := &Judge{Places: Places{Project: "/p", Upper: t.TempDir(), Began: time.Now()}}
	script := gate.File{Path: "/opt/pi", Ino: 1}
	env := gate.File{Path: "/usr/bin/env", Ino: 2}
	for name, c := range map[string]struct {
		argument string
		loaded   string
		env      string
		want     []string
	}{
		"plain":                 {argument: "node", want: []string{"node", "pi", "-x"}},
		"split":                 {argument: "-S node --no-warnings", want: []string{"node", "--no-warnings", "pi", "-x"}},
		"split without a blank": {argument: "-Snode", want: []string{"node", "pi", "-x"}},
		"multi-call":            {argument: "node", loaded: "/usr/bin/busybox", want: []string{"node", "pi", "-x"}},
		"an option":             {argument: "-i"},
		"an assignment":         {argument: "A=b"},
		"split, assignment":     {argument: "-S A=b node"},
		"split, option":         {argument: "-S -i node"},
		"split, quotes":         {argument: "-S 'node x'"},
		"split, variable":       {argument: "-S ${X}"},
		"split, comment":        {argument: "-S node #x"},
		"split, nothing":        {argument: "-S "},
		"a path":                {argument: "./node"},
		"another program":       {argument: "node", loaded: "/usr/bin/rm"},
		"another folder's env":  {argument: "node", loaded: "/opt/env"},
		"no PATH":               {argument: "node", env: "X=1"},
	} {
		t.Run(name, func(t *testing.T) {
			loaded := env
			if c.loaded != "" {
				loaded.Path = c.loaded
			}
			if c.env == "" {
				c.env = "PATH=/usr/bin"
			}
			e := &gate.Exec{
				Argv: []string{"pi", "-x"}, Env: []string{c.env}, Files: []gate.File{script, loaded},
				Prefix: []string{"/usr/bin/env", c.argument, "pi"},
			}
			got := chainOf(e, j.looks())
			if got == nil {
				if c.want != nil {
					t.Fatalf("no chain, want %q", c.want)
				}
				return
			}
			if c.want == nil || !slices.Equal(got.argv, c.want) || got.script != script || got.argv[got.at] != "pi" {
				t.Errorf("the chain is %q with its script at %d, want %q", got.argv, got.at, c.want)
			}
		})
	}
}

// Whatever differs from the chain is another program start.
func TestContinuesIsExact(t *testing.T) {
	j := &Judge{Places: Places{Project: "/p", Upper: t.TempDir(), Began: time.Now()}}
	chain := &Chain{argv: []string{"node", "pi", "-x"}, folder: []string{"/usr/local/bin", "/usr/bin"}, env: []string{"A=1"}, cwd: "/p", at: 1}
	same := func() *gate.Exec {
		return &gate.Exec{Argv: slices.Clone(chain.argv), Env: slices.Clone(chain.env), Cwd: "/p", Path: "/usr/bin/node"}
	}
	for name, change := range map[string]func(*gate.Exec){
		"more arguments":    func(e *gate.Exec) { e.Argv = append(e.Argv, "y") },
		"fewer arguments":   func(e *gate.Exec) { e.Argv = e.Argv[:2] },
		"another name":      func(e *gate.Exec) { e.Argv[0] = "rm" },
		"another program":   func(e *gate.Exec) { e.Path = "/usr/bin/rm" },
		"another folder":    func(e *gate.Exec) { e.Path = "/tmp/node" },
		"a relative folder": func(e *gate.Exec) { e.Path = "node" },
		"another folder's":  func(e *gate.Exec) { e.Cwd = "/" },
		"more environment":  func(e *gate.Exec) { e.Env = append(e.Env, "LD_PRELOAD=x") },
		"not read whole":    func(e *gate.Exec) { e.Truncated = true },
	} {
		e := same()
		change(e)
		if chain.Names(&Exec{Exec: e}) || j.Continues(chain, &Exec{Exec: e}) {
			t.Errorf("%s passes as the chain's", name)
		}
	}
	if !chain.Names(&Exec{Exec: same()}) {
		t.Error("the exec that the chain is about doesn't look like it")
	}
	if j.Continues(nil, &Exec{Exec: same()}) {
		t.Error("an exec passes without a chain")
	}
}
