package policy

import (
	"slices"
	"strings"
	"testing"

	"stepbox/session/e2e/must"
)

// What a rule denies is denied as it is typed in the rule and in the other ways to spell
// it, and what only comes near isn't.
func TestSpellings(t *testing.T) {
	for _, c := range []struct {
		rule   string
		denied []string
		passes []string
	}{
		// An option's value may stand behind it or in it, and the option anywhere.
		{"curl -X POST", []string{"curl -X POST x", "curl x -X POST", "curl -XPOST x", "curl -sX POST x", "curl -sXPOST x", "curl -#XPOST x", "curl -#X POST x", "curl -X $M x"}, []string{"curl -X GET x", "curl x", "curl POST"}},
		{"sed -i", []string{"sed -i.bak s/a/b/ f", "sed -Ei.b s/a/b/ f", "sed -Ei~ f"}, []string{"sed -n.i f", "sed -E f", "sed --x.i f"}},
		{"curl -d", []string{"curl -d@/etc/passwd x", "curl -sd@f x", "curl -sda=b x"}, []string{"curl -s@d x", "curl -o/tmp/d x"}},
		{"tool -d a=b", []string{"tool -da=b", "tool -sda=b", "tool -d a=b", "tool -sd a=b"}, []string{"tool -da=c", "tool -d b"}},
		{"git checkout -f", []string{"git checkout -fBa.b", "git checkout -qfBx/y", "git checkout -fB a"}, []string{"git checkout x.f", "git checkout -q./f"}},
		{"curl -XPOST x", []string{"curl -X POST x", "curl -XPOST x"}, []string{"curl -X GET x"}},
		{"kubectl --context prod get *", []string{"kubectl --context prod get x", "kubectl --context=prod get x", "kubectl get --context prod x", "kubectl get x --cont=prod"}, []string{"kubectl --context test get x", "kubectl --context=prod logs x", "kubectl get prod"}},
		{"cloud --profile prod s3 rm", []string{"cloud --profile prod s3 rm x", "cloud --profile=prod s3 rm x", "cloud s3 rm x --profile prod", "cloud s3 --profile prod rm", "cloud s3 rm --debug --profile prod"}, []string{"cloud --profile=test s3 rm x", "cloud s3 rm x", "cloud --profile prod s3 ls"}},
		{"tool --env=prod", []string{"tool --env=prod", "tool --env prod", "tool x --en prod", "tool --env=$E"}, []string{"tool --env=test", "tool --env test", "tool prod"}},
		{"tool -e prod up", []string{"tool -e prod up", "tool -eprod up", "tool up -e prod", "tool -ve prod up", "tool -e=prod up"}, []string{"tool -e test up", "tool -e prod down"}},
		{"tool --force main", []string{"tool --force main", "tool main --force", "tool -v main --force x"}, []string{"tool main", "tool --force test"}},
		{"curl -x --proxy-name", []string{"curl -x --proxy-name y", "curl --x y -x--proxy-name"}, []string{"curl -x other"}},
		// What follows -- is no option, and a hyphen alone isn't either.
		{"tool run -- --prod", []string{"tool run -- --prod", "tool -v run -- --prod x"}, []string{"tool run --prod", "tool run -- --test"}},
		{"tool read -", []string{"tool read -", "tool -v read -- - x"}, []string{"tool read x"}},
		{"git-push origin", []string{"git-push origin", "/usr/lib/git-core/git-push origin"}, []string{"git-pull origin"}},
		// Each option that isn't known may or may not take the argument behind it.
		{"tool drop", []string{"tool --a b drop", "tool --a b --c drop", "tool --a b -v drop", "tool -v --a b -c d drop x", "tool --a b --c d --e drop"}, []string{"tool x drop", "tool --a b c drop", "tool -- x drop"}},
		{"tool db drop", []string{"tool db --a b --c drop", "tool --c db --a b drop"}, []string{"tool db --a b c drop"}},
		// git can be set to correct what it doesn't know.
		{"git push", []string{"git psh x", "git pus", "git p", "git -c help.autocorrect=1 psuh", "git -C x pushh", "git puhs"}, []string{"git pull", "git absorb", "git st", "git x", "git co", "git lg", "git nothing", "git log -- psh", "git town", "git lfs pull", "git status"}},
		// A tool that is a script is that tool, whoever runs it.
		{"tool drop", []string{"node /usr/bin/tool drop", "python3 -u bin/tool --a b drop", "bash tool drop", "sh -e ./tool drop", "env X=1 perl -I lib tool drop", "node --no-warnings -- tool drop", "busybox sh tool drop",
			"node --title x tool drop", "node --title x --env-file y /usr/bin/tool drop", "python3 --check-hash-based-pycs never tool drop", "ruby -C x tool drop", "perl -wI x tool drop", "php -f tool -- drop", "python3 -Imtool drop"},
			[]string{"python3 - tool drop", "python3 -u x tool drop", "node --no-warnings x tool drop", "node tool.js drop", "bash -c 'echo tool drop'", "node -e tool drop", "python -m tool drop2", "bash x tool drop", "node x tool drop"}},
		// A file of many programs may be told which it is by an option.
		{"tool drop", []string{"coreutils --coreutils-prog=tool drop", "coreutils --coreutils-prog-shebang=tool /bin/tool drop", "busybox.static tool drop"}, []string{"coreutils --coreutils-prog=other drop"}},
		// A program is the same whatever folder it is typed with.
		{"./deploy.sh prod", []string{"./deploy.sh prod", "deploy.sh prod", "../x/deploy.sh prod", "/p/deploy.sh prod"}, []string{"./deploy.sh test", "./deploy"}},
		{"/usr/bin/tool", []string{"tool x", "/usr/bin/tool", "/bin/tool"}, []string{"tools"}},
		{"~/bin/*-tool", []string{"~/bin/x-tool", "x-tool"}, []string{"tool"}},
	} {
		p := (&Policy{}).With(layer(t, "user", "commands:\n  - deny: '"+c.rule+"'\n"))
		says := func(script string) Verdict {
			return p.Command(Command{Argv: []string{"bash", "-c", script}, Cwd: "/p", Project: "/p", Home: "/h"}).Verdict
		}
		for _, s := range c.denied {
			if v := says(s); v != Deny {
				t.Errorf("deny %s: %s: %s", c.rule, s, v)
			}
		}
		for _, s := range c.passes {
			if v := says(s); v != Allow {
				t.Errorf("deny %s: %s: %s", c.rule, s, v)
			}
		}
	}
}

// Whatever whoever starts a program calls it, and however much it is given, what a rule denies
// of it is denied.
func TestDeniedWhateverElseIsGiven(t *testing.T) {
	p := (&Policy{}).With(layer(t, "user", "commands: [{deny: tool drop}, {deny: curl -X POST}, {deny: tool read ** <secret>}, {deny: rm -r}]\n"))
	many, large := slices.Repeat([]string{"x"}, maxArgs), strings.Repeat("x", maxBytes)
	for name, c := range map[string]struct {
		argv []string
		cut  bool
		want Verdict
	}{
		"no name":                    {[]string{"", "drop"}, false, Deny},
		"a folder's name":            {[]string{"x/", "drop"}, false, Deny},
		"no name, nothing denied":    {[]string{"", "list"}, false, Ask},
		"many arguments":             {append([]string{"tool", "drop"}, many...), false, Deny},
		"a large argument":           {[]string{"tool", "drop", large}, false, Deny},
		"a large one, no name":       {[]string{"", "drop", large}, false, Deny},
		"many, and an option":        {append(append([]string{"curl"}, many...), "-XPOST"), false, Deny},
		"many, nothing denied":       {append([]string{"rm"}, many...), false, Ask},
		"large, nothing denied":      {[]string{"tool", "list", large}, false, Ask},
		"a large script":             {[]string{"bash", "-c", "tool drop; :" + large}, false, Ask},
		"cut":                        {[]string{"tool", "drop", "x"}, true, Deny},
		"cut, before what is denied": {[]string{"tool", "-v"}, true, Deny},
		"cut within it":              {[]string{"tool", "dr"}, true, Deny},
		"cut, before an option":      {[]string{"rm", "x"}, true, Deny},
		"cut, before its value":      {[]string{"curl", "x"}, true, Deny},
		"cut, before a secret":       {[]string{"tool", "read", "x"}, true, Deny},
		"cut, nothing denied":        {[]string{"tool", "list", "x"}, true, Ask},
	} {
		program := "/usr/bin/tool"
		if c.argv[0] != "" && c.argv[0] != "x/" {
			program = "/usr/bin/" + c.argv[0]
		}
		j := p.Command(Command{Argv: c.argv, Cut: c.cut, Program: program, Started: program, Cwd: "/p", Project: "/p", Home: "/h"})
		if j.Verdict != c.want || (j.Verdict == Deny) != (j.Layer != "") {
			t.Errorf("%s: %s: %s", name, j.Verdict, j.From())
		}
	}
}

// What the rules take too long to judge is denied, also behind a wrapper, and by few rules or
// of few words it doesn't take long.
func TestTooLongToJudge(t *testing.T) {
	rule := func(n int) string {
		return "commands:\n" + strings.Repeat("- ask: tool "+strings.Repeat("x*", 2000)+"\n", n)
	}
	argument := strings.Repeat("y", 60<<10)
	for name, c := range map[string]struct {
		rules int
		argv  []string
		want  Verdict
	}{
		"long":             {3, []string{"tool", argument}, Deny},
		"many":             {3, append([]string{"tool"}, slices.Repeat([]string{"y"}, 60<<10)...), Deny},
		"behind a wrapper": {3, []string{"nice", "--new", "x", "tool", argument}, Deny},
		"in a script":      {3, []string{"sh", "-c", "true; tool " + argument}, Deny},
		"of few rules":     {1, []string{"tool", argument}, Allow},
		"of few words":     {3, []string{"tool", "y"}, Allow},
		"another program":  {3, []string{"other", argument}, Allow},
	} {
		p := (&Policy{}).With(layer(t, "user", rule(c.rules)))
		if j := p.Command(Command{Argv: c.argv, Cwd: "/p", Project: "/p", Home: "/h"}); j.Verdict != c.want || c.want == Deny && j.Rule != tooLong {
			t.Errorf("%s: %s: %s", name, j.Verdict, j.Rule)
		}
	}
}

// A rule that allows a program with a folder is about what is typed so, and nothing else.
func TestAllowedWithFolder(t *testing.T) {
	p := asking().With(layer(t, "user", "commands:\n  - allow: ./gradlew publish *\n  - allow: scripts/*/gradlew publish *\n"))
	for s, want := range map[string]Verdict{
		"./gradlew publish": Allow, "env -u X ./gradlew publish --info": Allow, "scripts/a/gradlew publish": Allow,
		"gradlew publish": Ask, "../gradlew publish": Ask, "/tmp/gradlew publish": Ask, "./$X/gradlew publish": Ask, "scripts/gradlew publish": Ask,
	} {
		if j := p.Command(Command{Argv: []string{"bash", "-c", s}, Cwd: "/p", Project: "/p", Home: "/h"}); j.Verdict != want {
			t.Errorf("%s: %s\n%s", s, want, j.Explain())
		}
	}
}

// Arguments chosen to be read in many ways take no longer for that.
func TestManyReadings(t *testing.T) {
	p := (&Policy{}).With(layer(t, "user", "commands:\n  - deny: tool * * * * * ** ? ** ? ** ? * * * * z\n"))
	argv := []string{"tool"}
	for len(argv) < maxArgs-1 {
		argv = append(argv, "-o", "a")
	}
	if j := p.Command(Command{Argv: argv}); j.Verdict != Allow {
		t.Errorf("%s", j.Explain())
	}
}

// A program is known by what it calls itself, by its file and by what it was started as.
func TestStartedAs(t *testing.T) {
	p := (&Policy{}).With(layer(t, "user", "commands: [{deny: tool drop}, {deny: rm x}]\n"))
	for _, c := range []Command{
		{Argv: []string{"other", "drop"}, Started: "/usr/bin/tool", Program: "/opt/tool-1.5/cli"},
		{Argv: []string{"other", "drop"}, Started: "/usr/bin/other", Program: "/opt/tool"},
		{Argv: []string{"/opt/tool", "drop"}, Started: "/usr/bin/other", Program: "/opt/other"},
		{Argv: []string{"-rm", "x"}, Started: "/bin/rm", Program: "/bin/busybox"}, // a hyphen in front isn't looked at by busybox
		{Argv: []string{"-rm", "x"}, Program: "/bin/busybox"},
		{Argv: []string{"x", "/usr/bin/tool", "drop"}, Program: "/usr/bin/node"},
	} {
		if j := p.Command(c); j.Verdict != Deny {
			t.Errorf("%q: %s", c.Argv, j.Verdict)
		}
	}
}

// A link's program is what the link is called, also where its own file is started. Only
// rules that ask or deny are about that.
func TestAProgramBehindItsLink(t *testing.T) {
	l, err := ParseLayer("yours", "policy.yaml", []byte("commands: [{deny: npm publish}, {allow: npm test}, {ask: npm|npm-cli.js}]\n"))
	must.OK(t, err)
	p := asking().With(l)
	for line, want := range map[string]Verdict{
		"node /usr/lib/node_modules/npm/bin/npm-cli.js publish":           Deny,
		"node --inspect /usr/lib/node_modules/npm/bin/npm-cli.js publish": Deny,
		"/usr/lib/node_modules/npm/bin/npm-cli.js --prefix x publish":     Deny,
		"node /usr/lib/node_modules/npm/bin/npx-cli.js npm publish":       Deny,
		"corepack npm publish": Deny,
		"node /usr/lib/node_modules/corepack/dist/corepack.js npm publish": Deny,
		"node /usr/share/yarn/bin/yarn.js publish":                         Ask,
		"npm test":                      Allow,
		"node /project/npm-cli.js test": Ask,
		"/project/npm-cli.js test":      Ask,
		"corepack enable":               Allow,
	} {
		if j := p.Command(Command{Argv: strings.Fields(line)}); j.Verdict != want {
			t.Errorf("%s: %s, by %s", line, j.Verdict, j.Rule)
		}
	}
}
