// Package outfit says what a sandbox has of the host: which of the project's
// files are hidden because they hold secrets, what stands in for those of git
// that do, which of the person's tools are mounted, and which of their variables
// get in. Whatever shows a project to a program shows it so.
//
// The project and what is in the home folder are looked at, never written, and
// links in them aren't followed but where a tool's own link leads. An Outfit
// belongs to whoever made it.
package outfit

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"stepbox/policy"
	"stepbox/policy/git"
	"stepbox/runner"
	"stepbox/runner/overlay/manifest"
	"stepbox/session/api"
	"stepbox/session/frozen"
)

// Needs says for whom a sandbox is made. Paths are absolute host paths.
type Needs struct {
	Workspace string // the project, checked by runner.CheckWorkspace
	StateDir  string // the sandbox's own folder
	DataDir   string // the store's, which is never shown
	Home      string // the person's home folder
	HomeDir   string // what is in its place inside
	Argv      []string
	Env       []string        // the person's
	Profile   *policy.Profile // of the program
	Hooks     bool            // the program may tell of what it does
	Rules     *policy.Policy  // whose files, variables and mounts count; nil: the built-in
	Extras    Extras
	Vars      []string // variables that the person gives: NAME, which passes, or NAME=value
	Git       string   // the folder of the session whose git is shown; "": what git is now is taken into StateDir
}

// Outfit is what a sandbox is made of.
type Outfit struct {
	// Spec lacks what isn't of the host: ID, RunDir, Limits and the terminal's size.
	Spec runner.Spec

	Ignores   *git.Repository // what git ignores, as of now
	Unshown   []string        // what isn't shown that the person named, and why
	Hidden    []string        // files and folders of the project that are there and aren't shown
	Redacted  []string        // files that are shown without their secrets
	Committed []string        // files that would be hidden if git hadn't them: the agent has them in history
	Git       frozen.Git      // what git is inside
	Whole     bool            // all of the project was looked at
	Dirs      []api.Dir       // what is shown besides the project, by rules or Extras
	Caches    []string        // the person's build caches that are shown
	Unhooked  []string        // files of /etc that the host has, so that the program's hooks aren't in them
	Unset     []string        // variables that were to pass and that the person hasn't
	Undecided []string        // arguments that would turn off the agent's own questions, about which nothing was said
	Lacking   []string        // those that the agent knows, the person has, and nothing passes
	// Authorities are whom the person's variables have programs trust.
	Authorities []Authority
	Unkept      []string // object stores of which the session keeps nothing that the host throws away
	NoGit       []string // what git hasn't inside, in words
}

// For looks at the project and makes the folders that a sandbox needs.
func For(n Needs) (*Outfit, error) {
	for _, dir := range []string{n.StateDir, n.HomeDir} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, fmt.Errorf("cannot make the session's folder: %w", err)
		}
	}
	if n.Rules == nil {
		n.Rules = policy.Of()
	}
	gone := n.Extras.dropGone()
	shown, err := mounts(n)
	if err != nil {
		return nil, err
	}
	found := look(n.Workspace, Person(n.Home, n.Env), maxSurveyed, n.Rules.Hide())
	fixed, err := found.fixed(n.Workspace, n.Rules.ReadOnly())
	if err != nil {
		return nil, err
	}
	repositories, err := found.git(n)
	if err != nil {
		return nil, err
	}
	programs, where := tools(n.Argv[0], n.Env, n.Home, n.Workspace, n.DataDir)
	binds := withMounts(programs, shown)
	path := searched(pathOf(n.Env), n.Home, n.Workspace, binds)
	var builds []runner.Bind
	if !n.Extras.NoCaches {
		if builds, err = caches(n, binds); err != nil {
			return nil, err
		}
	}
	trusted, err := certificates(n, binds)
	if err != nil {
		return nil, err
	}
	env, unset := withGiven(variables(slices.Concat(environ(n, path), where, trusted.vars), n), n)
	lacking := lacking(env, n)
	if repositories.Outer != "" {
		env = append(env, "GIT_DISCOVERY_ACROSS_FILESYSTEM=1") // a project that is a part of a working tree is a mount of its own
	}
	var etc map[string][]byte
	var args, unhooked []string
	if n.Hooks {
		etc, args, unhooked = hooks(n.Profile, "/etc")
	}
	undecided := n.Profile.Unasked(n.Argv)
	if said := n.Extras.Unasked; said != nil {
		if *said {
			args = append(args, undecided...)
		}
		undecided = nil
	}
	return &Outfit{
		Undecided: undecided,
		Dirs:      dirs(shown), Caches: targets(builds), Unshown: slices.Concat(gone, trusted.unshown), Authorities: trusted.authorities, Unset: unset, Lacking: lacking, NoGit: repositories.lacks(), Unkept: repositories.Lost(), Git: repositories.Git, Committed: found.committed, Unhooked: unhooked, Ignores: found.ignores, Hidden: found.hidden, Redacted: repositories.Redacted, Whole: found.whole,
		Spec: runner.Spec{
			StateDir: n.StateDir, Workspace: n.Workspace, Cwd: n.Workspace, Home: n.HomeDir, HomeTarget: n.Home,
			Hidden: slices.Concat(found.hidden, found.toCome), ReadOnly: fixed, Above: repositories.above(), Outer: repositories.Outer, OuterLower: frozen.OuterLayer(repositories.Folder),
			Binds: slices.Concat(binds, builds, trusted.binds, repositories.stores()),
			Argv:  n.Profile.Args(n.Argv, args...), Env: env, Etc: etc,
		},
	}, nil
}

// Hidden is what a sandbox over a project doesn't show of it, relative, also what may
// come to be there.
func Hidden(workspace string, person git.Person) []string {
	found := look(workspace, person, maxSurveyed, nil)
	return slices.Concat(found.hidden, found.toCome)
}

// ProfileFor is the profile, of a set, of a program that is started with an environment in
// a folder.
func ProfileFor(of *policy.Profiles, argv, env []string, dir string) *policy.Profile {
	argv, file, real := Started(argv, env, dir)
	if p := of.For(argv, file); p.Agent() || real == file {
		return p
	}
	return of.For(argv, real)
}

// Started is what profiles are looked up by: arguments, in which paths are absolute, and
// the file that is started, before its links are followed and after.
func Started(argv, env []string, dir string) (args []string, file, real string) {
	args = slices.Clone(argv)
	for i, a := range args {
		if strings.Contains(a, "/") && !strings.HasPrefix(a, "-") && !filepath.IsAbs(a) {
			if _, err := os.Lstat(filepath.Join(dir, a)); i == 0 || err == nil {
				args[i] = filepath.Join(dir, a)
			}
		}
	}
	file = lookPath(args[0], pathOf(env))
	if r, err := filepath.EvalSymlinks(file); err == nil && file != "" {
		return args, file, r
	}
	return args, file, file
}

// Person says where git's configuration of a person is.
func Person(home string, env []string) git.Person {
	return git.Person{Home: home, Config: Variable(env, "XDG_CONFIG_HOME"), Global: Variable(env, "GIT_CONFIG_GLOBAL")}
}

// environ is what the program's environment is made of: what the rules let pass
// of the person's own, and what the sandbox itself is.
func environ(n Needs, path string) []string {
	own := []string{"HOME=" + n.Home, "PATH=" + path, "PWD=" + n.Workspace}
	env := own
	for _, e := range policy.Environment(n.Env, n.Profile) {
		name, _, _ := strings.Cut(e, "=")
		if !slices.ContainsFunc(own, func(o string) bool { return strings.HasPrefix(o, name+"=") }) {
			env = append(env, e)
		}
	}
	return env
}

// pathOf finds PATH in an environment.
func pathOf(env []string) string {
	return cmp.Or(Variable(env, "PATH"), "/usr/local/bin:/usr/bin:/bin")
}

// searched is a PATH of the person's whose folders that are the agent's in the sandbox come last: a program that it leaves there
// runs in the place of no other. Those are in the home or in /tmp, and nothing is mounted there. What is written to the project
// is asked about.
func searched(path, home, project string, binds []runner.Bind) string {
	var first, last []string
	for _, dir := range filepath.SplitList(path) {
		at := filepath.Clean(dir)
		switch {
		case manifest.Within(at, project), !manifest.Within(at, home) && !manifest.Within(at, "/tmp"),
			slices.ContainsFunc(binds, func(b runner.Bind) bool { return b.Upper == "" && manifest.Within(at, b.Target) }):
			first = append(first, dir)
		default:
			last = append(last, dir)
		}
	}
	return strings.Join(append(first, last...), string(filepath.ListSeparator))
}

// Variable is a variable's value in an environment; "" when it isn't set.
func Variable(env []string, name string) string {
	for _, e := range env {
		if value, ok := strings.CutPrefix(e, name+"="); ok {
			return value
		}
	}
	return ""
}
