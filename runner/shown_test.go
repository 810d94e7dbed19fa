package runner

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"stepbox/runner/box"
	"stepbox/session/e2e/must"
)

// reach is an agent that connects to every socket, and opens every named pipe,
// that is named in a line it reads.
const reach = `
import os, socket, sys
print("ready", flush=True)
for name in sys.stdin.readline().split():
    if name.endswith(".pipe"):
        try:
            os.write(os.open(name, os.O_WRONLY | os.O_NONBLOCK), b"x"); print("CONNECTED", name)
        except OSError as e: print("refused", e)
        continue
    s = socket.socket(socket.AF_UNIX)
    try:
        s.connect(name); print("CONNECTED", name)
    except OSError as e: print("refused", e)
print("done")
`

// listenIn makes a socket and a named pipe that somebody reads in a folder.
func listenIn(t *testing.T, dir, name string) (paths []string) {
	t.Helper()
	socket, pipe := filepath.Join(dir, name+".sock"), filepath.Join(dir, name+".pipe")
	l, err := net.Listen("unix", socket)
	must.OK(t, err)
	t.Cleanup(func() { l.Close() })
	must.OK(t, os.Chmod(socket, 0o777))
	must.OK(t, unix.Mkfifo(pipe, 0o666))
	t.Cleanup(func() { os.Remove(pipe) })
	reader, err := unix.Open(pipe, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	must.OK(t, err)
	t.Cleanup(func() { unix.Close(reader) })
	// Outside, both can be reached.
	conn, err := net.Dial("unix", socket)
	must.OK(t, err)
	conn.Close()
	return []string{socket, pipe}
}

// publicFolder makes a folder for a test in a place that sandboxes show.
func publicFolder(t *testing.T, parent string) string {
	t.Helper()
	dir, err := os.MkdirTemp(parent, "stepbox-test-")
	must.OK(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	must.OK(t, os.Chmod(dir, 0o755))
	return dir
}

// TestSocketsMadeLater: a service of the host's that starts after the sandbox
// did, in any folder that is visible inside, is out of reach: talking to it
// would go round the egress gateway.
func TestSocketsMadeLater(t *testing.T) {
	r := newRig(t)
	tools := publicFolder(t, r.base)
	r.spec.Binds = []Bind{{Source: tools}}
	folders := []string{tools}
	if os.Getuid() == 0 {
		folders = append(folders, publicFolder(t, "/opt"), publicFolder(t, "/etc"), publicFolder(t, "/usr/local"))
	}
	var paths []string
	for _, dir := range folders {
		paths = append(paths, listenIn(t, dir, "before")...)
	}
	run := r.start("python3", "-c", reach)
	run.expect("ready")
	for _, dir := range folders {
		paths = append(paths, listenIn(t, dir, "after")...)
	}
	run.typeIn(strings.Join(paths, " ") + "\n")
	out, _ := run.wait()
	if strings.Contains(out, "CONNECTED") || strings.Count(out, "refused [") != len(paths) {
		t.Errorf("the host's services are reachable:\n%s", out)
	}
	if notes := run.Notes(); strings.Contains(strings.Join(notes, "\n"), "could be reached") {
		t.Errorf("there are folders whose sockets could be reached: %q", notes)
	}
}

// TestShownFoldersChange: the host upgrades its packages while an agent runs.
// What the agent sees then is old or new, but whole, and no error.
func TestShownFoldersChange(t *testing.T) {
	r := newRig(t)
	tools := publicFolder(t, r.base)
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(tools, name)
		must.OK(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must.OK(t, os.WriteFile(path+".dpkg-new", []byte(text), 0o755))
		must.OK(t, os.Rename(path+".dpkg-new", path))
	}
	program := func(version string) string { return "#!/bin/sh\necho " + version + "\n" }
	write("tool", program("old"))
	write("gone", program("old"))
	write("lib/part", program("old"))
	r.spec.Binds = []Bind{{Source: tools}}
	run := r.start("/bin/sh", "-c", `cd "$0"; for f in tool gone lib/part; do ./$f; done; ls . lib; cat new/part 2>/dev/null
		echo ready; read x
		for f in tool lib/part new/part; do echo $f: $(./$f 2>&1); done; ls -R . | grep -c . ; echo end`, tools)
	run.expect("ready")
	write("tool", program("new"))
	write("lib/part", program("new"))
	write("new/part", program("new"))
	must.OK(t, os.Remove(filepath.Join(tools, "gone")))
	run.typeIn("\n")
	out, exit := run.wait()
	_, after, _ := strings.Cut(out, "ready\n")
	for _, name := range []string{"tool", "lib/part"} {
		if !strings.Contains(after, name+": new\n") && !strings.Contains(after, name+": old\n") {
			t.Errorf("%s is neither the old nor the new one:\n%s", name, after)
		}
	}
	if !strings.Contains(after, "end\n") || exit.Code != 0 || strings.Contains(after, "rror") || strings.Contains(after, "tale") {
		t.Errorf("exit %d:\n%s", exit.Code, after)
	}
}

// noLayers says in the environment where folders are of which the kernel makes
// no overlay.
const noLayers = "STEPBOX_TEST_NO_LAYERS"

// TestFoldersThatAreNoLayers: with something mounted below a folder, or where
// overlays are stacked already, folders are bound. They work, the sockets that
// they hold are refused, and the person is told.
func TestFoldersThatAreNoLayers(t *testing.T) {
	if dir := os.Getenv(noLayers); dir != "" {
		for _, name := range []string{"covered", "stacked"} {
			r := newRig(t)
			folder := filepath.Join(dir, name)
			r.spec.Binds = []Bind{{Source: folder}}
			run := r.start("/bin/cat", filepath.Join(folder, "file"))
			if out, _ := run.wait(); out != "content\n" {
				t.Errorf("%s: it holds %q", name, out)
			}
			if notes := strings.Join(run.Notes(), "\n"); !strings.Contains(notes, folder+" while the session runs could be reached") {
				t.Errorf("%s: it isn't said: %q", name, notes)
			}
		}
		r := newRig(t)
		r.spec.Binds = []Bind{{Source: filepath.Join(dir, "listening")}}
		r.spec.Argv = []string{"/bin/true"}
		if s, err := Start(t.Context(), r.spec, r.handler); err == nil {
			s.Close(t.Context())
			t.Error("a bind that holds a socket is taken")
		} else if !strings.Contains(err.Error(), "deep.sock") {
			t.Errorf("the error doesn't name the socket: %v", err)
		}
		return
	}
	if os.Getuid() != 0 {
		t.Skip("mounting takes root")
	}
	self, err := box.Self()
	must.OK(t, err)
	for _, uid := range []int{0, unprivilegedUID} {
		t.Run(fmt.Sprint("uid ", uid), func(t *testing.T) {
			dir, home := publicFolder(t, ""), publicFolder(t, "")
			must.OK(t, os.Chown(home, uid, uid))
			for _, name := range []string{"covered/below", "listening/below", "one", "two", "stacked"} {
				must.OK(t, os.MkdirAll(filepath.Join(dir, name), 0o755))
			}
			for _, name := range []string{"covered/file", "one/file"} {
				must.OK(t, os.WriteFile(filepath.Join(dir, name), []byte("content\n"), 0o644))
			}
			l, err := net.Listen("unix", filepath.Join(dir, "listening/deep.sock"))
			must.OK(t, err)
			defer l.Close()
			script := `mount --make-rprivate / && cd "$0" && mount -t tmpfs t covered/below && mount -t tmpfs t listening/below &&
				mkdir e && mount -t overlay o -o lowerdir=e:one two && mount -t overlay o -o lowerdir=e:two stacked && cd / &&
				exec setpriv --reuid "$1" --regid "$1" --clear-groups /proc/self/fd/3 -test.run '^TestFoldersThatAreNoLayers$'`
			cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", script, dir, strconv.Itoa(uid))
			cmd.Env = append(os.Environ(), noLayers+"="+dir, asUnprivileged+"=1", "HOME="+home, "TMPDIR="+os.TempDir())
			cmd.Dir = "/"
			cmd.ExtraFiles = []*os.File{self}
			cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}
