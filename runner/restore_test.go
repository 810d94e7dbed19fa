package runner

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zeebo/blake3"
	"golang.org/x/sys/unix"

	"stepbox/runner/overlay/content"
	"stepbox/runner/overlay/lower"
	"stepbox/runner/overlay/manifest"
	"stepbox/runner/overlay/restore"
	"stepbox/runner/overlay/scan"
	"stepbox/session/e2e/must"
)

// bodies is content.Bodies in memory.
type bodies struct {
	mu   sync.Mutex
	held map[content.Hash][]byte // guarded by mu
}

func (b *bodies) Put(_ context.Context, r io.Reader) (content.Hash, int64, error) {
	text, err := io.ReadAll(r)
	if err != nil {
		return content.Hash{}, 0, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	hash := content.Hash(blake3.Sum256(text))
	b.held[hash] = text
	return hash, int64(len(text)), nil
}

func (b *bodies) Open(_ context.Context, hash content.Hash) (io.ReadCloser, int64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	text, ok := b.held[hash]
	if !ok {
		return nil, 0, fmt.Errorf("there is no body %v", hash)
	}
	return io.NopCloser(bytes.NewReader(text)), int64(len(text)), nil
}

// TestRestore goes back while the agent lives: through the holder, into the
// merged mount, with files of mode 000, bodies small and large, and one that
// claims to be huge, which mustn't take memory for it.
func TestRestore(t *testing.T) {
	r := newRig(t)
	for name, text := range map[string]string{"kept": "host\n", "deleted": "host\n", "sub/deep": "host\n"} {
		path := filepath.Join(r.project, name)
		must.OK(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must.OK(t, os.WriteFile(path, []byte(text), 0o644))
	}
	run := r.start("/bin/bash", "-c", `
		echo one >made; mkdir dir; echo two >dir/two; echo secret >closed; chmod 000 closed; ln -s kept link
		for m in 000 200; do echo $m >x$m; python3 -c 'import os, sys; os.setxattr(sys.argv[1], "user.note", b"one")' x$m; chmod $m x$m; done
		head -c 300000 /dev/zero | tr '\0' x >large; truncate -s 4T huge; echo end >>huge
		echo checkpoint; read line
		rm -rf dir deleted sub link; echo changed >kept; echo changed >made; rm -f closed huge; echo other >large; echo more >new
		for m in 000 200; do chmod 600 x$m; echo changed >x$m; python3 -c 'import os, sys; os.setxattr(sys.argv[1], "user.note", b"two")' x$m; chmod $m x$m; done
		echo changed; read line
		cat kept deleted sub/deep made dir/two link; stat -c '%a %n' closed; chmod 600 closed; cat closed; wc -c <large; tail -c 4 huge; [ $(stat -c %b huge) -lt 100000 ] && echo sparse; ls new 2>&1 | tail -n 1
		for m in 000 200; do stat -c '%a %n' x$m; chmod 600 x$m; python3 -c 'import os, sys; print(os.getxattr(sys.argv[1], "user.note").decode())' x$m; cat x$m; done
		echo done`)
	run.expect("checkpoint")
	store := &bodies{held: make(map[content.Hash][]byte)}
	scanner, err := scan.New(run.Upper(), store, run.OpenUpper)
	must.OK(t, err)
	defer scanner.Close()
	scan := func() *manifest.Manifest {
		t.Helper()
		run.freezeNow()
		m, _, err := scanner.Scan(t.Context(), scan.Options{})
		must.OK(t, err)
		return m
	}
	target := scan()
	must.OK(t, run.Thaw())
	run.typeIn("\n")
	run.expect("changed")
	current := scan()
	lower, err := lower.Open(run.Lower(), lower.Options{})
	must.OK(t, err)
	defer lower.Close()
	plan, err := restore.NewPlan(t.Context(), lower, current, target, restore.Options{})
	if err != nil || len(plan.Problems) > 0 {
		t.Fatalf("the plan has problems: %v, %v", plan.Problems, err)
	}
	began := time.Now()
	report, err := run.Restore(t.Context(), plan, restore.NewSource(lower, store))
	if err != nil || len(report.Failed) > 0 {
		t.Fatalf("report is %+v, %v", report, err)
	}
	t.Logf("restored in %v: %+v", time.Since(began), report)
	must.OK(t, run.Thaw())
	run.typeIn("\n")
	run.expect("done")
	out := strings.ReplaceAll(run.text(), "\r\n", "\n")
	want := "host\nhost\nhost\none\ntwo\nhost\n0 closed\nsecret\n300000\nend\nsparse\nls: cannot access 'new': No such file or directory\n0 x000\none\n000\n200 x200\none\n200\ndone\n"
	if !strings.HasSuffix(out, want) {
		t.Errorf("the agent sees:\n%s", out)
	}
}

// TestOpenUpper opens what the caller's uid may not, and nothing outside.
func TestOpenUpper(t *testing.T) {
	r := newRig(t)
	secret := filepath.Join(r.base, "outside")
	must.OK(t, os.WriteFile(secret, []byte("SECRET"), 0o600))
	run := r.start("/bin/sh", "-c", "mkdir d; echo inside >d/closed; chmod 000 d/closed d; ln -s "+secret+" link; ln -s ../../outside up; mkfifo pipe; ln -s .. dots; echo ready; cat")
	run.expect("ready")
	if run.Upper() == "" {
		t.Fatal("no upper")
	}
	file, err := run.OpenUpper(t.Context(), "d/closed")
	must.OK(t, err)
	defer file.Close()
	if text, err := io.ReadAll(file); err != nil || string(text) != "inside\n" {
		t.Errorf("it reads %q, %v", text, err)
	}
	for _, path := range []string{"../../outside", secret, "dots/../outside", "dots/outside", "none"} {
		if file, err := run.OpenUpper(t.Context(), path); err == nil {
			file.Close()
			t.Errorf("%q is opened", path)
		}
	}
	for _, path := range []string{"link", "up", "pipe"} { // themselves, not what they lead to
		file, err := run.OpenUpper(t.Context(), path)
		must.OK(t, err)
		if _, err := file.Read(make([]byte, 1)); !errors.Is(err, unix.EBADF) {
			t.Errorf("%q is open for reading: %v", path, err)
		}
		file.Close()
	}
}
