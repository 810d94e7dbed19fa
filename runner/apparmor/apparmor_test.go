package apparmor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stepbox/session/e2e/must"
)

func TestText(t *testing.T) {
	got := Program{Path: "/opt/my tools/stepbox"}.Text()
	for _, want := range []string{"\nabi <abi/4.0>,\n", "\nprofile stepbox \"/opt/my tools/stepbox\" flags=(unconfined) {\n  userns,\n", "\n}\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in:\n%s", want, got)
		}
	}
	if strings.Contains(got, "**") {
		t.Errorf("it is for more than one program:\n%s", got)
	}
}

// TestQuote: no name adds a rule, or stands for more than itself.
func TestQuote(t *testing.T) {
	for path, want := range map[string]string{
		"/usr/local/bin/stepbox": `"/usr/local/bin/stepbox"`,
		"/opt/with space/é#,x":   `"/opt/with space/é#,x"`,
		"/opt/*/stepbox":         "",
		"/opt/a?":                "",
		"/opt/[ab]":              "",
		"/opt/{a,b}":             "",
		"/opt/^a":                "",
		`/opt/a" flags=() { } "`: "",
		`/opt/a\052`:             "",
		"/@{HOME}/stepbox":       "",
		"/opt/a\n  capability,":  "",
		"/opt/a\x1b[2J":          "",
		"/opt/a\xff":             "",
		"/opt/a\u202eb":          "",
	} {
		got, err := quote(path)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q becomes %q, %v", path, got, err)
		}
	}
}

func TestLook(t *testing.T) {
	dir := t.TempDir()
	built := filepath.Join(dir, "go-build123", "exe", "stepbox")
	for _, d := range []string{filepath.Dir(built), filepath.Join(dir, "open"), filepath.Join(dir, "a*b")} {
		must.OK(t, os.MkdirAll(d, 0o755))
	}
	must.OK(t, os.Chmod(filepath.Join(dir, "open"), 0o777|os.ModeSticky))
	for _, name := range []string{built, filepath.Join(dir, "open", "stepbox"), filepath.Join(dir, "a*b", "stepbox")} {
		must.OK(t, os.WriteFile(name, []byte("#!"), 0o755))
	}
	link := filepath.Join(dir, "link")
	must.OK(t, os.Symlink("/bin/cat", link))
	cat, err := filepath.EvalSymlinks("/bin/cat")
	must.OK(t, err)
	for path, want := range map[string]struct{ path, refused string }{
		cat:                                   {path: cat},
		link:                                  {path: cat}, // by what it leads to, which is what the kernel goes by
		"/etc/passwd":                         {refused: "it isn't a program"},
		"/usr/bin":                            {refused: "it isn't a program"},
		"/no/such":                            {refused: "no such file"},
		"/memfd:stepbox (deleted)":            {refused: "no such file"},
		built:                                 {refused: "go run's temporary file"},
		filepath.Join(dir, "open", "stepbox"): {refused: "anybody can write"},
		filepath.Join(dir, "a*b", "stepbox"):  {refused: `"*" in its name`},
	} {
		p, err := Look(path)
		switch {
		case want.refused == "" && (err != nil || p.Path != want.path || p.Warning != ""):
			t.Errorf("%q gives %+v, %v", path, p, err)
		case want.refused != "" && (err == nil || !strings.Contains(err.Error(), want.refused)):
			t.Errorf("%q gives %+v, %v", path, p, err)
		}
	}
}

// TestLookWarns: who owns the program, or a folder above it, says what runs there.
func TestLookWarns(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("giving files away takes root")
	}
	dir, err := os.MkdirTemp("/opt", "stepbox-test-") // nobody's but root's, all the way up
	if err != nil {
		t.Skip(err)
	}
	defer os.RemoveAll(dir)
	program := filepath.Join(dir, "bin", "stepbox")
	must.OK(t, os.Mkdir(filepath.Dir(program), 0o755))
	must.OK(t, os.WriteFile(program, []byte("#!"), 0o755))
	if p, err := Look(program); err != nil || p.Warning != "" {
		t.Fatalf("%+v, %v", p, err)
	}
	for _, owned := range []string{program, filepath.Dir(program)} {
		must.OK(t, os.Chown(owned, 12345, 0))
		if p, err := Look(program); err != nil || !strings.Contains(p.Warning, "uid 12345") || !strings.Contains(p.Warning, owned) {
			t.Errorf("%s is another's: %+v, %v", owned, p, err)
		}
		must.OK(t, os.Chown(owned, 0, 0))
	}
}

func TestShell(t *testing.T) {
	for path, want := range map[string]string{"/usr/local/bin/stepbox": "/usr/local/bin/stepbox", "/a b/it's": `'/a b/it'\''s'`} {
		if got := shell(path); got != want {
			t.Errorf("%q becomes %s", path, got)
		}
	}
}
