package e2e

import (
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"stepbox/session/e2e/must"
	"stepbox/session/e2e/standintest"
)

// paid is how an agent reaches its model with a key that Stepbox puts in.
type paid struct {
	credential, variable, host string
	env, files                 map[string]string // instead of those that lead it to the stand-in
	args                       []string
}

// An agent works with a key that it never has: the host gets the real one, and neither
// the home nor the record has it.
func TestAgentsCredential(t *testing.T) {
	each(t, agents, func(t *testing.T, a *agent, p *person, model *standintest.Server) {
		if a.paid == nil {
			t.Skipf("nothing here gives %s a key", a.name)
		}
		at, err := url.Parse(model.URL())
		must.OK(t, err)
		hosts := newAPIs(t, p.dir, httputil.NewSingleHostReverseProxy(at).ServeHTTP, a.paid.host)
		with := *a
		with.env, with.files, with.args = a.paid.env, a.paid.files, a.paid.args
		with.flags = []string{"--credential", a.paid.credential}
		with.vars = []string{"HTTPS_PROXY=" + hosts.proxy, "NODE_EXTRA_CA_CERTS=" + hosts.roots, a.paid.variable + "=" + realKey}
		with.prepare(p, model)
		model.Add(calls(a.shell("echo key: $" + a.paid.variable))...)
		r := with.run(t, p, model, "policy", "paid", append(a.ask, "say the key"), approving)
		if got := results(t, model, 1)[0]; !strings.Contains(got, "stepbox-placeholder") || strings.Contains(got, "the-real-one") {
			t.Errorf("the agent has %q", got)
		}
		for _, turn := range model.Turns() {
			if got := strings.Join(turn.Header["X-Api-Key"], "") + strings.Join(turn.Header["Authorization"], "") + strings.Join(turn.Header["X-Goog-Api-Key"], ""); strings.TrimPrefix(got, "Bearer ") != realKey {
				t.Errorf("the model was asked with %q", got)
			}
		}
		if r.exit != 0 || !strings.Contains(r.output, "The work is done.") {
			t.Errorf("exit %d: %s", r.exit, r.output)
		}
		for _, q := range r.asked {
			t.Errorf("asked: %s: %s", q.Title, q.Rule)
		}
		p.nowhere("the-real-one", filepath.Join(p.dir, "data"))
	})
}
