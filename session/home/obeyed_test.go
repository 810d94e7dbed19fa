package home_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

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
	write(t, p.Folder, "notes", "obeyed through a link", 0o600)
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
	if want := []string{".bashrc", ".vim/huge", ".vim/new", ".vimrc", "notes"}; !slices.Equal(names, want) {
		t.Errorf("%q differ, want %q", names, want)
	}
	plan, err := p.Plan(t.Context(), nil, profile, api.HomePaths{})
	must.OK(t, err)
	if len(plan.Shown.Problems) != 1 || plan.Shown.Problems[0].Path != ".vim/huge" || plan.Files() != 4 {
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

// kept is a home that is shared, with these files; what begins with -> is a link to the rest.
func kept(t *testing.T, files map[string]string) home.Place {
	t.Helper()
	p := home.Of(api.HomeProfile, t.TempDir(), t.TempDir(), "claude")
	p.Inside = "/home/me"
	must.OK(t, p.Make())
	for name, text := range files {
		put(t, p, name, text)
	}
	must.OK(t, p.Save())
	return p
}

func put(t *testing.T, p home.Place, name, text string) {
	t.Helper()
	to, link := strings.CutPrefix(text, "->")
	if !link {
		write(t, p.Folder, name, text, 0o600)
		return
	}
	must.OK(t, os.MkdirAll(filepath.Dir(filepath.Join(p.Folder, name)), 0o700))
	must.OK(t, os.Symlink(to, filepath.Join(p.Folder, name)))
}

// differs names what differs, with how; what can't go back, by the plan, has a minus.
func differs(t *testing.T, p home.Place) (out []string, plan *home.Plan) {
	t.Helper()
	profile := policy.BuiltinProfiles().Named("claude")
	plan, err := p.Plan(t.Context(), nil, profile, api.HomePaths{})
	must.OK(t, err)
	stays := map[string]bool{}
	for _, problem := range plan.Shown.Problems {
		stays[problem.Path] = true
	}
	changes, err := p.Changes(t.Context(), profile)
	must.OK(t, err)
	for _, c := range changes.Files {
		if len(c.Beware) == 0 {
			t.Errorf("of %s nothing is said", c.Path)
		}
		name := c.Kind + " " + string(c.Path)
		if stays[string(c.Path)] {
			name += " -"
		}
		out = append(out, name)
	}
	if found, err := p.Disobeyed(must.Get(p.Was())); err != nil || len(found) != len(out) {
		t.Errorf("told is %q (%v), listed %q", found, err, out)
	}
	return out, plan
}

func rollBack(t *testing.T, p home.Place, plan *home.Plan) {
	t.Helper()
	failed, err := p.CarryOut(t.Context(), nil, plan, func([]string) error { return nil })
	if err != nil || len(failed) > 0 {
		t.Errorf("%v, %v", failed, err)
	}
}

// However many files are there, how large one is, and what its time is set to: what is
// written there is told.
func TestNothingThereHidesAChange(t *testing.T) {
	files := map[string]string{".vim/plugin/mine.vim": "was", ".m2/settings.xml": strings.Repeat("x", 2<<20)}
	for i := range 600 {
		files[fmt.Sprintf(".local/lib/site-packages/m%d.py", i)] = "x"
	}
	p := kept(t, files)
	for i := range 300 {
		put(t, p, fmt.Sprintf(".vim/0%d", i), "")
	}
	put(t, p, ".local/lib/site-packages/usercustomize.py", "trap")
	put(t, p, ".vim/plugin/x.vim", "trap")
	put(t, p, ".vim/plugin/mine.vim", "new")
	settings := filepath.Join(p.Folder, ".m2/settings.xml")
	info := must.Get(os.Stat(settings))
	must.OK(t, os.WriteFile(settings, []byte(strings.Repeat("y", 2<<20)), 0o600))
	must.OK(t, os.Chtimes(settings, info.ModTime(), info.ModTime()))
	all, plan := differs(t, p)
	all = slices.DeleteFunc(all, func(name string) bool { return strings.HasPrefix(name, "added .vim/0") })
	want := []string{"added .local/lib/site-packages/usercustomize.py", "modified .m2/settings.xml -", "modified .vim/plugin/mine.vim", "added .vim/plugin/x.vim"}
	if !slices.Equal(all, want) {
		t.Errorf("%q differ, want %q", all, want)
	}
	rollBack(t, p, plan)
	if left, _ := differs(t, p); !slices.Equal(left, want[1:2]) {
		t.Errorf("%q is left", left)
	}
}

// What can't be looked at whole is said, whoever filled it, and nothing that may have been
// there before is taken away. What was saved is known all the same.
func TestWhatCannotBeLookedAtWholeIsSaid(t *testing.T) {
	home.LookAtMost(t, 300)
	fill := func(p home.Place, from, to int) {
		must.OK(t, os.MkdirAll(filepath.Join(p.Folder, ".vim"), 0o700))
		for i := from; i < to; i++ {
			must.OK(t, unix.Mknod(filepath.Join(p.Folder, ".vim", fmt.Sprintf("%d", i)), unix.S_IFREG|0o600, 0))
		}
	}
	p := kept(t, map[string]string{".m2/settings.xml": "was", ".bashrc": "was"})
	fill(p, 0, 310)
	put(t, p, ".m2/settings.xml", "trap")
	put(t, p, ".bashrc", "trap")
	all, _ := differs(t, p)
	for _, want := range []string{"added .vim -", "modified .m2/settings.xml", "modified .bashrc"} {
		if !slices.Contains(all, want) {
			t.Errorf("%q isn't among what differs", want)
		}
	}
	q := home.Of(api.HomeProfile, t.TempDir(), t.TempDir(), "claude")
	must.OK(t, q.Make())
	fill(q, 0, 310)
	must.OK(t, q.Save())
	must.OK(t, os.Remove(filepath.Join(q.Folder, ".vim", "7")))
	all, plan := differs(t, q)
	if !slices.Contains(all, "added .vim -") {
		t.Errorf("it isn't said: %d differ", len(all))
	}
	for _, f := range plan.Shown.Files {
		if f.Status == "D" {
			t.Errorf("%s is taken away, and may have been there", f.Path)
		}
	}
}

// Links within the home are followed, wherever they are in a name; what they lead to goes
// back if it was obeyed, and is left alone if only a new link leads there.
func TestLinksThere(t *testing.T) {
	p := kept(t, map[string]string{
		".config/git/config": "was", ".bashrc": "->/home/me/dot/bashrc", "dot/bashrc": "was", ".vim": "->dot/vim", "dot/vim/x": "was",
		".profile": "->/etc/profile", ".zshrc": "->../../out", "secret": "mine", ".inputrc": "->.",
	})
	must.OK(t, os.Rename(filepath.Join(p.Folder, ".config"), filepath.Join(p.Folder, ".c2")))
	put(t, p, ".config", "->.c2")
	put(t, p, ".c2/git/config", "trap")
	put(t, p, "dot/bashrc", "trap")
	put(t, p, "dot/vim/new", "trap")
	put(t, p, ".exrc", "->secret")
	all, plan := differs(t, p)
	want := []string{"added .c2/git/config -", "added .config", "deleted .config/git/config", "added .exrc", "modified .inputrc -", "modified dot/bashrc", "added dot/vim/new", "added secret -"}
	if !slices.Equal(all, want) {
		t.Errorf("%q differ, want %q", all, want)
	}
	rollBack(t, p, plan)
	for name, text := range map[string]string{".config/git/config": "was", "dot/bashrc": "was", "dot/vim/x": "was", "secret": "mine", ".c2/git/config": "trap"} {
		if got := string(must.Get(os.ReadFile(filepath.Join(p.Folder, name)))); got != text {
			t.Errorf("%s is %q", name, got)
		}
	}
	if left, _ := differs(t, p); !slices.Equal(left, []string{"modified .inputrc -"}) {
		t.Errorf("%q is left", left)
	}
}
