package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"stepbox/runner"
)

// asUser says that these tests were re-run by themselves as an ordinary user.
const asUser = "STEPBOX_TEST_AS_USER"

// patience bounds waits for what should happen at once: on a busy machine it
// takes long, and only a test that fails waits for all of it.
const patience = 2 * time.Minute

// ordinary is a uid that needs no account.
const ordinary = 12345

func TestMain(m *testing.M) {
	runner.Reexec()                                               // the sandboxes' own processes are this binary too
	os.Setenv("GORACE", "atexit_sleep_ms=0 "+os.Getenv("GORACE")) // else each process of a build with -race takes a second to end
	testscript.Main(m, map[string]func(){"stepbox": main})
}

// leftovers lists what the sessions of one script left behind: processes,
// mounts, cgroups, run-time folders. The kernel takes some of them down in its
// own time, so it looks for a while.
func leftovers(work string) []string {
	var left []string
	for end := time.Now().Add(patience); ; <-time.After(50 * time.Millisecond) {
		if left = traces(work); len(left) == 0 || time.Now().After(end) {
			return left
		}
	}
}

// processes lists those that were started with a script's data folder.
func processes(work string) (pids []int) {
	environs, _ := filepath.Glob("/proc/[0-9]*/environ") // a pattern that is well-formed
	for _, p := range environs {
		env, err := os.ReadFile(p) // it may be gone: then it isn't left
		if err == nil && bytes.Contains(env, []byte("STEPBOX_DATA="+work+"/")) {
			if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(p))); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

func traces(work string) []string {
	var out []string
	for _, pid := range processes(work) {
		name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)) // it may be gone: then it isn't left
		out = append(out, fmt.Sprintf("process %d %s", pid, strings.ReplaceAll(string(name), "\x00", " ")))
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		out = append(out, err.Error())
	}
	for line := range strings.Lines(string(mounts)) {
		if strings.Contains(line, work) {
			out = append(out, "mount "+strings.TrimSpace(line))
		}
	}
	sessions, _ := filepath.Glob(filepath.Join(work, "data/sessions/*")) // as above
	for _, s := range sessions {
		for _, pattern := range []string{"/sys/fs/cgroup/*/stepbox/%s", "/sys/fs/cgroup/*/stepbox-%s", "/sys/fs/cgroup/*/*/stepbox-%s"} {
			found, _ := filepath.Glob(fmt.Sprintf(pattern, filepath.Base(s))) // as above
			for _, c := range found {
				out = append(out, "cgroup "+c)
			}
		}
	}
	run, _ := filepath.Glob(filepath.Join(work, "run/stepbox/*")) // as above
	return append(out, run...)
}

// TestScripts runs the program as a person would, as whoever runs the tests.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "ui/cli/testdata/script",
		RequireExplicitExec: true,
		Setup: func(e *testscript.Env) error {
			home := filepath.Join(e.WorkDir, "home")
			project := filepath.Join(e.WorkDir, "project")
			run := filepath.Join(e.WorkDir, "run")
			for _, dir := range []string{home, project, run} {
				if err := os.MkdirAll(dir, 0o700); err != nil {
					return err
				}
			}
			e.Defer(func() {
				if left := leftovers(e.WorkDir); len(left) > 0 {
					t.Errorf("the script left behind:\n  %s", strings.Join(left, "\n  "))
					for _, pid := range processes(e.WorkDir) {
						_ = syscall.Kill(pid, syscall.SIGTERM) // a supervisor then ends its session; it may be gone
					}
					leftovers(e.WorkDir)
				}
			})
			e.Vars = append(e.Vars, "HOME="+home, "XDG_RUNTIME_DIR="+run, "STEPBOX_DATA="+filepath.Join(e.WorkDir, "data"), "SHELL=/bin/sh", "STEPBOX_AS=kim", "TERM=dumb", "PROJECT="+project, "GORACE="+os.Getenv("GORACE"))
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"until":    until,
			"kill-9":   killNine,
			"approve1": answerFirst("approve"),

			"signalled":   signalled,
			"early":       early,
			"kill-holder": killHolder,
			"stop-holder": stopHolder,
			"cut-off":     cutOff,
		},
	})
}

// until runs a command until its output holds a text: until TEXT COMMAND…
func until(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: until TEXT COMMAND…")
	}
	var last string
	for end := time.Now().Add(patience); time.Now().Before(end); <-time.After(50 * time.Millisecond) {
		err := ts.Exec(args[1], args[2:]...)
		last = ts.ReadFile("stdout") + ts.ReadFile("stderr")
		if strings.Contains(last, args[0]) != neg {
			return
		}
		if err != nil {
			last += err.Error()
		}
	}
	ts.Fatalf("%q didn't come; the last output was\n%s", args[0], last)
}

// killNine kills the supervisor of the script's only live session, and waits until it
// is gone: what it had locked is free then.
func killNine(ts *testscript.TestScript, _ bool, _ []string) {
	procs, err := filepath.Glob("/proc/[0-9]*/cmdline")
	ts.Check(err)
	for _, p := range procs {
		b, err := os.ReadFile(p)
		if err != nil || !strings.Contains(string(b), "\x00supervise") {
			continue
		}
		env, err := os.ReadFile(filepath.Join(filepath.Dir(p), "environ"))
		if err != nil || !strings.Contains(string(env), "STEPBOX_DATA="+ts.Getenv("STEPBOX_DATA")+"\x00") {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(p)))
		ts.Check(err)
		fd, err := unix.PidfdOpen(pid, 0)
		ts.Check(err)
		defer unix.Close(fd)
		ts.Check(unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0))
		n := 0
		for err = unix.EINTR; err == unix.EINTR; {
			n, err = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(patience.Milliseconds()))
		}
		if ts.Check(err); n == 0 {
			ts.Fatalf("the supervisor that was killed is still there")
		}
		return
	}
	ts.Fatalf("there is no supervisor to kill")
}

// answerFirst waits for a question and answers it.
func answerFirst(verb string) func(ts *testscript.TestScript, neg bool, args []string) {
	return func(ts *testscript.TestScript, _ bool, args []string) {
		for end := time.Now().Add(patience); time.Now().Before(end); <-time.After(50 * time.Millisecond) {
			ts.Check(ts.Exec("stepbox", "show", "--json"))
			var s struct {
				Questions []struct {
					Action int
					Hash   string
				} `json:"questions"`
			}
			ts.Check(json.Unmarshal([]byte(ts.ReadFile("stdout")), &s))
			if len(s.Questions) > 0 {
				ts.Check(ts.Exec("stepbox", append([]string{verb, fmt.Sprint(s.Questions[0].Action), "--hash", s.Questions[0].Hash}, args...)...))
				return
			}
		}
		ts.Fatalf("nothing was held")
	}
}

// TestScriptsAsOrdinaryUser runs the scripts again as a user with no rights at all.
func TestScriptsAsOrdinaryUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("the scripts were run as an ordinary user already")
	}
	dir, err := os.MkdirTemp("", "ordinary")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chown(dir, ordinary, ordinary); err != nil {
		t.Fatal(err)
	}
	wd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	// The checkout may be where that user can't go.
	scripts := filepath.Join(dir, "ui/cli/testdata/script")
	if err := os.CopyFS(scripts, os.DirFS(filepath.Join(wd, "ui/cli/testdata/script"))); err != nil {
		t.Fatal(err)
	}
	exe := filepath.Join(dir, "stepbox.test")
	if err := copyFile("/proc/self/exe", exe); err != nil {
		t.Fatal(err)
	}
	if err := chownAll(dir); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe, "-test.run", "^TestScripts$", "-test.v="+fmt.Sprint(testing.Verbose()))
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "TMPDIR=" + dir, asUser + "=1", "GORACE=" + os.Getenv("GORACE")}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: ordinary, Gid: ordinary}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("as uid %d: %v\n%s", ordinary, err, out)
	}
	t.Logf("%s", out)
}

func copyFile(from, to string) error {
	b, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, b, 0o755)
}

func chownAll(dir string) error {
	return filepath.WalkDir(dir, func(p string, _ fs.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(p, ordinary, ordinary))
	})
}

// directions says what each room of the tree may import of the others.
var directions = map[string][]string{
	"runner": nil, "policy": nil, "store": nil, "themes": nil,
	"session/api":      nil,
	"session/screen":   nil,
	"session/loop":     nil,
	"session/redact":   nil,
	"session/demo":     {"session/api"},
	"session/ledger":   {"session/replay", "store", "session/api"},
	"session/replay":   {"store", "session/api", "session/screen"},
	"session/terminal": {"store", "session/api", "session/screen"},
	"session/judge":    {"runner", "policy", "session/api"},
	"session/files":    {"session/ledger", "session/base", "session/merge", "session/patch", "session/project", "runner", "policy", "store", "session/api"},
	"session/export":   {"session/files", "session/redact", "session/screen", "store", "session/api"},
	"session/find":     {"session/files", "session/ledger", "store", "session/api"},
	"session/base":     {"runner", "policy"},
	"session/effects":  {"session/base", "runner", "policy", "session/api"},
	"session/said":     {"session/effects", "session/api"},
	"session/network":  {"runner", "policy", "session/api"},
	"session/deeds":    {"session/files", "session/base", "session/effects", "session/said", "runner", "policy", "session/api"},
	"session/outfit":   {"session/files", "runner", "policy"},
	"session/scratch":  {"session/files", "session/outfit", "runner", "policy", "store", "session/api"},
	"session/blame":    {"session/files", "session/ledger", "session/merge", "session/project", "runner", "store", "session/api"},
	"session/tree":     {"session/files", "session/base", "session/ledger", "session/outfit", "session/project", "runner", "policy", "store", "session/api"},
	"session/bisect":   {"session/files", "session/ledger", "session/tree", "runner", "store", "session/api"},
	"session/merge":    {"session/api"},
	"session/patch":    {"session/merge", "runner", "session/api"},
	"session/apply":    {"session/effects", "session/files", "session/ledger", "session/merge", "session/project", "session/scratch", "runner", "policy", "store", "session/api"},
	"session":          {"session/loop", "session/seal", "session/network", "session/base", "session/deeds", "session/project", "session/said", "session/files", "session/judge", "session/outfit", "session/ledger", "session/terminal", "runner", "policy", "store", "session/api"},
	"session/project":  {"runner"},
	"session/seal":     {"store", "session/api"},
	"session/server":   {"session/terminal", "session/api"},
	"session/launch":   {"runner", "policy", "store", "session", "session/export", "session/files", "session/find", "session/ledger", "session/apply", "session/bisect", "session/blame", "session/project", "session/scratch", "session/tree", "session/api", "session/server", "session/seal"},
	"ui":               {"session/api", "themes"},
}

// layers says what each package of runner/overlay may import of the tree: these of its neighbours.
var layers = map[string][]string{
	"codec":    nil,
	"content":  {"codec"},
	"manifest": {"codec", "content"},
	"inode":    {"codec", "manifest"},
	"lower":    {"content", "manifest", "inode"},
	"diff":     {"content", "manifest", "lower"},
	"scan":     {"content", "manifest", "inode", "lower"},
	"restore":  {"codec", "content", "manifest", "inode", "lower", "diff"},
	"watch":    {"manifest", "inode"},
}

// only says which package alone may import a library.
var only = map[string]string{
	"github.com/opencontainers/runc/": "runner/box",
	"github.com/mattn/go-sqlite3":     "store",
	"charm.land/":                     "ui",
	"gvisor.dev/gvisor/pkg/tcpip":     "runner/egress",
}

func TestImports(t *testing.T) {
	if os.Getenv(asUser) != "" {
		t.Skip("the sources were checked by the one who could read them")
	}
	out, err := exec.CommandContext(t.Context(), "go", "list",
		"-f", "{{.ImportPath}} {{range .Imports}}{{.}} {{end}}", "./...").CombinedOutput()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, out)
	}
	for line := range strings.Lines(string(out)) {
		words := strings.Fields(line)
		from, ours := strings.CutPrefix(words[0], "stepbox/")
		if !ours {
			continue // main wires everything
		}
		for _, imported := range words[1:] {
			for library, room := range only {
				if strings.HasPrefix(imported, library) && !inRoom(from, room) {
					t.Errorf("%s imports %s: only %s may", from, imported, room)
				}
			}
			to, ours := strings.CutPrefix(imported, "stepbox/")
			if !ours {
				continue
			}
			if pkg, ok := strings.CutPrefix(from, "runner/overlay/"); ok && !slices.Contains(layers[pkg], strings.TrimPrefix(to, "runner/overlay/")) {
				t.Errorf("%s imports %s: of runner/overlay it may import only %v, and nothing else of the tree", from, to, layers[pkg])
			}
			a, b := room(from), room(to)
			if a != b && !slices.Contains(directions[a], b) {
				t.Errorf("%s imports %s: %s may import only %v", from, to, a, directions[a])
			}
		}
	}
}

// libraries are what Stepbox was asked to be built on, each with the part of it
// that the program itself imports.
var libraries = map[string]string{
	"charm.land/bubbletea/v2":        "charm.land/bubbletea/v2",
	"charm.land/bubbles/v2":          "charm.land/bubbles/v2/key",
	"github.com/creack/pty":          "github.com/creack/pty",
	"github.com/fsnotify/fsnotify":   "github.com/fsnotify/fsnotify",
	"github.com/mattn/go-sqlite3":    "github.com/mattn/go-sqlite3",
	"github.com/opencontainers/runc": "github.com/opencontainers/runc/libcontainer",
}

// TestLibraries: go.mod requires them itself, and code of ours that main reaches
// imports them, not only tests.
func TestLibraries(t *testing.T) {
	if os.Getenv(asUser) != "" {
		t.Skip("the sources were checked by the one who could read them")
	}
	mod, err := exec.CommandContext(t.Context(), "go", "mod", "edit", "-json").Output()
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Require []struct {
			Path     string
			Indirect bool
		}
	}
	if err := json.Unmarshal(mod, &file); err != nil {
		t.Fatal(err)
	}
	required := make(map[string]bool)
	for _, r := range file.Require {
		required[r.Path] = !r.Indirect
	}
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{.ImportPath}} {{range .Imports}}{{.}} {{end}}", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	imported := make(map[string]bool)
	for line := range strings.Lines(string(out)) {
		words := strings.Fields(line)
		if words[0] != "stepbox" && !strings.HasPrefix(words[0], "stepbox/") {
			continue
		}
		for _, pkg := range words[1:] {
			imported[pkg] = true
		}
	}
	for module, pkg := range libraries {
		if !required[module] {
			t.Errorf("go.mod doesn't require %s itself", module)
		}
		if !imported[pkg] {
			t.Errorf("nothing that main reaches imports %s", pkg)
		}
	}
}

// room is the part of the tree that a package belongs to.
func room(pkg string) string {
	best := ""
	for r := range directions {
		if inRoom(pkg, r) && len(r) > len(best) {
			best = r
		}
	}
	return best
}

func inRoom(pkg, room string) bool { return pkg == room || strings.HasPrefix(pkg, room+"/") }

// TestUsageIsWhatIsTaken: each command takes as many arguments as its usage line
// says, and the help prints that line as it stands.
func TestUsageIsWhatIsTaken(t *testing.T) {
	for _, cmd := range command().Commands() {
		t.Run(cmd.Name(), func(t *testing.T) {
			least, most, ok := arity(cmd)
			if !ok {
				t.Skip("it takes any command line")
			}
			if cmd.Args == nil {
				t.Fatal("it takes whatever it gets")
			}
			for n := 0; n <= most+1; n++ {
				err := cmd.Args(cmd, make([]string, n))
				if (err == nil) != (n >= least && n <= most) {
					t.Errorf("%q with %d arguments: %v", cmd.Use, n, err)
				}
			}
			var out bytes.Buffer
			cmd.SetOut(&out)
			if err := cmd.Help(); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(out.String(), "stepbox "+cmd.Use) || strings.Contains(out.String(), "\x1b") {
				t.Errorf("the help doesn't have %q as it is:\n%s", cmd.Use, out.String())
			}
		})
	}
}

// arity reads a usage line: ARGUMENTs and [OPTIONAL] ones, in order. A flag that
// has to be given stands there with its value.
func arity(cmd *cobra.Command) (least, most int, ok bool) {
	flag := false
	for _, word := range strings.Fields(cmd.Use)[1:] {
		if flag {
			flag = false
			continue
		}
		switch {
		case strings.HasPrefix(word, "--"):
			flag = true
		case strings.Contains(word, "..."), word == "[flags]", word == "[command]":
			return 0, 0, false
		case strings.HasPrefix(word, "["):
			most++
		default:
			least, most = least+1, most+1
		}
	}
	return least, most, true
}

// TestBuildWithoutCgo: where there is no C compiler, the build stops at a line
// that says what is needed rather than at what is missing somewhere below.
func TestBuildWithoutCgo(t *testing.T) {
	if os.Getenv(asUser) != "" {
		t.Skip("the sources are read by the one who can")
	}
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{.ImportPath}} {{.GoFiles}} {{.Error}}", "./runner/box")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "nocgo.go") || strings.Contains(string(out), "libcontainer/nsenter") {
		t.Fatalf("go list: %v\n%s", err, out)
	}
	text, err := os.ReadFile("runner/box/nocgo.go")
	if err != nil || !strings.Contains(string(text), "needs_cgo") {
		t.Errorf("what the build stops at says %q, %v", text, err)
	}
}

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
	for _, name := range []string{"PATH", "HOME", "XDG_RUNTIME_DIR", "STEPBOX_DATA", "SHELL", "TERM", "TMPDIR", "GORACE"} {
		cmd.Env = append(cmd.Env, name+"="+ts.Getenv(name))
	}
	cmd.Stdout, cmd.Stderr = said, said
	// Who starts these tests in the background may have them ignore it, which a
	// command would inherit.
	heard := make(chan os.Signal, 1)
	signal.Notify(heard, syscall.SIGINT)
	defer signal.Stop(heard)
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
	for _, pid := range holders(ts) {
		ts.Check(syscall.Kill(pid, syscall.SIGKILL))
	}
}

// stopHolder stops the holder, so that what it is asked to do stays under way, with
// what may be left of an earlier one; and lets it go on again, whoever it belongs to
// by then, or kills it: stop-holder, stop-holder end, stop-holder kill.
func stopHolder(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) > 0 {
		signal := map[string]syscall.Signal{"end": syscall.SIGCONT, "kill": syscall.SIGKILL}[args[0]]
		for pid := range strings.FieldsSeq(ts.Getenv("HOLDERS")) {
			n, err := strconv.Atoi(pid)
			ts.Check(err)
			_ = syscall.Kill(n, signal) // it may have ended
		}
		return
	}
	all := ""
	for _, pid := range holders(ts) {
		holder, err := os.FindProcess(pid)
		ts.Check(err)
		ts.Defer(func() { _ = holder.Signal(syscall.SIGCONT) }) // should the script not get to its end
		ts.Check(holder.Signal(syscall.SIGSTOP))
		all += strconv.Itoa(pid) + " "
	}
	ts.Setenv("HOLDERS", all)
}

// holders finds those of the script's supervisors; there is at least one.
func holders(ts *testscript.TestScript) (pids []int) {
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
		pids = append(pids, pid)
	}
	if len(pids) == 0 {
		ts.Fatalf("there is no holder")
	}
	return pids
}

// cutOff kills the script's only supervisor while a command has it write files in the
// folder d, after the first few of them; its holder, too, or that goes on:
// cut-off NUMBER [holder] COMMAND….
func cutOff(ts *testscript.TestScript, _ bool, args []string) {
	number, err := strconv.Atoi(args[0])
	ts.Check(err)
	both := args[1] == "holder"
	if args = args[1:]; both {
		args = args[1:]
	}
	dirs, err := filepath.Glob(filepath.Join(ts.Getenv("STEPBOX_DATA"), "sessions/*/upper/d"))
	if err != nil || len(dirs) != 1 {
		ts.Fatalf("there are %q, %v", dirs, err)
	}
	watch, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	ts.Check(err)
	_, err = unix.InotifyAddWatch(watch, dirs[0], unix.IN_MODIFY|unix.IN_MOVED_TO|unix.IN_DELETE)
	ts.Check(err)
	events := os.NewFile(uintptr(watch), "inotify")
	held := holders(ts) // looking for them takes longer than writing a few files
	var said bytes.Buffer
	cmd := background(ts, &said, args)
	ended := make(chan error, 1)
	go func() {
		err := cmd.Wait()
		events.Close() // nobody waits for more
		ended <- err
	}()
	buf, seen := make([]byte, 4096), map[string]bool{}
	for len(seen) < number {
		n, err := events.Read(buf)
		if err != nil {
			ts.Fatalf("the command ended with %v after %d files: %s", <-ended, len(seen), said.String())
		}
		for e := buf[:n]; len(e) > 0; { // see inotify(7)
			size := unix.SizeofInotifyEvent + binary.NativeEndian.Uint32(e[12:])
			seen[string(e[unix.SizeofInotifyEvent:size])] = true
			e = e[size:]
		}
	}
	for _, pid := range held {
		ts.Check(syscall.Kill(pid, syscall.SIGSTOP))
	}
	ts.Setenv("HOLDERS", strings.Trim(fmt.Sprint(held), "[]"))
	killNine(ts, false, nil)
	stopHolder(ts, false, []string{map[bool]string{true: "kill", false: "end"}[both]})
	if err := <-ended; err == nil {
		ts.Fatalf("the command had ended when %d files were written", len(seen))
	}
}
