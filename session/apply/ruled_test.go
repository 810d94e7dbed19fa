package apply

import (
	"errors"
	"strings"
	"testing"

	"stepbox/policy"
	"stepbox/policy/policytest"
	"stepbox/session/api"
)

// What a policy protects stays as it is whatever the session did, and what it wants
// reviewed isn't written unseen, though the action that made it was kept.
func TestPolicyOnFiles(t *testing.T) {
	r := newRig(t, map[string]string{"migrations/1.sql": "a", "migrations/2.sql": "b", "go.mod": "m", "main.go": "x"})
	l, err := policytest.ParseLayer("user", "/c/policy.yaml", []byte("files: {read-only: [migrations], review: [go.mod]}\n"))
	r.must(err)
	r.agent("main.go", "y")
	r.agent("migrations/1.sql", "evil")
	r.gone("migrations/2.sql")
	r.agent("migrations/3.sql", "new")
	r.agent("go.mod", "n")
	r.agent("moved.sql", "b") // as if it were that
	r.action(api.ReviewKept)

	if p := r.plan(api.ApplyRequest{}); len(p.Files) != 5 || p.Renamed != 1 || len(p.Left) != 0 || p.Blocked != "" {
		t.Fatalf("without a policy: %+v", p)
	}
	r.Rules = func(api.Session) (*policy.Policy, error) { return policy.Of(l), nil }
	p := r.plan(api.ApplyRequest{})
	left := ""
	for _, x := range p.Left {
		left += x.Path + ": " + x.Why + "\n"
	}
	for _, path := range []string{"migrations/1.sql", "migrations/2.sql", "migrations/3.sql"} {
		if !strings.Contains(left, path+": a policy makes it read-only: migrations (/c/policy.yaml, line 1)") {
			t.Errorf("%s isn't left: %s", path, left)
		}
	}
	for _, f := range p.Files {
		said := strings.Contains(strings.Join(f.Dangers, " "), "a policy wants it looked at: go.mod (/c/policy.yaml, line 1)")
		if strings.HasPrefix(f.Path, "migrations") || said != (f.Path == "go.mod") {
			t.Errorf("%s would be written: %q", f.Path, f.Dangers)
		}
	}
	if p.Blocked == "" {
		t.Error("it would be written unseen")
	}
	_, err = r.apply(api.ApplyRequest{})
	r.must(err)
	r.is(map[string]string{"migrations/1.sql": "a", "migrations/2.sql": "b", "go.mod": "n", "main.go": "y", "moved.sql": "b"})

	r.Rules = func(api.Session) (*policy.Policy, error) { return nil, errors.New("/c/policy.yaml:1:1: oh") }
	if _, err := r.ApplyPlan(t.Context(), sessionID, api.ApplyRequest{}); err == nil || !strings.Contains(err.Error(), "can't be read, and it may protect files: /c/policy.yaml:1:1: oh") {
		t.Errorf("a policy that can't be read: %v", err)
	}
}

// Review alone blocks, and says so.
func TestPolicyWantsReview(t *testing.T) {
	r := newRig(t, map[string]string{"go.mod": "m", "main.go": "x"})
	l, err := policytest.ParseLayer("user", "/c/policy.yaml", []byte("files: {review: [go.mod]}\n"))
	r.must(err)
	r.Rules = func(api.Session) (*policy.Policy, error) { return policy.Of(l), nil }
	r.agent("main.go", "y")
	r.gone("go.mod")
	r.action(api.ReviewKept)
	p := r.plan(api.ApplyRequest{})
	if len(p.Unreviewed) != 1 || p.Unreviewed[0].Path != "go.mod" || !strings.HasPrefix(p.Blocked, "a policy wants 1 of its changes looked at") {
		t.Errorf("%+v, %q", p.Unreviewed, p.Blocked)
	}
}
