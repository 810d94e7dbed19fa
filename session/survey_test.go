package session

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"stepbox/policy/git"
)

func project(t *testing.T, files ...string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		p := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestSecretsOfAProject(t *testing.T) {
	dir := project(t, "main.go", "README", ".npmrc", "web/.env", "web/.env.example", "a/b/c/d/e/f/g/deep.pem", "deploy/prod.env",
		".aws/credentials", ".aws/config", "x/.docker/config.json", "x/docker/config.json", ".kube/config", "infra/terraform.tfstate",
		"build/.env", "node_modules/p/test.key", "tokens.json", "private/tokens.json", "private/tokenizer.json", "private/token.go",
		"private/prod.tfvars", "shared/production", "target/.env", ".git/HEAD", "sub/.git/HEAD")
	if err := os.WriteFile(filepath.Join(dir, ".gitignore"), []byte("private\nbuild\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{"web/api/.env": "../../shared/production", "out.env": "/etc/passwd", "loop.key": "loop.key"} {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(link)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	got := look(dir, git.Person{}, maxSurveyed)
	slices.Sort(got.hidden)
	want := []string{".aws", ".kube/config", ".npmrc", "a/b/c/d/e/f/g/deep.pem", "deploy/prod.env", "infra/terraform.tfstate",
		"private/prod.tfvars", "private/tokens.json", "shared/production", "target/.env", "web/.env", "x/.docker/config.json"}
	if !slices.Equal(got.hidden, want) {
		t.Errorf("hidden are\n %q, want\n %q", got.hidden, want)
	}
	slices.Sort(got.repos)
	if !slices.Equal(got.repos, []string{".git", "sub/.git"}) || !got.whole {
		t.Errorf("repositories %q, whole %v", got.repos, got.whole)
	}
}

// A hard link is the secret under another name.
func TestOtherNamesOfASecretAreHidden(t *testing.T) {
	dir := project(t, "a/plain", "a/b/.env", "main.go", "other.go")
	for link, to := range map[string]string{"notes.txt": "a/b/.env", "z/config": "a/b/.env", "code.go": "other.go"} {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(link)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Link(filepath.Join(dir, to), filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	got := look(dir, git.Person{}, maxSurveyed).hidden
	slices.Sort(got)
	if want := []string{"a/b/.env", "notes.txt", "z/config"}; !slices.Equal(got, want) {
		t.Errorf("hidden are %q, want %q", got, want)
	}
}

// What wasn't looked at isn't said to be without secrets, nor ignored.
func TestALargeProjectIsSaidToBe(t *testing.T) {
	dir := project(t, "a", "b", "c/.env", ".env")
	if err := os.WriteFile(filepath.Join(dir, ".gitignore"), []byte("*\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	got := look(dir, git.Person{}, 5)
	if got.whole || !slices.Equal(got.hidden, []string{".env"}) || got.ignores.Ignored("a", false) {
		t.Errorf("whole %v, hidden %q, a is ignored: %v", got.whole, got.hidden, got.ignores.Ignored("a", false))
	}
}
