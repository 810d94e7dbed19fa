package outfit

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"stepbox/policy/git"
	"stepbox/session/e2e/must"
)

func project(t *testing.T, files ...string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must.OK(t, err)
	for _, name := range files {
		p := filepath.Join(dir, name)
		must.OK(t, os.MkdirAll(filepath.Dir(p), 0o755))
		must.OK(t, os.WriteFile(p, nil, 0o644))
	}
	return dir
}

func TestSecretsOfAProject(t *testing.T) {
	dir := project(t, "main.go", "README", ".npmrc", "web/.env", "web/.env.example", "a/b/c/d/e/f/g/deep.pem", "deploy/prod.env",
		".aws/credentials", ".aws/config", "x/.docker/config.json", "x/docker/config.json", ".kube/config", "infra/terraform.tfstate",
		"build/.env", "node_modules/p/test.key", "tokens.json", "private/tokens.json", "private/tokenizer.json", "private/token.go",
		"private/prod.tfvars", "shared/production", "target/.env", ".git/HEAD", "sub/.git/HEAD", "y/.Docker/Config.json", "y/.SSH/x",
		"bare/HEAD", "bare/config", "bare/objects/my.key", "bare/refs/x", "bare/tree/my.key")
	must.OK(t, os.WriteFile(filepath.Join(dir, ".gitignore"), []byte("private\nbuild\n"), 0o644))
	for link, to := range map[string]string{"web/api/.env": "../../shared/production", "out.env": "/etc/passwd", "loop.key": "loop.key"} {
		must.OK(t, os.MkdirAll(filepath.Join(dir, filepath.Dir(link)), 0o755))
		must.OK(t, os.Symlink(to, filepath.Join(dir, link)))
	}
	got := look(dir, git.Person{}, maxSurveyed, nil)
	slices.Sort(got.hidden)
	want := []string{".aws", ".kube/config", ".npmrc", "a/b/c/d/e/f/g/deep.pem", "bare/tree/my.key", "deploy/prod.env", "infra/terraform.tfstate",
		"private/prod.tfvars", "private/tokens.json", "shared/production", "target/.env", "web/.env", "x/.docker/config.json",
		"y/.Docker/Config.json", "y/.SSH"}
	if !slices.Equal(got.hidden, want) {
		t.Errorf("hidden are\n %q, want\n %q", got.hidden, want)
	}
	slices.Sort(got.repos)
	if !slices.Equal(got.repos, []string{".git", "bare", "sub/.git"}) || !got.whole {
		t.Errorf("repositories %q, whole %v", got.repos, got.whole)
	}
}

// What may come while the session runs is hidden before it does: by the names
// that tell, in the project's own folder, and where a sample of it is.
func TestSecretsToCome(t *testing.T) {
	dir := project(t, ".env", "a/.env.example", "a/.npmrc.template", "b/.env.local.sample", "b/.env.local", "main.go.example")
	got := look(dir, git.Person{}, maxSurveyed, nil)
	for name, want := range map[string]bool{
		".env": false, ".envrc": true, ".env.local": true, ".npmrc": true, "a/.env": true, "a/.npmrc": true, "b/.env.local": false, "main.go": false,
	} {
		if slices.Contains(got.toCome, name) != want {
			t.Errorf("%s is to come: %v, want %v", name, !want, want)
		}
	}
	if slices.Sort(got.hidden); !slices.Equal(got.hidden, []string{".env", "b/.env.local"}) {
		t.Errorf("said to be hidden are %q", got.hidden)
	}
}

// A hard link is the secret under another name.
func TestOtherNamesOfASecretAreHidden(t *testing.T) {
	dir := project(t, "a/plain", "a/b/.env", "main.go", "other.go")
	for link, to := range map[string]string{"notes.txt": "a/b/.env", "z/config": "a/b/.env", "code.go": "other.go"} {
		must.OK(t, os.MkdirAll(filepath.Join(dir, filepath.Dir(link)), 0o755))
		must.OK(t, os.Link(filepath.Join(dir, to), filepath.Join(dir, link)))
	}
	got := look(dir, git.Person{}, maxSurveyed, nil).hidden
	slices.Sort(got)
	if want := []string{"a/b/.env", "notes.txt", "z/config"}; !slices.Equal(got, want) {
		t.Errorf("hidden are %q, want %q", got, want)
	}
}

// What wasn't looked at isn't said to be without secrets, nor ignored.
func TestALargeProjectIsSaidToBe(t *testing.T) {
	dir := project(t, "a", "b", "c/.env", ".env")
	must.OK(t, os.WriteFile(filepath.Join(dir, ".gitignore"), []byte("*\n"), 0o644))
	got := look(dir, git.Person{}, 5, nil)
	if got.whole || !slices.Equal(got.hidden, []string{".env"}) || got.ignores.Ignored("a", false) {
		t.Errorf("whole %v, hidden %q, a is ignored: %v", got.whole, got.hidden, got.ignores.Ignored("a", false))
	}
}
