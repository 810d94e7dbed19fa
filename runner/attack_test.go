package runner

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"stepbox/runner/box"
	"stepbox/session/e2e/must"
)

// foreground says whether a process is in its terminal's foreground group.
func foreground(pid int) bool {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false
	}
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	return fields[2] == fields[5] // pgrp, tpgid
}

func TestNoPrivileges(t *testing.T) {
	out, _ := newRig(t).sh("grep -E '^(Cap|NoNewPrivs|Seccomp:)' /proc/self/status; cat /proc/self/uid_map /proc/self/gid_map; for fd in /proc/self/fd/*; do echo fd ${fd##*/}; done")
	for _, set := range []string{"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"} {
		if !strings.Contains(out, set+":\t0000000000000000\n") {
			t.Errorf("%s isn't empty:\n%s", set, out)
		}
	}
	if n := strings.Count(out, "fd "); n > 4 { // the standard three and the folder's own
		t.Errorf("files are inherited:\n%s", out)
	}
	if !strings.Contains(out, "NoNewPrivs:\t1\n") || !strings.Contains(out, "Seccomp:\t2\n") {
		t.Errorf("privileges could be gained:\n%s", out)
	}
}

// TestHostFiles tells how an agent tries to change the host: nothing that it
// may write is the host's.
func TestHostFiles(t *testing.T) {
	r := newRig(t)
	old := filepath.Join(r.project, "file")
	must.OK(t, os.WriteFile(old, []byte("host"), 0o644))
	outside := filepath.Join(r.base, "outside")
	must.OK(t, os.WriteFile(outside, []byte("host"), 0o666))
	out, _ := r.sh(`
		echo changed >file; echo new >added; rm -f file; echo again >file
		for f in /evil /usr/evil /bin/evil /etc/evil /opt/evil /home/evil /var/evil /lib/evil /proc/sys/kernel/core_pattern /srv/evil; do
			(echo evil >$f) 2>/dev/null && echo wrote $f
		done
		(echo evil >` + outside + `) 2>/dev/null
		chmod 777 /etc /usr / 2>/dev/null && echo chmod
		mount -o remount,rw /usr 2>/dev/null && echo remount
		umount "$PWD" 2>/dev/null && echo umount
		mknod /tmp/disk b 8 0 2>/dev/null && echo mknod
		unshare -Ur true 2>/dev/null && echo unshare
		cat file`)
	if strings.TrimSpace(out) != "again" {
		t.Errorf("the agent could do more than write its project:\n%s", out)
	}
	for path, want := range map[string]string{old: "host", outside: "host"} {
		if text, err := os.ReadFile(path); err != nil || string(text) != want {
			t.Errorf("%q is %q, %v", path, text, err)
		}
	}
	if _, err := os.Lstat(filepath.Join(r.project, "added")); err == nil {
		t.Error("the agent's file is in the project on the host")
	}
	if text, err := os.ReadFile(filepath.Join(r.spec.StateDir, "upper", "added")); err != nil || string(text) != "new\n" {
		t.Errorf("the upper holds %q, %v", text, err)
	}
}

// TestSecretsAbsent looks for what an agent would steal.
func TestSecretsAbsent(t *testing.T) {
	r := newRig(t)
	home, err := os.UserHomeDir()
	must.OK(t, err)
	secret := filepath.Join(home, ".ssh", "stepbox-test-key")
	must.OK(t, os.MkdirAll(filepath.Dir(secret), 0o700))
	must.OK(t, os.WriteFile(secret, []byte("SECRET"), 0o600))
	t.Cleanup(func() { os.Remove(secret) })
	t.Setenv("STEPBOX_TEST_TOKEN", "SECRET")
	out, _ := r.sh(`
		cat ` + secret + ` ~/.ssh/* 2>/dev/null
		ls -A /root /home /srv /mnt /media /var/lib 2>/dev/null | grep -v -e ':$' -e '^$' -e '^agent$' -e ca-certificates
		env; tr '\0' '\n' </proc/1/environ
		ls -d ` + r.spec.StateDir + ` ` + r.spec.RunDir + ` 2>/dev/null
		ls -A /run; ls -A /tmp; hostname`)
	if strings.Contains(out, "SECRET") {
		t.Errorf("a secret is readable:\n%s", out)
	}
	for _, path := range []string{r.spec.StateDir, r.spec.RunDir} {
		if strings.Contains(out, path) {
			t.Errorf("%q is visible:\n%s", path, out)
		}
	}
	host, _ := os.Hostname()
	if host != "stepbox" && strings.Contains(out, host+"\n") {
		t.Errorf("the host's name is known:\n%s", out)
	}
}

func TestEtc(t *testing.T) {
	r := newRig(t)
	out, _ := r.sh("cat /etc/resolv.conf /etc/hostname /etc/passwd; id -un; cd; pwd; getent hosts localhost")
	for _, want := range []string{"nameserver 192.0.0.1\n", "stepbox\n", "root:x:0:0:root:/home/agent:", "\nroot\n/home/agent\n", "localhost"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in:\n%s", want, out)
		}
	}
	if text, err := os.ReadFile("/etc/passwd"); err == nil && len(text) > 0 && strings.Contains(out, strings.Split(string(text), "\n")[1]) {
		t.Errorf("the host's passwd shows:\n%s", out)
	}
}

// TestPrivateOfRoot tells how the agent of a root caller, who owns what root
// owns, reads what only root may: also what is put there while it runs.
func TestPrivateOfRoot(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("the caller isn't root")
	}
	var folders []string
	for _, parent := range []string{"/opt", "/etc", "/usr/local", "/usr/lib"} {
		folders = append(folders, publicFolder(t, parent))
	}
	write := func(when string) {
		t.Helper()
		for _, dir := range folders {
			for name, mode := range map[string]os.FileMode{"secret": 0o600, "group": 0o640, "public": 0o644} {
				path := filepath.Join(dir, when+"-"+name)
				must.OK(t, os.WriteFile(path, []byte("content of "+when+" "+name+"\n"), mode))
			}
		}
	}
	write("early")
	r := newRig(t)
	all := strings.Join(folders, " ")
	run := r.start("/bin/sh", "-c", "echo ready; read x; cat /etc/shadow; ls /etc/ssl/private; for d in "+all+"; do cat $d/*; done; ls -lnd /etc/passwd /run/*; id -u")
	run.expect("ready")
	write("late")
	run.typeIn("\n")
	out, _ := run.wait()
	for _, text := range []string{"content of early secret", "content of early group", "content of late secret", "content of late group", "root:$", "root:*"} {
		if strings.Contains(out, text) {
			t.Errorf("it reads what only root may:\n%s", out)
		}
	}
	for _, text := range []string{"content of early public\n", "content of late public\n"} {
		if strings.Count(out, text) != len(folders) {
			t.Errorf("it can't read what everybody may:\n%s", out)
		}
	}
	if strings.Contains(out, "/run/owners") {
		t.Errorf("the folders that layers are made of are visible:\n%s", out)
	}
	if notes := run.Notes(); strings.Contains(strings.Join(notes, "\n"), "could be read") {
		t.Errorf("there are folders whose private files could be read: %q", notes)
	}
}

// TestHidden: hidden files don't exist, and writing them anew stays apart.
func TestHidden(t *testing.T) {
	r := newRig(t)
	for _, dir := range []string{"sub", "keys"} {
		must.OK(t, os.Mkdir(filepath.Join(r.project, dir), 0o750))
	}
	for _, name := range []string{".env", "sub/.env", "sub/other", "keys/a"} {
		must.OK(t, os.WriteFile(filepath.Join(r.project, name), []byte("SECRET"), 0o644))
	}
	when := unix.NsecToTimespec(1_600_000_000_000_000_000)
	must.OK(t, unix.UtimesNanoAt(unix.AT_FDCWD, filepath.Join(r.project, "sub"), []unix.Timespec{when, when}, 0))
	r.spec.Hidden = []string{".env", "sub/.env", "keys", "missing/file"}
	out, _ := r.sh(`ls -A . sub | tr '\n' ' '; stat -c '%a %Y' sub; cat .env sub/.env keys/a 2>/dev/null; echo mine >.env; cat .env; ls missing 2>/dev/null; mkdir keys; ls -A keys`)
	if want := ".:\nsub\n"; strings.Contains(out, "SECRET") || strings.Contains(strings.ReplaceAll(out, " ", "\n"), "\nkeys\n") {
		t.Errorf("not as %q:\n%s", want, out)
	}
	if !strings.Contains(out, "750 1600000000\n") || !strings.HasSuffix(out, "mine\n") || !strings.Contains(out, "other") {
		t.Errorf("the rest of the project changed:\n%s", out)
	}
	if text, _ := os.ReadFile(filepath.Join(r.project, ".env")); string(text) != "SECRET" {
		t.Errorf("the host's file is %q", text)
	}
}

// TestPIDOneOutOfReach tells how an agent goes for PID 1, which holds the
// control socket and could be made to start something ungated.
func TestPIDOneOutOfReach(t *testing.T) {
	out, exit := newRig(t).sh(`
		ls -l /proc/1/fd /proc/1/exe /proc/1/cwd /proc/1/root 2>&1 | grep -v 'cannot' | grep -- '->' && echo SAW
		cat /proc/1/mem /proc/1/environ /proc/1/maps /proc/1/stack 2>/dev/null | head -c 1 | grep -q . && echo READ
		for s in $(kill -l | tr -d ')' | tr -s ' \t' '\n' | grep -v '^[0-9]*$' | grep -v -e KILL -e STOP); do kill -s $s 1; done 2>/dev/null
		kill -s KILL 1; kill -s STOP 1
		for s in $(seq 1 64); do kill -$s 1 2>/dev/null; done
		python3 -c '
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
for s in range(1, 65): libc.sigqueue(1, s, None) # which look like faults of its own to a runtime that handles them
print("ptrace", libc.ptrace(0x4206, 1, 0, 0), libc.ptrace(16, 1, 0, 0))
print("pidfd_getfd", libc.syscall(438, libc.syscall(434, 1, 0), 4, 0))
' 2>/dev/null
		echo alive`)
	if strings.Contains(out, "SAW") || strings.Contains(out, "READ") || !strings.HasSuffix(out, "alive\n") || exit.Code != 0 {
		t.Errorf("exit is %+v:\n%s", exit, out)
	}
	if strings.Contains(out, "ptrace") && (!strings.Contains(out, "ptrace -1 -1") || !strings.Contains(out, "pidfd_getfd -1")) {
		t.Errorf("PID 1 can be traced:\n%s", out)
	}
}

// TestOutsideInvisible: the sandbox sees its own processes only.
func TestOutsideInvisible(t *testing.T) {
	r := newRig(t)
	run := r.start("/bin/sh", "-c", "ls /proc | grep -c '^[0-9]'; kill -0 -1; kill -9 "+strconv.Itoa(os.Getpid())+" 2>&1; cat /proc/net/unix | wc -l; cat")
	run.expect("\n1\r\n") // /proc/net/unix has a heading only
	first, _, _ := strings.Cut(run.text(), "\r\n")
	if n, err := strconv.Atoi(first); err != nil || n > 5 {
		t.Errorf("%q processes are visible", first)
	}
	// Not in the sandbox's namespaces or cgroups: it can't be frozen or killed with it.
	inode, err := box.PIDNamespace(run.holder.PID)
	if err != nil || inode == run.namespace {
		t.Errorf("the holder is in the sandbox's pid namespace: %v", err)
	}
	for _, pid := range run.pids() {
		if pid == run.holder.PID {
			t.Error("the holder is in the agent's cgroup")
		}
	}
	if _, err := os.Readlink("/proc/" + strconv.Itoa(run.holder.PID) + "/exe"); os.Getuid() == 0 && err != nil {
		t.Errorf("cannot look at the holder: %v", err)
	}
}

// TestSockets: no socket of the host is reachable, whether in the project
// or abstract. For those in visible folders see TestSocketsMadeLater.
func TestSockets(t *testing.T) {
	r := newRig(t)
	listen := func(name string) {
		l, err := net.Listen("unix", name)
		must.OK(t, err)
		t.Cleanup(func() { l.Close() })
	}
	listen(filepath.Join(r.project, "daemon.sock"))
	abstract := fmt.Sprintf("@stepbox-test-%d", os.Getpid())
	listen(abstract)
	out, _ := r.sh(`python3 -c '
import socket
for name in ["daemon.sock", "\0` + abstract[1:] + `"]:
    s = socket.socket(socket.AF_UNIX)
    try:
        s.connect(name); print("CONNECTED", repr(name))
    except OSError as e: print(e)
s = socket.socket()
try:
    s.connect(("127.0.0.1", 22)); print("CONNECTED")
except OSError as e: print(e)
'`)
	if strings.Contains(out, "CONNECTED") || strings.Count(out, "Errno") != 3 {
		t.Errorf("a socket of the host's is reachable:\n%s", out)
	}
}

func TestBinds(t *testing.T) {
	r := newRig(t)
	tools := filepath.Join(r.base, "to ols,a:b")
	must.OK(t, os.Mkdir(tools, 0o755))
	must.OK(t, os.WriteFile(filepath.Join(tools, "tool"), []byte("#!/bin/sh\necho tool\n"), 0o755))
	r.spec.Binds = []Bind{{Source: tools, Target: "/home/agent/.local/bin"}, {Source: filepath.Join(tools, "tool"), Target: "/home/agent/single"}}
	out, _ := r.sh("~/.local/bin/tool; ~/single; touch ~/.local/bin/x 2>/dev/null && echo WROTE; echo kept >~/note")
	if out != "tool\ntool\n" {
		t.Errorf("it says %q", out)
	}
	if text, err := os.ReadFile(filepath.Join(r.spec.Home, "note")); err != nil || string(text) != "kept\n" {
		t.Errorf("the home keeps %q, %v", text, err)
	}
}

func TestStartErrors(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Spec)
		want   string
	}{
		"missing program":  {func(s *Spec) { s.Argv = []string{"no-such-program"} }, "no such program in the sandbox's PATH"},
		"missing path":     {func(s *Spec) { s.Argv = []string{"/no/such/program"} }, "no such file or directory in the sandbox"},
		"folder":           {func(s *Spec) { s.Argv = []string{"/usr"} }, "is a directory"},
		"not executable":   {func(s *Spec) { s.Argv = []string{"/etc/passwd"} }, "permission denied"},
		"no program":       {func(s *Spec) { s.Argv = nil }, "no program"},
		"missing folder":   {func(s *Spec) { s.Cwd = "/no/such" }, "no such file or directory"},
		"missing project":  {func(s *Spec) { s.Workspace += "/none" }, "there is no such folder"},
		"unreadable bind":  {func(s *Spec) { s.Binds = []Bind{{Source: "/no/such"}} }, "no such file"},
		"hidden elsewhere": {func(s *Spec) { s.Hidden = []string{"../outside"} }, "isn't below the project"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.spec.Argv = []string{"/bin/true"}
			c.change(&r.spec)
			s, err := Start(t.Context(), r.spec, r.handler)
			if err == nil {
				s.Close(t.Context())
				t.Fatal("it started")
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v", err)
			}
			if entries, err := os.ReadDir(r.spec.RunDir); err != nil && !errors.Is(err, os.ErrNotExist) || len(entries) != 0 {
				t.Errorf("it leaves %v, %v", entries, err)
			}
			assertNoCgroups(t, r.spec.ID)
		})
	}
}

// TestNotAProgram is a file that only the kernel finds to be none.
func TestNotAProgram(t *testing.T) {
	r := newRig(t)
	path := filepath.Join(r.project, "broken")
	must.OK(t, os.WriteFile(path, []byte("\x00\x01not a program"), 0o755))
	run := r.start(path)
	<-run.ended
	if exit, err := run.Wait(); err == nil || exit.Code != 127 {
		t.Errorf("exit is %+v, %v", exit, err)
	}
}
