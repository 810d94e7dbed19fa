// Package scratch makes throw-away sandboxes: each has a project in a given
// state, without a network, and runs one program in it to its end. Checks run so
// before anything is applied, and so does git where the agent could write the
// repository: to bundle the commits that the agent made, which the person's own
// git then fetches from the bundle.
//
// A program in there sees what a session over the same project would show it, in
// an empty home. It can write nothing but what goes with the sandbox, and ends
// when the context does. It isn't trusted: what it prints and leaves is bounded,
// and parsed as hostile.
//
// A Scratch may be used from several goroutines.
package scratch

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base32"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"stepbox/runner"
	"stepbox/runner/gate"
	"stepbox/runner/overlay/lower"
	"stepbox/runner/overlay/manifest"
	"stepbox/runner/overlay/restore"
	"stepbox/runner/overlay/scan"
	"stepbox/session/api"
	"stepbox/session/files"
	"stepbox/session/outfit"
	"stepbox/store"
)

// Config says whose project it is, and what a sandbox may use.
type Config struct {
	Store     *store.Store
	Workspace string   // the project, checked by runner.CheckWorkspace
	Home      string   // the person's home folder
	Env       []string // the person's environment; most of it stays outside
	Hidden    []string // what the session hid of the project, relative; what one would hide today is hidden as well
	Folder    string   // the session's own, where what git is in it is
	DataDir   string   // the store's folder
	Limits    runner.Limits
}

// Scratch makes sandboxes of one project.
type Scratch struct{ cfg Config }

// maxPids bounds the processes of a sandbox for which nobody chose a bound.
const maxPids = 4096

// New makes one for a project.
func New(cfg Config) *Scratch {
	cfg.Limits.Pids = cmp.Or(cfg.Limits.Pids, maxPids)
	return &Scratch{cfg}
}

// Folder is where the sandboxes of a store's folder have theirs, with all that
// they write. runner.Sweep removes there what was left by processes that were killed.
func Folder(dataDir string) string { return filepath.Join(dataDir, "scratch") }

// job is one program to be run on a state of the project.
type job struct {
	state  *manifest.Manifest     // nil: the project as it is
	folder string                 // where the upper stays; "": it goes with the sandbox
	own    func(path string) bool // see Lay
	argv   []string
	home   string            // its .gitconfig; "" for none
	temp   map[string]string // files of its /tmp, by name
	wall   time.Duration
	git    bool                   // git is what it is in the session
	builds bool                   // it may use what builds have fetched and made
	told   func([]byte)           // of what it prints, as it does
	after  func(dir string) error // when it has ended: dir goes with the sandbox, and its /tmp is in dir/state/tmp
}

// outcome is how a job went.
type outcome struct {
	exit     runner.Exit
	took     time.Duration
	overtime bool // it was ended because of that
}

// closeLimit bounds how long the end of a sandbox is waited for.
const closeLimit = time.Minute

// run makes a sandbox, runs a job in it and removes it. An error says that the
// program didn't run, or not to its end, for no fault of its own.
func (s *Scratch) run(ctx context.Context, j job) (out outcome, err error) {
	err = s.within(ctx, j, func(box *runner.Sandbox, e *gate.Exec) (err error) {
		var late atomic.Bool
		began := time.Now()
		defer time.AfterFunc(j.wall, func() { late.Store(true); box.Kill() }).Stop()
		var full atomic.Pointer[string]
		bounded := bound(ctx, filepath.Dir(box.Upper()), func(why string) { full.Store(&why); box.Kill() })
		e.Allow(gate.NoExit | gate.Unverified)
		out.exit, err = box.Wait()
		out.took = time.Since(began)
		bounded()
		if why := full.Load(); why != nil {
			err = errors.Join(errors.New("the throw-away sandbox was ended: "+*why), err)
		}
		switch out.overtime = late.Load() && !out.exit.Known; {
		case out.overtime:
			return nil
		case err == nil && j.after != nil:
			err = j.after(filepath.Dir(filepath.Dir(box.Upper())))
		}
		return err
	})
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return out, err
}

// Lay puts a state of the project into the upper of a session that isn't there yet,
// in whose folder nothing is: no program of the sandbox that does it runs. Own says which
// files it is to have though the project has the same; nil is none.
func (s *Scratch) Lay(ctx context.Context, folder string, state *manifest.Manifest, own func(path string) bool) error {
	return s.within(ctx, job{state: state, folder: folder, own: own, git: true, argv: []string{"/bin/sh"}}, func(*runner.Sandbox, *gate.Exec) error { return nil })
}

// within makes a job's sandbox, lays the project out in it, and removes it when f has
// returned. The job's program is held until f lets it go.
func (s *Scratch) within(ctx context.Context, j job, f func(*runner.Sandbox, *gate.Exec) error) (err error) {
	box, low, first, err := s.start(ctx, j)
	if err != nil {
		return err
	}
	defer low.Close()
	read := make(chan struct{})
	go func() {
		defer close(read)
		follow(box.Terminal(), j.told)
	}()
	defer func() {
		limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeLimit)
		defer cancel()
		failure := box.Close(limit)
		if failure != nil { // what can't be ended may keep the terminal open
			_ = box.Terminal().SetReadDeadline(time.Unix(1, 0))
		}
		<-read
		err = errors.Join(err, failure)
	}()
	defer context.AfterFunc(ctx, box.Kill)()
	select {
	case e := <-first:
		// Its only process is held at its first program, so nothing races with this.
		if err := s.lay(ctx, box, low, j.state, restore.Options{Whole: j.folder != "", Up: j.own}); err != nil {
			return err
		}
		return f(box, e)
	case <-box.Exited():
		_, err := box.Wait()
		return cmp.Or(err, errors.New("the sandbox ended before its program began"))
	}
}

// start makes the sandbox, up to its first program.
func (s *Scratch) start(ctx context.Context, j job) (*runner.Sandbox, *lower.Lower, <-chan *gate.Exec, error) {
	cfg := s.cfg
	var b [5]byte
	_, _ = rand.Read(b[:]) // never fails, crypto/rand
	common := runner.Spec{ID: "scratch-" + strings.ToLower(base32.StdEncoding.EncodeToString(b[:])), RunDir: Folder(cfg.DataDir), Limits: cfg.Limits}
	common.StateDir = cmp.Or(j.folder, filepath.Join(common.RunDir, common.ID, "state"))
	prepared := runner.Prepare(ctx, common)
	defer prepared.Abandon()
	if err := prepared.Wait(); err != nil {
		return nil, nil, nil, err
	}
	home, repositories := filepath.Join(common.RunDir, common.ID, "home"), ""
	if j.git {
		repositories = cfg.Folder
	}
	of, err := outfit.For(outfit.Needs{
		Workspace: cfg.Workspace, StateDir: common.StateDir, DataDir: cfg.DataDir, Home: cfg.Home, HomeDir: home,
		Argv: j.argv, Env: cfg.Env, Profile: outfit.ProfileFor(nil, j.argv, cfg.Env, cfg.Workspace), Extras: outfit.Extras{NoCaches: !j.builds}, Git: repositories,
	})
	if err == nil && of.Spec.Outer != "" && cfg.Folder != "" && cfg.Folder != common.StateDir {
		err = copyUpper(cfg.outer(), filepath.Join(common.StateDir, "outer", "upper"))
	}
	if err == nil && j.home != "" {
		err = os.WriteFile(filepath.Join(home, ".gitconfig"), []byte(j.home), 0o644)
	}
	for name, text := range j.temp {
		if err == nil {
			err = os.WriteFile(filepath.Join(common.StateDir, "tmp", name), []byte(text), 0o644)
		}
	}
	if err != nil {
		return nil, nil, nil, err
	}
	spec := of.Spec
	spec.ID, spec.RunDir, spec.Limits, spec.Cols, spec.Rows = common.ID, common.RunDir, cfg.Limits, 120, 40
	spec.Hidden = slices.Concat(spec.Hidden, cfg.Hidden)
	spec.Env = slices.Concat(spec.Env, []string{"TERM=dumb", "NO_COLOR=1", "CI=true"})
	low, err := lower.Open(cfg.Workspace, lower.Options{Hidden: spec.Hidden, Above: spec.Above})
	if err != nil {
		return nil, nil, nil, fmt.Errorf("cannot read the project folder: %w", err)
	}
	first := make(chan *gate.Exec, 1)
	var begun atomic.Bool
	box, err := prepared.Start(ctx, spec, runner.Handlers{Gate: gate.Options{
		Exec: func(e *gate.Exec) {
			if begun.CompareAndSwap(false, true) {
				first <- e
			} else {
				e.Allow(gate.NoExit | gate.Unverified)
			}
		},
		// Debuggers may have what the program started, not what watches over it.
		Reach: func(_ context.Context, r gate.Reach) bool {
			return r.Kind == gate.ReachShare || r.Kind == gate.ReachSignal || len(r.Target.Ancestors) > 0
		},
	}})
	if err != nil {
		low.Close()
		return nil, nil, nil, err
	}
	low.Ask(box.OpenLower)
	return box, low, first, nil
}

// lay puts the project into a state, through the merged view. What can't be
// there as the state has it is an error: nobody may believe that it was.
func (s *Scratch) lay(ctx context.Context, box *runner.Sandbox, low *lower.Lower, state *manifest.Manifest, o restore.Options) error {
	if state == nil {
		return nil
	}
	bad := func(err error) error { return fmt.Errorf("cannot lay out the project: %w", err) }
	bodies := files.Bodies{Store: s.cfg.Store}
	scanner, err := scan.New(box.Upper(), bodies, box.OpenUpper)
	if err != nil {
		return bad(err)
	}
	defer scanner.Close()
	empty, _, err := scanner.Scan(ctx, scan.Options{})
	if err != nil {
		return bad(err)
	}
	plan, err := restore.NewPlan(ctx, low, empty, state, o)
	if err != nil {
		return bad(err)
	}
	failed := slices.DeleteFunc(plan.Problems, func(p manifest.Problem) bool {
		e := state.Lookup(p.Path) // else its owner is another, which makes no difference to a program
		return e != nil && e.Unsaved == "" && e.Kind < manifest.KindDevice
	})
	if len(failed) == 0 {
		report, err := box.Restore(ctx, plan, restore.NewSource(low, bodies))
		if err != nil {
			return bad(err)
		}
		failed = report.Failed
	}
	if len(failed) > 0 {
		return bad(fmt.Errorf("%d of its files can't be had, the first is %s: %s", len(failed), api.Escape(api.Trim(failed[0].Path, 100)), failed[0].Text))
	}
	return nil
}

// follow reads a terminal until nobody can write to it any more.
func follow(pty *os.File, told func([]byte)) {
	buf := make([]byte, 64<<10)
	for {
		n, err := pty.Read(buf)
		if n > 0 && told != nil {
			told(buf[:n])
		}
		if err != nil {
			return
		}
	}
}

// maxWritten is how much a job may write, in bytes.
const maxWritten = 20 << 30

// bound tells once when what is in a sandbox's folder is too much, or the disk is
// nearly full, until it is stopped.
func bound(ctx context.Context, folder string, tell func(why string)) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		room := files.NewRoom(folder, maxWritten)
		for next := time.Duration(0); ; {
			select {
			case <-ctx.Done():
				return
			case <-time.After(next):
			}
			var why string
			if why, next, _ = room.Look(ctx, files.Amount{Bytes: math.MaxInt64, Files: math.MaxInt64}); why != "" { // what can't be looked at isn't bounded
				tell(why)
				return
			}
		}
	}()
	return func() { cancel(); <-ended }
}
