package home_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"stepbox/policy"
	"stepbox/session/api"
	"stepbox/session/e2e/must"
	"stepbox/session/home"
)

// rig is a session's home: what it wrote, what was brought, what the profile's has.
func rig(t *testing.T) (p home.Place, upper, profile string) {
	t.Helper()
	dir := t.TempDir()
	p = home.Of(api.HomeSession, filepath.Join(dir, "data"), filepath.Join(dir, "state"), "claude")
	must.OK(t, p.Make())
	must.OK(t, os.Mkdir(p.Upper, 0o700))
	return p, p.Upper, p.Folder
}

func write(t *testing.T, dir, name, text string, mode os.FileMode) {
	t.Helper()
	file := filepath.Join(dir, name)
	must.OK(t, os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(text), mode))
}

func listed(c api.HomeChanges) (out []string) {
	for _, f := range c.Files {
		out = append(out, strings.TrimSpace(fmt.Sprint(f.Kind, " ", api.Escape(string(f.Path)), " ", len(f.Beware), " ", f.Why)))
	}
	return out
}

// Whatever an agent makes of its home, only files are taken over, to where they belong.
func TestChanges(t *testing.T) {
	p, upper, profile := rig(t)
	out := t.TempDir()
	write(t, out, "secret", "s", 0o600)
	write(t, profile, "same", "x", 0o600)
	write(t, profile, "mode", "x", 0o600)
	write(t, profile, "gone", "x", 0o600)
	write(t, profile, "d/old", "x", 0o600)
	write(t, p.Front, ".claude/CLAUDE.md", "mine", 0o600)
	for name, text := range map[string]string{"same": "x", "new": "n", ".claude/CLAUDE.md": "evil", ".bashrc": "b", "d/\xff": "odd", "d/new": "n", "up/secret": "own", ".config/x/hooks/y": "h"} {
		write(t, upper, name, text, 0o600)
	}
	write(t, upper, "mode", "x", 0o700)
	for _, err := range []error{
		unix.Mknod(filepath.Join(upper, "gone"), unix.S_IFCHR, 0), unix.Mknod(filepath.Join(upper, "nothing"), unix.S_IFCHR, 0),
		unix.Setxattr(filepath.Join(upper, "d"), "user.overlay.opaque", []byte("y"), 0), unix.Mkfifo(filepath.Join(upper, "pipe"), 0o600),
		os.Symlink(filepath.Join(out, "secret"), filepath.Join(upper, "link")), os.Symlink(out, filepath.Join(upper, "dir")),
		os.Symlink(out, filepath.Join(profile, "up")), // an earlier agent's
	} {
		if err != nil {
			t.Skip("this filesystem has not what the test needs:", err)
		}
	}
	claude := policy.BuiltinProfiles().Named("claude")
	changes, err := p.Changes(t.Context(), claude)
	must.OK(t, err)
	want := []string{
		"added .bashrc 1", "modified .claude/CLAUDE.md 1", "added .config/x/hooks/y 1", "added d/new 0", "deleted d/old 0", `added d/\xff 0`, "added dir 0 it is a link, and links aren't kept", "deleted gone 0", "added link 0 it is a link, and links aren't kept",
		"modified mode 1", "added new 0", "added pipe 0 it is neither a file nor a folder",
		"modified up 0 it is a folder in the place of a file or a link", "added up/secret 0",
	}
	if got := listed(changes); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("changed are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	kept, err := p.Keep(t.Context(), claude)
	must.OK(t, err)
	for _, f := range kept.Files {
		if f.Kept == (f.Why != "") {
			t.Errorf("%s: kept %v, why %q", f.Path, f.Kept, f.Why)
		}
	}
	for name, want := range map[string]string{".bashrc": "b", "new": "n", "d/new": "n", "same": "x", ".claude/CLAUDE.md": "evil"} {
		if data, err := os.ReadFile(filepath.Join(profile, name)); string(data) != want {
			t.Errorf("%s is %q, want %q (%v)", name, data, want, err)
		}
	}
	for _, name := range []string{"gone", "link", "dir", "pipe", "d/old"} {
		if _, err := os.Lstat(filepath.Join(profile, name)); err == nil {
			t.Errorf("%s is in the profile's home", name)
		}
	}
	if data, _ := os.ReadFile(filepath.Join(out, "secret")); string(data) != "s" {
		t.Errorf("what is outside is %q", data)
	}
	if info, _ := os.Stat(filepath.Join(profile, "mode")); info.Mode().Perm() != 0o700 {
		t.Errorf("mode is %v", info.Mode())
	}
}

// Paths that are named choose files and folders; others stay.
func TestKeepSome(t *testing.T) {
	p, upper, profile := rig(t)
	for _, name := range []string{"a/b/c", "a/bc", "a/x", "z"} {
		write(t, upper, name, "n", 0o600)
	}
	for _, paths := range [][]string{{"../x"}, {"/"}, {"a/b/c/d"}, {"nothing"}} {
		if kept, err := p.Keep(t.Context(), policy.BuiltinProfiles().Named(""), paths...); err != nil || len(kept.Files) > 0 {
			t.Errorf("%q: %v %v", paths, listed(kept), err)
		}
	}
	if _, err := p.Keep(t.Context(), policy.BuiltinProfiles().Named(""), "a/b/", "z"); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"a/b/c": true, "z": true, "a/bc": false, "a/x": false} {
		if _, err := os.Lstat(filepath.Join(profile, name)); (err == nil) != want {
			t.Errorf("%s is there: %v", name, err == nil)
		}
	}
}

// Other homes have nothing to compare, and one of which nothing is there no changes.
func TestNothingToCompare(t *testing.T) {
	dir := t.TempDir()
	for _, kind := range []api.HomeKind{api.HomeProfile, api.HomeFresh, ""} {
		if _, err := home.Of(kind, dir, dir, "claude").Changes(t.Context(), policy.BuiltinProfiles().Named("claude")); err == nil {
			t.Errorf("%q has changes", kind)
		}
	}
	p, upper, _ := rig(t)
	must.OK(t, os.Remove(upper))
	if c, err := p.Changes(t.Context(), policy.BuiltinProfiles().Named("claude")); err != nil || len(c.Files) > 0 {
		t.Errorf("%v %v", c, err)
	}
	must.OK(t, os.Symlink(dir, upper))
	if c, err := p.Changes(t.Context(), policy.BuiltinProfiles().Named("claude")); err == nil {
		t.Errorf("a link is looked into: %v", c)
	}
}

// A link that an earlier session left in the profile's home leads nothing to another file
// of it than the one that a person looked at.
func TestKeepNotThroughLinks(t *testing.T) {
	p, upper, profile := rig(t)
	write(t, profile, "real/.bashrc", "was", 0o600)
	must.OK(t, os.Symlink("real", filepath.Join(profile, "notes")))
	write(t, upper, "notes/.bashrc", "trap", 0o600)
	write(t, upper, "notes/deep/new", "trap", 0o600)
	write(t, upper, "plain/new", "fine", 0o600)
	got, err := p.Keep(t.Context(), &policy.Profile{})
	must.OK(t, err)
	for _, c := range got.Files {
		if string(c.Path) == "notes" && !c.Kept {
			continue
		}
		if linked := strings.HasPrefix(string(c.Path), "notes/"); c.Kept == linked || linked && !strings.Contains(c.Why, "such as a link") {
			t.Errorf("%s: kept %v, %s", c.Path, c.Kept, c.Why)
		}
	}
	if text, err := os.ReadFile(filepath.Join(profile, "real/.bashrc")); err != nil || string(text) != "was" {
		t.Errorf("it became %q, %v", text, err)
	}
}

// A folder that can't be looked into is told, as nothing in it is.
func TestUnseen(t *testing.T) {
	p, upper, _ := rig(t)
	write(t, upper, strings.Repeat("a/", 300)+"run", "x", 0o700)
	write(t, upper, "shut/.bashrc", "x", 0o600)
	must.OK(t, os.Chmod(filepath.Join(upper, "shut"), 0))
	t.Cleanup(func() { _ = os.Chmod(filepath.Join(upper, "shut"), 0o700) })
	got, err := p.Changes(t.Context(), policy.BuiltinProfiles().Named("claude"))
	must.OK(t, err)
	want := 2
	if os.Geteuid() == 0 { // no mode keeps root out: the file is listed
		want = 1
	}
	const why = "it is a folder that can't be looked into, so that nothing in it is listed"
	found := 0
	for _, f := range got.Files {
		if at := string(f.Path); f.Why == why && len(f.Beware) > 0 && (strings.HasPrefix(at, "a/a/") || at == "shut") {
			found++
		}
	}
	if found != want || len(got.Files) != 2 {
		t.Errorf("of what nobody looked into is told: %q", listed(got))
	}
}
