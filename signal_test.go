package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

var signalNumbers = map[string]syscall.Signal{"HUP": syscall.SIGHUP, "INT": syscall.SIGINT, "TERM": syscall.SIGTERM}

// background starts a command of a script without a terminal; what it prints
// goes to said.
func background(ts *testscript.TestScript, said *bytes.Buffer, args []string) *exec.Cmd {
	path := ""
	for dir := range strings.SplitSeq(ts.Getenv("PATH"), ":") {
		if p, err := exec.LookPath(dir + "/" + args[0]); err == nil {
			path = p
			break
		}
	}
	cmd := exec.Command(path, args[1:]...)
	cmd.Dir = ts.MkAbs(".")
	for _, name := range []string{"PATH", "HOME", "XDG_RUNTIME_DIR", "STEPBOX_DATA", "SHELL", "TERM", "TMPDIR"} {
		cmd.Env = append(cmd.Env, name+"="+ts.Getenv(name))
	}
	cmd.Stdout, cmd.Stderr = said, said
	ts.Check(cmd.Start())
	return cmd
}

// exitCode waits for a command and gives its exit code as a shell says it.
func exitCode(ts *testscript.TestScript, cmd *exec.Cmd) int {
	err := cmd.Wait()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		ts.Check(err)
	}
	if w := cmd.ProcessState.Sys().(syscall.WaitStatus); w.Signaled() {
		return 128 + int(w.Signal())
	}
	return cmd.ProcessState.ExitCode()
}

// signalled starts a command, sends it signals once its session runs, and
// checks how it ends: signalled SIGNAL[,SIGNAL…] CODE COMMAND… Its output
// becomes the script's stdout.
func signalled(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) < 3 {
		ts.Fatalf("usage: signalled SIGNAL CODE COMMAND…")
	}
	var said bytes.Buffer
	cmd := background(ts, &said, args[2:])
	until(ts, false, []string{"running", "stepbox", "ls"})
	for name := range strings.SplitSeq(args[0], ",") {
		ts.Check(cmd.Process.Signal(signalNumbers[name]))
	}
	if code := exitCode(ts, cmd); strconv.Itoa(code) != args[1] {
		ts.Fatalf("it ended with %d, not %s:\n%s", code, args[1], said.String())
	}
	_, err := ts.Stdout().Write(said.Bytes())
	ts.Check(err)
}

// early starts a command many times and ends it with SIGTERM, a little later
// each time: early COMMAND…
func early(ts *testscript.TestScript, _ bool, args []string) {
	for delay := time.Duration(0); delay < 400*time.Millisecond; delay += 25 * time.Millisecond {
		var said bytes.Buffer
		cmd := background(ts, &said, args)
		<-time.After(delay) // any moment of the start is a good one
		ts.Check(cmd.Process.Signal(syscall.SIGTERM))
		if code := exitCode(ts, cmd); code != 128+int(syscall.SIGTERM) {
			ts.Fatalf("ended after %v it exits with %d:\n%s", delay, code, said.String())
		}
	}
}

// killHolder kills the holders of the script's supervisors.
func killHolder(ts *testscript.TestScript, _ bool, _ []string) {
	found := 0
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	ts.Check(err)
	for _, p := range stats {
		dir := filepath.Dir(p)
		name, _ := os.ReadFile(dir + "/cmdline") // it may be gone: then it isn't ours to kill
		text, _ := os.ReadFile(p)                // as above
		_, fields, ok := bytes.Cut(text, []byte(") "))
		if !ok || !bytes.Equal(name, []byte("stepbox\x00holder\x00")) {
			continue
		}
		parent := string(bytes.Fields(fields)[1])
		env, _ := os.ReadFile("/proc/" + parent + "/environ") // as above
		if !bytes.Contains(env, []byte("STEPBOX_DATA="+ts.Getenv("STEPBOX_DATA")+"\x00")) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(dir))
		ts.Check(err)
		ts.Check(syscall.Kill(pid, syscall.SIGKILL))
		found++
	}
	if found == 0 {
		ts.Fatalf("there is no holder to kill")
	}
}
