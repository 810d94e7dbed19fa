package apply

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"stepbox/policy/git"
	"stepbox/runner/overlay/lower"
	"stepbox/runner/overlay/manifest"
	"stepbox/session/api"
	"stepbox/session/e2e/must"
	"stepbox/session/files"
	"stepbox/session/ledger"
	"stepbox/session/project"
	"stepbox/session/scratch"
	"stepbox/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const sessionID = "aaaaaaaa"

// rig is a session without a sandbox: a project, and a folder that stands for the
// upper of its overlay.
type rig struct {
	testing.TB
	*Applier
	project, upper string
	files          *files.Files
	checkpoints    int64
	box            *fakeBox
	info           api.Session
}

// fakeBox stands for throw-away sandboxes.
type fakeBox struct {
	result  func(command string) api.CheckResult
	ran     []string
	states  []*manifest.Manifest
	commits scratch.Commits
	shown   scratch.Shown // by the last plan
	fetched scratch.Fetched
	failure error
}

func (f *fakeBox) Check(ctx context.Context, state *manifest.Manifest, command string, told func(string)) (api.CheckResult, error) {
	f.ran, f.states = append(f.ran, command), append(f.states, state)
	told("running")
	return f.result(command), ctx.Err()
}

func (f *fakeBox) Commits(_ context.Context, _ *manifest.Manifest, shown scratch.Shown) (scratch.Commits, error) {
	f.shown = shown
	return f.commits, nil
}

func (f *fakeBox) Fetch(context.Context, string, *manifest.Manifest, []api.Commit) (scratch.Fetched, error) {
	return f.fetched, f.failure
}

func passed(command string) api.CheckResult {
	return api.CheckResult{Command: command, Exit: &api.Exit{}, Output: "fine\n"}
}

// newRig makes a session over a project that holds some files, by name.
func newRig(t testing.TB, has map[string]string) *rig {
	t.Helper()
	dir := t.TempDir()
	r := &rig{TB: t, project: filepath.Join(dir, "project"), upper: filepath.Join(dir, "upper"), box: &fakeBox{result: passed}}
	for _, d := range []string{r.project, r.upper, filepath.Join(dir, "data")} {
		r.must(os.Mkdir(d, 0o700))
	}
	for name, text := range has {
		r.host(name, text)
	}
	st := storetest.Open(t, filepath.Join(dir, "data"))
	r.info = api.Session{ID: sessionID, Name: "n", Folder: r.project, State: api.SessionEnded, HiddenPaths: []string{"secret.env"}, Redacted: []string{"conf/redacted"}}
	storetest.Begin(t, st, sessionID, r.info)
	var err error
	r.files, err = files.Open(st, sessionID, r.project, lower.Options{Hidden: []string{"secret.env"}}, nil)
	r.must(err)
	t.Cleanup(r.files.Close)
	r.must(r.files.Attach(r.upper, nil, func(path string, _ bool) bool { return strings.HasPrefix(path, "ignored/") }, time.Time{}))
	dead := func(string) bool { return false }
	r.Applier = &Applier{
		Store: st, History: files.NewHistory(st, dead), Journals: project.Journals{Dir: filepath.Join(dir, "data", "journals"), Bodies: files.Bodies{Store: st}},
		Owner: func(id string) Owner { return Ended{Store: st, ID: id, Live: dead} }, Sandbox: func(api.Session) Sandbox { return r.box },
		Person: git.Person{Home: dir},
	}
	return r
}

func (r *rig) must(err error) {
	r.Helper()
	must.OK(r, err)
}

// put writes a file, or a link when its text begins with →, or an executable when
// it begins with !.
func (r *rig) put(dir, name, text string) {
	r.Helper()
	p := filepath.Join(dir, name)
	r.must(os.MkdirAll(filepath.Dir(p), 0o755))
	if st, err := os.Lstat(p); err == nil && !st.Mode().IsRegular() {
		r.must(os.RemoveAll(p))
	}
	if to, ok := strings.CutPrefix(text, "→"); ok {
		r.must(errors.Join(removed(p), os.Symlink(to, p)))
		return
	}
	mode := os.FileMode(0o644)
	if rest, ok := strings.CutPrefix(text, "!"); ok {
		text, mode = rest, 0o755
	}
	r.must(os.WriteFile(p, []byte(text), mode))
	r.must(os.Chmod(p, mode))
}

func removed(p string) error {
	if err := os.RemoveAll(p); err != nil {
		return err
	}
	return nil
}

func (r *rig) host(name, text string)  { r.Helper(); r.put(r.project, name, text) }
func (r *rig) agent(name, text string) { r.Helper(); r.put(r.upper, name, text) }

// gone has the agent remove something of the project.
func (r *rig) gone(name string) {
	r.Helper()
	p := filepath.Join(r.upper, name)
	r.must(os.RemoveAll(p))
	r.must(os.MkdirAll(filepath.Dir(p), 0o755))
	r.must(unix.Mknod(p, unix.S_IFCHR, 0))
}

// action records what the agent changed since the last time as an action.
func (r *rig) action(review api.Review) {
	r.Helper()
	before := r.checkpoints
	if before == 0 {
		r.checkpoint(nil)
		before = 1
	}
	m, err := r.files.Scan(r.Context())
	r.must(err)
	r.checkpoint(m)
	actions, err := r.History.Actions(r.Context(), sessionID)
	r.must(err)
	n := len(actions) + 1
	r.must(ledger.Append(r.Context(), r.Store, sessionID, nil, api.Event{Kind: "action.ended", Action: &api.Action{
		N: n, Kind: api.KindCommand, State: api.ActionEnded, Review: review, Before: before, After: r.checkpoints, Files: 1,
		Spans: []api.Span{{From: before, To: r.checkpoints}},
	}}))
}

// checkpoint records a state of the files.
func (r *rig) checkpoint(m *manifest.Manifest) {
	r.Helper()
	if m == nil {
		m = &manifest.Manifest{Root: &manifest.Node{Entry: manifest.Entry{Kind: manifest.KindDir, Meta: manifest.Meta{Mode: 0o755}}, Sub: manifest.NewDir(nil, nil)}}
	}
	root, err := r.files.Save(r.Context(), m)
	r.must(err)
	r.checkpoints++
	r.must(ledger.Append(r.Context(), r.Store, sessionID, nil, api.Event{Kind: "checkpoint", Checkpoint: &api.Checkpoint{
		ID: r.checkpoints, At: time.Now(), From: r.checkpoints - 1, Root: root.String(), Files: m.Len(),
	}}))
}

func (r *rig) plan(q api.ApplyRequest) api.ApplyPlan {
	r.Helper()
	p, err := r.ApplyPlan(r.Context(), sessionID, q)
	r.must(err)
	return p
}

// apply carries out what a request plans, looked at.
func (r *rig) apply(q api.ApplyRequest) (api.Apply, error) {
	r.Helper()
	q.Looked = true
	q.Hash = r.plan(q).Hash
	return r.Apply(r.Context(), sessionID, q, func(api.Progress) {})
}

// has lists what is in the project, as put takes it; folders end in a slash.
func (r *rig) has() map[string]string {
	r.Helper()
	out := map[string]string{}
	r.must(filepath.WalkDir(r.project, func(p string, d os.DirEntry, err error) error {
		rel, _ := filepath.Rel(r.project, p)
		switch {
		case err != nil || rel == ".":
			return err
		case d.IsDir():
			if names, err := os.ReadDir(p); err == nil && len(names) == 0 {
				out[rel+"/"] = ""
			}
		case d.Type() == os.ModeSymlink:
			to, err := os.Readlink(p)
			out[rel] = "→" + to
			return err
		default:
			b, err := os.ReadFile(p)
			if st, err := os.Stat(p); err == nil && st.Mode()&0o111 != 0 {
				b = append([]byte("!"), b...)
			}
			out[rel] = string(b)
			return err
		}
		return nil
	}))
	return out
}

// words are a plan's lines: the changes, then what is in conflict and left.
func words(p api.ApplyPlan) (out []string) {
	for _, f := range p.Files {
		line := f.Status + " " + f.Path
		if f.From != "" {
			line += " from " + f.From
		}
		for _, d := range f.Dangers {
			line += " !" + d
		}
		out = append(out, line)
	}
	for _, c := range p.Conflicts {
		line := "conflict " + c.Path + ": " + c.Why
		if c.Clean {
			line += fmt.Sprintf(" (clean, %d hunks)", len(c.Merged))
		} else if len(c.Clashes) > 0 {
			line += fmt.Sprintf(" (%d clashes)", len(c.Clashes))
		}
		out = append(out, line)
	}
	for _, l := range p.Left {
		out = append(out, "left "+l.Path+": "+l.Why)
	}
	return out
}

func same(t *testing.T, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("it has\n  %s\nand should have\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}
