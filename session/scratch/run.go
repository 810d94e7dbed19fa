package scratch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"stepbox/runner"
	"stepbox/runner/gate"
	"stepbox/runner/overlay/lower"
	"stepbox/runner/overlay/manifest"
	"stepbox/runner/overlay/restore"
	"stepbox/runner/overlay/scan"
	"stepbox/session/api"
	"stepbox/session/files"
	"stepbox/session/outfit"
)

// job is one program to be run on a state of the project.
type job struct {
	state *manifest.Manifest // nil: the project as it is
	argv  []string
	home  map[string]string // files of its home, by name
	temp  map[string]string // files of its /tmp, by name
	wall  time.Duration
	told  func([]byte)            // of what it prints, as it does
	after func(temp string) error // once nothing of it runs any more; temp is its /tmp on the host
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
	p, err := s.newPlace()
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, p.remove()) }()
	first := make(chan *gate.Exec, 1)
	box, low, err := s.start(ctx, p, j, first)
	if err != nil {
		return out, err
	}
	defer low.Close()
	end := func() error {
		limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeLimit)
		defer cancel()
		err := box.Close(limit)
		if err != nil { // what can't be ended may keep the terminal open
			_ = box.Terminal().SetReadDeadline(time.Unix(1, 0))
		}
		return err
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		follow(box.Terminal(), j.told)
	}()
	defer func() { <-read }()
	defer end() // again, if all went well
	stop := context.AfterFunc(ctx, box.Kill)
	defer stop()
	// Its only process is held at its first program, so nothing races with this.
	var e *gate.Exec
	select {
	case e = <-first:
	case <-box.Exited():
		_, err := box.Wait()
		return out, cmpErr(ctx, err, errors.New("the sandbox ended before its program began"))
	}
	if err := s.lay(ctx, box, low, j.state); err != nil {
		return out, cmpErr(ctx, err)
	}
	quiet(box.Terminal())
	var late atomic.Bool
	began := time.Now()
	timer := time.AfterFunc(j.wall, func() { late.Store(true); box.Kill() })
	defer timer.Stop()
	e.Allow(gate.NoExit | gate.Unverified)
	out.exit, err = box.Wait()
	out.took = time.Since(began)
	if out.overtime = late.Load() && !out.exit.Known; out.overtime {
		err = nil
	}
	if failure := errors.Join(cmpErr(ctx, err), end()); failure != nil {
		return out, failure
	}
	<-read
	if j.after != nil && !out.overtime {
		return out, j.after(filepath.Join(p.dir, "tmp"))
	}
	return out, nil
}

// cmpErr is why something stopped: because it was told to, if it was.
func cmpErr(ctx context.Context, errs ...error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// start makes the sandbox, up to its first program, which comes to first.
func (s *Scratch) start(ctx context.Context, p *place, j job, first chan<- *gate.Exec) (*runner.Sandbox, *lower.Lower, error) {
	cfg := s.cfg
	prepared := runner.Prepare(ctx, runner.Spec{ID: p.id, StateDir: p.dir, RunDir: cfg.RunDir, Limits: cfg.Limits})
	defer prepared.Abandon()
	home, temp := filepath.Join(p.dir, "home"), filepath.Join(p.dir, "tmp")
	for dir, list := range map[string]map[string]string{home: j.home, temp: j.temp} {
		if err := fill(dir, list); err != nil {
			return nil, nil, err
		}
	}
	of, err := outfit.For(outfit.Needs{
		Workspace: cfg.Workspace, StateDir: p.dir, DataDir: cfg.DataDir, Home: cfg.Home, HomeDir: home,
		Argv: j.argv, Env: cfg.Env, Profile: outfit.ProfileFor(j.argv, cfg.Env),
	})
	if err != nil {
		return nil, nil, err
	}
	if of.Spec.Outer != "" && cfg.Outer != "" {
		if err := copyUpper(cfg.Outer, filepath.Join(p.dir, "outer", "upper")); err != nil {
			return nil, nil, err
		}
	}
	spec := of.Spec
	spec.ID, spec.RunDir, spec.Limits, spec.Cols, spec.Rows = p.id, cfg.RunDir, cfg.Limits, 120, 40
	spec.Hidden = slices.Concat(spec.Hidden, cfg.Hidden)
	spec.Binds = append(spec.Binds, caches(cfg.Home, spec.Binds)...)
	spec.Env = slices.Concat(spec.Env, []string{"TERM=dumb", "NO_COLOR=1", "CI=true"})
	low, err := lower.Open(cfg.Workspace, lower.Options{Hidden: spec.Hidden, Above: spec.Above})
	if err != nil {
		return nil, nil, fmt.Errorf("cannot read the project folder: %w", err)
	}
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
		Reach: func(r gate.Reach) bool { return r.Kind == gate.ReachShare || len(r.Target.Ancestors) > 0 },
	}})
	if err != nil {
		low.Close()
		return nil, nil, cmpErr(ctx, err)
	}
	low.Ask(box.OpenLower)
	return box, low, nil
}

// fill makes a folder and files in it.
func fill(dir string, list map[string]string) error {
	err := os.MkdirAll(dir, 0o700)
	for name, text := range list {
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644)
		}
	}
	if err != nil {
		return fmt.Errorf("cannot fill a throw-away sandbox's folder: %w", err)
	}
	return nil
}

// kept are where a home keeps what builds have fetched, which can't be fetched
// without a network. They are shown read-only.
var kept = []string{"go/pkg/mod", ".cargo/registry", ".cargo/git", ".m2/repository", ".gradle/caches", ".npm/_cacache", ".cache/pip", ".cache/uv"}

// caches are those that are there and aren't reached through links.
func caches(home string, have []runner.Bind) (out []runner.Bind) {
	for _, name := range kept {
		dir := filepath.Join(home, name)
		real, err := filepath.EvalSymlinks(dir)
		if err != nil || real != dir || slices.ContainsFunc(have, func(b runner.Bind) bool { return b.Target == dir }) {
			continue
		}
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			out = append(out, runner.Bind{Source: dir, Target: dir})
		}
	}
	return out
}

// lay puts the project into a state, through the merged view. What can't be
// there as the state has it is an error: nobody may believe that it was.
func (s *Scratch) lay(ctx context.Context, box *runner.Sandbox, low *lower.Lower, state *manifest.Manifest) error {
	if state == nil {
		return nil
	}
	bodies := files.Bodies{Store: s.cfg.Store}
	scanner, err := scan.New(box.Upper(), bodies, box.OpenUpper)
	if err != nil {
		return err
	}
	defer scanner.Close()
	empty, _, err := scanner.Scan(ctx, scan.Options{})
	if err != nil {
		return err
	}
	plan, err := restore.NewPlan(ctx, low, empty, state, restore.Options{})
	if err != nil {
		return fmt.Errorf("cannot lay out the project: %w", err)
	}
	failed := slices.DeleteFunc(plan.Problems, func(p manifest.Problem) bool { return ownerOnly(state.Lookup(p.Path)) })
	if len(failed) == 0 {
		report, err := box.Restore(ctx, plan, restore.NewSource(low, bodies))
		if err != nil {
			return fmt.Errorf("cannot lay out the project: %w", err)
		}
		failed = report.Failed
	}
	if len(failed) > 0 {
		return fmt.Errorf("cannot lay out the project: %d of its files can't be had, the first is %s: %s",
			len(failed), api.Escape(failed[0].Path), api.Escape(api.Trim(failed[0].Text, 500)))
	}
	return nil
}

// ownerOnly says whether the trouble with an entry can only be whose it is, which
// makes no difference to a program.
func ownerOnly(e *manifest.Entry) bool {
	if e == nil || e.Unsaved != "" {
		return false
	}
	switch e.Kind {
	case manifest.KindFile, manifest.KindDir, manifest.KindSymlink, manifest.KindFIFO, manifest.KindSocket:
		return true
	}
	return false
}

// quiet has a terminal hand on what is printed as it is, and echo nothing.
func quiet(pty *os.File) {
	raw, err := pty.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		if t, err := unix.IoctlGetTermios(int(fd), unix.TCGETS); err == nil {
			t.Oflag &^= unix.OPOST
			t.Lflag &^= unix.ECHO
			_ = unix.IoctlSetTermios(int(fd), unix.TCSETS, t) // then lines end in \r\n
		}
	})
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
