package judge

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"stepbox/policy"
	"stepbox/policy/policytest"
	"stepbox/runner/gate"
	"stepbox/session/e2e/must"
)

// made is a judge of a session over /p whose agent has this environment, and
// that wrote some files: names with "home/", "project/" or "tmp/" in front.
func made(t *testing.T, files ...string) *Judge {
	t.Helper()
	dir := t.TempDir()
	j := &Judge{Env: []string{"PATH=/usr/bin", "LANG=C"}, Places: Places{
		Project: "/p", Upper: filepath.Join(dir, "project"), Home: "/home/me", HomeDir: filepath.Join(dir, "home"),
		Temp: filepath.Join(dir, "tmp"), Began: time.Now().Add(-time.Minute),
	}}
	for _, f := range append(files, "home/", "project/", "tmp/") {
		file := filepath.Join(dir, f)
		must.OK(t, os.MkdirAll(filepath.Dir(file), 0o755))
		if strings.HasSuffix(f, "/") {
			err := os.MkdirAll(file, 0o755)
			must.OK(t, err)
			continue
		}
		must.OK(t, os.WriteFile(file, nil, 0o755))
	}
	return j
}

// starts is an exec of a program by a path, which leads to this file.
func starts(path, file string, argv ...string) *gate.Exec {
	return &gate.Exec{
		PID: 7, Start: 1, Path: path, Argv: argv, Cwd: "/p", Env: []string{"PATH=/usr/bin", "LANG=C"},
		Program: gate.Program{Path: file}, Files: []gate.File{{Path: file, Ino: 1, Changed: time.Now().Add(-time.Hour)}},
	}
}

var claude = policy.BuiltinProfiles().For([]string{"claude"}, "")

// guarded has a judge ask about something.
func guarded(t *testing.T, j *Judge) *Judge {
	t.Helper()
	l, err := policytest.ParseLayer("user", "", []byte("commands: [{ask: git push}, {ask: rm -r}]\n"))
	must.OK(t, err)
	j.Use(policy.Of(l))
	return j
}

// What a program start is, by what it is called, where it is and who wrote it.
func TestExec(t *testing.T) {
	old := time.Now().Add(-time.Hour)
	for name, c := range map[string]struct {
		exec   *gate.Exec
		change func(*gate.Exec)
		line   string
		rule   string // part of what gave the verdict
		want   policy.Verdict
		check  func(*Exec) bool
	}{
		"plain":              {exec: starts("/usr/bin/ls", "/usr/bin/ls", "ls", "-l"), line: "ls -l", want: policy.Allow},
		"another name":       {exec: starts("/usr/bin/rm", "/usr/bin/rm", "ls"), line: "ls [runs /usr/bin/rm]", want: policy.Allow},
		"an alternative":     {exec: starts("/usr/bin/awk", "/usr/bin/mawk", "awk", "1"), line: "awk 1", want: policy.Allow},
		"the project's":      {exec: starts("/p/tool", "/p/tool", "tool"), line: "tool [runs /p/tool]", want: policy.Allow, check: func(x *Exec) bool { return x.Writable && !x.Command.Written }},
		"by its path":        {exec: starts("./tool", "/p/tool", "./tool"), line: "./tool", want: policy.Allow, check: func(x *Exec) bool { return x.Writable }},
		"a link to system's": {exec: starts("bin/ls", "/usr/bin/ls", "ls"), line: "ls", want: policy.Allow, check: func(x *Exec) bool { return x.Writable }},
		"written":            {exec: starts("/p/made", "/p/made", "/p/made"), line: "/p/made", want: policy.Allow, check: func(x *Exec) bool { return x.Command.Written }},
		"changed since":      {exec: starts("/usr/bin/ls", "/usr/bin/ls", "ls"), change: func(e *gate.Exec) { e.Files[0].Changed = time.Now() }, line: "ls [runs /usr/bin/ls]", want: policy.Allow, check: func(x *Exec) bool { return x.Command.Written }},
		"no arguments":       {exec: starts("/usr/bin/ls", "/usr/bin/ls"), line: " [runs /usr/bin/ls]", want: policy.Ask, rule: "no arguments"},
		"not read whole":     {exec: starts("/usr/bin/ls", "/usr/bin/ls", "ls"), change: func(e *gate.Exec) { e.Truncated = true }, line: "ls", want: policy.Ask, rule: "too large", check: func(x *Exec) bool { return x.Command.Truncated }},
		"its linker":         {exec: starts("/usr/bin/ls", "/usr/bin/ls", "ls"), change: func(e *gate.Exec) { e.Linker = "/p/ld\n" }, line: "ls", want: policy.Ask, rule: `dynamic linker /p/ld\n`},
		"a rule's":           {exec: starts("/usr/bin/git", "/usr/bin/git", "git", "push"), line: "git push", want: policy.Ask, rule: "git push", check: func(x *Exec) bool { return len(x.Command.Parts) == 1 }},
		"no rule counts":     {exec: starts("/usr/bin/git", "/usr/bin/git", "git", "push"), change: func(e *gate.Exec) { e.Env = append(e.Env, "GIT_\x1b=1") }, line: "git push", want: policy.Ask, check: func(x *Exec) bool { return strings.HasPrefix(x.Command.Uncounted, `it is given GIT_\x1b,`) }},
		"by its interpreter": {
			exec: starts("/p/x", "/p/x", "x"), want: policy.Ask, rule: "rm", line: "x [runs /p/x]",
			change: func(e *gate.Exec) {
				e.Prefix, e.Files = []string{"/usr/bin/rm", "-rf", "/p"}, append(e.Files, gate.File{Path: "/usr/bin/rm", Changed: old})
			},
		},
		"hostile": {exec: starts("/usr/bin/echo", "/usr/bin/echo", "echo", "\x1b[2J\u202e"), line: `echo $'\x1b[2J\xe2\x80\xae'`, want: policy.Allow, check: func(x *Exec) bool {
			return x.Command.Unclear && x.Command.Argv[1] == `\x1b[2J\u202e`
		}},
		"fed": {exec: starts("/usr/bin/bash", "/usr/bin/bash", "bash"), change: func(e *gate.Exec) { e.Open, e.Pipes = true, []uint64{4} }, line: "bash", want: policy.Allow, check: func(x *Exec) bool {
			return x.Fed && x.Obeys && len(x.Command.Unpinned) == 1
		}},
		"not known":                          {exec: starts("/p/tool", "/p/tool", "/p/tool"), line: "/p/tool", want: policy.Allow, check: func(x *Exec) bool { return x.Obeys && !x.Fed }},
		"known, given what was made":         {exec: starts("/usr/bin/git", "/usr/bin/git", "git", "-C", "/tmp/made", "log"), line: "git -C /tmp/made log", want: policy.Allow, check: func(x *Exec) bool { return x.Obeys }},
		"known, given it in an option":       {exec: starts("/usr/bin/git", "/usr/bin/git", "git", "-cinclude.path=/tmp/made", "log"), line: "git -cinclude.path=/tmp/made log", want: policy.Allow, check: func(x *Exec) bool { return x.Obeys }},
		"known, given it among signs":        {exec: starts("/usr/bin/git", "/usr/bin/git", "git", "-c", "include.path=/tmp/a,b:made", "log"), line: "git -c include.path=/tmp/a,b:made log", want: policy.Allow, check: func(x *Exec) bool { return x.Obeys }},
		"known, given what isn't there":      {exec: starts("/usr/bin/git", "/usr/bin/git", "git", "-C", "/tmp/later", "log"), line: "git -C /tmp/later log", want: policy.Allow, check: func(x *Exec) bool { return !x.Obeys }},
		"known, told of it by a variable":    {exec: starts("/usr/bin/node", "/usr/bin/node", "node", "x.js"), change: func(e *gate.Exec) { e.Env = []string{"NODE_PATH=/p:/tmp/made"} }, line: "node x.js", want: policy.Allow, check: func(x *Exec) bool { return x.Obeys }},
		"known, told by its input":           {exec: starts("/usr/bin/make", "/usr/bin/make", "make"), change: func(e *gate.Exec) { e.Env = []string{"MAKEFILES=/dev/stdin x"} }, line: "make", want: policy.Allow, check: func(x *Exec) bool { return x.Obeys }},
		"known, given too many names":        {exec: starts("/usr/bin/git", "/usr/bin/git", "git", "log", strings.Repeat("a,", 21_000)), line: "git log " + strings.Repeat("a,", 21_000), want: policy.Allow, check: func(x *Exec) bool { return x.Obeys }},
		"known, called something else":       {exec: starts("/usr/bin/python3", "/usr/bin/python3", "python9", "-c", "1"), line: "python9 -c 1 [runs /usr/bin/python3]", want: policy.Allow, check: func(x *Exec) bool { return x.Obeys }},
		"known, called as what is in /tmp":   {exec: starts("/usr/bin/python3", "/usr/bin/python3", "/tmp/e/python3", "-c", "1"), line: "/tmp/e/python3 -c 1", want: policy.Allow, check: func(x *Exec) bool { return x.Obeys }},
		"known, by a link in /tmp":           {exec: starts("/tmp/e/python3", "/usr/bin/python3", "/tmp/e/python3", "-c", "1"), line: "/tmp/e/python3 -c 1", want: policy.Allow, check: func(x *Exec) bool { return x.Obeys }},
		"known, by a link in the project":    {exec: starts("/p/e/python3", "/usr/bin/python3", "/p/e/python3", "-c", "1"), line: "/p/e/python3 -c 1", want: policy.Allow, check: func(x *Exec) bool { return !x.Obeys }},
		"known, its name made along PATH":    {exec: starts("/usr/bin/python3", "/usr/bin/python3", "made", "-c", "1"), change: func(e *gate.Exec) { e.Path, e.Argv[0], e.Env = "/usr/bin/made", "made", []string{"PATH=/usr/bin:/tmp"} }, line: "made -c 1", want: policy.Allow, check: func(x *Exec) bool { return x.Obeys }},
		"known, and a word like a folder's":  {exec: starts("/usr/bin/git", "/usr/bin/git", "git", "maintenance", "run"), line: "git maintenance run", want: policy.Allow, check: func(x *Exec) bool { return !x.Obeys }},
		"a wrapper in such a folder":         {exec: starts("/usr/bin/env", "/usr/bin/env", "env", "bash", "x"), change: func(e *gate.Exec) { e.Cwd = "/tmp/x" }, line: "env bash x", want: policy.Allow, check: func(x *Exec) bool { return !x.Obeys }},
		"known, given such a folder":         {exec: starts("/usr/bin/make", "/usr/bin/make", "make", "-C", "/", "-f", "tmp/made"), line: "make -C / -f tmp/made", want: policy.Allow, check: func(x *Exec) bool { return x.Obeys }},
		"a shell whose home is one":          {exec: starts("/usr/bin/bash", "/usr/bin/bash", "bash", "-lc", "x"), change: func(e *gate.Exec) { e.Env = []string{"HOME=/tmp/made"} }, line: "x", want: policy.Allow, check: func(x *Exec) bool { return x.Obeys }},
		"known, in such a folder":            {exec: starts("/usr/bin/make", "/usr/bin/make", "make"), change: func(e *gate.Exec) { e.Cwd = "/tmp/x" }, line: "make", want: policy.Allow, check: func(x *Exec) bool { return x.Obeys }},
		"a compiler of what was made":        {exec: starts("/usr/bin/gcc", "/usr/bin/gcc", "gcc", "-o", "/tmp/made", "-I/tmp/made", "/tmp/made"), line: "gcc -o /tmp/made -I/tmp/made /tmp/made", want: policy.Allow, check: func(x *Exec) bool { return !x.Obeys }},
		"a compiler that is told by it":      {exec: starts("/usr/bin/gcc", "/usr/bin/gcc", "gcc", "@/tmp/made"), line: "gcc @/tmp/made", want: policy.Allow, check: func(x *Exec) bool { return x.Obeys }},
		"called as one that is known":        {exec: starts("/p/make", "/p/make", "/p/make"), line: "/p/make", want: policy.Allow, check: func(x *Exec) bool { return x.Obeys }},
		"known":                              {exec: starts("/usr/bin/bash", "/usr/bin/bash", "bash", "-c", "x"), change: func(e *gate.Exec) { e.Open = true }, line: "x", want: policy.Allow, check: func(x *Exec) bool { return !x.Obeys && !x.Fed }},
		"known, with code that is loaded":    {exec: starts("/usr/bin/bash", "/usr/bin/bash", "bash", "-c", "x"), change: func(e *gate.Exec) { e.Env = []string{"LD_PRELOAD=/tmp/x"} }, line: "x", want: policy.Allow, check: func(x *Exec) bool { return x.Obeys }},
		"known, with a script that was made": {exec: starts("/usr/bin/bash", "/usr/bin/bash", "bash", "/tmp/made"), line: "bash /tmp/made", want: policy.Allow, check: func(x *Exec) bool { return x.Obeys }},
		"a shell at a prompt":                {exec: starts("/usr/bin/bash", "/usr/bin/bash", "bash"), line: "bash", want: policy.Allow, check: func(x *Exec) bool { return x.Root }},
		"one of the project":                 {exec: starts("/p/bash", "/p/bash", "bash"), line: "bash [runs /p/bash]", want: policy.Allow, check: func(x *Exec) bool { return !x.Root }},
		"one that loads more":                {exec: starts("/usr/bin/bash", "/usr/bin/bash", "bash"), change: func(e *gate.Exec) { e.Env = append(e.Env, "LD_PRELOAD=/p/x") }, line: "bash", want: policy.Allow, check: func(x *Exec) bool { return !x.Root && slices.Equal(x.Command.Env, []string{"LD_PRELOAD=/p/x"}) }},
		"one with a script":                  {exec: starts("/usr/bin/bash", "/usr/bin/bash", "bash", "x"), line: "bash x", want: policy.Allow, check: func(x *Exec) bool { return !x.Root }},
		"called like a shell":                {exec: starts("/usr/bin/rm", "/usr/bin/rm", "bash"), line: "bash [runs /usr/bin/rm]", want: policy.Allow, check: func(x *Exec) bool { return !x.Root }},
		"the agent":                          {exec: starts("/opt/claude", "/opt/claude", "claude"), line: "claude", want: policy.Allow, check: func(x *Exec) bool { return x.Self && x.Agent == claude }},
		"the agent's file made":              {exec: starts("/p/made", "/p/made", "claude"), line: "claude [runs /p/made]", want: policy.Allow, check: func(x *Exec) bool { return !x.Self }},
		"an agent of the project":            {exec: starts("/p/claude", "/p/claude", "claude"), line: "claude [runs /p/claude]", want: policy.Allow, check: func(x *Exec) bool { return !x.Self && x.Agent == claude }},
	} {
		t.Run(name, func(t *testing.T) {
			if c.change != nil {
				c.change(c.exec)
			}
			if x := made(t, "project/made", "tmp/made", "tmp/a,b:made").Exec(c.exec, claude); x.Judgement.Verdict != policy.Allow {
				t.Errorf("without a rule: %s: %s", x.Judgement.Verdict, x.Judgement.Rule)
			}
			x := guarded(t, made(t, "project/made", "tmp/made", "tmp/a,b:made")).Exec(c.exec, claude)
			if x.Command.Line != c.line {
				t.Errorf("it is shown as %q, want %q", x.Command.Line, c.line)
			}
			if x.Judgement.Verdict != c.want || !strings.Contains(x.Judgement.Rule, c.rule) {
				t.Errorf("%s: %s; want %s: …%s…", x.Judgement.Verdict, x.Judgement.Rule, c.want, c.rule)
			}
			if c.check != nil && !c.check(x) {
				t.Errorf("it is taken for something else: %+v", x)
			}
		})
	}
}

// What wasn't read whole is denied where a rule denies what was read.
func TestNotReadWholeAndDenied(t *testing.T) {
	l, err := policytest.ParseLayer("user", "", []byte("commands: [{deny: tool drop}]\n"))
	must.OK(t, err)
	for word, want := range map[string]policy.Verdict{"drop": policy.Deny, "list": policy.Ask} {
		j := made(t)
		j.Use(policy.Of(l))
		e := starts("/usr/bin/tool", "/usr/bin/tool", "tool", word, "x")
		e.Truncated = true
		if x := j.Exec(e, claude); x.Judgement.Verdict != want || x.Doubt() != tooLarge {
			t.Errorf("tool %s: %s: %s", word, x.Judgement.Verdict, x.Judgement.Rule)
		}
	}
}

// The agent's program in the project is the agent's only if the person started
// it from there.
func TestLocal(t *testing.T) {
	local := map[origin]bool{ofTheProject: true}
	j := made(t)
	j.Local = local
	if !j.Exec(starts("/p/claude", "/p/claude", "claude"), claude).Self {
		t.Error("the person's own program isn't the agent")
	}
	j = made(t, "project/claude")
	j.Local = local
	if j.Exec(starts("/p/claude", "/p/claude", "claude"), claude).Self {
		t.Error("what this session wrote is the agent")
	}
	// What an earlier session left in the shared home, and what others' folders have, may
	// only look like it.
	for _, file := range []string{"/home/me/x/claude", "/lib/x/claude", "/cache/x/claude"} {
		j = made(t, "home/x/claude")
		j.Places.Began = time.Now().Add(time.Minute)
		j.Places.Beside, j.Places.Mounts = []string{"/lib"}, map[string]string{"/cache": t.TempDir(), "/lib": ""}
		e := starts(file, file, "claude", "-c", "x")
		if j.Exec(e, claude).Self {
			t.Errorf("%s is the agent", file)
		}
		if !j.First(e, claude).Self {
			t.Errorf("%s isn't the agent that the person started from there", file)
		}
	}
}

// Names are told apart by where they are, and nothing is followed.
func TestPlaces(t *testing.T) {
	j := made(t, "project/made", "home/new", "home/old", "tmp/x")
	p := &j.Places
	must.OK(t, os.Symlink("/etc", filepath.Join(p.Upper, "link")))
	before := *p
	before.Began = time.Now().Add(time.Hour)
	for file, want := range map[string]struct{ wrote, made, older bool }{
		"/p/made":       {true, true, true},
		"/p/not":        {false, true, false},
		"/p/link/hosts": {true, true, true}, // through a link: nobody knows
		"/p":            {false, true, false},
		"/p/../etc/x":   {false, false, false},
		"/home/me/new":  {true, true, false}, // written before the session, by its own clock
		"/home/me/none": {false, false, false},
		"/tmp/x":        {true, true, true},
		"/tmp/none":     {false, false, false},
		"/usr/bin/ls":   {false, false, false},
		"/dev/shm/x":    {true, true, true},
		"/proc/1/exe":   {true, true, true},
	} {
		if l := p.look(file); l.wrote(p.Began) != want.wrote || l.made() != want.made {
			t.Errorf("%s: %+v", file, l)
		}
		if l := before.look(file); l.wrote(before.Began) != want.older {
			t.Errorf("%s, before the session: %+v", file, l)
		}
	}
}

// Each name is looked at once for an exec, however many questions are about it.
func TestLooksOnce(t *testing.T) {
	j := made(t, "tmp/x")
	l := j.looks()
	if !l.wrote("/tmp/x") {
		t.Fatal("it isn't written")
	}
	must.OK(t, os.Remove(filepath.Join(j.Places.Temp, "x")))
	if !l.wrote("/tmp/x") || !l.at("/tmp/x").made() {
		t.Error("it was looked at again")
	}
	if j.looks().wrote("/tmp/x") {
		t.Error("the next exec isn't looked at")
	}
}

func TestTraps(t *testing.T) {
	j := made(t, "home/.bashrc", "home/.config/git/config", "home/notes")
	if got, want := j.Places.Traps(), []string{"/home/me/.bashrc", "/home/me/.config/git", "/home/me/.config/git/config"}; !slices.Equal(got, want) {
		t.Errorf("programs obey %q, want %q", got, want)
	}
}

// An agent's program is known again by its name, or by its script however that
// is called.
func TestIdentity(t *testing.T) {
	script := gate.File{Path: "/opt/pi.js", Ino: 9, Size: 5}
	node := func(files ...gate.File) *Exec {
		return &Exec{Exec: starts("/usr/bin/node", "/usr/bin/node", "node", "x"), scripts: &scriptsSeen{files, true}}
	}
	kernel := &Exec{Exec: starts("/opt/pi", "/opt/pi.js", "pi")}
	kernel.Prefix, kernel.Files = []string{"/usr/bin/node"}, []gate.File{script, {Path: "/usr/bin/node"}}
	native := &Exec{Exec: starts("/opt/pi", "/opt/pi", "pi"), scripts: &scriptsSeen{}}
	for name, c := range map[string]struct {
		agent *Identity
		exec  *Exec
		want  bool
	}{
		"the same name":             {native.Identity(), &Exec{Exec: starts("/p/pi", "/p/pi", "x")}, true},
		"another name":              {native.Identity(), &Exec{Exec: starts("/p/other", "/p/other", "pi")}, false},
		"its script":                {node(script).Identity(), node(gate.File{Ino: 1}, script), true},
		"another script":            {node(script).Identity(), node(gate.File{Ino: 1}), false},
		"the script, run by kernel": {node(script).Identity(), kernel, true},
		"by kernel, then by node":   {kernel.Identity(), node(script), true},
		"the interpreter alone":     {node(script).Identity(), node(), false},
		"an interpreter's":          {node().Identity(), node(script), false},
		"not looked at":             {node(script).Identity(), &Exec{Exec: starts("/usr/bin/node", "/usr/bin/node", "node", "pi.js")}, false},
		"nobody's":                  {nil, native, false},
	} {
		if c.agent.Is(c.exec) != c.want {
			t.Errorf("%s: %v", name, !c.want)
		}
	}
}

func BenchmarkExec(b *testing.B) {
	dir := b.TempDir()
	j := &Judge{Env: os.Environ(), Places: Places{Project: "/p", Upper: dir, Home: "/home/me", HomeDir: dir, Temp: dir, Began: time.Now()}}
	e := starts("/usr/bin/true", "/usr/bin/true", "/bin/true")
	e.Env = os.Environ()
	for b.Loop() {
		j.Exec(e, claude)
	}
}

// A rule that allows a program isn't about another one that calls itself so, nor about what
// a link of the agent's own is called.
func TestPosing(t *testing.T) {
	l, err := policytest.ParseLayer("user", "f.yaml", []byte("commands: [{allow: tool push *}, {allow: ssh push *}, {ask: '* push'}]\n"))
	must.OK(t, err)
	for name, c := range map[string]struct {
		exec *gate.Exec
		want policy.Verdict
	}{
		"its own name":           {starts("/usr/bin/tool", "/usr/bin/tool", "tool", "push"), policy.Allow},
		"a link of the system's": {starts("/usr/bin/tool", "/usr/lib/tool/cli.js", "tool", "push"), policy.Allow},
		"one of mounted tools":   {starts("/home/me/.nvm/bin/tool", "/home/me/.nvm/lib/cli.js", "tool", "push"), policy.Allow},
		"the file's name":        {starts("/p/x", "/usr/bin/ssh", "/p/ssh", "push"), policy.Allow},
		"another's name":         {starts("/usr/bin/ssh", "/usr/bin/ssh", "tool", "push"), policy.Ask},
		"a link in the project":  {starts("/p/tool", "/usr/bin/ssh", "tool", "push"), policy.Ask},
		"in the home":            {starts("/home/me/bin/tool", "/usr/bin/ssh", "tool", "push"), policy.Ask},
		"in a written mount":     {starts("/data/tool", "/usr/bin/ssh", "tool", "push"), policy.Ask},
		"relative":               {starts("bin/tool", "/usr/bin/ssh", "tool", "push"), policy.Ask},
		"that leads up":          {starts("/proc/self/cwd/../../../usr/bin/tool", "/usr/bin/ssh", "tool", "push"), policy.Ask},
		"by descriptor":          {starts("", "/usr/bin/ssh", "tool", "push"), policy.Ask},
	} {
		j := made(t)
		j.Places.Mounts = map[string]string{"/home/me/.nvm": "", "/data": t.TempDir()}
		j.Use(policy.Of(l))
		if x := j.Exec(c.exec, claude); x.Judgement.Verdict != c.want {
			t.Errorf("%s: %s, want %s", name, x.Judgement.Verdict, c.want)
		}
	}
	// A script's interpreter is one that the script chose.
	for link, want := range map[string]policy.Verdict{"/usr/bin/tool": policy.Allow, "/p/tool": policy.Ask} {
		j := made(t)
		j.Use(policy.Of(l))
		e := starts("/p/x", "/p/x", "/p/x")
		e.Prefix, e.Files = []string{link, "push", "/p/x"}, append(e.Files, gate.File{Path: "/usr/bin/other", Changed: time.Now().Add(-time.Hour)})
		if x := j.Exec(e, claude); x.Judgement.Verdict != want {
			t.Errorf("a script of %s: %s, want %s", link, x.Judgement.Verdict, want)
		}
	}
}

// A link of the person's own in the project names a program as well as its file does; one
// that the session made, or that another of its links leads to, doesn't.
func TestPersonsLink(t *testing.T) {
	project, upper := filepath.Join(t.TempDir(), "p"), t.TempDir()
	for _, dir := range []string{filepath.Join(project, ".venv/bin"), filepath.Join(upper, "bin")} {
		must.OK(t, os.MkdirAll(dir, 0o700))
	}
	for _, link := range []string{filepath.Join(project, "led"), filepath.Join(upper, "bin/python")} {
		must.OK(t, os.Symlink("/tmp", link))
	}
	p := Places{Project: project, Upper: upper}
	for started, want := range map[string]bool{
		project + "/.venv/bin/python":           false,
		project + "/bin/python":                 true, // the session's
		project + "/led/python":                 true, // somewhere else
		project + "/.venv/bin/../../bin/python": true,
		"/proc/self/cwd/python":                 true,
	} {
		if got := p.posing("python", started, "/usr/bin/python3.11"); got != want {
			t.Errorf("%s: %v, want %v", started, got, want)
		}
	}
}

// A denied command's starter becomes it all the same, since nothing runs until then;
// what only looks like one is judged as what it is.
func TestBecomes(t *testing.T) {
	const native = "/usr/lib/node_modules/@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex"
	setup := func(shell ...string) []string {
		return append([]string{"/proc/self/exe", "--codex-run-as-process-setup", "47", "136", "pipe", "", "/p"}, shell...)
	}
	rules, err := policytest.ParseLayer("p", "p.yaml", []byte("commands: [{deny: shred *}]"))
	must.OK(t, err)
	j := made(t, "project/codex")
	j.Use(policy.Of(rules))
	codex := policy.BuiltinProfiles().Named("codex")
	for name, c := range map[string]struct {
		file string
		argv []string
		want bool
	}{
		"denied":             {native, setup("/bin/bash", "/bin/bash", "-lc", "shred x"), true},
		"allowed":            {native, setup("/bin/bash", "/bin/bash", "-lc", "ls"), true},
		"no shell behind":    {native, setup("/usr/bin/shred", "/usr/bin/shred", "x"), false},
		"another program":    {"/usr/bin/shred", setup("/bin/bash", "/bin/bash", "-lc", "shred x"), false},
		"written meanwhile":  {"/p/codex", setup("/bin/bash", "/bin/bash", "-lc", "shred x"), false},
		"the agent as usual": {native, []string{"codex", "exec", "x"}, false},
	} {
		if got := j.Exec(starts("/proc/self/exe", c.file, c.argv...), codex).Becomes(); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// Stepbox's own program is known by its file, also when a newer version took its name on
// the host meanwhile, which changes that file's time and nothing else of it.
func TestOurs(t *testing.T) {
	at := time.Now().Add(-time.Hour)
	self := gate.File{Path: "/run/stepbox/bin/stepbox", Dev: 1, Ino: 2, Size: 3, Changed: at}
	for name, c := range map[string]struct {
		change func(*gate.File)
		want   bool
	}{
		"it":                   {func(*gate.File) {}, true},
		"replaced on the host": {func(f *gate.File) { f.Nameless, f.Changed = true, time.Now() }, true},
		"changed":              {func(f *gate.File) { f.Changed = time.Now() }, false},
		"another inode":        {func(f *gate.File) { f.Nameless, f.Ino = true, 4 }, false},
		"another device":       {func(f *gate.File) { f.Nameless, f.Dev = true, 4 }, false},
		"another size":         {func(f *gate.File) { f.Nameless, f.Size = true, 4 }, false},
	} {
		j := made(t)
		j.Know(self)
		e := starts(self.Path, self.Path, "stepbox", "hook", "claude", "PreToolUse")
		e.Files[0] = self
		c.change(&e.Files[0])
		if x := j.Exec(e, claude); x.Ours != c.want {
			t.Errorf("%s: ours is %v", name, x.Ours)
		}
	}
	for argv, want := range map[string]bool{
		"stepbox mcp": true, "/run/stepbox/bin/xdg-open https://a.example": true, "xdg-open javascript:x": true,
		"xdg-open init": false, "xdg-open pid1": false, "xdg-open holder": false, "stepbox https://a.example": false, "xdg-open": false, "xdg-open https://a.example x": false,
	} {
		j := made(t)
		j.Know(self)
		e := starts(self.Path, self.Path, strings.Fields(argv)...)
		e.Files[0] = self
		if x := j.Exec(e, claude); x.Ours != want {
			t.Errorf("%s: ours is %v", argv, x.Ours)
		}
	}
}
