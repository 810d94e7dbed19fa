package git

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stepbox/session/e2e/must"
)

const plainConfig = `# a comment
[core]
	repositoryformatversion = 0
	fileMode = true
	bare
	pager = less -R ; not this
	editor = "vi -c \"set x\"" # nor this
[Remote "origin"]
	url = git@github.com:me/it.git
	fetch = +refs/heads/*:refs/remotes/origin/*
[branch "a \"b\" \\c"]
	remote = origin
	merge = refs/heads/main
[url "ssh://git@github.com/"] insteadOf = https://github.com/
[alias]
	long = "!f() { \
		echo hi; }; f"
	tab = a\tb\nc
[old.style]
	key = v
`

const secretConfig = plainConfig + `
[remote "ci"]
	url = https://me:hunter2@github.com/me/it.git
	pushurl = https://ghp_hunter2@github.com/me/it.git
	proxy = http://u:hunter2@proxy:3128
[remote "two"] url = ssh://git:hunter2@host/it.git
[http "https://github.com/"]
	extraHeader = AUTHORIZATION: basic hunter2
[url "https://x:hunter2@gitlab.com/"]
	insteadOf = gl:
[credential]
	helper = "!f() { echo password=hunter2; }; f"
[credential "https://example.com"]
	username = hunter2
[sendemail]
	smtpPass = hunter2
[github]
	token = hunter2
# url = https://hunter2@github.com/me/it.git
`

// list is what git reads from a configuration, or none of what is in drop.
func list(t *testing.T, text []byte, drop ...string) []string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config")
	must.OK(t, os.WriteFile(file, text, 0o600))
	out := strings.Split(oracle(t, t.TempDir(), t.TempDir(), "", "config", "--file", file, "--list", "-z"), "\x00")
	return slices.DeleteFunc(out, func(s string) bool {
		return slices.ContainsFunc(drop, func(d string) bool { return strings.HasPrefix(s, d) })
	})
}

func TestAConfigurationWithoutItsSecrets(t *testing.T) {
	needGit(t)
	if text, redacted := redact([]byte(plainConfig)); redacted {
		t.Errorf("there is no secret in it, but it became %s", text)
	}
	text, redacted := redact([]byte(secretConfig))
	if !redacted || strings.Contains(string(text), "hunter2") {
		t.Fatalf("secrets are left: %s", text)
	}
	secret := []string{"remote.ci.", "remote.two.", "http.https", "url.https://x", "credential.", "sendemail.", "github."}
	got, want := list(t, text, "remote.ci.", "remote.two.", "url.https://gitlab"), list(t, []byte(secretConfig), secret...)
	if !slices.Equal(got, want) {
		t.Errorf("git reads\n %q, and before\n %q", got, want)
	}
	for _, line := range []string{"remote.ci.url\nhttps://github.com/me/it.git", "remote.ci.pushurl\nhttps://github.com/me/it.git",
		"remote.two.url\nssh://git@host/it.git", "url.https://gitlab.com/.insteadof\ngl:"} {
		if !slices.Contains(list(t, text), line) {
			t.Errorf("%q is missing", line)
		}
	}
}

func TestASecretInACommentOnly(t *testing.T) {
	text, redacted := redact([]byte("[core]\n\tbare = false\n# https://me:hunter2@host/\n"))
	if !redacted || strings.Contains(string(text), "hunter2") {
		t.Errorf("redacted %v: %s", redacted, text)
	}
}

func FuzzRedact(f *testing.F) {
	f.Add([]byte(plainConfig))
	f.Add([]byte(secretConfig))
	f.Fuzz(func(t *testing.T, data []byte) {
		text, redacted := redact(data)
		if !redacted {
			return
		}
		if again, more := redact(text); more && string(again) != string(text) {
			t.Errorf("%q becomes %q becomes %q", data, text, again)
		}
	})
}

func TestServedConfigurations(t *testing.T) {
	project, to := t.TempDir(), filepath.Join(t.TempDir(), "served")
	secret := "[remote \"o\"]\n\turl = https://hunter2@host/x\n"
	put(t, project, map[string]string{
		".git/config": secret, ".git/HEAD": "", ".git/config.worktree": "[core]\n", ".git/modules/a/b/config": secret,
		".git/worktrees/w/config.worktree": secret, ".git/objects/config": secret, "sub/.git/config": secret,
		"large/.git/config": secret + strings.Repeat("#", maxConfig),
		"bare/config":       "[include]\n\tpath = ../team.cfg\n[includeIf \"gitdir:/\"]\n\tpath = " + project + "/abs.cfg\n[include]\n\tpath = ../../none\n",
		"team.cfg":          secret + "[include]\n\tpath = bare/config\n", "abs.cfg": "\ufeff[http]\n\textraheader = hunter2\n" + secret, "other.cfg": secret,
	})
	gitDir := filepath.Join(project, ".git")
	if err := os.Chmod(gitDir, 0o555); err != nil { // stands in the way of all but root
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = os.Chmod(gitDir, 0o755), os.Chmod(filepath.Join(to, ".git"), 0o755) })
	served, hidden, err := Serve(project, to, []string{".git", "sub/.git", "large/.git", "bare"})
	must.OK(t, err)
	slices.Sort(served)
	want := []string{".git/config", ".git/modules/a/b/config", ".git/worktrees/w/config.worktree", "abs.cfg", "sub/.git/config", "team.cfg"}
	if !slices.Equal(served, want) || !slices.Equal(hidden, []string{"large/.git/config"}) {
		t.Errorf("served %q, hidden %q", served, hidden)
	}
	for _, rel := range served {
		data, err := os.ReadFile(filepath.Join(to, rel))
		if err != nil || strings.Contains(string(data), "hunter2") || !strings.Contains(string(data), "https://host/x") {
			t.Errorf("%s holds %q, %v", rel, data, err)
		}
	}
	ours, _ := os.Stat(filepath.Join(to, ".git"))
	theirs, _ := os.Stat(filepath.Join(project, ".git"))
	if ours.Mode() != theirs.Mode() || !ours.ModTime().Equal(theirs.ModTime()) {
		t.Errorf("the folder looks otherwise: %v %v, not %v %v", ours.Mode(), ours.ModTime(), theirs.Mode(), theirs.ModTime())
	}
}
