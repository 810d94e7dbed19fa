package runner

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stepbox/session/e2e/must"
)

// TestReadOnlyFiles tells the attack: an agent that wants a protected file to say
// something else writes it, removes it, replaces it, moves it or a folder above it away,
// reaches it by another name, or mounts something over it.
func TestReadOnlyFiles(t *testing.T) {
	r := newRig(t)
	for name, text := range map[string]string{"go.lock": "sum\n", "ci/main/build.yml": "build\n", "ci/main/deep/x": "x\n", "free.txt": "free\n"} {
		file := filepath.Join(r.project, name)
		must.OK(t, os.MkdirAll(filepath.Dir(file), 0o755))
		must.OK(t, os.WriteFile(file, []byte(text), 0o644))
	}
	r.spec.ReadOnly = []string{"go.lock", "ci/main"}
	const attack = `
import os, ctypes, shutil
libc = ctypes.CDLL(None, use_errno=True)
def attempt(what, f):
    try:
        f(); print("DONE", what)
    except OSError as e: print("refused", what, e.errno)
def write(p):
    with open(p, "a") as f: f.write("evil\n")
def over(p):
    with open("mine", "w") as f: f.write("evil\n")
    os.rename("mine", p)
def exchange(a, b):
    if libc.renameat2(-100, a.encode(), -100, b.encode(), 2) != 0: raise OSError(ctypes.get_errno(), "")
def mount(p):
    if libc.mount(b"none", p.encode(), b"tmpfs", 0, None) != 0: raise OSError(ctypes.get_errno(), "")
def umount(p):
    if libc.umount2(p.encode(), 2) != 0: raise OSError(ctypes.get_errno(), "")
def unshared(p):
    if libc.unshare(0x10000000 | 0x00020000) != 0: raise OSError(ctypes.get_errno(), "")
    umount(p)
for p in ["go.lock", "ci/main/build.yml", "ci/main/deep/x"]:
    attempt("write " + p, lambda: write(p))
    attempt("truncate " + p, lambda: os.truncate(p, 0))
    attempt("remove " + p, lambda: os.remove(p))
    attempt("replace " + p, lambda: over(p))
    attempt("move " + p, lambda: os.rename(p, "away"))
    attempt("exchange " + p, lambda: exchange(p, "free.txt"))
    attempt("link " + p, lambda: os.link(p, "other"))
    attempt("chmod " + p, lambda: os.chmod(p, 0o777))
    attempt("through fd " + p, lambda: write("/proc/self/fd/%d" % os.open(p, os.O_RDONLY)))
attempt("make in it", lambda: write("ci/main/new.yml"))
attempt("move it", lambda: os.rename("ci/main", "ci/old"))
attempt("move above", lambda: os.rename("ci", "old"))
attempt("exchange above", lambda: (os.mkdir("fake"), exchange("ci", "fake")))
attempt("remove all", lambda: shutil.rmtree("ci"))
attempt("mount", lambda: mount("ci"))
attempt("umount", lambda: umount("ci/main"))
attempt("umount elsewhere", lambda: unshared("ci/main"))
for p in ["go.lock", "ci/main/build.yml", "ci/main/deep/x"]: print(p, repr(open(p).read()))
write("free.txt"); write("ci/free.txt"); print("free", len(open("free.txt").read()))
`
	run := r.start("python3", "-c", attack)
	out, exit := run.wait()
	if exit.Code != 0 || strings.Contains(out, "DONE") || strings.Count(out, "refused") != 3*9+8 {
		t.Errorf("exit %d:\n%s", exit.Code, out)
	}
	for _, want := range []string{`go.lock 'sum\n'`, `ci/main/build.yml 'build\n'`, `ci/main/deep/x 'x\n'`, "free 10"} {
		if !strings.Contains(out, want) {
			t.Errorf("%s is missing:\n%s", want, out)
		}
	}
}
