package rules

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stepbox/session/e2e/must"
)

// Files that can't be used are told of, and all others count.
func TestLookProfiles(t *testing.T) {
	const good = "name: NAME\nagent: true\nmatch: {programs: [NAME-agent]}\n"
	dir := filepath.Join(t.TempDir(), "profiles")
	if ps, broken := LookProfiles(dir); broken != nil || ps.Named("claude") == nil {
		t.Errorf("no folder: %v", broken)
	}
	write := func(name, text string, mode os.FileMode) {
		t.Helper()
		must.OK(t, os.WriteFile(filepath.Join(dir, name), []byte(text), mode))
		must.OK(t, os.Chmod(filepath.Join(dir, name), mode))
	}
	must.OK(t, os.Mkdir(dir, 0o700))
	write("a.yaml", strings.ReplaceAll(good, "NAME", "a"), 0o600)
	write("again.yaml", strings.ReplaceAll(good, "NAME", "a"), 0o600)
	write("b.yaml", "name: b\nmatch: {programs: [b-agent]}\nnonsense: 1\n", 0o600)
	write("open.yaml", strings.ReplaceAll(good, "NAME", "open"), 0o606)
	write(".hidden.yaml", "nonsense", 0o600)
	write("note.txt", "nonsense", 0o600)
	must.OK(t, os.Symlink("nowhere", filepath.Join(dir, "gone.yaml")))
	ps, broken := LookProfiles(dir)
	if ps.Named("a") == nil || ps.Named("b") != nil || ps.Named("open") != nil {
		t.Errorf("there are %s", ps.Names())
	}
	want := []string{
		"again.yaml: the profile of " + dir + "/a.yaml is called a, too",
		`b.yaml:3:1: there is no key "nonsense"`,
		"gone.yaml: no such file",
		"open.yaml: everybody can change it",
	}
	mayBe := []string{"a-agent", "b-agent", "anything", "anything"}
	if len(broken) != len(want) {
		t.Fatalf("%d can't be used: %v", len(broken), broken)
	}
	for i, b := range broken {
		if !strings.Contains(b.Err.Error(), want[i]) || !b.MayBe([]string{mayBe[i]}, "/x/"+mayBe[i]) || i < 2 && b.MayBe([]string{"ls"}, "/bin/ls") {
			t.Errorf("%v, want %q", b.Err, want[i])
		}
	}
	must.OK(t, os.Chmod(dir, 0o707))
	if ps, broken := LookProfiles(dir); ps.Named("a") != nil || len(broken) != 1 || !strings.Contains(broken[0].Err.Error(), "chmod o-w") || !broken[0].MayBe([]string{"ls"}, "") {
		t.Errorf("a folder that everybody can write to: %v", broken)
	}
}
