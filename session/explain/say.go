package explain

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"stepbox/policy"
	"stepbox/policy/git"
	"stepbox/policy/source"
	"stepbox/session/api"
	"stepbox/session/outfit"
	"stepbox/session/rules"
)

// Explain says which rule decides on one thing, and why.
func (s *Service) Explain(ctx context.Context, q api.ExplainRequest) (api.Explained, error) {
	given := 0
	for _, is := range []bool{len(q.Argv) > 0, q.Host != "", q.Path != "", q.Variable != "", q.Limit != "", q.Section != ""} {
		if is {
			given++
		}
	}
	if given != 1 {
		return api.Explained{}, api.Problemf(api.CodeUsage, "name one thing to explain: a command, a host, a file, a variable, a limit or a section")
	}
	r, err := s.holding(ctx, q.PolicyOf)
	if err != nil {
		return api.Explained{}, err
	}
	var out api.Explained
	switch {
	case len(q.Argv) > 0:
		out = s.command(r, q)
	case q.Host != "":
		out, err = connection(r, q)
	case q.Variable != "":
		out, err = variable(r, q.Variable)
	case q.Limit != "":
		out, err = limit(r, q.Limit)
	case q.Section != "":
		out, err = section(r, q.Section)
	default:
		out, err = s.file(r, q.Path)
	}
	for _, f := range r.layers {
		switch {
		case f.Problem != nil:
			out.Notes = append(out.Notes, api.Escape(fmt.Sprintf("%s can't be read, so it isn't counted here: %s", f.Path, f.Problem)))
			if r.follows(f.Path) {
				out.Notes = append(out.Notes, "this session still follows what that file said before, so it may decide otherwise until the file is put right")
			}
		case f.Loosens() && q.Path == "":
			out.Notes = append(out.Notes, api.Escape(fmt.Sprintf("nobody confirmed %s as it is now, so what it allows isn't counted; stepbox policy trust shows it", f.Path)))
		}
	}
	return out, err
}

func ruling(rule string, at policy.Where) api.Ruling {
	return api.Ruling{Rule: api.Escape(rule), Layer: api.Escape(at.Layer), File: api.Escape(at.File), Line: at.Line}
}

func (s *Service) command(r holding, q api.ExplainRequest) api.Explained {
	c := policy.Command{Argv: q.Argv, Cwd: q.Cwd, Project: r.project, Home: s.Home}
	if hidden := r.session.HiddenPaths; r.session.ID != "" {
		c.Hidden = func(file string) bool {
			rel, in := strings.CutPrefix(file, r.project+"/")
			return in && within(hidden, rel)
		}
	}
	if c.Cwd == "" {
		c.Cwd = r.project
	}
	what := policy.Line(q.Argv)
	if len(q.Argv) == 1 && strings.ContainsAny(q.Argv[0], " \t\n;|&$`(){}<>") {
		c.Argv, what = []string{"sh", "-c", q.Argv[0]}, q.Argv[0]
	}
	j := r.policy.Command(c)
	out := api.Explained{What: api.Escape(what), Verdict: api.Verdict(j.Verdict), Ruling: ruling(j.Rule, j.Where)}
	if len(j.Parts) > 1 {
		for _, p := range j.Parts {
			out.Parts = append(out.Parts, api.PartRuling{Text: api.Escape(p.Text), Verdict: api.Verdict(p.Verdict), Ruling: ruling(p.Rule, p.Where)})
		}
	}
	if j.Uncounted != "" {
		out.Notes = append(out.Notes, "no rule that allows counts for it: "+api.Escape(j.Uncounted))
	}
	switch r.session.Mode {
	case api.ModeStep:
		out.Notes = append(out.Notes, "this session is in step mode: what a rule doesn't deny is asked about all the same")
	case api.ModeWatch:
		out.Notes = append(out.Notes, "this session is in watch mode: everything runs and is recorded")
	}
	return out
}

func connection(r holding, q api.ExplainRequest) (api.Explained, error) {
	d, err := policy.ParseDestination(q.Host)
	if err != nil {
		return api.Explained{}, api.Problemf(api.CodeUsage, "%s", api.Escape(err.Error()))
	}
	j := r.policy.Connect(d, q.Program)
	out := api.Explained{What: api.Escape(d.String()), Verdict: api.Verdict(j.Verdict), Ruling: ruling(j.Rule, j.Where)}
	if j.Verdict == policy.Allow && d.Name != "" && d.Name != policy.HostService {
		out.Notes = append(out.Notes, "a name that leads to an address of this machine or of its network is refused all the same; the address itself needs a rule")
	}
	if r.session.Mode == api.ModeWatch && j.Verdict == policy.Ask {
		out.Notes = append(out.Notes, "this session is in watch mode: it is let through and recorded")
	}
	return out, nil
}

// file says how a file is treated. Secrets that are known without a rule are found as a
// session's start finds them.
func (s *Service) file(r holding, name string) (api.Explained, error) {
	rel := filepath.Clean(name)
	if filepath.IsAbs(rel) {
		var err error
		if rel, err = filepath.Rel(r.project, rel); err != nil || !filepath.IsLocal(rel) {
			return s.outside(r, filepath.Clean(name)), nil
		}
	}
	if !filepath.IsLocal(rel) || r.project == "" {
		return api.Explained{}, api.Problemf(api.CodeUsage, "%s isn't in a project: name it in full", api.Escape(name))
	}
	out := api.Explained{What: api.Escape(rel)}
	how, by := r.policy.Treats(rel)
	out.Treated = how
	switch {
	case by != nil:
		out.Ruling = ruling(how+" "+by.Glob, by.Where)
	case secret(rel):
		out.Treated, out.Ruling = policy.Hidden, api.Ruling{Rule: "its name tells that it holds a secret", Layer: "built-in"}
	case policy.SecretIfIgnored(path.Base(rel)) && git.Open(r.project, git.Person{Home: s.Home, Config: s.Config}).Ignored(rel, false):
		out.Treated, out.Ruling = policy.Hidden, api.Ruling{Rule: "git ignores it, and its name is one of settings that aren't shared", Layer: "built-in"}
	case within(r.session.HiddenPaths, rel):
		out.Treated, out.Ruling = policy.Hidden, api.Ruling{Rule: "it was found to hold a secret, or to be another name of one, as the session began", Layer: "built-in"}
	default:
		out.Ruling = api.Ruling{Rule: "no rule is about it"}
	}
	return out, nil
}

// within says whether a path is one of some, or below one.
func within(some []string, rel string) bool {
	return slices.ContainsFunc(some, func(p string) bool { return rel == p || strings.HasPrefix(rel, p+"/") })
}

// secret says whether a path alone tells.
func secret(rel string) bool {
	if policy.SecretFile(path.Base(rel)) || policy.SecretPath(rel) {
		return true
	}
	for dir := path.Dir(rel); dir != "."; dir = path.Dir(dir) {
		if policy.SecretFolder(path.Base(dir)) {
			return true
		}
	}
	return false
}

// outside is what is said of a file that isn't the project's.
func (s *Service) outside(r holding, name string) api.Explained {
	out := api.Explained{What: api.Escape(name), Treated: policy.Hidden, Ruling: api.Ruling{Rule: "it isn't in the project, and nothing mounts it"}}
	for _, m := range r.policy.Mounts() {
		dir := outfit.Expand(m.Path, s.Home)
		if name != dir && !strings.HasPrefix(name, dir+"/") {
			continue
		}
		out.Treated = policy.Shown
		if out.Ruling = ruling("mounted to be read: "+m.Path, m.Where); m.Write {
			out.Ruling.Rule = "mounted to be written, in the session alone and without review: " + api.Escape(m.Path)
		}
		if why := outfit.Refused(dir, s.Home); why != "" {
			out.Treated, out.Ruling.Rule = policy.Hidden, "the mount is refused: "+api.Escape(why)
		}
	}
	for _, d := range r.session.Dirs { // those that no rule mounts
		if out.Treated == policy.Hidden && out.Line == 0 && within([]string{d.Path}, name) {
			out.Treated, out.Ruling = policy.Shown, api.Ruling{Rule: "the session was started with " + api.Escape(d.Path), Layer: "--add-dir"}
		}
	}
	if out.Treated == policy.Hidden && out.Line == 0 {
		out.Notes = append(out.Notes, "the system's own folders, and those of PATH, are shown to be read")
	}
	return out
}

// Test says which expectations rules don't meet. Without a session or files the rules are
// the built-in and the project's, as if it were confirmed: the same wherever they are run.
func (s *Service) Test(ctx context.Context, q api.PolicyTest) (api.PolicyTested, error) {
	var out api.PolicyTested
	of := q.PolicyOf
	if of.Session == "" && len(of.Files) == 0 && of.Project != "" {
		of.Files = []string{filepath.Join(of.Project, rules.Name)}
		if _, err := os.Lstat(of.Files[0]); errors.Is(err, fs.ErrNotExist) {
			return out, api.Problemf(api.CodeUsage, "there is no %s in %s to test: stepbox policy init --project writes one, --policy names other rules", rules.Name, api.Escape(of.Project))
		}
	}
	r, err := s.holding(ctx, of)
	if err != nil {
		return out, err
	}
	for _, file := range q.Tests {
		data, err := source.Any(file)
		var all []policy.Expectation
		if err == nil {
			all, err = policy.ParseExpectations(file, data)
		} else {
			err = fmt.Errorf("%s: %w", file, err)
		}
		if err != nil {
			return out, api.Problemf(api.CodeUsage, "%s", api.Escape(err.Error()))
		}
		for _, e := range all {
			got, ok := r.policy.Met(e, r.project, s.Home)
			if e.Path != "" && r.project != "" { // some are hidden by their names
				if x, err := s.file(r, e.Path); err == nil {
					if got = x.Treated; x.Layer != "" {
						got += " " + x.Rule
					}
					ok = x.Treated == e.Treated && strings.Contains(x.Rule, e.Rule)
				}
			}
			if ok {
				out.Met++
				continue
			}
			want := string(e.Want) + e.Treated
			if e.Rule != "" {
				want += " by: … " + e.Rule + " …"
			}
			out.Unmet = append(out.Unmet, api.PolicyGap{File: api.Escape(file), Line: e.Line, What: api.Escape(e.Run + e.Connect + e.Path), Want: api.Escape(want), Got: api.Escape(got)})
		}
	}
	return out, nil
}
