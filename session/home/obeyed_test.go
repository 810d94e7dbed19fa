package home_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stepbox/policy"
	"stepbox/session/api"
	"stepbox/session/e2e/must"
	"stepbox/session/home"
)

// What is saved of a shared home is what it was before, once; what couldn't be is told, and
// never put back as something else.
func TestSavedOnce(t *testing.T) {
	data, state := t.TempDir(), t.TempDir()
	p := home.Of(api.HomeProfile, data, state, "claude")
	must.OK(t, p.Make())
	write(t, p.Folder, ".bashrc", "was", 0o600)
	write(t, p.Folder, ".vim/huge", strings.Repeat("x", 2<<20), 0o600)
	write(t, p.Folder, "notes", "was", 0o600)
	must.OK(t, os.Symlink("notes", filepath.Join(p.Folder, ".vimrc")))
	must.OK(t, p.Save())
	write(t, p.Folder, ".bashrc", "trap", 0o600)
	write(t, p.Folder, ".vim/huge", "small", 0o600)
	write(t, p.Folder, ".vim/new", "trap", 0o700)
	write(t, p.Folder, "notes", "not obeyed", 0o600)
	must.OK(t, os.Remove(filepath.Join(p.Folder, ".vimrc")))
	must.OK(t, os.Symlink("/etc/passwd", filepath.Join(p.Folder, ".vimrc")))
	must.OK(t, p.Save()) // as of a session that is resumed
	profile := policy.BuiltinProfiles().Named("claude")
	changes, err := p.Changes(t.Context(), profile)
	must.OK(t, err)
	var names []string
	for _, c := range changes.Files {
		names = append(names, string(c.Path))
	}
	if want := []string{".bashrc", ".vim/huge", ".vim/new", ".vimrc"}; !slices.Equal(names, want) {
		t.Errorf("%q differ, want %q", names, want)
	}
	plan, err := p.Plan(t.Context(), nil, profile, api.HomePaths{})
	must.OK(t, err)
	if len(plan.Shown.Problems) != 1 || plan.Shown.Problems[0].Path != ".vim/huge" || plan.Files() != 3 {
		t.Errorf("the plan has %d files and says %+v", plan.Files(), plan.Shown.Problems)
	}
	failed, err := p.CarryOut(t.Context(), nil, plan, func([]string) error { return nil })
	if err != nil || len(failed) > 0 {
		t.Errorf("%v, %v", failed, err)
	}
	read := func(name string) string { return string(must.Get(os.ReadFile(filepath.Join(p.Folder, name)))) }
	if got := read(".bashrc") + read(".vim/huge") + must.Get(os.Readlink(filepath.Join(p.Folder, ".vimrc"))); got != "wassmallnotes" {
		t.Errorf("there is %q", got)
	}
	if _, err := os.Lstat(filepath.Join(p.Folder, ".vim/new")); err == nil {
		t.Error("what wasn't there is there")
	}
	// Nothing is written through a link that the agent made of a folder.
	must.OK(t, os.RemoveAll(filepath.Join(p.Folder, ".vim")))
	write(t, p.Folder, "elsewhere/huge", "x", 0o600)
	must.OK(t, os.Symlink("elsewhere", filepath.Join(p.Folder, ".vim")))
	plan, err = p.Plan(t.Context(), nil, profile, api.HomePaths{})
	must.OK(t, err)
	if _, err = p.CarryOut(t.Context(), nil, plan, func([]string) error { return nil }); err != nil {
		t.Error(err)
	}
	if read("elsewhere/huge") != "x" {
		t.Error("another file was written")
	}
}
