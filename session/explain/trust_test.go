package explain

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"stepbox/session/api"
	"stepbox/session/e2e/must"
	"stepbox/session/rules"
)

// A project names what it likes to be included: nothing of it is opened that isn't read
// as a policy. A pipe would have whoever looks at it wait, and a link to /dev/zero have
// them read without an end.
func TestHostileProjectPolicyIsntOpened(t *testing.T) {
	dir := t.TempDir()
	for _, err := range []error{
		os.WriteFile(filepath.Join(dir, rules.Name), []byte("version: 1\ninclude: [pipe]\n"), 0o644),
		unix.Mkfifo(filepath.Join(dir, "pipe"), 0o644),
	} {
		must.OK(t, err)
	}
	done := make(chan api.ProjectPolicy, 1)
	go func() {
		p, _ := (&Service{Trust: rules.TrustIn(t.TempDir())}).Project(t.Context(), dir)
		done <- p
	}()
	select {
	case p := <-done:
		if p.Problem == "" || p.Hash != "" || p.Trusted || len(p.Files) > 0 {
			t.Errorf("it is %+v", p)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("it waits for somebody to write into a pipe")
	}
}

// What a person is shown is what the hash is of that they confirm.
func TestProjectPolicyIsShownAsHashed(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, rules.Name)
	good, evil := "version: 1\nnetwork: [{deny: a.example.org}]\n", "version: 1\nnetwork: [{allow: a.example.org}]\n"
	write := func(text string) {
		if err := os.WriteFile(file+".new", []byte(text), 0o644); err != nil {
			t.Error(err)
		}
		if err := os.Rename(file+".new", file); err != nil {
			t.Error(err)
		}
	}
	write(evil)
	tr := &Service{Trust: rules.TrustIn(t.TempDir())}
	p, err := tr.Project(t.Context(), dir)
	if err != nil || len(p.Files) != 1 || p.Files[0].Text != evil {
		t.Fatalf("it is %+v (%v)", p, err)
	}
	hash := p.Hash
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				write([]string{good, evil}[i%2])
			}
		}
	}()
	for range 500 {
		p, err := tr.Project(t.Context(), dir)
		if err != nil || p.Problem != "" {
			continue
		}
		if evilHash, evilText := p.Hash == hash, p.Files[0].Text == evil; evilHash != evilText {
			t.Errorf("hash %.12s, and shown is %q", p.Hash, p.Files[0].Text)
			break
		}
	}
	close(stop)
	<-stopped
}
