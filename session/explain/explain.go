// Package explain answers what rules hold for a session or in a project, and what they
// say of a command, a connection or a file: which rule decides, from which layer, file
// and line. It writes a file of rules to begin with, puts rules into files and takes them out, and
// keeps which projects' rules a person confirmed.
//
// It trusts nobody: what is asked about comes from whoever asks, and the files of a
// project from whoever wrote it. What it gives back is escaped. A Service is safe for
// concurrent use.
package explain

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"stepbox/policy"
	"stepbox/policy/source"
	"stepbox/session/api"
	"stepbox/session/rules"
)

// Service answers.
type Service struct {
	Session func(ctx context.Context, id string) (api.Session, error)
	Home    string
	Data    string // the store's folder
	Config  string // the person's XDG_CONFIG_HOME; "" is not set
	User    string // the person's own file of rules
	Trust   rules.Trust
}

// shown is a layer as it is shown: with what doesn't hold of it, and why.
type shown struct {
	rules.Source
	name   string
	absent bool // there is no such file
}

// holding is what holds somewhere.
type holding struct {
	policy  *policy.Policy
	profile *policy.Profile
	layers  []shown // from the general to the specific
	project string
	session api.Session // none: without an ID
}

// holding is what holds for a session, in a project, or by some files alone.
func (s *Service) holding(ctx context.Context, of api.PolicyOf) (holding, error) {
	r := holding{project: of.Project}
	if of.Session != "" {
		var err error
		if r.session, err = s.Session(ctx, of.Session); err != nil {
			return r, err
		}
		r.project = r.session.Folder
	}
	agent := of.Agent
	if agent == "" {
		agent = r.session.Agent
	}
	profiles := s.profiles()
	profile := profiles.Named(agent)
	if profile == nil {
		return r, api.Problemf(api.CodeUsage, "there is no profile %q: there are %s", api.Escape(agent), profiles.Names())
	}
	r.profile = profile
	r.layers = append(r.layers, alone(profile.Layer()))
	if len(of.Files) == 0 {
		r.layers = append(r.layers, s.files(r.project)...)
	}
	for _, f := range of.Files {
		l := s.whole(f)
		if l.Problem != nil {
			return r, api.Problemf(api.CodeInvalid, "%s", api.Escape(l.Problem.Error()))
		}
		r.layers = append(r.layers, l)
	}
	if r.session.ID != "" {
		if err := r.ofSession(); err != nil {
			return r, err
		}
	}
	var layers []policy.Layer
	for _, l := range r.layers {
		layers = append(layers, l.Layer) // of one that is absent it is empty
	}
	r.policy = policy.Of(layers...)
	return r, nil
}

// follows says whether the session is live and has rules of a file, as it was when it was
// read last.
func (r *holding) follows(file string) bool {
	return r.session.ID != "" && r.session.Live() && slices.ContainsFunc(r.session.Policy, func(p api.PolicyFile) bool {
		return p.Path == api.Escape(file) && p.Hash != ""
	})
}

// alone is a layer that is in no file of a person's.
func alone(l policy.Layer) shown {
	return shown{name: l.Name, Source: rules.Source{Trusted: true, Whole: l, Layer: l}}
}

// files are the person's own rules and a project's.
func (s *Service) files(project string) []shown {
	cfg := rules.Config{User: s.User, Trust: s.Trust}
	if project != "" {
		cfg.Project = filepath.Join(project, rules.Name)
	}
	now := rules.Look(cfg)
	out := []shown{{name: "your policy", Source: now.User}, {name: "the project's policy", Source: now.Project}}
	for i := range out {
		out[i].absent = out[i].Hash == "" && out[i].Problem == nil
	}
	if project == "" {
		out = out[:1]
	}
	return out
}

// ofSession adds the layers of a session alone.
func (r *holding) ofSession() error {
	named, err := rules.Named(r.session.Hosts)
	if err != nil {
		return err
	}
	made, err := rules.Layer("this session", slices.DeleteFunc(slices.Clone(r.session.Rules), api.Rule.Kept))
	r.layers = append(r.layers, alone(named), alone(made))
	return err
}

// whole reads a file all of which counts.
func (s *Service) whole(file string) shown {
	l, err := policy.Load(filepath.Base(file), file, s.reader(file))
	return shown{name: l.Name, Source: rules.Source{Path: file, Hash: l.Sum, Trusted: true, Whole: l, Layer: l, Problem: err}}
}

// reader reads a file of rules and what it includes as sessions do: the person's own only
// where nobody else can change it, a project's through no link.
func (s *Service) reader(file string) func(string) ([]byte, error) {
	switch {
	case file == s.User:
		return source.Person
	case filepath.Base(file) == rules.Name:
		return source.Project(filepath.Dir(file))
	}
	return source.Any
}

// Check reads files of rules and says what is wrong in them.
func (s *Service) Check(_ context.Context, files []string) (api.PolicyChecked, error) {
	out := api.PolicyChecked{Files: []string{}, Problems: []api.PolicyProblem{}}
	for _, f := range files {
		if !filepath.IsAbs(f) {
			return out, api.Problemf(api.CodeInvalid, "%q isn't an absolute path", api.Escape(f))
		}
		l, err := policy.Load(f, filepath.Clean(f), s.reader(filepath.Clean(f)))
		for _, file := range l.Sources {
			if !slices.Contains(out.Files, api.Escape(file)) {
				out.Files = append(out.Files, api.Escape(file))
			}
		}
		for _, p := range problems(err) {
			if !slices.Contains(out.Problems, p) {
				out.Problems = append(out.Problems, p)
			}
		}
	}
	return out, nil
}

// problems are an error of policy.Load as it is told.
func problems(err error) (out []api.PolicyProblem) {
	var all policy.Problems
	if err != nil && !errors.As(err, &all) {
		all = policy.Problems{{Err: err}}
	}
	for _, p := range all {
		out = append(out, api.PolicyProblem{File: api.Escape(p.File), Line: p.Line, Column: p.Column, Message: api.Escape(p.Err.Error())})
	}
	return out
}

// Init writes a file of rules to begin with.
func (s *Service) Init(_ context.Context, project string) (api.PolicyMade, error) {
	file, mode := s.User, fs.FileMode(0o600)
	if project != "" {
		file, mode = filepath.Join(project, rules.Name), 0o644
	} else if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return api.PolicyMade{}, fmt.Errorf("cannot make the folder of your policy: %w", err)
	}
	made := api.PolicyMade{File: api.Escape(file)}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if errors.Is(err, fs.ErrExist) {
		return made, api.Problemf(api.CodeUsage, "%s is there already: it stays as it is; stepbox policy check says whether it is right", api.Escape(file))
	}
	if err != nil {
		return made, fmt.Errorf("cannot write a policy to begin with: %w", err)
	}
	_, err = f.Write(policy.Starter(project != ""))
	if err := errors.Join(err, f.Close()); err != nil {
		return made, fmt.Errorf("cannot write a policy to begin with: %w", err)
	}
	return made, nil
}

// Schema is the format of files of rules.
func (s *Service) Schema() []byte { return policy.Schema() }
