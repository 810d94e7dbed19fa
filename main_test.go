package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/binary"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	mathrand "math/rand/v2"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	_ "github.com/mattn/go-sqlite3"
	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"stepbox/runner"
	"stepbox/session/api"
	"stepbox/session/e2e/must"
	"stepbox/session/ledger"
	"stepbox/session/tell"
	"stepbox/store"
	"stepbox/ui/keys"
	"stepbox/ui/topics"
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
	if err := flag.Set("test.parallel", "4"); err != nil {        // most of the time is spent waiting; the command line may say otherwise
		panic(err)
	}
	testscript.Main(m, map[string]func(){"stepbox": main, tell.Opener: main})
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

var spaces = regexp.MustCompile(" +")

// until runs a command until its output holds a text: until TEXT COMMAND…
func until(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: until TEXT COMMAND…")
	}
	var last string
	narrow := func(s string) string { return spaces.ReplaceAllString(s, " ") } // columns are as wide as what is in them
	for end := time.Now().Add(patience); time.Now().Before(end); <-time.After(50 * time.Millisecond) {
		err := ts.Exec(args[1], args[2:]...)
		last = ts.ReadFile("stdout") + ts.ReadFile("stderr")
		if strings.Contains(narrow(last), narrow(args[0])) != neg {
			return
		}
		if err != nil {
			last += err.Error()
		}
	}
	ts.Fatalf("%q didn't come; the last output was\n%s", args[0], last)
}

// killNine kills the supervisor of one of the script's live sessions, and waits until it
// is gone: what it had locked is free then.
func killNine(ts *testscript.TestScript, _ bool, _ []string) {
	notes, err := filepath.Glob(filepath.Join(ts.Getenv("STEPBOX_DATA"), "live", "*.json"))
	ts.Check(err)
	for _, path := range notes {
		b, err := os.ReadFile(path)
		ts.Check(err)
		var note struct{ PID int }
		ts.Check(json.Unmarshal(b, &note))
		fd, err := unix.PidfdOpen(note.PID, 0)
		if err == unix.ESRCH { // killed before
			continue
		}
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

// alike are the scripts about the record, the rules and most of those about what git is in
// a session, which are the same for every user.
const alike = "apply_(kin|returned|reverted)|ask|bisect|blame|caches|config|export|find|fork.*|gc|git_.*|homes|import|names|output|" +
	"patch|policy.*|profiles|replay|rules.*|sharing|takeback.*|travel.*|usage|variables|verify|worktree"

// TestScriptsAsOrdinaryUser runs the others again as a user with no rights at all.
func TestScriptsAsOrdinaryUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("the scripts were run as an ordinary user already")
	}
	const scripts = "ui/cli/testdata/script"
	dir, program := atOrdinary(t, "stepbox.test", scripts)
	out, err := byOrdinary(t, dir, program, "-test.run", "^TestScripts$", "-test.skip", "^TestScripts$/^("+alike+")$", "-test.v="+fmt.Sprint(testing.Verbose())).CombinedOutput()
	if err != nil {
		t.Fatalf("as uid %d: %v\n%s", ordinary, err, out)
	}
	t.Logf("%s", out)
}

// TestMachine runs here what other machines are tried with, so that it goes on
// speaking of the program as it is.
func TestMachine(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("it is run by root as another user")
	}
	t.Parallel()
	dir, _ := atOrdinary(t, "stepbox", ".ci/vm")
	cmd := byOrdinary(t, dir, "bash", ".ci/vm/test.sh")
	cmd.Env = append(cmd.Env, "STEPBOX_DATA="+filepath.Join(dir, "data"), "XDG_RUNTIME_DIR="+dir, "TERM=dumb")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("as uid %d: %v\n%s", ordinary, err, out)
	}
	if left := leftovers(dir); len(left) > 0 {
		t.Errorf("it left behind:\n  %s", strings.Join(left, "\n  "))
	}
}

// atOrdinary is a folder of the ordinary user's with this program and a folder of the
// checkout, which may be where that user can't go. The program is beside the folder's
// files, too.
func atOrdinary(t *testing.T, name, folder string) (dir, program string) {
	dir, err := os.MkdirTemp("", "ordinary")
	must.OK(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	must.OK(t, os.CopyFS(filepath.Join(dir, folder), os.DirFS(folder)))
	program = filepath.Join(dir, folder, name)
	must.OK(t, copyFile("/proc/self/exe", program))
	must.OK(t, chownAll(dir))
	return dir, program
}

// byOrdinary is a command that the ordinary user runs in a folder.
func byOrdinary(t *testing.T, dir, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "TMPDIR=" + dir, asUser + "=1", "GORACE=" + os.Getenv("GORACE")}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: ordinary, Gid: ordinary}}
	return cmd
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
	"session/redact":   {"session/api"},
	"session/tell":     {"runner", "session/api"},
	"session/demo":     {"session/api"},
	"session/e2e":      nil, // for tests: nobody may import it
	"session/ledger":   {"session/replay", "store", "session/api"},
	"session/replay":   {"store", "session/api", "session/screen"},
	"session/terminal": {"store", "session/api", "session/redact", "session/screen"},
	"session/judge":    {"session/redact", "runner", "policy", "session/api"},
	"session/files":    {"session/ledger", "session/base", "session/effects", "session/merge", "session/patch", "session/project", "runner", "policy", "store", "session/api"},
	"session/export":   {"session/files", "session/redact", "session/replay", "session/screen", "store", "session/api"},
	"session/find":     {"session/files", "session/ledger", "session/screen", "store", "session/api"},
	"session/base":     {"runner", "policy"},
	"session/effects":  {"session/base", "runner", "policy", "session/api"},
	"session/budget":   {},
	"session/ports":    nil,
	"session/signin":   {"session/api"},
	"session/network":  {"session/budget", "runner", "policy", "session/api"},
	"session/deeds":    {"session/files", "session/base", "session/effects", "runner", "policy", "session/api"},
	"session/backtest": {"session/ledger", "session/network", "session/rules", "policy", "store", "session/api"},
	"session/frozen":   {"session/base", "session/project", "runner", "policy", "session/api"},
	"session/outfit":   {"session/files", "session/frozen", "runner", "policy", "session/api"},
	"session/rules":    {"policy", "session/api"},
	"session/explain":  {"session/outfit", "session/rules", "policy", "session/api"},
	"session/scratch":  {"session/files", "session/frozen", "session/merge", "session/outfit", "runner", "policy", "store", "session/api"},
	"session/blame":    {"session/files", "session/ledger", "session/merge", "session/project", "runner", "store", "session/api"},
	"session/tree":     {"session/files", "session/frozen", "session/base", "session/ledger", "session/outfit", "session/project", "runner", "policy", "store", "session/api"},
	"session/bisect":   {"session/files", "session/ledger", "session/tree", "runner", "store", "session/api"},
	"session/merge":    {"session/api"},
	"session/patch":    {"session/merge", "runner", "policy", "session/api"},
	"session/apply":    {"session/base", "session/effects", "session/files", "session/ledger", "session/merge", "session/project", "session/scratch", "runner", "policy", "store", "session/api"},
	"session":          {"session/backtest", "session/frozen", "session/loop", "session/tell", "session/seal", "session/network", "session/base", "session/bring", "session/credential", "session/deeds", "session/home", "session/ports", "session/project", "session/signin", "session/spend", "session/sshagent", "session/files", "session/judge", "session/outfit", "session/redact", "session/ledger", "session/rules", "session/terminal", "runner", "policy", "store", "session/api"},
	"session/project":  {"runner"},
	"session/seal":     {"session/ledger", "store", "session/api"},
	"session/server":   {"session/backtest", "session/bisect", "session/blame", "session/explain", "session/export", "session/find", "session/seal", "session/terminal", "runner", "session/api"},
	"session/launch":   {"session/backtest", "session/frozen", "runner", "policy", "store", "session", "session/explain", "session/export", "session/files", "session/find", "session/ledger", "session/apply", "session/bisect", "session/blame", "session/outfit", "session/project", "session/redact", "session/rules", "session/scratch", "session/tree", "session/api", "session/server", "session/seal"},
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
	"github.com/modelcontextprotocol": "session/tell/mcp",
	"text/template":                   "no room", // the linker keeps every method of every type then
	"html/template":                   "no room", // the same
}

func TestImports(t *testing.T) {
	if os.Getenv(asUser) != "" {
		t.Skip("the sources were checked by the one who could read them")
	}
	if here, err := filepath.Glob("*.go"); err != nil || !slices.Equal(here, []string{"main.go", "main_test.go"}) {
		t.Errorf("at the top are %v (%v): only main.go is, which wires the rooms of the tree", here, err)
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
	must.OK(t, err)
	var file struct {
		Require []struct {
			Path     string
			Indirect bool
		}
	}
	must.OK(t, json.Unmarshal(mod, &file))
	required := make(map[string]bool)
	for _, r := range file.Require {
		required[r.Path] = !r.Indirect
	}
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{.ImportPath}} {{range .Imports}}{{.}} {{end}}", ".").Output()
	must.OK(t, err)
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
			must.OK(t, cmd.Help())
			if !strings.Contains(out.String(), "stepbox "+cmd.Use) || strings.Contains(out.String(), "\x1b") {
				t.Errorf("the help doesn't have %q as it is:\n%s", cmd.Use, out.String())
			}
		})
	}
}

// TestHelpFits: what the flags of a command are for fits a terminal of 80 columns.
func TestHelpFits(t *testing.T) {
	commands := command().Commands()
	for len(commands) > 0 {
		cmd := commands[0]
		commands = append(commands[1:], cmd.Commands()...)
		var out bytes.Buffer
		cmd.SetOut(&out)
		must.OK(t, cmd.Help())
		_, flags, _ := strings.Cut(out.String(), "\nFlags:\n")
		for line := range strings.Lines(flags) {
			if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > 80 && strings.HasPrefix(line, "  ") {
				t.Errorf("%s: a line of %d characters: %s", cmd.CommandPath(), n, line)
			}
		}
	}
}

// TestNamedCommands: the commands that the palette and the help pages name are commands,
// with those flags, and help prints each page.
func TestNamedCommands(t *testing.T) {
	root := command()
	named := func(where, words string) {
		cmd, rest, err := root.Find(strings.Fields(words))
		if err != nil || cmd == root {
			t.Errorf("%s names %q, which is no command", where, words)
			return
		}
		for _, w := range rest {
			if flag, ok := strings.CutPrefix(w, "--"); ok && cmd.Flags().Lookup(flag) == nil {
				t.Errorf("%s names %q, which has no such flag", where, words)
			}
		}
	}
	for _, s := range keys.Scopes {
		for _, b := range append(keys.In(s), keys.Modes()...) {
			if b.Plain() != "" {
				named(b.Name, b.Plain())
			}
		}
	}
	in := regexp.MustCompile(`stepbox ((?:[a-z]+ ?)+(?:--[a-z-]+)?)`)
	for _, x := range topics.All {
		for _, found := range in.FindAllStringSubmatch(x.Text(), -1) {
			if first := strings.Fields(found[1])[0]; first != "alone" && first != "help" {
				named("help "+x.Name, found[1])
			}
		}
		var out bytes.Buffer
		root := command()
		root.SetOut(&out)
		root.SetArgs([]string{"help", x.Name})
		if err := root.Execute(); err != nil || !strings.Contains(out.String(), x.Title) || !strings.Contains(out.String(), x.Text()) {
			t.Errorf("help %s prints %q (%v)", x.Name, out.String(), err)
		}
	}
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetArgs([]string{"help", "nonsense"})
	if err := root.Execute(); err == nil {
		t.Error("help for nonsense isn't refused")
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
	// Whoever runs the tests by nohup has hang-ups ignored, and a child would have, too.
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, syscall.SIGHUP)
	defer signal.Stop(caught)
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
	watch, err := unix.InotifyInit1(unix.IN_CLOEXEC)
	ts.Check(err)
	defer unix.Close(watch)
	written, err := unix.InotifyAddWatch(watch, dirs[0], unix.IN_MODIFY|unix.IN_MOVED_TO|unix.IN_DELETE)
	ts.Check(err)
	held := holders(ts) // looking for them takes longer than writing a few files
	for _, pid := range held {
		yield(ts, pid)
	}
	// Who is to be quicker than a loop that writes runs before anything else, if it
	// may, and isn't woken by way of the poller.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 1, Flags: unix.SCHED_FLAG_RESET_ON_FORK}, 0) == nil {
		defer func() {
			ts.Check(unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Flags: unix.SCHED_FLAG_RESET_ON_FORK}, 0))
		}()
	}
	var said bytes.Buffer
	cmd := background(ts, &said, args)
	ended := make(chan error, 1)
	go func() {
		err := cmd.Wait()
		_, _ = unix.InotifyRmWatch(watch, uint32(written)) // nobody waits for more
		ended <- err
	}()
	buf, seen := make([]byte, 4096), map[string]bool{}
	for len(seen) < number {
		n, err := unix.Read(watch, buf)
		if err == unix.EINTR {
			continue
		}
		ts.Check(err)
		for e := buf[:n]; len(e) > 0; { // see inotify(7)
			if binary.NativeEndian.Uint32(e[4:])&unix.IN_IGNORED != 0 {
				ts.Fatalf("the command ended with %v after %d files: %s", <-ended, len(seen), said.String())
			}
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

// yield has all threads of a process let others run first, so that who waits for what
// it does is awake before it is through, also where the machine is busy.
func yield(ts *testscript.TestScript, pid int) {
	// Where the scheduler weighs sessions (sched(7), autogroup), a thread's own weight
	// counts within its session alone. There may be no such file.
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/autogroup", pid), []byte("19"), 0)
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
	ts.Check(err)
	for _, t := range threads {
		tid, err := strconv.Atoi(filepath.Base(t))
		ts.Check(err)
		if err := syscall.Setpriority(syscall.PRIO_PROCESS, tid, 19); err != nil && !errors.Is(err, syscall.ESRCH) {
			ts.Fatalf("yield: %v", err)
		}
	}
}

// faulty is a record that something is done to.
type faulty struct{ killed }

func newFaulty(t *testing.T) *faulty {
	t.Helper()
	f := &faulty{killed{T: t, work: t.TempDir()}}
	f.prepare()
	t.Cleanup(func() {
		if left := leftovers(f.work); len(left) > 0 {
			t.Errorf("it left behind:\n  %s", strings.Join(left, "\n  "))
		}
	})
	return f
}

func (f *faulty) db() string { return filepath.Join(f.data(), "stepbox.db") }

// says runs a command that is to end with a code and words, and without more than those.
func (f *faulty) says(code int, words []string, args ...string) {
	f.Helper()
	out, err := f.stepbox(args...).CombinedOutput()
	var ended *exec.ExitError
	if got := 0; err != nil && !errors.As(err, &ended) || ended != nil && ended.ExitCode() != code || ended == nil && got != code {
		f.Errorf("%q: %v, want exit code %d: %s", args, err, code, out)
	}
	for _, w := range words {
		if !strings.Contains(string(out), w) {
			f.Errorf("%q doesn't say %q: %s", args, w, out)
		}
	}
	if strings.Contains(string(out), "goroutine ") || bytes.Count(out, []byte("\n")) > 1 && code != 0 {
		f.Errorf("%q says too much: %s", args, out)
	}
}

// every is a command of each sort: one that reads, writes, starts, removes, exports.
var every = [][]string{
	{"ls"}, {"show", "it"}, {"log", "it"}, {"diff", "it"}, {"verify", "--all"}, {"gc"}, {"rm", "--force", "it"}, {"label", "it", "--pin"},
	{"key"}, {"export", "it"}, {"apply", "it", "--yes"}, {"replay", "it"}, {"run", "--mode", "watch", "--", "true"},
}

// A database that can't be read is told of by every command in the same words, which
// help: what they say makes a new record, and the old one stays as it was.
func TestDamagedRecord(t *testing.T) {
	for name, damage := range map[string]func(b []byte){
		"not a database": func(b []byte) { _, _ = rand.Read(b[:4096]) }, // it never fails
		"damaged pages": func(b []byte) {
			for i := 4096; i < len(b)-4096; i++ {
				b[i] ^= 0x5a
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFaulty(t)
			f.says(0, nil, "run", "--mode", "watch", "--name", "it", "--", "true")
			for end := time.Now().Add(patience); time.Now().Before(end); <-time.After(10 * time.Millisecond) {
				if _, err := os.Stat(f.db() + "-wal"); err != nil { // the supervisor has let go of it
					break
				}
			}
			b, err := os.ReadFile(f.db())
			must.OK(t, err)
			damage(b)
			must.OK(t, os.WriteFile(f.db(), b, 0o600))
			words := []string{"the record is damaged", "mv " + f.db() + "* "}
			for _, args := range every {
				code := 1
				if args[0] == "run" {
					code = 125
				}
				f.says(code, words, args...)
			}
			if now, err := os.ReadFile(f.db()); err != nil || !bytes.Equal(now, b) {
				t.Errorf("the database was changed, %v", err)
			}
			out, _ := f.stepbox("ls").CombinedOutput() // it says what helps
			_, advice, _ := strings.Cut(string(out), "for inspection: ")
			advice, _, _ = strings.Cut(advice, ": ")
			if out, err := exec.CommandContext(t.Context(), "sh", "-c", advice).CombinedOutput(); err != nil {
				t.Fatalf("%s: %v: %s", advice, err, out)
			}
			f.says(0, nil, "run", "--mode", "watch", "--name", "new", "--", "true")
			f.says(0, []string{"new"}, "ls")
			if now, err := os.ReadFile(filepath.Join(f.data(), "damaged", "stepbox.db")); err != nil || !bytes.Equal(now, b) {
				t.Errorf("what was kept isn't what there was, %v", err)
			}
		})
	}
}

// A live session whose record can't be written any more ends, says why, and lets nothing
// happen that isn't recorded; what was recorded can be read, where there still is a record.
func TestRecordFailsUnderSession(t *testing.T) {
	for name, c := range map[string]struct {
		fault func(t *testing.T, f *faulty, supervisor int) error
		words []string // that stepbox run says, any of them
		whole bool     // the record is there and whole
	}{
		"no room": {func(t *testing.T, f *faulty, supervisor int) error {
			st, err := os.Stat(f.db() + "-wal")
			if err != nil {
				return err
			}
			return unix.Prlimit(supervisor, unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: uint64(st.Size()), Max: unix.RLIM_INFINITY}, nil)
		}, []string{"see whether the disk is full", "the disk is full"}, true},
		"removed": {func(t *testing.T, f *faulty, _ int) error {
			return os.Remove(f.db())
		}, []string{"the record is gone", "could not record", "not in the record", "its record can't be read"}, false},
		"overwritten": {func(t *testing.T, f *faulty, _ int) error {
			for _, p := range []string{f.db(), f.db() + "-wal"} {
				st, err := os.Stat(p)
				if err != nil {
					return err
				}
				junk := make([]byte, st.Size())
				_, _ = rand.Read(junk) // it never fails
				w, err := os.OpenFile(p, os.O_WRONLY, 0)
				if err == nil {
					_, err = w.Write(junk)
					err = errors.Join(err, w.Close())
				}
				if err != nil {
					return err
				}
			}
			return nil
		}, []string{"the record is damaged"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFaulty(t)
			start := f.stepbox("run", "--mode", "watch", "--name", "it", "--", "sh", "-c", busy)
			var out, said bytes.Buffer
			start.Stdout, start.Stderr = &out, &said
			must.OK(t, start.Start())
			fd, pid := f.supervisor(start)
			defer unix.Close(fd)
			f.until("running", "ls")
			must.OK(t, c.fault(t, f, pid))
			err := start.Wait()
			words := 0
			for _, w := range c.words {
				if strings.Contains(said.String(), w) {
					words++
				}
			}
			if err == nil || words == 0 {
				t.Errorf("run: %v: %s", err, &said)
			}
			if c.whole {
				f.says(0, []string{"it (1): whole"}, "verify", "it")
			}
		})
	}
}

// Of a record that isn't what was recorded nothing is written into the project, whoever
// has looked, until it is again; an export of it says so and is written.
func TestChangedRecord(t *testing.T) {
	f := newFaulty(t)
	f.says(0, nil, "run", "--mode", "watch", "--name", "it", "--", "sh", "-c", "echo one > a.txt")
	f.says(0, nil, "run", "--mode", "watch", "--name", "other", "--", "sh", "-c", "echo two > b.txt")
	db, err := sql.Open("sqlite3", "file:"+f.db()+"?_busy_timeout=30000")
	must.OK(t, err)
	defer db.Close()
	if _, err := db.Exec(`UPDATE sessions SET doc = json_set(doc, '$.reason', 'changed') WHERE number = 1`); err != nil {
		t.Fatal(err)
	}
	has := func(name string) bool {
		_, err := os.Lstat(filepath.Join(f.work, "project", name))
		return err == nil
	}
	out, err := f.stepbox("apply", "it", "--yes", "--looked").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "isn't whole: stepbox verify") || has("a.txt") {
		t.Errorf("apply: %v: %s", err, out)
	}
	for _, format := range []string{"patch", "html", "jsonl", "cast"} {
		file := filepath.Join(f.work, format)
		f.says(0, []string{"isn't whole: stepbox verify"}, "export", "it", "--format", format, "--yes", "-o", file)
		if st, err := os.Stat(file); err != nil || st.Size() == 0 {
			t.Errorf("the %s isn't there, %v", format, err)
		}
	}
	if out, err := f.stepbox("export", "other").CombinedOutput(); err != nil || strings.Contains(string(out), "whole") {
		t.Errorf("the export of another session: %v: %s", err, out)
	}
	f.says(0, nil, "apply", "other", "--yes", "--looked")
	f.says(0, []string{"repaired"}, "verify", "it", "--repair")
	f.says(0, nil, "apply", "it", "--yes", "--looked")
	if !has("a.txt") || !has("b.txt") {
		t.Error("what was applied isn't there")
	}
}

// What tables alone were told is never recorded, by whoever goes on from a record, and so
// never signed: until they say again what the events say.
func TestChangedTables(t *testing.T) {
	f := newFaulty(t)
	f.says(0, nil, "run", "--mode", "watch", "--name", "it", "--", "sh", "-c", "echo one > a.txt; curl -s https://evil.example/; true")
	f.says(0, nil, "apply", "it", "--yes", "--looked")
	db, err := sql.Open("sqlite3", "file:"+f.db()+"?_busy_timeout=30000")
	must.OK(t, err)
	defer db.Close()
	for name, change := range map[string]string{
		"the session": `UPDATE sessions SET doc = json_set(doc, '$.command', 'sh harmless.sh')`,
		"an action":   `UPDATE actions SET doc = json_set(doc, '$.title', 'cat README.md', '$.left_running', 1)`,
		"an attempt":  `UPDATE attempts SET doc = json_set(doc, '$.name', 'good.example', '$.verdict', 'allow', '$.open', json('true'))`,
		"a view":      `DROP VIEW execs; CREATE VIEW execs AS SELECT session, key, seq, doc FROM events WHERE kind = 'none'`,
		"a trigger":   `CREATE TRIGGER other AFTER INSERT ON events BEGIN UPDATE sessions SET doc = json_set(doc, '$.command', 'other'); END`,
	} {
		if _, err := db.Exec(change); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		events := func() (n int) {
			must.OK(t, db.QueryRow(`SELECT count(*) FROM events`).Scan(&n))
			return n
		}
		were := events()
		mends := []string{"isn't whole: stepbox verify", "--repair mends it"}
		f.says(1, mends, "resume", "it", "--", "true")
		f.says(1, mends, "fork", "it", "--", "true")
		out, err := f.stepbox("apply", "it", "--undo=1", "--yes").CombinedOutput()
		if err == nil || !strings.Contains(string(out), mends[1]) {
			t.Errorf("%s: undo: %v: %s", name, err, out)
		}
		if now := events(); now != were {
			t.Errorf("%s: %d events are recorded of it", name, now-were)
		}
		f.says(0, []string{"repaired"}, "verify", "it", "--repair")
	}
	f.says(0, nil, "resume", "it", "--", "true")
	f.says(0, []string{"it (1): whole"}, "verify", "it")
	f.says(0, nil, "apply", "it", "--undo=1", "--yes")
	f.says(0, []string{"it (1): whole"}, "verify", "it")
}

// Output that was put beside a record that is over isn't taken for the session's, also
// where that was killed and sealed by who came next.
func TestAddedOutput(t *testing.T) {
	f := newFaulty(t)
	f.says(0, nil, "run", "--mode", "watch", "--name", "ended", "--", "echo", "first")
	f.says(0, nil, "run", "--mode", "watch", "--name", "killed", "--detach", "--", "sh", "-c", "echo first; sleep 600")
	f.until("first", "replay", "killed", "--plain")
	f.says(0, nil, "run", "--mode", "watch", "--name", "other", "--", "echo", "first")
	f.says(0, nil, "resume", "other", "--detach", "--", "sh", "-c", "echo forged; sleep 600")
	f.until("forged", "replay", "other", "--plain")
	id := func(name string) string {
		var is struct{ ID string }
		out, err := f.stepbox("show", name, "--json").Output()
		must.OK(t, errors.Join(err, json.Unmarshal(out, &is)))
		return is.ID
	}
	part := func(name string) string {
		return filepath.Join(f.data(), "sessions", id(name), "terminal", "000002.raw")
	}
	var note struct{ PID int }
	b, err := os.ReadFile(filepath.Join(f.data(), "live", id("killed")+".json"))
	must.OK(t, errors.Join(err, json.Unmarshal(b, &note)))
	must.OK(t, syscall.Kill(note.PID, syscall.SIGKILL))
	f.until("interrupted", "ls")
	f.until("whole", "verify", "killed")
	b, err = os.ReadFile(part("other"))
	must.OK(t, err)
	f.says(0, nil, "kill", "other")
	for _, name := range []string{"ended", "killed"} {
		must.OK(t, os.WriteFile(part(name), b, 0o600))
		f.until("part 2 of the terminal's output isn't in the record", "verify", name)
		f.says(0, nil, "resume", name, "--", "echo", "own")
		out, err := f.stepbox("replay", name, "--plain").Output()
		if err != nil || strings.Contains(string(out), "forged") || !strings.Contains(string(out), "own") {
			t.Errorf("replay %s: %v: %s", name, err, out)
		}
		f.until("is set aside in 000002.damaged", "verify", name)
	}
}

// A supervisor that can't have its session's folder know of the end leaves its note, so that
// the next command looks after that.
func TestEndUntold(t *testing.T) {
	f := newFaulty(t)
	f.says(0, nil, "run", "--mode", "watch", "--name", "it", "--detach", "--", "sleep", "600")
	notes, _ := filepath.Glob(filepath.Join(f.data(), "live", "*.json"))
	if len(notes) != 1 {
		t.Fatal(notes)
	}
	folder := filepath.Join(f.data(), "sessions", strings.TrimSuffix(filepath.Base(notes[0]), ".json"))
	sealed := filepath.Join(folder, "sealed")
	for end := time.Now().Add(patience); time.Now().Before(end); <-time.After(10 * time.Millisecond) {
		if _, err := os.Stat(sealed); err == nil {
			break
		}
	}
	if err := errors.Join(os.Rename(sealed, sealed+".was"), os.Mkdir(sealed, 0o700)); err != nil { // it can't be written
		t.Fatal(err)
	}
	f.says(0, nil, "kill", "it")
	d, err := os.Open(folder)
	if err == nil {
		err = unix.Flock(int(d.Fd()), unix.LOCK_EX) // it is gone
	}
	must.OK(t, errors.Join(err, d.Close(), os.Remove(sealed), os.Rename(sealed+".was", sealed)))
	if _, err := os.Stat(notes[0]); err != nil {
		t.Fatal(err)
	}
	f.until("it (1): whole", "verify", "it")
	if _, err := os.Stat(notes[0]); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("its note is still there: %v", err)
	}
}

// While another program keeps the database locked, what is asked for waits, and a session
// goes on afterwards as if nothing had been.
func TestLockedRecord(t *testing.T) {
	f := newFaulty(t)
	f.says(0, nil, "run", "--mode", "watch", "--name", "before", "--", "true")
	db, err := sql.Open("sqlite3", "file:"+f.db()+"?_busy_timeout=30000")
	must.OK(t, err)
	defer db.Close()
	db.SetMaxOpenConns(1)
	start := f.stepbox("run", "--mode", "watch", "--name", "it", "--", "sh", "-c", "cat; for i in 1 2 3; do cat /dev/null; done; echo through")
	in, err := start.StdinPipe()
	must.OK(t, err)
	var out bytes.Buffer
	start.Stdout = &out
	must.OK(t, start.Start())
	f.until("running", "ls")
	if _, err := db.Exec(`BEGIN IMMEDIATE`); err != nil {
		t.Fatal(err)
	}
	must.OK(t, in.Close())
	f.says(0, []string{"before"}, "ls") // reading needs no lock
	f.says(0, []string{"whole"}, "verify", "before")
	if _, err := db.Exec(`ROLLBACK`); err != nil {
		t.Fatal(err)
	}
	if err := start.Wait(); err != nil || !strings.Contains(out.String(), "through") {
		t.Errorf("run: %v: %s", err, &out)
	}
	f.says(0, []string{"it (2): whole"}, "verify", "it")
}

// until runs a command until it says something.
func (f *faulty) until(word string, args ...string) {
	f.Helper()
	var out []byte
	for end := time.Now().Add(patience); time.Now().Before(end); <-time.After(20 * time.Millisecond) {
		if out, _ = f.stepbox(args...).CombinedOutput(); strings.Contains(string(out), word) { // it may say something else before
			return
		}
	}
	f.Fatalf("%q didn't say %q: %s", args, word, out)
}

// A session that is removed while others read it, and by two at once, is gone once, and
// whoever was reading ends with all of it or an error. Other sessions don't notice.
func TestRemovedWhileRead(t *testing.T) {
	f := newFaulty(t)
	f.says(0, nil, "run", "--mode", "watch", "--name", "other", "--", "true")
	f.says(0, nil, "run", "--mode", "watch", "--name", "it", "--", "sh", "-c", "seq 200000; for i in 1 2 3 4 5 6 7 8 9; do echo $i > f$i; cat f$i; done; rm f*")
	type ended struct {
		what string
		out  string
		err  error
	}
	commands := [][]string{{"replay", "it", "--speed", "1000"}, {"export", "it", "--format", "cast", "-o", filepath.Join(f.work, "cast")}, {"log", "it"}, {"verify", "it"}, {"rm", "it"}, {"rm", "it"}, {"ls"}}
	all := make(chan ended)
	for _, args := range commands {
		cmd := f.stepbox(args...)
		go func() {
			out, err := cmd.CombinedOutput()
			all <- ended{args[0], string(out), err}
		}()
	}
	removed, said := 0, ""
	for range commands {
		e := <-all
		var exit *exec.ExitError
		if e.err != nil && (!errors.As(e.err, &exit) || exit.ExitCode() != 1 && exit.ExitCode() != 3) || strings.Contains(e.out, "goroutine ") {
			t.Errorf("%s: %v: %s", e.what, e.err, e.out[max(0, len(e.out)-2000):])
		}
		if e.what == "rm" {
			said += e.out
		}
		if e.what == "rm" && e.err == nil {
			removed++
		}
	}
	if removed != 1 {
		t.Errorf("it was removed %d times: %q", removed, said)
	}
	f.says(1, []string{"there is no session"}, "show", "it")
	f.says(0, []string{"other (1): whole"}, "verify", "--all")
}

// killsEnv says at how many moments supervisors are killed: 1000 takes most of an hour.
const killsEnv = "STEPBOX_TEST_KILLS"

// busy is an agent that starts programs, writes files and prints as fast as it can.
const busy = `i=0; while :; do i=$((i+1)); echo "line $i"; echo $i > f$((i%20)); cat f* | tr 1 2 > g$((i%7)); rm -f g3; mkdir -p d/$i; done`

// TestKilledAtAnyMoment kills the supervisor of a busy session at random moments, its
// start included. Each time the database is sound, the record is whole to the last
// event that a client was told and has all of those and all the output, as they were
// told, and nothing of the sandbox is left once another command has run.
func TestKilledAtAnyMoment(t *testing.T) {
	kills, _ := strconv.Atoi(os.Getenv(killsEnv)) // else the default
	if kills == 0 {
		kills = 20
	}
	seed := mathrand.Uint64()
	random := mathrand.New(mathrand.NewPCG(seed, 0))
	t.Logf("%d kills, seed %d", kills, seed)
	var mu sync.Mutex
	met := map[string]int{}
	t.Cleanup(func() { t.Logf("what clients had been told when it came: %v", met) })
	for n := range kills {
		after := time.Duration(random.Int64N(int64(1500 * time.Millisecond)))
		t.Run(strconv.Itoa(n), func(t *testing.T) {
			if n%2 == 1 { // two at a time
				t.Parallel()
			}
			k := &killed{T: t, work: t.TempDir()}
			k.run(after)
			k.check()
			mu.Lock()
			defer mu.Unlock()
			met[k.summary()]++
		})
	}
}

// TestRulesOutliveKills: kill -9 while answers are put into the person's policy. Those that
// were acknowledged are in it, what else there was is as it was, and it can be read.
func TestRulesOutliveKills(t *testing.T) {
	for n := range 6 {
		t.Run(strconv.Itoa(n), func(t *testing.T) {
			t.Parallel()
			k := &killed{T: t, work: t.TempDir()}
			k.prepare()
			policy := filepath.Join(k.work, "home/.config/stepbox/policy.yaml")
			const own = "# mine\nnetwork:\n  - deny: bad.example.org # never\n    why: it is bad\n"
			must.OK(t, errors.Join(os.MkdirAll(filepath.Dir(policy), 0o700), os.WriteFile(policy, []byte(own), 0o600)))
			start := k.stepbox("run", "--detach", "--name", "k", "--", "sh", "-c", "read x")
			must.OK(t, start.Start())
			supervisor, _ := k.supervisor(start)
			defer unix.Close(supervisor)
			must.OK(t, start.Wait())
			gone := make(chan struct{})
			time.AfterFunc(time.Duration(mathrand.Int64N(int64(time.Second))), func() {
				defer close(gone)
				if err := unix.PidfdSendSignal(supervisor, unix.SIGKILL, nil, 0); err != nil {
					t.Error(err)
				}
			})
			var kept []string
			for i, more := 0, 3; more > 0; i++ {
				select {
				case <-gone:
					more-- // rules may go into the file without it
				default:
				}
				host := fmt.Sprintf("h%d.example.org:443", i)
				if out, err := k.stepbox("allow", "k", host, "--always").CombinedOutput(); err != nil {
					t.Logf("%d were kept, and then: %s", i, out)
					break
				}
				kept = append(kept, host)
			}
			now, err := os.ReadFile(policy)
			must.OK(t, err)
			for _, want := range append(kept, "# mine\n", "  - deny: bad.example.org # never\n    why: it is bad\n") {
				if !strings.Contains(string(now), want) {
					t.Errorf("%q isn't in\n%s", want, now)
				}
			}
			if out, err := k.stepbox("policy", "check").CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
			k.check()
		})
	}
}

// killed is one session whose supervisor is killed.
type killed struct {
	*testing.T
	work string
	env  []string

	// Below: what a client was told, complete when it has ended.
	id     string
	told   []api.Event
	output []byte
}

func (k *killed) data() string { return filepath.Join(k.work, "data") }

// run starts a session and kills its supervisor so long after that began to run.
func (k *killed) run(after time.Duration) {
	k.Helper()
	k.prepare()
	var said bytes.Buffer
	start := k.stepbox("run", "--mode", "watch", "--detach", "--", "sh", "-c", busy)
	start.Stderr = &said
	must.OK(k, start.Start())
	supervisor, _ := k.supervisor(start)
	defer unix.Close(supervisor)
	moment := time.After(after)
	ctx, cancel := context.WithCancel(k.Context())
	var client sync.WaitGroup
	client.Go(func() { k.follow(ctx) })
	<-moment
	if err := unix.PidfdSendSignal(supervisor, unix.SIGKILL, nil, 0); err != nil {
		k.Errorf("the supervisor had ended before: %v; it said %s", err, &said)
	}
	_ = start.Wait() // it may have been told that it runs, or that it doesn't
	poll := []unix.PollFd{{Fd: int32(supervisor), Events: unix.POLLIN}}
	for err := error(unix.EINTR); err == unix.EINTR; {
		_, err = unix.Poll(poll, int(patience.Milliseconds()))
	}
	cancel()
	client.Wait()
}

// prepare makes the folders of a person.
func (k *killed) prepare() {
	k.Helper()
	k.env = append(os.Environ(), "STEPBOX_DATA="+k.data(), "SHELL=/bin/sh", "TERM=dumb")
	for _, dir := range []string{"home", "project", "run"} {
		must.OK(k, os.Mkdir(filepath.Join(k.work, dir), 0o700))
	}
	k.env = append(k.env, "HOME="+filepath.Join(k.work, "home"), "XDG_RUNTIME_DIR="+filepath.Join(k.work, "run"))
}

func (k *killed) stepbox(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(k.Context(), "stepbox", args...)
	cmd.Env, cmd.Dir = k.env, filepath.Join(k.work, "project")
	return cmd
}

// supervisor waits for the session's supervisor and holds on to it.
func (k *killed) supervisor(start *exec.Cmd) (fd, pid int) {
	k.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); <-time.After(time.Millisecond) {
		var children []byte
		tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", start.Process.Pid)) // any of its threads may have started it
		for _, t := range tasks {
			b, _ := os.ReadFile(t) // it may be gone
			children = append(children, b...)
		}
		for _, child := range strings.Fields(string(children)) {
			line, _ := os.ReadFile("/proc/" + child + "/cmdline")
			if strings.Contains(string(line), "\x00supervise") {
				n, err := strconv.Atoi(child)
				if err == nil {
					fd, err = unix.PidfdOpen(n, 0)
				}
				must.OK(k, err)
				return fd, n
			}
		}
	}
	k.Fatal("no supervisor was started")
	return -1, 0
}

// follow reads the events and the output of the session as soon as it can, until its
// supervisor is gone.
func (k *killed) follow(ctx context.Context) {
	var note struct{ Socket string }
	for note.Socket == "" {
		select {
		case <-ctx.Done():
			return
		case <-time.After(2 * time.Millisecond):
		}
		notes, _ := filepath.Glob(filepath.Join(k.data(), "live/*.json")) // a pattern that is well-formed
		if len(notes) == 0 {
			continue
		}
		b, err := os.ReadFile(notes[0])
		if err != nil || json.Unmarshal(b, &note) != nil {
			note.Socket = ""
			continue
		}
		if _, err := os.Stat(note.Socket); err != nil {
			note.Socket = ""
		}
		k.id = strings.TrimSuffix(filepath.Base(notes[0]), ".json")
	}
	c := api.NewClientFunc(func(ctx context.Context) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", note.Socket)
	})
	defer c.Close()
	var output sync.WaitGroup
	defer output.Wait()
	output.Go(func() {
		conn, err := c.Output(ctx, k.id)
		if err != nil {
			return // it is killed already
		}
		defer conn.Close()
		for f, err := conn.Read(); err == nil; f, err = conn.Read() {
			k.output = append(k.output, f.Data...)
		}
	})
	for e, err := range c.Events(ctx, k.id, 0) {
		if err != nil {
			return
		}
		if e.Seq > 0 {
			k.told = append(k.told, e)
		}
	}
}

// check looks at what is left.
func (k *killed) check() {
	k.Helper()
	out, err := k.stepbox("verify", "--all").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "the database: whole") {
		k.Errorf("verify: %v\n%s", err, out)
	}
	// Before there is a holder nobody sees to that but the next command.
	left := traces(k.work)
	for end := time.Now().Add(patience); len(left) > 0 && time.Now().Before(end); left = traces(k.work) {
		if out, err := k.stepbox("ls").CombinedOutput(); err != nil {
			k.Fatalf("ls: %v\n%s", err, out)
		}
	}
	if len(left) > 0 {
		k.Errorf("it left behind:\n  %s", strings.Join(left, "\n  "))
	}
	if k.id == "" || len(k.told) == 0 {
		return
	}
	st, err := store.OpenReadOnly(k.Context(), k.data())
	must.OK(k, err)
	defer st.Close()
	h := &ledger.History{Store: st, Live: func(string) bool { return false }}
	i := 0
	for e, err := range h.Recorded(k.Context(), k.id, 0) {
		must.OK(k, err)
		if i == len(k.told) {
			break
		}
		if !reflect.DeepEqual(e, k.told[i]) {
			k.Fatalf("event %d was told as\n%+v\nand is in the record as\n%+v", e.Seq, k.told[i], e)
		}
		i++
	}
	if i < len(k.told) {
		k.Errorf("%d events were told and %d of them are in the record", len(k.told), i)
	}
	var recorded []byte
	for f, err := range h.Output(k.Context(), k.id) {
		must.OK(k, err)
		recorded = append(recorded, f.Data...)
	}
	if !bytes.HasPrefix(recorded, k.output) {
		k.Errorf("%d bytes of output were told that aren't the first of the %d in the record", len(k.output), len(recorded))
	}
}

// summary says when it was killed, in what a client had seen by then.
func (k *killed) summary() string {
	switch n := len(k.told); {
	case k.id == "":
		return "no session"
	case n == 0:
		return "no event"
	case n < 100:
		return "some events"
	default:
		return "100 events and more"
	}
}
