package session

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"stepbox/policy"
	"stepbox/runner"
	"stepbox/runner/egress"
	"stepbox/runner/overlay/lower"
	"stepbox/runner/overlay/watch"
	"stepbox/session/api"
	"stepbox/session/credential"
	"stepbox/session/deeds"
	"stepbox/session/files"
	"stepbox/session/home"
	"stepbox/session/judge"
	"stepbox/session/ledger"
	"stepbox/session/loop"
	"stepbox/session/network"
	"stepbox/session/outfit"
	"stepbox/session/redact"
	"stepbox/session/tell"
	"stepbox/session/terminal"
)

// begin makes the sandbox. The agent's own start already goes through the gate
// and the record, so the loop runs before the sandbox does.
func (s *Session) begin(ctx context.Context) error {
	cfg := s.cfg
	prepared := runner.Prepare(ctx, runner.Spec{ID: cfg.ID, StateDir: s.store.SessionDir(cfg.ID), RunDir: cfg.RunDir, Workspace: cfg.Workspace, Limits: cfg.Limits})
	defer prepared.Abandon()
	go policy.Scripts(cfg.Argv, "") // reads the grammar of programs, which the agent's own start waits for
	if err := s.recognise(); err != nil {
		return err
	}
	if err := s.openSources(); err != nil {
		return err
	}
	spec, err := s.dress(ctx)
	if err != nil {
		return err
	}
	if s.ledger, err = ledger.Open(s.store, cfg.ID, spec.StateDir, cfg.Foretell); err != nil {
		return err
	}
	s.ledger.Hide = s.hide
	if s.files, err = files.Open(s.store, cfg.ID, cfg.Workspace, lower.Options{Hidden: spec.Hidden, Above: spec.Above}, s.ledger.Moved); err != nil {
		s.ledger.Close()
		return err
	}
	s.info = s.describe()
	s.info.Home, s.info.Brought = cmp.Or(cfg.HomeKind, api.HomeProfile), s.brought
	s.info.Policy, s.info.Asking, s.info.Credentials = policyFiles(&s.read), s.patience(), credential.Told(s.credentials)
	s.files.Sort(s.outfit.Ignores)
	if err := s.follow(ctx, prepared); err != nil {
		s.ledger.Close()
		s.files.Close()
		return err
	}
	s.unkept()
	s.enforce() // what was said before it was resumed, too
	s.teller = &deeds.Teller{
		Files: s.files, Bodies: files.Bodies{Store: s.store}, Ignores: s.outfit.Ignores, Project: cfg.Workspace, Log: s.log,
	}
	gateway := s.gateway()
	go s.loop.Run()

	agent := make(chan *judge.Exec, 1) // its own start, once
	box, err := prepared.Start(ctx, spec, runner.Handlers{
		Sockets: s.services,
		Gate:    s.handlers(func(x *judge.Exec) { agent <- x }),
		Egress:  gateway,
	})
	if err != nil {
		return s.giveUp(err)
	}
	// The loop learns of the sandbox now, so that a failure can end it.
	_ = s.loop.Call(context.Background(), func() { // the loop lives: only giveUp and the end stop it
		if self, known := box.Self(); known {
			s.judge.Know(self)
		}
		s.box, s.freezer, s.roster.box = box, files.NewFreezer(box), box
		s.restorer = &files.Restorer{
			Taker: &files.Taker{Files: s.files, Freezer: s.freezer, Box: box, Log: s.log}, Project: s.cfg.Workspace,
			Outer: filepath.Join(s.store.SessionDir(s.cfg.ID), "outer", "upper"),
			Git:   s.outfit.Git.In,
		}
		if s.loop.Now() != loop.Starting {
			box.Kill()
		}
	})
	if err := s.attach(ctx, agent); err != nil {
		return s.giveUp(err)
	}
	go s.ledger.Usage(s.Done(), s.glancer(box))
	if cfg.Seal != nil {
		s.unsealed = make(chan struct{})
		go s.keepSealed()
	}
	go s.watchSpace(files.NewRoom(s.store.SessionDir(cfg.ID), cfg.Disk))
	go s.watchHead()
	go s.watchActions(box)
	go s.watchServers(box)
	go func() {
		select {
		case <-box.Left():
		case <-box.Exited():
		}
		s.term.Hurry() // its last words don't wait for those who read slowly
	}()
	go func() {
		exit, err := box.Wait()
		s.loop.Submit(func() { s.end(exit, err) })
	}()
	return nil
}

// follow has it begin as what goes before it ended, if anything does: itself, that is
// resumed, or another, that is forked.
func (s *Session) follow(ctx context.Context, prepared *runner.Prepared) error {
	if s.cfg.Resume {
		if err := s.takeUp(ctx, prepared); err != nil {
			return fmt.Errorf("cannot resume session %s: %w", s.cfg.ID, err)
		}
	} else if s.cfg.Parent != nil {
		if err := s.inherit(ctx, prepared); err != nil {
			return fmt.Errorf("cannot fork session %s: %w", s.cfg.Parent.ID, err)
		}
	}
	return nil
}

// gateway is what the sandbox's connections are asked of.
func (s *Session) gateway() *egress.Options {
	o := &egress.Options{
		Judge: s.network.Judge, Known: s.network.Known, Denied: s.network.Denied, Environ: s.cfg.Env, Roots: s.roots, Intercept: s.intercept,
		Range: s.rules.With(s.read.Layers()...).Names().Range, Last: s.network.Last,
		Log: func(a egress.Attempt) { s.loop.WhenStarted(func() { s.attempted(s.network.Event(a, s.roster.byPID)) }) },
	}
	if s.cfg.Resume {
		o.Names = s.past.Names
	}
	return o
}

// describe is a session as it starts.
func (s *Session) describe() api.Session {
	cfg, of := s.cfg, s.outfit
	out := api.Session{
		ID: cfg.ID, Name: cfg.Name, Stepbox: api.Build(), Agent: s.profile.Name, Command: api.Escape(s.secrets.Text(policy.Line(cfg.Argv), "")),
		Variables: s.variables(), Lacks: api.EscapeAll(s.outfit.Lacking), Asks: api.EscapeAll(s.outfit.Undecided),
		Workspace: api.Escape(cfg.Workspace), Folder: cfg.Workspace, Mode: cfg.Mode, State: api.SessionStarting, Asking: cfg.Asking,
		Parent: cfg.Parent, StartedAt: time.Now().UTC(), Cols: cfg.Cols, Rows: cfg.Rows, Hidden: api.EscapeAll(of.Hidden), HiddenPaths: of.Hidden, Redacted: api.EscapeAll(of.Redacted),
	}
	out.Dirs, out.Caches = of.Dirs, api.EscapeAll(of.Caches)
	out.Commit, out.Branch = of.Ignores.Head()
	out.Branch = api.Escape(out.Branch)
	for _, l := range asked(&cfg) {
		for _, r := range l.Network {
			out.Hosts = append(out.Hosts, r.Host.String())
		}
	}
	return out
}

// giveUp ends a session whose sandbox didn't come to be, and returns why. If
// it has a row already, that says so too.
func (s *Session) giveUp(err error) error {
	// What is held on the way is let go first: closing the sandbox waits for it.
	_ = s.loop.Call(context.Background(), func() { s.stop(api.ByFailure, err.Error()) })
	if s.box != nil {
		err = errors.Join(err, s.box.Close(context.Background()))
	}
	if s.watcher != nil {
		s.watcher.Close()
	}
	if s.ports != nil {
		s.ports.Close()
	}
	s.sources.Close()
	if s.term != nil {
		s.term.Close()
	}
	_ = s.loop.Call(context.Background(), func() { s.loop.WhenIdle(func() { s.conclude(runner.Exit{}) }) })
	<-s.loop.Done()
	s.files.Close()
	return err
}

// attach joins what looks at a running sandbox: its terminal and its files. The agent is
// let start once it is known what the files are: what it does first is its doing, too.
func (s *Session) attach(ctx context.Context, agent <-chan *judge.Exec) error {
	begin := s.goOn
	if s.past == nil {
		first, err := s.firstLook(ctx)
		if err != nil {
			return err
		}
		begin = func() {
			s.line.Last = s.newCheckpoint(first.Root, first.Manifest, 0)
			s.record(nil, s.line.Event(s.line.Last, 0), s.changed("started"))
			s.sayForked()
			s.takeBase()
		}
	}
	if err := s.started(ctx, agent); err != nil {
		return err
	}
	term, err := terminal.Open(terminal.Config{
		Store: s.store, Session: s.cfg.ID, PTY: s.box.Terminal(), Cols: s.cfg.Cols, Rows: s.cfg.Rows, NoEcho: s.cfg.NoEcho, GoesOn: s.past != nil, Mask: s.secrets.Mask(),
		Failed: func(err error) { s.loop.Post(func() { s.fail(fmt.Errorf("cannot record the terminal: %w", err)) }) },
	})
	if err != nil {
		return err
	}
	s.term = term
	watcher, err := watch.New(s.box.Upper(), func() { s.loop.Submit(s.touched) })
	if err != nil {
		return fmt.Errorf("cannot watch the session's files: %w", err)
	}
	s.watcher = watcher
	s.files.Hint(watcher.Dirty)
	before := s.before(ctx)
	var failed error
	err = s.loop.Call(ctx, func() {
		if s.loop.Now() != loop.Starting { // its first row couldn't be committed
			failed = errors.New(s.info.Reason)
			return
		}
		s.loop.Enter(loop.Running)
		if limit := s.cfg.WallTime; limit > 0 {
			s.wall = time.AfterFunc(limit, func() {
				s.loop.Submit(func() { s.stop(api.ByLimit, fmt.Sprintf("its wall time of %s was over", limit)) })
			})
		}
		s.info.State = api.SessionRunning
		l, source := s.box.Limits()
		s.info.Limits = api.Limits{Rules: s.info.Limits.Rules, Source: source, Disk: s.cfg.Disk, WallTime: s.cfg.WallTime, Memory: l.Memory, CPUs: l.CPUs, Pids: l.Pids, Terminals: runner.MaxTerminals}
		s.info.Warnings = slices.Concat(warnings(s.outfit), credential.Warnings(s.credentials, s.tokenLimits()), s.box.Notes())
		s.info.Printed = term.Before()
		begin()
		s.tellVariables()
		s.tellPrevious(before)
		s.openPorts(s.box)
		for _, words := range s.outfit.NoGit {
			s.note(true, "%s", api.Escape(words))
		}
		for _, b := range s.unread {
			s.note(true, "a profile of yours isn't used: %s", api.Escape(b.Err.Error()))
		}
		s.followSources()
	})
	if err := errors.Join(err, failed); err != nil || s.past == nil {
		return err
	}
	// Who resumes it reads from the record where this agent's output begins.
	return s.loop.Do(ctx, func(done func(error)) { s.record(done) })
}

// started lets the agent start, and waits until that is in the record. An agent may
// have ended by then, but not one that was never let start.
func (s *Session) started(ctx context.Context, agent <-chan *judge.Exec) error {
	select {
	case x := <-agent:
		return s.loop.Do(ctx, func(done func(error)) { done(s.onAgent(x)) })
	case <-s.box.Exited():
		_, err := s.box.Wait()
		return cmp.Or(err, errors.New("the agent ended before it was started"))
	case <-ctx.Done():
		return ctx.Err()
	}
}

// firstLook is what the files are as the agent starts.
func (s *Session) firstLook(ctx context.Context) (*files.Checkpoint, error) {
	if s.fork != nil {
		return s.fork, nil
	}
	s.files.Lower().Ask(s.box.OpenLower)
	if err := s.files.Attach(s.box.Upper(), s.box.OpenUpper, s.outfit.Ignores.Ignored, s.info.StartedAt); err != nil {
		return nil, err
	}
	first, err := s.files.Look(ctx)
	if err != nil {
		return nil, fmt.Errorf("cannot take the first checkpoint: %w", err)
	}
	return &first, nil
}

// onAgent is the agent's own start. Its program is known to exist then, so this
// is when the session gets its row, or the one that it has says that it goes on: a
// mistyped command leaves nothing behind.
func (s *Session) onAgent(e *judge.Exec) error {
	var err error
	if s.past != nil {
		err = s.resumed()
	} else if doc, failed := json.Marshal(s.changed("created").Session); failed == nil {
		doc, _ = s.hide(doc)
		s.info.Number, err = s.store.CreateSession(context.Background(), s.cfg.ID, doc)
	} else {
		err = failed
	}
	if err != nil {
		e.Deny("the session can't be recorded")
		err = fmt.Errorf("cannot record the session: %w", err)
		s.fail(err)
		return err
	}
	s.listed = true
	s.admit(e, &process{agent: true}, "the agent")
	return nil
}

// dress finds out what the agent's sandbox is made of, and by what it is judged.
func (s *Session) dress(ctx context.Context) (runner.Spec, error) {
	cfg := s.cfg
	state := s.store.SessionDir(cfg.ID)
	s.rules = policy.Of(s.profile.Layer())
	place := home.Of(cfg.HomeKind, cfg.DataDir, state, cmp.Or(cfg.HomeOf, s.profile.Name))
	place.Inside = cfg.Home
	began := ""
	if cfg.Resume || cfg.Parent != nil {
		began = state
	}
	of, err := outfit.For(outfit.Needs{
		Git:       began,
		Workspace: cfg.Workspace, StateDir: state, DataDir: cfg.DataDir, Home: cfg.Home, HomeDir: place.Folder,
		Argv: cfg.Argv, Env: cfg.Env, Profile: s.profile, Hooks: cfg.Program != "", Rules: s.rules.With(s.read.Layers()...), Extras: cfg.Extras, Vars: cfg.Vars,
	})
	if err != nil {
		return runner.Spec{}, err
	}
	s.outfit, s.home = of, place
	withheld, err := s.guardCredentials(ctx, &of.Spec)
	if err != nil {
		return runner.Spec{}, err
	}
	s.services = s.sockets()
	s.serveKeys(&of.Spec, s.services)
	if cfg.Program != "" { // what opens pages comes last in PATH: one of the system's asks BROWSER
		of.Spec.SelfAs, of.Spec.Env = []string{tell.Opener}, withOpener(of.Spec.Env)
	}
	s.secrets = redact.Recording(s.held(of.Spec.Env), cfg.Argv, s.profile.Secret()...)
	s.secrets.Know(withheld...)
	if s.brought, err = s.bring(place); err != nil {
		return runner.Spec{}, err
	}
	s.network.Ask = func(t *network.Try) { s.loop.WhenStarted(func() { s.tried(t) }) }
	s.network.Gone = func(t *network.Try) { s.loop.WhenStarted(func() { s.gaveUp(t) }) }
	s.network.Reached = func(why string) { s.loop.WhenStarted(func() { s.note(true, "%s", api.Escape(why)) }) }
	s.network.Tries.Admit = s.network.Admit
	s.judge = &judge.Judge{Env: of.Spec.Env, Profiles: s.profiles, Secrets: s.secrets, Places: judge.Places{
		Project: cfg.Workspace, Upper: filepath.Join(state, "upper"), Home: cfg.Home, HomeDir: place.Written(), HomeBelow: place.Below(),
		Temp: filepath.Join(state, "tmp"), Began: time.Now(), Hidden: of.Spec.Hidden, Mounts: map[string]string{},
	}}
	for _, d := range of.Dirs {
		s.judge.Places.Beside = append(s.judge.Places.Beside, d.Path)
	}
	for _, b := range of.Spec.Binds {
		s.judge.Places.Mounts[cmp.Or(b.Target, b.Source)] = b.Upper
	}
	s.network.Wrote = s.judge.Wrote
	spec := of.Spec
	spec.Self, spec.HomeUpper, spec.HomeAbove = cfg.Program, place.Upper, place.Above()
	spec.ID, spec.RunDir, spec.Limits, spec.Cols, spec.Rows = cfg.ID, cfg.RunDir, cfg.Limits, cfg.Cols, cfg.Rows
	return spec, nil
}

// warnings are what a person has to know of what the sandbox is made of.
func warnings(of *outfit.Outfit) (out []string) {
	if !of.Whole {
		out = append(out, "the project is large: not all of it was searched for secret files to hide")
	}
	for _, file := range of.Unhooked {
		out = append(out, "the agent doesn't tell Stepbox what it does: this host has a "+file+" of its own")
	}
	out = append(out, api.EscapeAll(of.Unshown)...)
	if len(of.Committed) > 0 {
		out = append(out, fmt.Sprintf("git has %s, which looks like a secret: it isn't hidden, since the agent has it in history anyway", few(of.Committed)))
	}
	for _, store := range of.Unkept {
		out = append(out, "what git gc or prune takes out of "+api.Escape(store)+" is gone for the session as well: it is on another filesystem than Stepbox's data (STEPBOX_DATA), and too large to be copied")
	}
	return append(out, api.EscapeAll(of.NoGit)...)
}
