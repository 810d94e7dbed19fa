package git

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stepbox/session/e2e/must"
)

// lay writes files below a folder; one that begins with "->" is a link.
func lay(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		p := filepath.Join(dir, name)
		must.OK(t, os.MkdirAll(filepath.Dir(p), 0o755))
		var err error
		if to, ok := strings.CutPrefix(text, "->"); ok {
			err = os.Symlink(to, p)
		} else {
			err = os.WriteFile(p, []byte(text), 0o644)
		}
		must.OK(t, err)
	}
}

func TestOwn(t *testing.T) {
	const me = "[user]\n name = Ada\n email = a@example.org\n"
	for name, test := range map[string]struct {
		files map[string]string
		global,
		want, left string // settings, key=value; what is left out, its keys
	}{
		"nothing":           {nil, "", "", ""},
		"plain":             {map[string]string{".gitconfig": me}, "", "user.email=a@example.org user.name=Ada", ""},
		"of XDG, and over":  {map[string]string{".config/git/config": me, ".gitconfig": "[user]\nname=Bea\n"}, "", "user.email=a@example.org user.name=Bea", ""},
		"a link":            {map[string]string{"dots/gc": me, ".gitconfig": "->dots/gc"}, "", "user.email=a@example.org user.name=Ada", ""},
		"elsewhere":         {map[string]string{".gitconfig": me, "g": "[user]\nname=Cee\n"}, "g", "user.name=Cee", ""},
		"included":          {map[string]string{".gitconfig": me + "[include]\npath=dots/x\n", "dots/x": "[user]\nname=Dee\n[include]\npath=y\n", "dots/y": "[init]\ndefaultBranch=main\n"}, "", "init.defaultbranch=main user.email=a@example.org user.name=Dee", ""},
		"includes itself":   {map[string]string{".gitconfig": me + "[include]\npath=.gitconfig\n"}, "", "user.email=a@example.org user.name=Ada", "include"},
		"of this folder":    {map[string]string{".gitconfig": me + "[includeIf \"gitdir:~/project/\"]\npath=w\n", "w": "[user]\nname=Work\n"}, "", "user.email=a@example.org user.name=Work", ""},
		"by its name":       {map[string]string{".gitconfig": me + "[includeIf \"gitdir/i:PROJECT/\"]\npath=w\n", "w": "[user]\nname=Work\n"}, "", "user.email=a@example.org user.name=Work", ""},
		"of another folder": {map[string]string{".gitconfig": me + "[includeIf \"gitdir:~/proj/\"]\npath=w\n", "w": "[user]\nname=Work\n"}, "", "user.email=a@example.org user.name=Ada", ""},
		"of a branch":       {map[string]string{".gitconfig": me + "[includeIf \"onbranch:main\"]\npath=w\n", "w": "[user]\nname=Work\n"}, "", "user.email=a@example.org user.name=Ada", "includeIf onbranch:main"},
		"aliases":           {map[string]string{".gitconfig": "[alias]\nst = status -s\nx = !sh -c evil\n y = \" !sh\"\n"}, "", "alias.st=status -s", "alias.x alias.y"},
		"programs": {map[string]string{".gitconfig": "[core]\nautocrlf=input\neditor=vi\npager=less\nsshCommand=x\naskPass=x\nhooksPath=/x\nfsmonitor=x\ngitProxy=x\nattributesFile=/x\nworktree=/x\n[init]\ntemplateDir=/x\n"},
			"", "core.autocrlf=input", "core.askpass core.attributesfile core.editor core.fsmonitor core.gitproxy core.hookspath core.pager core.sshcommand core.worktree init.templatedir"},
		"secrets": {map[string]string{".gitconfig": "[user]\nname=Ada\npassword=x\ntoken=y\n[credential]\nhelper=store\n[http]\nextraHeader=Authorization: x\n[url \"https://a:b@example.org/\"]\ninsteadOf=x\n[alias]\nup=push https://a:b@example.org/\nls=ls-remote SECRET\n[github]\ntoken=x\n"},
			"", "user.name=Ada", "alias.ls alias.up credential.helper github.token http.extraheader url.insteadof user.password user.token"},
		"others":       {map[string]string{".gitconfig": "[push]\ndefault=simple\n[filter \"x\"]\nclean=evil\n[core \"x\"]\neol=lf\n"}, "", "", ""},
		"not a file":   {map[string]string{".gitconfig/x": ""}, "", "", ".gitconfig"},
		"a device":     {map[string]string{".gitconfig": "->/dev/zero"}, "", "", ".gitconfig"},
		"odd values":   {map[string]string{".gitconfig": "[user]\nname=\"a\\nb\"\nemail=" + strings.Repeat("x", 2000) + "\n"}, "", "", "user.email user.name"},
		"not settings": {map[string]string{".gitconfig": "-----BEGIN PRIVATE KEY-----\nAAAA\n"}, "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			home := t.TempDir()
			lay(t, home, test.files)
			lay(t, home, map[string]string{"project/.git/HEAD": "ref: refs/heads/main\n", "project/.git/objects/x": "", "project/.git/refs/x": ""})
			p := Person{Home: home}
			if test.global != "" {
				p.Global = filepath.Join(home, test.global)
			}
			o := p.Own(filepath.Join(home, "project"), func(v string) bool { return strings.Contains(v, "SECRET") })
			var got, left []string
			for _, e := range parseConfig(o.Text) {
				got = append(got, e.section+"."+e.key+"="+e.value)
			}
			for _, l := range o.Left {
				left = append(left, l.Key)
			}
			if g := inOrder(got); g != test.want {
				t.Errorf("comes along\n %s, want\n %s", g, test.want)
			}
			if l := inOrder(left); l != test.left {
				t.Errorf("left out\n %s, want\n %s", l, test.left)
			}
			if o.Identity != strings.Contains(test.want, "user.") {
				t.Errorf("identity: %v", o.Identity)
			}
		})
	}
}

func inOrder(s []string) string {
	for i := range s { // few
		for j := range i {
			if s[i] < s[j] {
				s[i], s[j] = s[j], s[i]
			}
		}
	}
	return strings.Join(s, " ")
}

// What an agent has set stays, but for what the person sets.
func TestOver(t *testing.T) {
	o := Own{Text: []byte("[user]\n\tname = \"Ada\"\n")}
	was := "[user]\nname=Evil\nemail=evil@example.org\n[core]\nfsmonitor=evil\n[alias]\nx=!evil\n[include]\npath=evil\n[includeIf \"gitdir:/\"]\npath=evil\n" +
		"[safe]\ndirectory=/x\n[a\x00b]\nc=d\n[push \"x\ny\"]\nd=e\n[Core]\npager=evil\n"
	got := string(o.Over([]byte(was)))
	if want := "[safe]\n\tdirectory = \"/x\"\n[user]\n\tname = \"Ada\"\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func FuzzOver(f *testing.F) {
	f.Add([]byte("[user]\nname=Evil\n[x \"]\n"))
	f.Fuzz(func(t *testing.T, was []byte) {
		o := Own{Text: []byte("[user]\n\tname = \"Ada\"\n")}
		for _, e := range parseConfig(o.Over(was)) {
			if _, own := coming[e.section]; own && fmt.Sprint(e.section, e.key, e.value) != "usernameAda" || strings.HasPrefix(e.section, "include") {
				t.Errorf("%q sets %v", was, e)
			}
		}
	})
}
