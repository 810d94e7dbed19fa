package home_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"stepbox/policy"
	"stepbox/runner"
	"stepbox/runner/overlay/restore"
	"stepbox/session/api"
	"stepbox/session/e2e/must"
	"stepbox/session/home"
)

// still is a sandbox in which nothing runs, and that says what is in use.
type still struct {
	use runner.HomeUse
	err error
}

func (still) OpenHome(context.Context, string) (*os.File, error) { return nil, unix.EACCES }

func (s still) HomeUse() (runner.HomeUse, error) { return s.use, s.err }

func (still) RestoreHome(context.Context, *restore.Plan, restore.Source) (restore.Report, error) {
	return restore.Report{}, errors.New("nothing is to be written")
}

func shown(p *home.Plan) (out []string) {
	for _, f := range p.Shown.Files {
		out = append(out, f.Status+" "+f.Path+" "+f.Words)
	}
	for _, t := range p.Shown.Problems {
		out = append(out, "stays "+t.String())
	}
	return out
}

// What the agent lives on stays when all is taken back, but nothing that can be run or is
// obeyed does, whatever holds it open; and nothing that is mounted is touched.
func TestPlan(t *testing.T) {
	p, upper, profile := rig(t)
	write(t, profile, "h.jsonl/run.sh", "was", 0o700)
	write(t, profile, "tool", "was", 0o700)
	for name, mode := range map[string]os.FileMode{
		".bashrc": 0o600, "x.db": 0o600, "run.db-wal": 0o700, "log.jsonl": 0o600, "auth.json": 0o600, "notes": 0o600, "open": 0o600,
		"h.jsonl": 0o600, "bin/tool": 0o700, "src/p/x": 0o600, "src/q": 0o600, "tool": 0o600,
	} {
		write(t, upper, name, "n", mode)
	}
	must.OK(t, os.MkdirAll(filepath.Join(upper, "alone/deep"), 0o700))
	box := still{use: runner.HomeUse{Written: []string{".bashrc", "open", "run.db-wal"}, Mounts: []string{"bin/tool", "src/p"}}}
	claude := policy.BuiltinProfiles().Named("claude")
	const open = "a program has it open, and what it writes there from then on is lost"
	for _, c := range []struct {
		paths []string
		want  []string
	}{
		{nil, []string{
			"D .bashrc programs take commands from it; " + open, "T h.jsonl it is a history or a transcript", "A h.jsonl/run.sh ", "D notes ",
			"D run.db-wal it can be run; " + open + "; it is a database, of which its parts belong together", "D src/q ", "M tool ",
			"stays auth.json: it is a sign-in: it stays unless it is named", "stays log.jsonl: it is a history or a transcript: it stays unless it is named",
			"stays open: " + open + ": it stays unless it is named", "stays x.db: it is a database, of which its parts belong together: it stays unless it is named",
		}},
		{[]string{"x.db", "./auth.json", "bin/tool", "src/p"}, []string{"D auth.json it is a sign-in", "D x.db it is a database, of which its parts belong together"}},
		{[]string{"src"}, []string{"D src/q "}},
		{[]string{"nothing", "alone"}, nil},
	} {
		of := api.HomePaths{}
		for _, at := range c.paths {
			of.Paths = append(of.Paths, []byte(at))
		}
		plan, err := p.Plan(t.Context(), box, claude, of)
		must.OK(t, err)
		if got := shown(plan); strings.Join(got, "\n") != strings.Join(c.want, "\n") {
			t.Errorf("%q:\n%s\nwant\n%s", c.paths, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
		if n := plan.Files(); n != plan.Shown.Restores+plan.Shown.Removes || n != len(plan.Shown.Files) {
			t.Errorf("%q: %d of %+v", c.paths, n, plan.Shown)
		}
	}
	if _, err := p.Plan(t.Context(), box, claude, api.HomePaths{Paths: [][]byte{[]byte("h.jsonl/run.sh")}}); err == nil {
		t.Error("a file goes back below what is no folder")
	}
	box.err = errors.New("the mounts can't be read")
	if _, err := p.Plan(t.Context(), box, claude, api.HomePaths{}); !errors.Is(err, box.err) {
		t.Errorf("planned without knowing what is mounted: %v", err)
	}
}

// Nothing is written when it can't be recorded, and what isn't as it was to be is told.
func TestCarryOutFails(t *testing.T) {
	p, upper, _ := rig(t)
	write(t, upper, "new", "n", 0o600)
	plan, err := p.Plan(t.Context(), still{}, &policy.Profile{}, api.HomePaths{})
	must.OK(t, err)
	no := errors.New("the disk is full")
	if _, err := p.CarryOut(t.Context(), still{}, plan, func([]string) error { return no }); !errors.Is(err, no) {
		t.Errorf("it went on: %v", err)
	}
	failed, err := p.CarryOut(t.Context(), idle{}, plan, func([]string) error { return nil })
	if err == nil || len(failed) != 1 || failed[0].Path != "new" {
		t.Errorf("%v, %v", failed, err)
	}
}

// idle writes nothing, and doesn't say so.
type idle struct{ still }

func (idle) RestoreHome(context.Context, *restore.Plan, restore.Source) (restore.Report, error) {
	return restore.Report{}, nil
}
