package policy

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"

	"stepbox/session/e2e/must"
)

// FuzzLayer: no file is the end of who reads it, and what one says can be used, shown
// and made less of.
func FuzzLayer(f *testing.F) {
	f.Add(starter)
	f.Add(starterProject)
	f.Add(must.Get(os.ReadFile("testdata/rules.yaml")))
	for _, s := range []string{
		"a: &a [*a]", "? ? ? x", "- - - -", "{{{{", "[[[[", "commands:\n\t- x", "a: |\n  x\n b", "%YAML 1.1\n---\n...", "\"\\x", "'", "!!binary x", "a:\r\n b", "version: 1e9", "include: [[x]]",
		"commands: [{ask: [a, {b: c}], in: ['**/**/**']}]", "network: [{ask: '[::1]:0-9/any'}]", "limits: {memory: 1e400, cpus: .nan, pids: 0x7f}", "environment: {set: {? [a]: b}}", "files: {hide: ['{a,{b,{c}}}']}", "ask: {timeout: -1h}", "mounts: [{path: ~/../x}]",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		l, err := ParseLayer("fuzz", "f.yaml", data)
		if err != nil {
			for _, line := range strings.Split(err.Error(), "\n") {
				if !utf8.ValidString(line) {
					t.Fatalf("%q isn't text", line)
				}
			}
			return
		}
		if tight := l.Tightening(); tight.Loosens() {
			t.Fatalf("tightened it loosens: %+v", tight)
		}
		p := asking().With(l)
		p.Command(Command{Argv: []string{"sh", "-c", "cd a && rm -rf *"}, Cwd: "/p/a", Project: "/p", Home: "/h"})
		p.Connect(Destination{Name: "example.org", Port: 443, Protocol: TCP}, "/usr/bin/curl")
		p.Treats("a/b.pem")
		for i := range l.Rules {
			_ = l.Rules[i].String()
		}
	})
}

// FuzzUnparsed: what can't be read as a script is never allowed, whatever rules allow.
func FuzzUnparsed(f *testing.F) {
	l, err := ParseLayer("user", "f.yaml", []byte("commands:\n  - allow: [ls *, echo *, cat *, git *, 'true', cd *, make *]\n    children: allow\n"))
	must.OK(f, err)
	p := asking().With(l)
	for _, s := range []string{"echo '", `echo "`, "cat <<E\nx", "echo $(", "echo `", "ls |", "ls &&", "if true", "for x in a; do ls", "case x in", "{ ls", "(ls", "ls )", "echo ${", "echo $((", "[[ a", "ls\x00", "echo \xff'", "function", "ls <", "cat <<<", "a=(", "echo \\"} {
		f.Add(s)
	}
	f.Add(strings.Repeat("(", 20_000) + "ls")
	f.Add(strings.Repeat("$(", 5_000))
	f.Add("ls " + strings.Repeat("a ", 1<<19))
	f.Fuzz(func(t *testing.T, s string) {
		if strings.HasPrefix(s, "-") || strings.HasPrefix(s, "+") {
			return // more options of the shell's
		}
		j := p.Command(Command{Argv: []string{"bash", "-c", s}, Cwd: "/p", Project: "/p", Home: "/h"})
		if j.Verdict == Ask || j.Verdict == Deny {
			return
		}
		if len(s) > maxBytes {
			t.Fatalf("%d bytes are allowed", len(s))
		}
		if _, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(s), ""); err != nil {
			t.Fatalf("%q is allowed, and can't be read: %v\n%s", s, err, j.Explain())
		}
	})
}

// Files made to take long are refused before anything is made of them; the log says in what
// time.
func TestHostileFiles(t *testing.T) {
	for what, s := range map[string]string{
		"brackets": strings.Repeat("[", maxFile), "braces": strings.Repeat("{a: ", maxFile/4), "hyphens": strings.Repeat("- ", maxFile/2), "questions": strings.Repeat("? ", maxFile/2),
		"colons": strings.Repeat("a: ", maxFile/3), "stairs": stairs(1400), "quotes": strings.Repeat("'", maxFile), "words": strings.Repeat("a ", maxFile/2),
		"lines": "commands:\n" + strings.Repeat("- {}\n", maxFile/5-4), "rules": "commands:\n- ask: [" + strings.Repeat("a,", maxFile/2-20) + "a]", "keys": keys("", 30_000), "flow": "limits: {" + keys("", 20_000) + "}", "nested": "limits:\n" + keys("  ", 50_000), "stars": "files: {hide: ['" + strings.Repeat("**/", 300) + "']}",
		"comments": strings.Repeat("#\n", maxFile/2), "aliases": "a: &a [x]\nb: &b [" + strings.Repeat("*a,", 1000) + "]", "literal": "a: |\n" + strings.Repeat(" x\n", maxFile/3-4),
	} {
		begun := time.Now()
		_, err := ParseLayer("x", "f.yaml", []byte(s))
		t.Logf("%s: %d bytes in %s: %.60v", what, len(s), time.Since(begun).Round(time.Millisecond), err)
		if err == nil && what != "comments" {
			t.Errorf("%s: it is taken", what)
		}
	}
}

func stairs(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	return b.String()
}

func keys(indent string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%sk%d: 1,\n", indent, i)
	}
	return b.String()
}

// manyRules is a policy of 200 rules, of the kinds that people write.
func manyRules(b *testing.B) *Policy {
	var y strings.Builder
	y.WriteString("commands:\n")
	for i := range 100 {
		fmt.Fprintf(&y, "  - %s: tool%d run|build * --flag%d=*\n", []string{"ask", "allow", "deny"}[i%3], i, i)
	}
	y.WriteString("network:\n")
	for i := range 100 {
		fmt.Fprintf(&y, "  - %s: ['*.zone%d.example.org:443', 'host%d.example.org']\n", []string{"ask", "allow", "deny"}[i%3], i, i)
	}
	l, err := ParseLayer("user", "f.yaml", []byte(y.String()))
	must.OK(b, err)
	return asking().With(BuiltinProfiles().Named("claude").Layer(), l)
}

// BenchmarkVerdict measures what a verdict takes by a policy of 200 rules beside the
// built-in: of commands as they are, of scripts, and of connections.
func BenchmarkVerdict(b *testing.B) {
	p := manyRules(b)
	command := func(argv ...string) func() {
		c := Command{Argv: argv, Cwd: "/p", Project: "/p", Home: "/h", Program: "/usr/bin/" + argv[0]}
		return func() { p.Command(c) }
	}
	for _, c := range []struct {
		name string
		ask  []func()
	}{
		{"argv", []func(){command("ls", "-la"), command("git", "status", "--porcelain"), command("tool99", "build", "x"), command("rg", "-n", "func main", "src"), command("npm", "run", "build")}},
		{"script", []func(){
			command("bash", "-c", "cd src && go test ./... 2>&1 | tail -20"), command("bash", "-c", "for f in *.go; do gofmt -l \"$f\"; done"),
			command("bash", "-c", "git add -A && git commit -m 'x' && git log --oneline | head -3"), command("sh", "-c", "test -f a || { echo none; exit 1; }"),
		}},
		{"connection", []func(){
			func() {
				p.Connect(Destination{Name: "registry.example.org", Port: 443, Protocol: TCP}, "/usr/bin/node")
			},
			func() {
				p.Connect(Destination{Name: "a.zone99.example.org", Port: 443, Protocol: TCP}, "/usr/bin/curl")
			},
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			took := make([]time.Duration, 0, b.N)
			r := rand.New(rand.NewPCG(1, 2))
			for b.Loop() {
				f := c.ask[r.IntN(len(c.ask))]
				begun := time.Now()
				f()
				took = append(took, time.Since(begun))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Nanoseconds())/1e3, "p50-µs")
			b.ReportMetric(float64(took[len(took)*99/100].Nanoseconds())/1e3, "p99-µs")
		})
	}
}

// No arguments of what is known of programs are the end of who judges them, wherever they
// are cut off.
func TestAnyArguments(t *testing.T) {
	p := asking().With(layer(t, "user", "commands: [{deny: tool -x a ** b}, {ask: '* -o a'}, {allow: ./tool *, children: allow}, {deny: git -C a push}]\n"))
	words := []string{"", "-", "--", "=", "-=", "a", "a=b", "{}", "+", ";", "(", "-exec", "-ok", "-delete", "-D", "-S", "-regextype", "-O", "-name", "--rcfile", "-o", "+o", "-c", "-f-", "/dev/stdin", "/dev/fd/3", "-H", "\x00", "-\x00", "*", "/", "@", "'", "$(", "é"}
	names := []string{"find", "bfs", "eval", "source", ".", "trap", "cd", "tool", "./tool", "git-", "-", "ed", "sed", "lua", "claude", "ld.so"}
	for name := range grammar() {
		names = append(names, name)
	}
	for _, name := range names {
		known := words
		if read := grammar()[name]; read != nil {
			g := read()
			known = slices.Concat(words, g.Values, g.Flags)
			if g.Runs != nil {
				known = slices.Concat(known, g.Runs.After, g.Runs.Scripts, g.Runs.Split, g.Runs.Lookup)
			}
		}
		for _, w := range known {
			for _, argv := range [][]string{{name, w}, {name, "a", w}, {name, w, w}, {"sh", "-c", name + " " + w}, {"env", name, w}, {w, name}} {
				c := Command{Argv: argv, Program: "/usr/bin/" + name, Started: w, Cwd: "/p", Project: "/p", Home: "/h"}
				p.Command(c)
				Scripts(c.Argv, c.Program)
				ReadsInput(c.Argv, c.Program)
				f := BuiltinProfiles().Named("claude")
				f.Peel(argv)
				f.Root(argv)
				f.Self(c)
				f.Args(argv)
			}
		}
	}
}
