package runner

import (
	"bytes"
	"embed"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"stepbox/runner/pid1"
	"stepbox/session/e2e/must"
)

//go:embed testdata/*.c
var sources embed.FS

// compile makes a program of a C source in testdata.
func compile(t testing.TB, dir, name string) string {
	t.Helper()
	source, err := sources.ReadFile("testdata/" + name + ".c")
	must.OK(t, err)
	path := filepath.Join(dir, name)
	cc := exec.Command("cc", "-O1", "-w", "-static", "-pthread", "-o", path, "-x", "c", "-")
	cc.Stdin = bytes.NewReader(source)
	if out, err := cc.CombinedOutput(); err != nil {
		t.Fatalf("cannot compile %s: %v\n%s", name, err, out)
	}
	return path
}

// TestMemoryFiles tells how a program writes another's memory through /proc,
// where no system call filter sees it: nothing of the sandbox opens such a file
// for writing. Outside of it every way works.
func TestMemoryFiles(t *testing.T) {
	if !pid1.MemoryGuard() {
		t.Skip("this kernel has no Landlock")
	}
	r := newRig(t)
	program := compile(t, r.project, "mem")
	native, err := exec.Command(program).Output()
	must.OK(t, err)
	lines := strings.Split(strings.TrimSpace(string(native)), "\n")
	inside, _ := r.sh("./mem")
	for _, line := range lines {
		way, outcome, ok := strings.Cut(line, ": ")
		if !ok {
			continue
		}
		if outcome != "written" {
			t.Errorf("outside, %s is %q: that shows nothing", way, outcome)
		}
		if !strings.Contains(inside, way+": EACCES\n") {
			t.Errorf("%s isn't refused", way)
		}
	}
	if len(lines) != 11 || !strings.Contains(inside, "the child has 1\n") {
		t.Errorf("outside:\n%s\ninside:\n%s", native, inside)
	}
}

// TestFilesStayWritable: what guards memory keeps nobody from any other file.
func TestFilesStayWritable(t *testing.T) {
	r := newRig(t)
	must.OK(t, os.WriteFile(filepath.Join(r.project, "old"), []byte("old"), 0o644))
	out, exit := r.sh(`set -e
		echo to stdout >/dev/stdout; echo to stderr >/dev/stderr; echo to tty >/dev/tty; echo to pts >$(tty); echo to fd >/proc/self/fd/1
		echo null >/dev/null; echo piped | tee /dev/fd/2 | cat >/dev/fd/1
		mkdir -p a/b c; echo x >a/b/f; mv a/b/f c/f; ln c/f a/g; mv a/b c/b; mv old a/old; echo more >>a/old; ln a/old c/old
		for dir in /tmp /dev/shm "$HOME" .; do echo y >$dir/f; mkdir $dir/d; mv $dir/f $dir/d/f; ln $dir/d/f $dir/f; rm -r $dir/d $dir/f; done
		mkfifo p; cat p & echo through a fifo >p; wait
		exec 5>deleted; rm deleted; echo z >/proc/self/fd/5; exec 5>&-
		python3 - <<'P'
import os, socket, tempfile
fd = os.memfd_create("m"); open(f"/proc/self/fd/{fd}", "w").write("m"); assert os.pread(fd, 1, 0) == b"m"
os.chdir("/tmp") # before Linux 6.3, overlays have no such files
fd = os.open(".", os.O_TMPFILE | os.O_RDWR, 0o600); os.write(fd, b"t")
os.link(f"/proc/self/fd/{fd}", "linked", src_dir_fd=0, follow_symlinks=True); assert open("linked").read() == "t"
s = socket.socket(socket.AF_UNIX); s.bind("s"); s.listen(); socket.socket(socket.AF_UNIX).connect("s")
fd = os.open("/dev/ptmx", os.O_RDWR); assert fd > 0
os.truncate("linked", 0)
P
		echo all of it`)
	for _, want := range []string{"to stdout", "to stderr", "to tty", "to pts", "to fd", "piped\npiped", "through a fifo", "all of it"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q (exit %+v):\n%s", want, exit, out)
		}
	}
}

// Where there is no Landlock, doctor says what stays open and what to do.
func TestMemoryOpen(t *testing.T) {
	if f := checkMemory(false); f.OK || f.Fatal || !strings.Contains(f.Detail, "/proc/PID/mem") || !strings.Contains(f.Fix, "lsm=") {
		t.Errorf("%+v", f)
	}
	if f := checkMemory(true); !f.OK || f.Fix != "" {
		t.Errorf("%+v", f)
	}
}
