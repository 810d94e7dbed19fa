package rules

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"stepbox/policy/policytest"
	"stepbox/session/api"
	"stepbox/session/e2e/must"
)

func host(v api.Verdict, h string) api.Rule { return api.Rule{Verdict: v, Host: h} }

func command(v api.Verdict, c string) api.Rule { return api.Rule{Verdict: v, Command: c} }

// Each text after a rule was put into it, or taken out.
func TestEdit(t *testing.T) {
	add := func(rs ...api.Rule) func(string) (string, error) {
		return func(s string) (string, error) {
			out := []byte(s)
			for _, r := range rs {
				var err error
				if out, err = Insert(out, r, ""); err != nil {
					return "", err
				}
			}
			return string(out), nil
		}
	}
	remove := func(r api.Rule) func(string) (string, error) {
		return func(s string) (string, error) { out, err := Delete([]byte(s), r); return string(out), err }
	}
	for name, c := range map[string]struct {
		before string
		edit   func(string) (string, error)
		after  string // "!" and what the error says
	}{
		"nothing yet":          {"", add(host("allow", "api.example.org:443")), "network:\n  - allow: api.example.org:443\n"},
		"a remark alone":       {"# mine\n", add(host("deny", "*.example.org")), "# mine\nnetwork:\n  - deny: '*.example.org'\n"},
		"why":                  {"", add(api.Rule{Verdict: "deny", Command: "npm publish", Why: "it's not ours: {ask}"}), "commands:\n  - {deny: npm publish, why: 'it''s not ours: {ask}'}\n"},
		"why in brackets":      {"network: [{allow: b.example.org}]\n", add(api.Rule{Verdict: "deny", Host: "a.example.org:443", Why: "not this one"}), "network: [{deny: a.example.org:443, why: not this one}, {allow: b.example.org}]\n"},
		"no list":              {"commands:\n  - ask: go\n", add(host("allow", "192.0.2.1:80")), "commands:\n  - ask: go\nnetwork:\n  - allow: '192.0.2.1:80'\n"},
		"no end of line":       {"commands:\n  - ask: go", add(host("allow", "a.example.org")), "commands:\n  - ask: go\nnetwork:\n  - allow: a.example.org\n"},
		"before the others":    {"network: # those\n    # first\n    - allow: a.example.org # it\n    # second\n    - deny: b.example.org\n", add(host("allow", "c.example.org/udp")), "network: # those\n    - allow: c.example.org/udp\n    # first\n    - allow: a.example.org # it\n    # second\n    - deny: b.example.org\n"},
		"not indented":         {"network:\n- allow: a.example.org\ncommands:\n- ask: go\n", add(command("allow", "go test *")), "network:\n- allow: a.example.org\ncommands:\n- allow: 'go test *'\n- ask: go\n"},
		"an empty list":        {"network:\n# later\ncommands: []\n", add(host("allow", "a.example.org"), command("deny", "rm x")), "network:\n  - allow: a.example.org\n# later\ncommands: [{deny: rm x}]\n"},
		"a list in brackets":   {"network: [{allow: é.example.org}, # it\n  {deny: b.example.org}]\n", add(host("allow", "c.example.org")), "network: [{allow: c.example.org}, {allow: é.example.org}, # it\n  {deny: b.example.org}]\n"},
		"line ends of Windows": {"network:\r\n  - allow: a.example.org\r\n", add(host("allow", "b.example.org")), "network:\r\n  - allow: b.example.org\r\n  - allow: a.example.org\r\n"},
		"quotes":               {"", add(command("allow", `git commit -m it's\*`)), "commands:\n  - allow: 'git commit -m it''s\\*'\n"},
		"a word of YAML's":     {"", add(command("allow", "true")), "commands:\n  - allow: 'true'\n"},
		"it said otherwise":    {"network:\n  - deny: a.example.org # answered on 2026-11-24\n  - allow: [b.example.org, a.example.org] # both\n", add(host("allow", "a.example.org")), "network:\n  - allow: a.example.org\n  - allow: [b.example.org, a.example.org] # both\n"},
		"a person's denial":    {"network:\n  # never\n  - deny: a.example.org # it is evil\n", add(host("allow", "a.example.org")), "!deny a.example.org in line 3 says otherwise"},
		"denied with a reason": {"network:\n  - deny: a.example.org # answered on 2026-11-24\n    why: it is evil\n", add(host("allow", "a.example.org")), "!line 2"},
		"denied with others":   {"commands:\n  - deny:\n      - rm y\n      - rm  x\n", add(command("ask", "rm x")), "!line 4"},
		"denied in brackets":   {"network: [{deny: a.example.org}]\n", add(host("allow", "a.example.org")), "!line 1"},
		"a person's question":  {"network:\n  - ask: a.example.org # hm\n", add(host("allow", "a.example.org")), "network:\n  - allow: a.example.org\n  - ask: a.example.org # hm\n"},
		"denied what is mine":  {"network:\n  - allow: a.example.org # mine\n", add(host("deny", "a.example.org")), "network:\n  - deny: a.example.org\n  - allow: a.example.org # mine\n"},
		"a space in a word":    {"commands:\n  - deny: echo a b # answered on 2026-11-24\n", add(command("allow", `echo a\ b`)), "commands:\n  - allow: 'echo a\\ b'\n  - deny: echo a b # answered on 2026-11-24\n"},
		"all in braces":        {"{network: [{allow: a.example.org}]}\n", add(host("allow", "b.example.org")), "{network: [{allow: b.example.org}, {allow: a.example.org}]}\n"},
		"braces without it":    {"{commands: []}\n", add(host("allow", "b.example.org")), "!by hand"},
		"not a list":           {"network: 3\n", add(host("allow", "b.example.org")), "!by hand"},
		"several documents":    {"network: []\n---\nnetwork: []\n", add(host("allow", "b.example.org")), "!by hand"},
		"an anchor":            {"network: &x\n  - allow: a.example.org\n", add(host("allow", "b.example.org")), "!by hand"},

		"gone":                   {"network:\n  - allow: b.example.org\n  - allow: a.example.org\n", remove(host("allow", "a.example.org")), "network:\n  - allow: b.example.org\n"},
		"the last goes":          {"# mine\nnetwork:\n  - allow: a.example.org # 2026\n", remove(host("allow", "a.example.org")), "# mine\n"},
		"the last, and remarks":  {"network:\n  # why\n  - allow: a.example.org\n# end\n", remove(host("allow", "a.example.org")), "network:\n  # why\n# end\n"},
		"of several in lines":    {"network:\n  - allow:\n      - b.example.org # b\n      - a.example.org # a\n    why: it must\n", remove(host("allow", "a.example.org")), "network:\n  - allow:\n      - b.example.org # b\n    why: it must\n"},
		"of several in brackets": {"network:\n  - allow: [a.example.org, b.example.org, c.example.org]\n", remove(host("allow", "a.example.org")), "network:\n  - allow: [b.example.org, c.example.org]\n"},
		"the last in brackets":   {"network:\n  - allow: [ b.example.org , a.example.org ]\n", remove(host("allow", "a.example.org")), "network:\n  - allow: [ b.example.org ]\n"},
		"with a reason":          {"network:\n  - allow: a.example.org\n    why: |\n      it is\n      mine\n  - deny: x.example.org\n", remove(host("allow", "a.example.org")), "network:\n  - deny: x.example.org\n"},
		"what was put there":     {"network:\n  - allow: a.example.org # made on 2026-11-24\n  - allow: a.example.org # mine\n", remove(host("allow", "a.example.org")), "network:\n  - allow: a.example.org # mine\n"},
		"spaces in words":        {"commands:\n  - allow: echo a\\ \\ b\n", remove(command("allow", `echo a\  b`)), "!no such rule"},
		"another verdict":        {"network:\n  - deny: a.example.org\n", remove(host("allow", "a.example.org")), "!no such rule"},
		"another rule":           {"network:\n  - allow: a.example.org\n    programs: curl\n", remove(host("allow", "a.example.org")), "!no such rule"},
		"of braces":              {"network: [{allow: a.example.org}]\n", remove(host("allow", "a.example.org")), "network: []\n"},
		"words apart":            {"commands:\n  - allow: go   test\n", remove(command("allow", "go test")), ""},
		"none":                   {"", remove(command("allow", "go test")), "!no such rule"},
		"unclosed":               {"commands: [\n", remove(command("allow", "go test")), "!"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := c.edit(c.before)
			if want, bad := strings.CutPrefix(c.after, "!"); bad {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Fatalf("%v, want one with %q; it is\n%s", err, want, got)
				}
				return
			}
			must.OK(t, err)
			if got != c.after {
				t.Fatalf("it is\n%s\nwant\n%s", got, c.after)
			}
			if _, err := policytest.ParseLayer("", "", []byte(got)); err != nil {
				t.Error(err)
			}
		})
	}
}

// Whatever is put in and taken out, in whatever order: what a person wrote stays, a
// rule that was put in is the first, and one that was taken out is gone.
func TestEditsKeepTheRest(t *testing.T) {
	const mine = "# policy of the team\ncommands: # what runs\n  # the tests\n  - allow: [go vet ./..., 'go test *'] # often\n    children: allow\n  - {deny: 'rm -rf *', why: it is gone}  # never\n\nnetwork:\n    # the registry\n    - ask: # slow\n        - 203.0.113.0/24 # there\n        - '*.example.net'\n    # end of it\n# the end\n"
	kept := []string{"# policy of the team", "# what runs", "# the tests", "# often", "# never", "# the registry", "# slow", "# there", "# end of it", "# the end"}
	rapid.Check(t, func(t *rapid.T) {
		text := []byte(mine)
		for range rapid.IntRange(1, 12).Draw(t, "edits") {
			r := host(rapid.SampledFrom([]api.Verdict{"allow", "deny", "ask"}).Draw(t, "verdict"), rapid.SampledFrom([]string{"a.example.org", "b.example.org:443", "*.example.net", "[2001:db8::1]:80", "192.0.2.0/24"}).Draw(t, "host"))
			if rapid.Bool().Draw(t, "command") {
				r.Host, r.Command = "", rapid.SampledFrom([]string{"go vet ./...", "go * 'x'", "x: #y", "- z", "[a]", "null", "git -c \\* é"}).Draw(t, "words")
			}
			r.Why = rapid.SampledFrom([]string{"", "it is in use", "'# } no", "null"}).Draw(t, "why")
			next, err := Insert(text, r, "answered on 2026-11-24")
			if rapid.Bool().Draw(t, "remove") {
				next, err = Delete(text, r)
				if IsNone(err) {
					continue
				}
			}
			if err != nil {
				t.Fatalf("%+v in\n%s\n%v", r, text, err)
			}
			text = next
			if _, err := policytest.ParseLayer("", "", text); err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
		}
		for _, k := range kept {
			if !strings.Contains(string(text), k) {
				t.Fatalf("%q is gone:\n%s", k, text)
			}
		}
	})
}

// What was put in and is taken out again leaves the text as it was.
func TestThereAndBack(t *testing.T) {
	for _, before := range []string{"", "# x\n", "commands:\n  - ask: go\n", "network:\n  - allow: b.example.org # b\n", "network: [{allow: b.example.org}]\n", "network: []\n", "\ufeffnetwork:\n  - allow: b.example.org\n", "\ufeff# x\n",
		"network: [{allow: b.example.org}, # x\n]\n", "network: [# b\n  {allow: b.example.org}, {deny: c.example.org}]\n", "network: [\n  # b\n  {allow: b.example.org},\n]\n"} {
		r := host("allow", "a.example.org:443")
		there, err := Insert([]byte(before), r, "2026-11-24")
		must.OK(t, err)
		back, err := Delete(there, r)
		if err != nil || string(back) != before {
			t.Errorf("%q came back as %q (%v)", before, back, err)
		}
		r.Why = "it's in use"
		if there, err = Insert([]byte(before), r, "2026-11-24"); err == nil {
			back, err = Delete(there, r)
		}
		if err != nil || string(back) != before {
			t.Errorf("with why, %q came back as %q (%v)", before, back, err)
		}
	}
}

func FuzzEdit(f *testing.F) {
	f.Add("network:\n  - allow: a.example.org\n", "b.example.org:443", true)
	f.Add("commands: [{deny: x}]\n", "a", false)
	f.Fuzz(func(t *testing.T, text, words string, net bool) {
		r := command("allow", words)
		if net {
			r = host("allow", words)
		}
		r, err := Checked(r)
		if err != nil {
			return
		}
		before, err := policytest.ParseLayer("", "", []byte(text))
		if err != nil {
			return
		}
		out, err := Insert([]byte(text), r, "")
		if err != nil {
			return
		}
		after, err := policytest.ParseLayer("", "", out)
		if err != nil {
			t.Fatalf("it doesn't parse: %v\n%s", err, out)
		}
		if len(after.Rules)+len(after.Network) > len(before.Rules)+len(before.Network)+1 {
			t.Fatalf("more than one rule came:\n%s", out)
		}
	})
}

// A file keeps its mode, and a link to the person's own its place.
func TestAdd(t *testing.T) {
	dir := t.TempDir()
	real, link := filepath.Join(dir, "real.yaml"), filepath.Join(dir, "config", "policy.yaml")
	must.OK(t, os.Mkdir(filepath.Dir(link), 0o755))
	must.OK(t, os.WriteFile(real, []byte("network: []\n"), 0o640))
	must.OK(t, os.Symlink(real, link))
	c := Config{User: link, Project: filepath.Join(dir, Name), Trust: TrustIn(dir)}
	r := api.Rule{Verdict: "allow", Host: "a.example.org", For: api.ExtentAlways}
	must.OK(t, c.Check(r))
	if data, _ := os.ReadFile(real); string(data) != "network: []\n" {
		t.Errorf("only asked, it was changed: %s", data)
	}
	must.OK(t, c.Add("", r))
	st, err := os.Stat(real)
	must.OK(t, err)
	if data, _ := os.ReadFile(link); st.Mode().Perm() != 0o640 || string(data) != "network: [{allow: a.example.org}]\n" || !c.Has(r) {
		t.Errorf("it is %s, %s", st.Mode(), data)
	}
	if l, err := os.Readlink(link); err != nil || l != real {
		t.Errorf("the link is %q (%v)", l, err)
	}
	must.OK(t, c.Remove(r))
	if err := c.Remove(r); !IsNone(err) {
		t.Errorf("taken back twice: %v", err)
	}
	all, err := os.ReadDir(dir)
	must.OK(t, err)
	if n := slices.IndexFunc(all, func(e os.DirEntry) bool { return strings.HasSuffix(e.Name(), ".tmp") }); n >= 0 {
		t.Errorf("%s is left", all[n].Name())
	}
}

// A file that a rule made goes with the last rule that was put there, and stays with
// anything else in it, or where a link leads to it.
func TestRemovedWithItsFile(t *testing.T) {
	dir := t.TempDir()
	c := Config{User: filepath.Join(dir, "policy.yaml"), Project: filepath.Join(dir, Name), Trust: TrustIn(filepath.Join(dir, "trust"))}
	for name, e := range map[string]api.Extent{c.User: api.ExtentAlways, c.Project: api.ExtentProject} {
		a, b := api.Rule{Verdict: "allow", Host: "a.example.org", For: e}, api.Rule{Verdict: "deny", Command: "make", For: e}
		must.OK(t, c.Add("made on 2026-11-24", a, b))
		must.OK(t, c.Remove(a))
		if data, err := os.ReadFile(name); err != nil || !strings.Contains(string(data), "deny: make") {
			t.Errorf("with a rule left, it is %q (%v)", data, err)
		}
		must.OK(t, c.Remove(b))
		if _, err := os.Lstat(name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is left (%v)", name, err)
		}
		if err := c.Remove(b); !IsNone(err) {
			t.Errorf("taken back twice: %v", err)
		}
		must.OK(t, c.Add("", a), os.WriteFile(name, []byte("# mine\nnetwork:\n  - allow: a.example.org\n"), 0o644))
		if e == api.ExtentProject {
			must.OK(t, c.Trust.Confirm(name, Look(c).Project.Hash, ""))
		}
		must.OK(t, c.Remove(a))
		if data, err := os.ReadFile(name); err != nil || string(data) != "# mine\n" {
			t.Errorf("with a remark left, it is %q (%v)", data, err)
		}
	}
	real := filepath.Join(dir, "real.yaml")
	must.OK(t, os.WriteFile(real, nil, 0o600), os.Remove(c.User), os.Symlink(real, c.User))
	r := api.Rule{Verdict: "allow", Host: "a.example.org", For: api.ExtentAlways}
	must.OK(t, c.Add("", r), c.Remove(r))
	if data, err := os.ReadFile(real); err != nil || len(data) > 0 {
		t.Errorf("behind a link it is %q (%v)", data, err)
	}
}

// A rule that can't be put into its file is refused before the answer that makes it does
// anything: also where the file's folder would have to be made.
func TestCheckedFolder(t *testing.T) {
	dir := t.TempDir()
	r := api.Rule{Verdict: "allow", Host: "a.example.org", For: api.ExtentAlways}
	inAFile := filepath.Join(dir, "file")
	must.OK(t, os.WriteFile(inAFile, nil, 0o600))
	closed := filepath.Join(dir, "closed")
	must.OK(t, os.Mkdir(closed, 0o500))
	for _, in := range []string{inAFile, closed, filepath.Join(closed, "stepbox")} {
		if in != inAFile && os.Geteuid() == 0 {
			continue // root writes there
		}
		c := Config{User: filepath.Join(in, "policy.yaml")}
		if err := c.Check(r); err == nil || !strings.Contains(err.Error(), "write to") || c.Add("", r) == nil {
			t.Errorf("in %s: %v", in, err)
		}
	}
	must.OK(t, (&Config{User: filepath.Join(dir, "new", "stepbox", "policy.yaml")}).Check(r))
	if _, err := os.Stat(filepath.Join(dir, "new")); err == nil {
		t.Error("only asked, a folder was made")
	}
}

// What a killed writer left beside a file goes with the file's next change; nothing else does.
func TestKilledWritersFileGoes(t *testing.T) {
	dir, elsewhere := t.TempDir(), t.TempDir()
	c := Config{User: filepath.Join(elsewhere, "policy.yaml")}
	must.OK(t, os.Symlink(filepath.Join(dir, "mine.yaml"), c.User))
	stays := []string{"mine.yaml", "mine.yaml.1.tmp", ".mine.yaml.old.tmp", ".mine.yaml.1", ".mine.yaml..tmp", ".other.yaml.1.tmp"}
	for _, name := range append(stays, ".mine.yaml.1809641716.tmp") {
		must.OK(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	must.OK(t, c.Add("", api.Rule{Verdict: "allow", Host: "a.example.org", For: api.ExtentAlways}))
	all, err := os.ReadDir(dir)
	must.OK(t, err)
	var got []string
	for _, e := range all {
		got = append(got, e.Name())
	}
	slices.Sort(stays)
	if !slices.Equal(got, stays) {
		t.Errorf("there are %q", got)
	}
}

// A project's policy that was trusted, or wasn't there, is trusted with the rule that
// was put into it; another isn't touched.
func TestAddToAProject(t *testing.T) {
	dir := t.TempDir()
	c := Config{Project: filepath.Join(dir, Name), Trust: TrustIn(dir)}
	r := api.Rule{Verdict: "allow", Host: "a.example.org", For: api.ExtentProject}
	must.OK(t, c.Add("", r))
	hash := Look(c).Project.Hash
	text, err := os.ReadFile(c.Project)
	must.OK(t, err)
	if st, err := os.Stat(c.Project); err != nil || !c.Trust.Has(c.Project, hash) || st.Mode() != 0o644 {
		t.Errorf("made here, it isn't trusted (%s)", st.Mode())
	}
	must.OK(t, os.WriteFile(c.Project, append(text, "# more\n"...), 0o644))
	if err := c.Add("", r); err == nil || !strings.Contains(err.Error(), "stepbox policy trust "+dir) {
		t.Errorf("put into what isn't trusted: %v", err)
	}
	must.OK(t, os.WriteFile(c.Project, []byte("network: {\n"), 0o644))
	if err := c.Check(r); err == nil || !strings.Contains(err.Error(), Name+":1:") {
		t.Errorf("put into what can't be read: %v", err)
	}
	any, err := c.Trust.Forget(c.Project)
	if must.OK(t, err); !any || c.Trust.Has(c.Project, hash) {
		t.Error("it is trusted still")
	}
}

// What a project's policy includes is confirmed with it, and watched.
func TestIncluded(t *testing.T) {
	dir := t.TempDir()
	c := Config{Project: filepath.Join(dir, Name), Trust: TrustIn(t.TempDir())}
	team := filepath.Join(dir, "team.yaml")
	must.OK(t, os.WriteFile(c.Project, []byte("include: team.yaml\n"), 0o644))
	must.OK(t, os.WriteFile(team, []byte("network: [{allow: a.example.org}]\n"), 0o644))
	now := Look(c)
	if now.Project.Problem != nil || now.Project.Trusted || !now.Project.Loosens() || len(now.Project.Layer.Network) != 0 {
		t.Fatalf("nobody confirmed it: %+v", now.Project)
	}
	must.OK(t, c.Trust.Confirm(c.Project, now.Project.Hash, "me"))
	if now = Look(c); !now.Project.Trusted || len(now.Project.Layer.Network) != 1 {
		t.Errorf("confirmed: %+v", now.Project)
	}
	must.OK(t, os.WriteFile(team, []byte("network: [{allow: '*'}]\n"), 0o644))
	if now = Look(c); now.Project.Trusted || len(now.Project.Layer.Network) != 0 {
		t.Errorf("what it includes is another: %+v", now.Project)
	}
	s := Set{Config: c, now: now}
	if !s.concerns(team) {
		t.Error("changes of what it includes aren't noticed")
	}
	// No link leads out of the project.
	out := filepath.Join(t.TempDir(), "out.yaml")
	must.OK(t, os.WriteFile(out, []byte("network: [{allow: '*'}]\n"), 0o644))
	must.OK(t, os.Remove(team))
	must.OK(t, os.Symlink(out, team))
	if now = Look(c); now.Project.Problem == nil || !strings.Contains(now.Project.Problem.Error(), "isn't followed") {
		t.Errorf("through a link: %+v", now.Project)
	}
	if !s.concerns(team) {
		t.Error("once it is wrong, a better one isn't noticed")
	}
}

// Who could change a person's own policy could loosen it, so that it isn't read; nor is a
// link that leads nowhere taken for none.
func TestOwnOnly(t *testing.T) {
	dir := t.TempDir()
	c := Config{User: filepath.Join(dir, "policy.yaml")}
	r := api.Rule{Verdict: "allow", Host: "a.example.org", For: api.ExtentAlways}
	must.OK(t, os.WriteFile(c.User, []byte("version: 1\n"), 0o600), os.Chmod(c.User, 0o666))
	if now := Look(c); now.User.Problem == nil || !strings.Contains(now.User.Problem.Error(), "everybody can change it (mode 0666)") {
		t.Errorf("it is read: %+v", now.User)
	}
	if err := c.Add("", r); err == nil {
		t.Error("a rule is put into it")
	}
	must.OK(t, os.Remove(c.User), os.Symlink(filepath.Join(dir, "gone"), c.User))
	if now := Look(c); now.User.Problem == nil || !strings.Contains(now.User.Problem.Error(), "leads nowhere") {
		t.Errorf("a link that leads nowhere: %v", now.User.Problem)
	}
}
