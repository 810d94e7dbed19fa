package restore

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"stepbox/runner/overlay/diff"
	"stepbox/runner/overlay/scan"
)

// stamp is what the kernel stamps files with now.
func stamp(t *testing.T) time.Time {
	t.Helper()
	var ts unix.Timespec
	must(t, unix.ClockGettime(unix.CLOCK_REALTIME_COARSE, &ts))
	return time.Unix(ts.Unix())
}

// A file that a person replaced may go on being seen as it was: what the agent makes
// of that isn't made of what the project has, which the record must not say. What the
// agent certainly saw is kept as ever.
func TestReplacedFileIsNotWhatWasFirstSeen(t *testing.T) {
	saved := func(t *testing.T, s *session) { // as most editors do
		must(t, os.WriteFile(filepath.Join(s.q.Lower, "tmp"), []byte("person"), 0o644), os.Rename(filepath.Join(s.q.Lower, "tmp"), filepath.Join(s.q.Lower, "a")))
	}
	looked := func(t *testing.T, s *session) {
		q := s.with("read")
		q.Path = filepath.Join(s.q.Merged, "a")
		s.h.must(q)
	}
	appended := mutation{Op: "append", Path: "a", Data: []byte(" agent")}
	renamed := []mutation{{Op: "write", Path: "mine", Data: []byte("agent")}, {Op: "rename", Path: "mine", To: "a"}}
	forged := mutation{Op: "setxattr", Path: "mine", To: "user.overlay.origin"}
	for name, tt := range map[string]struct {
		host  []func(*testing.T, *session)
		agent []mutation
		kept  string // of the project's; "" when nothing may be
	}{
		"replaced after the agent looked":       {[]func(*testing.T, *session){looked, saved}, []mutation{appended}, ""},
		"and the agent replaced it, too":        {[]func(*testing.T, *session){looked, saved}, renamed, ""},
		"and the agent forged where it is from": {[]func(*testing.T, *session){looked, saved}, slices.Insert(slices.Clone(renamed), 1, forged), ""},
		"and the agent deleted it":              {[]func(*testing.T, *session){looked, saved}, []mutation{{Op: "remove", Path: "a"}}, ""},
		"replaced by a file of before": {[]func(*testing.T, *session){looked, func(t *testing.T, s *session) {
			must(t, os.Rename(filepath.Join(s.q.Lower, "b"), filepath.Join(s.q.Lower, "a")))
		}}, []mutation{appended}, ""},
		"replaced, and the one before kept as backup": {[]func(*testing.T, *session){looked, func(t *testing.T, s *session) {
			must(t, os.Rename(filepath.Join(s.q.Lower, "a"), filepath.Join(s.q.Lower, "a~")))
		}, saved}, []mutation{appended}, ""},
		"replaced, and the one before kept under another name": {[]func(*testing.T, *session){looked, func(t *testing.T, s *session) {
			must(t, os.Rename(filepath.Join(s.q.Lower, "a"), filepath.Join(s.q.Lower, "a.orig")))
		}, saved}, []mutation{appended}, ""},
		"replaced by a link": {[]func(*testing.T, *session){looked, func(t *testing.T, s *session) {
			must(t, os.Remove(filepath.Join(s.q.Lower, "a")), os.Symlink("b", filepath.Join(s.q.Lower, "a")))
		}}, []mutation{{Op: "remove", Path: "a"}}, ""},
		"replaced before the agent looked": {[]func(*testing.T, *session){saved, looked}, []mutation{appended}, "person"},
		"written in place": {[]func(*testing.T, *session){looked, func(t *testing.T, s *session) {
			must(t, os.WriteFile(filepath.Join(s.q.Lower, "a"), []byte("in place"), 0o644))
		}}, renamed, "in place"},
		"as it was": {[]func(*testing.T, *session){looked}, renamed, "content a"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSession(t, startHelper(t), os.TempDir(), project(t))
			defer s.close()
			for filled := stamp(t); stamp(t).Equal(filled); { // the next tick of the clock is another's
			}
			sc := keeping(t, s, scan.Keep{Mounted: stamp(t)})
			start := scanned(t, sc)
			for _, f := range tt.host {
				f(t, s)
			}
			has, err := os.ReadFile(filepath.Join(s.q.Lower, "a"))
			must(t, err)
			s.agent(tt.agent...)
			cur := scanned(t, sc)
			d, err := diff.Compare(bg, nil, nil, cur, diff.Options{})
			must(t, err)
			at := slices.IndexFunc(d.Changes, func(c diff.Change) bool { return c.Path == "a" })
			if at < 0 {
				t.Fatalf("a isn't a change: %q", brief(d.Changes))
			}
			old := d.Changes[at].Old
			p, err := NewPlan(bg, s.lower, cur, start, Options{})
			must(t, err)
			if tt.kept != "" {
				if text, err := told(nil, s.bodies, nil, cur); err != nil || old.Unsaved != "" || !strings.Contains(text, shown([]byte(tt.kept))) {
					t.Errorf("the old side is %+v, in (%v)\n%s", old, err, text)
				}
				return
			}
			if old == nil || !old.Hash.IsZero() || old.Size != 0 || !strings.Contains(old.Unsaved, "replaced while the agent") {
				t.Errorf("the old side is %+v", old)
			}
			// What it was can't come back, and it is said what comes instead.
			words := "it becomes what the project has by now"
			if name == "replaced by a link" { // which isn't followed
				words = "it stays as it is"
			}
			if !slices.Equal(p.Lost, []string{"a"}) || !strings.Contains(p.Problems[0].Text, words) {
				t.Errorf("a roll back can't have %q: %+v", p.Lost, p.Problems)
			}
			if now, err := os.ReadFile(filepath.Join(s.q.Lower, "a")); err != nil || string(now) != string(has) {
				t.Errorf("the project's a is %q, %v", now, err)
			}
		})
	}
}
