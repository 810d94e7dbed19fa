package rules

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/fsnotify/fsnotify"

	"stepbox/policy"
	"stepbox/session/api"
)

// Config says where a session's files are.
type Config struct {
	User    string // the person's own policy; "": none
	Project string // the project's; "": none
	Trust   Trust
}

// State is what the files say.
type State struct {
	N       int // counts up in a Set
	User    Source
	Project Source
}

// Source is one of the files.
type Source struct {
	Path    string
	Hash    string       // of what is in force; "": there is no file
	Trusted bool         // the person's own, or confirmed
	Layer   policy.Layer // what holds of it
	// Whole is all that it says, also what doesn't hold as it isn't trusted.
	Whole policy.Layer
	// Problem is why the file as it is now can't be used. What was read before it
	// holds on.
	Problem error

	files []string // that were read, or to be: the one at Path and those that it includes
}

// Layers are what holds, from the general to the specific.
func (s *State) Layers() []policy.Layer {
	var out []policy.Layer
	for _, f := range []*Source{&s.User, &s.Project} {
		if f.Hash != "" {
			out = append(out, f.Layer)
		}
	}
	return out
}

// Says tells whether a rule on a host is in force by one of the files.
func (s *State) Says(r api.Rule) bool {
	h, err := policy.ParseHost(r.Host)
	return err == nil && slices.ContainsFunc(s.Layers(), func(l policy.Layer) bool {
		return slices.ContainsFunc(l.Network, func(n policy.NetRule) bool {
			return n.Verdict == policy.Verdict(r.Verdict) && n.Host == h
		})
	})
}

// Loosens says whether a source that isn't trusted would let something through.
func (s *Source) Loosens() bool { return !s.Trusted && s.Whole.Loosens() }

func (s *Source) same(o *Source) bool {
	return s.Path == o.Path && s.Hash == o.Hash && s.Trusted == o.Trusted && words(s.Problem) == words(o.Problem)
}

func words(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// Set is one session's files. Rules are put into them by way of its Config.
type Set struct {
	Config
	now     State // owned by follow once that runs
	again   chan chan State
	follows bool
	stop    chan struct{}
	stopped chan struct{}
}

// Open reads the files for a session that is about to start. A file that can't be used
// is an error: what it forbids would be let through.
func Open(cfg Config) (*Set, error) {
	s := &Set{Config: cfg, again: make(chan chan State), stop: make(chan struct{}), stopped: make(chan struct{})}
	if cfg.Trust != "" {
		_ = os.MkdirAll(string(cfg.Trust), 0o700) // to be watched; who confirms something makes it, too
	}
	s.read()
	if err := errors.Join(s.now.User.Problem, s.now.Project.Problem); err != nil {
		return nil, err
	}
	return s, nil
}

// Look reads the files once. What is wrong with one is its Problem.
func Look(cfg Config) State {
	s := Set{Config: cfg}
	s.read()
	return s.now
}

// User is where a person's own policy is: in the folder that XDG_CONFIG_HOME names, or
// that is usual.
func User(home, config string) string {
	if !filepath.IsAbs(config) { // as its specification has it
		if config = filepath.Join(home, ".config"); home == "" {
			return ""
		}
	}
	return filepath.Join(config, "stepbox", "policy.yaml")
}

// Now is what was read at first. It isn't for use once Follow was called.
func (s *Set) Now() State { return s.now }

// read reads the files, and says whether anything about them is new.
func (s *Set) read() bool {
	next := State{
		N:       s.now.N + 1,
		User:    load("your policy", s.User, true, "", s.now.User),
		Project: load("the project's policy", s.Project, false, s.Trust, s.now.Project),
	}
	if next.User.same(&s.now.User) && next.Project.same(&s.now.Project) {
		return false
	}
	s.now = next
	return true
}

// load reads one of them. Where it can't be used what was before holds on, as far as it
// is still trusted.
func load(name, path string, own bool, trust Trust, was Source) Source {
	c, err := read(path, own)
	var whole policy.Layer
	if err == nil && c.there() {
		whole, err = c.layer(name, c.data)
	}
	now := Source{Path: c.path, Hash: whole.Sum, Whole: whole}
	if err != nil {
		now = was
		now.Path, now.Problem = c.path, err
	}
	now.files = whole.Sources
	now.Trusted = own || trust.Has(now.Path, now.Hash)
	if now.Layer = now.Whole; !now.Trusted {
		now.Layer = now.Whole.Tightening()
	}
	return now
}

// quiet is how long nothing must happen to a file before it is read: who writes one
// may do so in steps.
const quiet = 100 * time.Millisecond

// Follow tells of changes until Close. Told is called from one goroutine, one state
// after the other.
func (s *Set) Follow(told func(State)) error {
	w, err := fsnotify.NewWatcher()
	if err == nil {
		err = s.watch(w)
	}
	s.follows = true
	go s.follow(w, told)
	return err
}

// Again reads the files now, and gives what is in them once told was called of it.
func (s *Set) Again(ctx context.Context) (State, error) {
	reply := make(chan State, 1)
	select {
	case s.again <- reply:
	case <-s.stopped:
		return State{}, errors.New("the session is over")
	case <-ctx.Done():
		return State{}, ctx.Err()
	}
	return <-reply, nil
}

// Close ends Follow, and waits for that.
func (s *Set) Close() {
	close(s.stop)
	if s.follows {
		<-s.stopped
	}
}

func (s *Set) follow(w *fsnotify.Watcher, told func(State)) {
	defer close(s.stopped)
	var events chan fsnotify.Event
	var failures chan error
	if w != nil {
		defer w.Close()
		events, failures = w.Events, w.Errors
	}
	look := func() {
		if s.read() {
			told(s.now)
		}
		if w != nil {
			_ = s.watch(w) // folders may have come
		}
	}
	look() // since it was read at first
	settled := time.NewTimer(0)
	settled.Stop()
	for {
		select {
		case e := <-events:
			if s.concerns(e.Name) {
				settled.Reset(quiet)
			}
		case <-failures: // some were lost
			settled.Reset(quiet)
		case <-settled.C:
			look()
		case reply := <-s.again:
			look()
			reply <- s.now
		case <-s.stop:
			return
		}
	}
}

// paths are all whose changes matter: links, and what they lead to.
func (s *Set) paths() []string {
	out := slices.Concat([]string{s.User, s.Project, s.now.User.Path, string(s.Trust)}, s.now.User.files, s.now.Project.files)
	out = slices.DeleteFunc(out, func(p string) bool { return p == "" })
	slices.Sort(out)
	return slices.Compact(out)
}

// watch watches the folder of each file, or the nearest one above that there is: a
// file itself goes when an editor puts another in its place.
func (s *Set) watch(w *fsnotify.Watcher) error {
	var failure error
	for _, p := range s.paths() {
		dir := filepath.Dir(p)
		if p == string(s.Trust) { // the notes in it
			dir = p
		}
		for ; ; dir = filepath.Dir(dir) {
			if st, err := os.Stat(dir); err == nil && st.IsDir() || dir == filepath.Dir(dir) {
				break
			}
		}
		if err := w.Add(dir); err != nil { // that it is watched already is none
			failure = errors.Join(failure, err)
		}
	}
	return failure
}

// concerns says whether a change at a path is one of a file, of a folder on the way to
// it, or of what is trusted.
func (s *Set) concerns(name string) bool {
	return slices.ContainsFunc(s.paths(), func(p string) bool {
		rel, err := filepath.Rel(name, p)
		return err == nil && filepath.IsLocal(rel) || filepath.Dir(name) == string(s.Trust)
	})
}
