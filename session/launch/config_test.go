package launch

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"stepbox/runner"
	"stepbox/session/api"
	"stepbox/session/e2e/must"
	"stepbox/store"
)

// host is the environment of a test: folders of its own for all that is kept.
func host(t *testing.T) (dir string) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must.OK(t, err)
	for _, d := range []string{"data", "run", "home", "project"} {
		must.OK(t, os.Mkdir(filepath.Join(dir, d), 0o700))
	}
	for name, d := range map[string]string{"STEPBOX_DATA": "data", "XDG_RUNTIME_DIR": "run", "HOME": "home"} {
		t.Setenv(name, filepath.Join(dir, d))
	}
	t.Setenv("STEPBOX_LOG", "")
	return dir
}

// What a request asks for is what the session is started with, byte by byte.
func TestConfig(t *testing.T) {
	dir := host(t)
	log := filepath.Join(dir, "log")
	t.Setenv("STEPBOX_LOG", log)
	r := Request{
		Workspace: []byte(filepath.Join(dir, "project")), Argv: []string{"agent", "\xff\n"}, Env: []string{"A=\xfe"}, Home: "/home/p",
		Mode: api.ModeStep, AllowHosts: []string{"api.example.com:443"}, Limits: runner.Limits{Pids: 7}, WallTime: time.Minute, Cols: 90, Rows: 30, NoEcho: true,
	}
	sent, err := json.Marshal(r)
	if err == nil {
		err = json.Unmarshal(sent, &r)
	}
	must.OK(t, err)
	c, err := r.config(filepath.Join(dir, "data"), filepath.Join(dir, "run"))
	must.OK(t, err)
	if c.Name != "project" || c.Workspace != filepath.Join(dir, "project") || strings.Join(c.Argv, "|") != "agent|\xff\n" || c.Env[0] != "A=\xfe" || c.Home != "/home/p" ||
		c.Mode != api.ModeStep || len(c.AllowHosts) != 1 || c.AllowHosts[0].String() != "api.example.com:443" || c.Limits.Pids != 7 || c.WallTime != time.Minute ||
		c.Cols != 90 || c.Rows != 30 || !c.NoEcho || c.DataDir != filepath.Join(dir, "data") || c.RunDir != filepath.Join(dir, "run") || len(c.ID) != 8 {
		t.Errorf("%+v", c)
	}
	c.Log.Warn("odd")
	if b, err := os.ReadFile(log); err != nil || !strings.Contains(string(b), "session="+c.ID) {
		t.Errorf("the log has %q, %v", b, err)
	}
	r.Name = "chosen"
	if c, err := r.config("/d", "/r"); err != nil || c.Name != "chosen" {
		t.Errorf("it is called %q, %v", c.Name, err)
	}
}

// refused is what a supervisor answers to what it can't run.
func refused(t *testing.T, request string) *Error {
	t.Helper()
	in, out, err := os.Pipe()
	must.OK(t, err)
	defer in.Close()
	if err := Supervise(t.Context(), strings.NewReader(request), out); err == nil {
		t.Fatalf("%.60s is run", request)
	}
	var s Started
	must.OK(t, json.NewDecoder(in).Decode(&s))
	if s.Error == nil || s.ID != "" {
		t.Fatalf("%.60s is answered with %+v", request, s)
	}
	return s.Error
}

// encoded is a request on its way to the supervisor.
func encoded(t *testing.T, r Request) string {
	t.Helper()
	b, err := json.Marshal(r)
	must.OK(t, err)
	return string(b)
}

// Each request that can't be carried out is refused before anything runs, with
// what is wrong and the exit code that says so.
func TestBadRequests(t *testing.T) {
	dir := host(t)
	project := []byte(filepath.Join(dir, "project"))
	good := Request{Workspace: project, Argv: []string{"true"}, Home: filepath.Join(dir, "home"), Mode: api.ModePolicy}
	with := func(change func(*Request)) string {
		r := good
		change(&r)
		return encoded(t, r)
	}
	must.OK(t, os.Symlink(string(project), filepath.Join(dir, "link")))
	live := note{Name: "taken", Socket: "/s"}
	mine, err := registryIn(filepath.Join(dir, "data")).announce("other", &live, true)
	must.OK(t, err)
	defer func() { _ = mine.withdraw() }()
	for name, c := range map[string]struct {
		request, want string
		code          int
		host          bool // the host's fault may be behind it
	}{
		"nothing":            {"", "cannot read what to run", 125, true},
		"no request":         {`{"argv":7}`, "cannot read what to run", 125, true},
		"no command":         {with(func(r *Request) { r.Argv = nil }), "name a command", 125, true},
		"no such host":       {with(func(r *Request) { r.AllowHosts = []string{"a b"} }), `cannot use host "a b"`, 125, true},
		"no such folder":     {with(func(r *Request) { r.Workspace = []byte("/no/such") }), "there is no such folder", 125, false},
		"a relative folder":  {with(func(r *Request) { r.Workspace = []byte("project") }), "isn't an absolute path", 125, false},
		"a link":             {with(func(r *Request) { r.Workspace = []byte(filepath.Join(dir, "link")) }), "symbolic link", 125, false},
		"all files":          {with(func(r *Request) { r.Workspace = []byte("/") }), "root of all files", 125, false},
		"the home":           {with(func(r *Request) { r.Workspace = []byte(filepath.Join(dir, "home")) }), "your home folder", 125, false},
		"the record itself":  {with(func(r *Request) { r.Workspace = []byte(filepath.Join(dir, "data")) }), "cannot use", 125, false},
		"control characters": {with(func(r *Request) { r.Workspace = []byte("/\x1b[2J") }), "control characters", 125, false},
		"a name in use":      {with(func(r *Request) { r.Name = "taken" }), "use another --name, or end it with stepbox kill other", 2, false},
	} {
		s := refused(t, c.request)
		if !strings.Contains(s.Message, c.want) || s.Code != c.code || s.Host != c.host || strings.ContainsRune(s.Message, 0x1b) {
			t.Errorf("%s: %+v, want %d with %q", name, s, c.code, c.want)
		}
	}
	if left, err := os.ReadDir(filepath.Join(dir, "data", "live")); err != nil || len(left) != 1 {
		t.Errorf("the notes left are %v, %v", left, err)
	}
}

// What the environment says of where things are is checked before anything runs.
func TestBadEnvironment(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(t *testing.T, dir string)
		want  string
	}{
		"a relative data folder": {func(t *testing.T, _ string) { t.Setenv("STEPBOX_DATA", "data") }, "must be an absolute path"},
		"an open data folder": {func(t *testing.T, dir string) {
			must.OK(t, os.Chmod(filepath.Join(dir, "data"), 0o755))
		}, "chmod 700"},
		"an open run-time folder": {func(t *testing.T, dir string) {
			d := filepath.Join(dir, "run", "stepbox")
			must.OK(t, os.Mkdir(d, 0o700), os.Chmod(d, 0o755))
		}, "is open to others (mode 0755); run: chmod 700"},
		"a link for a run-time folder": {func(t *testing.T, dir string) {
			must.OK(t, os.Symlink(dir, filepath.Join(dir, "run", "stepbox")))
		}, "isn't a folder; remove it"},
		"a long run-time folder": {func(t *testing.T, dir string) {
			long := filepath.Join(dir, strings.Repeat("x", 100))
			must.OK(t, os.Mkdir(long, 0o700))
			t.Setenv("XDG_RUNTIME_DIR", long)
		}, "set XDG_RUNTIME_DIR to a shorter folder"},
		"a log that can't be written": {func(t *testing.T, _ string) { t.Setenv("STEPBOX_LOG", "/no/such/log") }, "STEPBOX_LOG"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := host(t)
			c.spoil(t, dir)
			s := refused(t, encoded(t, Request{Workspace: []byte(filepath.Join(dir, "project")), Argv: []string{"true"}, Home: filepath.Join(dir, "home"), Mode: api.ModePolicy}))
			if !strings.Contains(s.Message, c.want) || s.Code != 125 {
				t.Errorf("%+v, want %q", s, c.want)
			}
		})
	}
}

// Without a run-time folder of the host's the data folder has one.
func TestRunRoot(t *testing.T) {
	dir := host(t)
	others := "/usr" // root's
	if os.Getuid() == 0 {
		others = t.TempDir()
		must.OK(t, os.Chown(others, 12345, 12345))
	}
	for env, want := range map[string]string{
		others:                     filepath.Join(dir, "data", "run"),
		filepath.Join(dir, "run"):  filepath.Join(dir, "run", "stepbox"),
		"":                         filepath.Join(dir, "data", "run"),
		filepath.Join(dir, "none"): filepath.Join(dir, "data", "run"),
	} {
		t.Setenv("XDG_RUNTIME_DIR", env)
		got, err := RunRoot()
		if err != nil || got != want {
			t.Errorf("with %q it is %q, %v", env, got, err)
		}
		if st, err := os.Stat(got); err != nil || st.Mode().Perm() != 0o700 {
			t.Errorf("%q: %v, %v", got, st, err)
		}
	}
}

func TestIDs(t *testing.T) {
	seen := make(map[string]bool)
	for range 1000 {
		id := NewID()
		if len(id) != 8 || strings.Trim(id, "abcdefghijklmnopqrstuvwxyz234567") != "" || seen[id] {
			t.Fatalf("%q", id)
		}
		seen[id] = true
	}
}

// Where there is no record and none can be made, it is said why not.
func TestHubSaysWhyThereIsNoRecord(t *testing.T) {
	host(t)
	t.Setenv("STEPBOX_DATA", "/sys/stepbox") // nobody makes folders there
	_, _, err := Hub(t.Context())
	if !errors.Is(err, store.ErrReadOnly) || !strings.Contains(err.Error(), "none can be made") || !strings.Contains(err.Error(), "STEPBOX_DATA") {
		t.Errorf("it says %v", err)
	}
}

// The value of a secret isn't kept, whatever the variable is called that it is given in.
func TestKeepable(t *testing.T) {
	got := keepable([]string{"FOO=top-secret-value", "BAR=plain", "X_KEY=abc", "Y"}, []string{"MY_TOKEN=top-secret-value"})
	if want := []string{"FOO", "BAR=plain", "X_KEY", "Y"}; !slices.Equal(got, want) {
		t.Errorf("kept are %q, want %q", got, want)
	}
}
