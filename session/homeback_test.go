package session_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"stepbox/session"
	"stepbox/session/api"
	"stepbox/session/e2e/must"
)

// homed is a session with a home of its own, over a profile's that begins as given by a
// script. The project is below the home, as people's are. The agent does what it is told.
type homed struct {
	*driven
	profile string // the profile's home, on the host
}

func driveHome(t *testing.T, prepare string) *homed {
	t.Helper()
	h := &homed{driven: &driven{}}
	h.world = startConfigured(t, func(string) {}, func(c *session.Config) {
		c.Mode, c.HomeKind, c.HomeOf = api.ModeWatch, api.HomeSession, "test"
		c.Workspace, h.profile = filepath.Join(c.Home, "src", "project"), filepath.Join(c.DataDir, "homes", "test")
		for _, dir := range []string{c.Workspace, h.profile} {
			must.OK(t, os.MkdirAll(dir, 0o700))
		}
		must.OK(t, os.WriteFile(filepath.Join(c.Workspace, "a.txt"), []byte("hello\n"), 0o600))
		shell(t, h.profile, prepare)
	}, "bash", "-c", `mkfifo /tmp/feed; exec 3<>/tmp/feed; cd ~; while read -r -u 3 line; do eval "$line"; done`)
	h.project = h.config.Workspace
	h.do = h.feed("feed")
	return h
}

func shell(t *testing.T, dir, script string) {
	t.Helper()
	if out, err := run(t, dir, "bash", "-ec", script); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// make has the agent do something, and waits until it has.
func (h *homed) make(line string) {
	h.Helper()
	h.n++
	mark := filepath.Join(h.store.SessionDir(h.ID()), "tmp", "did"+strings.Repeat("i", h.n))
	h.do(line + "; : >/tmp/" + filepath.Base(mark))
	for end := time.Now().Add(patience); time.Now().Before(end); <-time.After(2 * time.Millisecond) {
		if _, err := os.Lstat(mark); err == nil {
			return
		}
	}
	h.Fatalf("the agent didn't %s", line)
}

// sees is what the agent has in its home, but for the project.
func (h *homed) sees() string {
	h.Helper()
	h.make(`{ find . -path ./src -prune -o -printf '%p %y %m %l\n'; find . -path ./src -prune -o -type f -exec md5sum {} +; } 2>/dev/null | sort >/tmp/sees; cat src/project/a.txt >>/tmp/sees`)
	text, err := os.ReadFile(filepath.Join(h.store.SessionDir(h.ID()), "tmp", "sees"))
	h.must(err)
	return string(text)
}

func home(paths ...string) api.RollbackTarget {
	t := api.RollbackTarget{Home: &api.HomePaths{}}
	for _, p := range paths {
		t.Home.Paths = append(t.Home.Paths, []byte(p))
	}
	return t
}

// all takes back all that there is.
func (h *homed) all() {
	h.Helper()
	plan, err := h.RollbackPlan(h.Context(), api.RollbackRequest{RollbackTarget: home()})
	if h.must(err); plan.Restores+plan.Removes > 0 {
		h.take(home())
	}
}

const begins = `echo was >.bashrc; chmod 644 .bashrc; mkdir -p d/deep x; echo 1 >d/a; echo 2 >d/deep/b; echo 3 >x/c; ln -s d l; ln -s /etc/passwd out; echo k >kept; echo s >shut; ln kept twin`

// TestHomeRollback: whatever an agent makes of its home, all of it goes back, through no
// link, and what is mounted in it stays.
func TestHomeRollback(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]string{
		"files":              `echo trap >>.bashrc; chmod 777 kept; mkdir -p .vim/a; echo x >.vim/a/b; echo odd >$'odd\n\xff'`,
		"gone":               `rm -r d x l out kept`,
		"opaque":             `rm -r d; mkdir d; echo n >d/n; rm -r x; mkdir -p x/c`,
		"file for folder":    `rm -r d; echo f >d; rm -r x; ln -s d x`,
		"folder for link":    `rm l; mkdir l; echo y >l/a; rm out; mkdir out; echo z >out/passwd`,
		"links":              `rm -r d; ln -s src/project d; rm kept; ln -s src/project/a.txt kept; ln -sfn x l`,
		"hard links":         `ln .bashrc hard; echo trap >>hard; rm kept; ln twin kept; echo t >>twin; mkdir h; ln twin h/twin`,
		"nobody may read":    `echo t >shut; chmod 0 shut; echo t >new; chmod 0 new; mkdir m; echo t >m/m; chmod 0 m`,
		"moved":              `mv d e; mv e/a .bashrc; mv l m; mkfifo pipe; mkdir empty`,
		"beside the project": `echo t >src/trap; mkdir src/d; ln -s project src/p; echo t >src/d/e`,
	} {
		t.Run(name, func(t *testing.T) {
			h := driveHome(t, begins)
			began, _ := run(t, h.profile, "find", ".", "-printf", "%p %y %m %s %l %i %n\n")
			before := h.sees()
			h.make(change)
			if h.sees() == before && name != "beside the project" {
				t.Fatal("nothing was changed")
			}
			_, done := h.take(home())
			after := strings.ReplaceAll(h.sees(), "./empty d 755 \n", "") // a folder alone is nothing
			if after != before {
				t.Errorf("it has\n%s\nwant\n%s", after, before)
			}
			if left, _ := os.ReadDir(filepath.Join(h.config.DataDir, "sessions", h.ID(), "home", "upper", "src")); len(left) != 1 {
				t.Errorf("beside the project there is %v", left)
			}
			if now, _ := run(t, h.profile, "find", ".", "-printf", "%p %y %m %s %l %i %n\n"); now != began {
				t.Errorf("the profile's home is\n%s\nwas\n%s", now, began)
			}
			h.happened("the roll back in the record", func(e api.Event) bool {
				return e.Kind == "rollback.done" && e.Rollback.ID == done.ID && len(e.Rollback.Took) == done.Files
			})
		})
	}
}

func run(t *testing.T, dir, name string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// TestHomeRollbackIsOfWhatWasShown: nothing else goes than what a plan names, and a plan
// that isn't true any more isn't carried out.
func TestHomeRollbackIsOfWhatWasShown(t *testing.T) {
	t.Parallel()
	h := driveHome(t, begins)
	h.make(`exec 9>>.bashrc; echo trap >&9; echo n >new; rm -r d; echo f >d`)
	for _, bad := range []api.RollbackTarget{home("../x"), home("/etc"), home("."), home(""), home("a\x00b"), home("d/a"), {Home: &api.HomePaths{}, ToBefore: 1}} {
		if _, err := h.RollbackPlan(t.Context(), api.RollbackRequest{RollbackTarget: bad}); code(err) != api.CodeInvalid {
			t.Errorf("%+v: %v", bad.Home, err)
		}
	}
	// What is mounted there isn't the home's.
	plan, err := h.RollbackPlan(t.Context(), api.RollbackRequest{RollbackTarget: home("src")})
	h.must(err)
	if _, err := h.Rollback(t.Context(), api.RollbackRequest{RollbackTarget: home("src"), Hash: plan.Hash}); code(err) != api.CodeInvalid {
		t.Errorf("the project was taken back: %v", err)
	}
	// A plan for one path isn't one for another.
	plan, err = h.RollbackPlan(t.Context(), api.RollbackRequest{RollbackTarget: home(".bashrc")})
	h.must(err)
	if _, err := h.Rollback(t.Context(), api.RollbackRequest{RollbackTarget: home(), Hash: plan.Hash}); code(err) != api.CodeStale {
		t.Errorf("another plan was carried out: %v", err)
	}
	// The profile's home has another file by now.
	h.must(os.WriteFile(filepath.Join(h.profile, ".bashrc"), []byte("other\n"), 0o600))
	if _, err := h.Rollback(t.Context(), api.RollbackRequest{RollbackTarget: home(".bashrc"), Hash: plan.Hash}); code(err) != api.CodeStale {
		t.Errorf("it went back to what wasn't shown: %v", err)
	}
	// What comes after the plan stays, and what was open is written no more.
	plan, err = h.RollbackPlan(t.Context(), api.RollbackRequest{RollbackTarget: home()})
	h.must(err)
	h.make(`echo late >late; echo more >&9; echo m >>new`)
	done, err := h.Rollback(t.Context(), api.RollbackRequest{RollbackTarget: home(), Hash: plan.Hash, By: "test", Reason: "no traps"})
	h.must(err)
	h.make(`echo again >&9`)
	if !slices.Equal(done.Left, []string{"late"}) || !slices.Contains(done.Took, ".bashrc") {
		t.Errorf("took %q, left %q", done.Took, done.Left)
	}
	h.make(`cat .bashrc d/a late >/tmp/has; ls new >>/tmp/has 2>&1`)
	text, err := os.ReadFile(filepath.Join(h.store.SessionDir(h.ID()), "tmp", "has"))
	if h.must(err); !strings.HasPrefix(string(text), "other\n1\nlate\nls: ") {
		t.Errorf("it has %q", text)
	}
	// What stands in the way since then makes it stale.
	h.make(`rm -r x; mkdir x; echo 4 >x/c`)
	plan, err = h.RollbackPlan(t.Context(), api.RollbackRequest{RollbackTarget: home("x")})
	h.must(err)
	h.make(`rm -r x; ln -s d x`)
	if _, err := h.Rollback(t.Context(), api.RollbackRequest{RollbackTarget: home("x"), Hash: plan.Hash}); code(err) != api.CodeStale {
		t.Errorf("it went back through what isn't a folder: %v", err)
	}
}

// TestHomeRollbackRace: an agent that keeps exchanging a folder for a link to the project
// leads no roll back there, and can't keep one from being done while it is paused.
func TestHomeRollbackRace(t *testing.T) {
	t.Parallel()
	h := driveHome(t, begins)
	before := h.sees()
	h.make(`echo mine >d/a; echo mine >d/a.txt; (while [ ! -e /tmp/enough ]; do [ -L evil ] || ln -s src/project evil; mv -T d tmp; mv -T evil d; mv -T d evil; mv -T tmp d; echo n >n$RANDOM; done) & true`)
	carried := 0
	for range 15 {
		plan, err := h.RollbackPlan(t.Context(), api.RollbackRequest{RollbackTarget: home()})
		if err == nil {
			_, err = h.Rollback(t.Context(), api.RollbackRequest{RollbackTarget: home(), Hash: plan.Hash, By: "test"})
		}
		if err == nil {
			carried++
		}
		if text, _ := os.ReadFile(filepath.Join(h.project, "a.txt")); string(text) != "hello\n" {
			t.Fatalf("the project's file became %q", text)
		}
		if _, err := os.Lstat(filepath.Join(h.store.SessionDir(h.ID()), "upper", "a.txt")); err == nil {
			t.Fatal("it was written through the link into the project")
		}
	}
	t.Logf("%d of 15 were carried out", carried)
	_, err := h.Pause(t.Context())
	h.must(err)
	h.all()
	h.must(unix.Mknod(filepath.Join(h.store.SessionDir(h.ID()), "tmp", "enough"), unix.S_IFREG|0o600, 0))
	_, err = h.Continue(t.Context())
	h.must(err)
	h.make(`wait 2>/tmp/err`)
	h.all()
	if after := h.sees(); after != before {
		t.Errorf("it has\n%s\nwant\n%s", after, before)
	}
}

// TestHomeEndTellsTraps: what is left in a home and can be run, or is obeyed, is told at
// the end, and is in the record.
func TestHomeEndTellsTraps(t *testing.T) {
	t.Parallel()
	h := driveHome(t, begins)
	h.make(`echo trap >>.bashrc; echo harmless >notes; echo x >tool; chmod +x tool`)
	_, err := h.Kill(t.Context())
	h.must(err)
	<-h.Done()
	s, err := h.read.Session(t.Context(), h.ID())
	h.must(err)
	if l := s.HomeLeft; l == nil || l.Changed != 3 || l.Beware != 2 || !slices.Equal(l.First, []string{"~/.bashrc", "~/tool"}) {
		t.Errorf("left is %+v", l)
	}
	h.happened("the note", func(e api.Event) bool {
		return e.Note != nil && e.Note.Warn && strings.HasPrefix(e.Note.Text, "2 files changed in its home can be run")
	})
}
