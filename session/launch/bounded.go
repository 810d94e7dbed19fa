package launch

import (
	"path/filepath"
	"slices"
	"time"

	"stepbox/policy"
	"stepbox/session"
	"stepbox/session/outfit"
	"stepbox/session/rules"
)

// policiesOf is where the policies of a person and of a project are.
func policiesOf(home, config, data, project string) rules.Config {
	return rules.Config{User: rules.User(home, config), Project: filepath.Join(project, rules.Name), Trust: rules.TrustIn(data)}
}

// roomy is how many times the usual memory a program may reserve where only that can be
// bounded: runtimes reserve far more than they use, and end where they can't.
const roomy = 4

// bounded has policies say what a request left as usual of what the session may use. A file
// that can't be read says nothing here; the session is refused for it.
func (r Request) bounded(c *session.Config) {
	now := rules.Look(policiesOf(c.Home, outfit.Variable(c.Env, "XDG_CONFIG_HOME"), c.DataDir, c.Workspace))
	limit := func(name string, usual float64) float64 {
		if !slices.Contains(r.Usual, name) {
			return usual
		}
		return limitOf(now, name, usual)
	}
	usual := c.Limits.Memory
	c.Limits.Memory = int64(limit("memory", float64(usual)))
	if slices.Contains(r.Usual, "memory") && c.Limits.Memory == usual {
		c.Limits.Reserve = roomy * usual
	}
	c.Limits.CPUs = limit("cpus", c.Limits.CPUs)
	c.Limits.Pids = int64(limit("pids", float64(c.Limits.Pids)))
	c.Disk = int64(limit("disk", float64(c.Disk)))
	c.WallTime = time.Duration(limit("wall-time", c.WallTime.Seconds()) * float64(time.Second))
}

// limitOf is what files say of a limit, or what is usual. One that nobody confirmed can
// only lower it.
func limitOf(now rules.State, name string, usual float64) float64 {
	var sure, unsure []policy.Layer
	for _, f := range []rules.Source{now.User, now.Project} {
		if f.Trusted {
			sure = append(sure, f.Layer)
		} else {
			unsure = append(unsure, f.Layer)
		}
	}
	if l, ok := policy.Of(sure...).Limit(name); ok {
		usual = l.Amount
	}
	if l, ok := policy.Of(unsure...).Limit(name); ok && (usual == 0 || l.Amount < usual) {
		usual = l.Amount
	}
	return usual
}
