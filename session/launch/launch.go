// Package launch starts supervisors and finds those that are alive. A
// supervisor is a process of its own: it outlives the terminal it was started
// from, and a fault in one session stays there.
package launch

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"stepbox/runner"
	"stepbox/runner/holder"
	"stepbox/runner/overlay/manifest"
	"stepbox/runner/pid1"
	"stepbox/session"
	"stepbox/session/api"
	"stepbox/session/apply"
	"stepbox/session/files"
	"stepbox/session/find"
	"stepbox/session/ledger"
	"stepbox/session/outfit"
	"stepbox/session/seal"
	"stepbox/session/server"
	"stepbox/store"
)

// Request is what a supervisor is asked to run.
type Request struct {
	Name       string        `json:"name"`
	Workspace  []byte        `json:"workspace"`
	Argv       pid1.Exact    `json:"argv"`
	Env        pid1.Exact    `json:"env"`
	Program    []byte        `json:"program"` // this program's file; Start says it
	Home       string        `json:"home"`
	HomeKind   api.HomeKind  `json:"home_kind,omitempty"` // "": the profile's, or as what goes on or is forked had it
	Mode       api.Mode      `json:"mode"`
	AllowHosts []string      `json:"allow_hosts,omitempty"`
	Extras     outfit.Extras `json:"extras,omitzero"`
	Limits     runner.Limits `json:"limits"`
	Disk       int64         `json:"disk,omitempty"` // bytes; see session.Config
	WallTime   time.Duration `json:"wall_time,omitempty"`
	Asking     api.Asking    `json:"asking,omitzero"` // of what goes on or is forked: the zero value is as that had it
	// KeepOn and KeepTimeout say which of Asking is as that had it, though the other isn't.
	KeepOn      bool `json:"keep_on,omitempty"`
	KeepTimeout bool `json:"keep_timeout,omitempty"`
	// Vars are variables that the person gives the agent: NAME, which passes as Env has it,
	// or NAME=value. Those of what goes on or is forked are added to what that had.
	Vars pid1.Exact `json:"vars,omitempty"`
	// Usual names the limits that nobody chose, as memory, so that policies may say what
	// they are. Where none is named, as for a session that goes on, none of this holds.
	Usual  []string `json:"usual,omitempty"`
	Cols   int      `json:"cols"`
	Rows   int      `json:"rows"`
	NoEcho bool     `json:"no_echo,omitempty"`

	Credentials []string `json:"credentials,omitempty"` // see session.Config
	Tokens      string   `json:"tokens,omitempty"`      // see policy.ParseTokens; "": no limit

	// Resume names a session that has ended and goes on. Of all else only Argv, Env,
	// Vars, Home, Asking and the terminal count then, and an empty Argv is the one that it had.
	Resume string `json:"resume,omitempty"`

	// Fork is what a new session begins as. Of all else only Name, Mode, Argv, Env,
	// Vars, Home, Asking and the terminal count then; what isn't given is as the other has it.
	Fork *Fork `json:"fork,omitempty"`
}

// Started is the supervisor's answer.
type Started struct {
	ID    string `json:"id,omitempty"`
	Error *Error `json:"error,omitempty"`
}

// Error is why a session couldn't be started, in words for a person, with the
// exit code that says so to a script.
type Error struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Host    bool   `json:"host,omitempty"` // it isn't what was asked for that failed, but this host: stepbox doctor knows more
}

func (e *Error) Error() string { return e.Message }

// RunRoot is the folder with the run-time folders of live sessions: below
// XDG_RUNTIME_DIR, or below the data folder where there is none, or it is another user's,
// as su and sudo -E leave it: theirs is to be nobody else's (XDG Base Directory Specification).
func RunRoot() (string, error) {
	base := os.Getenv("XDG_RUNTIME_DIR")
	dir := filepath.Join(base, "stepbox")
	var st unix.Stat_t
	if err := unix.Stat(base, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFDIR || int(st.Uid) != os.Getuid() {
		data, err := store.Dir()
		if err != nil {
			return "", err
		}
		dir = filepath.Join(data, "run")
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("cannot make the run-time folder: %w", err)
	}
	err := unix.Lstat(dir, &st)
	switch {
	case err != nil:
		return "", fmt.Errorf("cannot look at the run-time folder %q: %w", dir, err)
	case st.Mode&unix.S_IFMT != unix.S_IFDIR:
		return "", fmt.Errorf("the run-time folder %q isn't a folder; remove it", dir)
	case int(st.Uid) != os.Getuid():
		return "", fmt.Errorf("the run-time folder %q belongs to uid %d; remove it or set XDG_RUNTIME_DIR", dir, st.Uid)
	case st.Mode&0o077 != 0:
		return "", fmt.Errorf("the run-time folder %q is open to others (mode %04o); run: chmod 700 %s", dir, st.Mode&0o7777, dir)
	}
	return dir, nil
}

// Socket is where the supervisor of a session that this process started listens.
func Socket(id string) (string, error) {
	root, err := RunRoot()
	return socket(root, id), err
}

// socket is where a session's supervisor listens.
func socket(root, id string) string { return filepath.Join(root, id, "sock") }

// Supervised is a session that was started, and its supervisor.
type Supervised struct {
	ID string
	// Gone is closed when the supervisor has closed the record and ended, a moment
	// after its session did.
	Gone <-chan struct{}
}

// Start starts a supervisor and waits until its agent runs; ending ctx ends that.
// The supervisor is in a session of its own (setsid(2)) and goes on when the caller
// ends. To resume a session is refused with an *Error, before anything runs and with
// all that there was left as it is, if it is live, if someone else resumes it, and
// when its project folder isn't the one that it worked on. When it is the host that
// can't do it, the error says what is missing there.
func Start(ctx context.Context, req Request) (Supervised, error) {
	program, err := os.Executable()
	if err != nil {
		return Supervised{}, fmt.Errorf("cannot find this program's file: %w", err)
	}
	req.Program = []byte(program)
	body, err := json.Marshal(req)
	if err != nil {
		return Supervised{}, fmt.Errorf("cannot encode the request: %w", err)
	}
	cmd, err := runner.Command("supervise")
	if err != nil {
		return Supervised{}, err
	}
	in, out, err := os.Pipe()
	if err != nil {
		return Supervised{}, fmt.Errorf("cannot make a pipe: %w", err)
	}
	defer in.Close()
	cmd.ExtraFiles = []*os.File{out}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Dir = "/"
	cmd.Stdin = bytes.NewReader(body)
	err = cmd.Start()
	out.Close()
	if err != nil {
		return Supervised{}, fmt.Errorf("cannot start the supervisor: %w", err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // reaped while this process lives, init's afterwards
		close(ended)
	}()
	stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Signal(syscall.SIGTERM) })
	var s Started
	err = json.NewDecoder(io.LimitReader(in, 1<<20)).Decode(&s)
	if !stop() {
		// It was told to end, and takes along what there was by then.
		<-ended
		return Supervised{}, context.Cause(ctx)
	}
	if err != nil {
		return Supervised{}, &Error{Code: 125, Message: "the supervisor ended before it said why; stepbox doctor checks the host"}
	}
	if s.Error != nil {
		s.Error.Message += missing(ctx, s.Error)
		return Supervised{}, s.Error
	}
	return Supervised{ID: s.ID, Gone: ended}, nil
}

// full is the file that couldn't be written for want of room, if that is it. The kernel says
// the same where there may be no more user namespaces, or watches.
func full(err error) string {
	var p *fs.PathError
	if errors.As(err, &p) && p.Op != "fork/exec" && (errors.Is(p.Err, syscall.ENOSPC) || errors.Is(p.Err, syscall.EDQUOT)) {
		return p.Path
	}
	return ""
}

// whyNot is why a session didn't start, as a person is told. Where it is room that a host
// lacks, nothing else that is found missing there is the cause.
func whyNot(err error) *Error {
	var why *Error
	if errors.As(err, &why) {
		return why
	}
	if errors.Is(err, store.ErrFull) { // it says what to do
		return &Error{Code: 125, Message: err.Error()}
	}
	if file := full(err); file != "" {
		dir, _ := store.Dir() // it is known, or there were another error
		with := "STEPBOX_DATA"
		if run := os.Getenv("XDG_RUNTIME_DIR"); run != "" && manifest.Within(file, filepath.Clean(run)) {
			dir, with = run, "XDG_RUNTIME_DIR"
		}
		return &Error{Code: 125, Message: fmt.Sprintf("%v; make room on the filesystem of %q, or set %s to a folder elsewhere", err, dir, with)}
	}
	var asked *runner.StartError
	why = &Error{Code: 125, Message: err.Error(), Host: !errors.As(err, &asked)}
	if asked != nil && asked.Code != 0 {
		why.Code = asked.Code
	}
	return why
}

// settling is how long a session's memory may be what it is once it has started.
const settling = 2 * time.Second

// Supervise is the supervisor's own main: it reads a Request, starts the
// session, says how that went and serves the session until its end.
func Supervise(ctx context.Context, in io.Reader, out io.WriteCloser) error {
	collect := debug.SetGCPercent(-1) // most of what a start allocates is kept
	for _, name := range []string{"SSL_CERT_FILE", "SSL_CERT_DIR"} {
		_ = os.Unsetenv(name) // it counts beside the system's, unless an agent may write it: see credential.Source.Roots
	}
	tell := func(s Started) error { return errors.Join(json.NewEncoder(out).Encode(s), out.Close()) }
	s, finish, err := start(ctx, in)
	if err != nil {
		_ = tell(Started{Error: whyNot(err)}) // else whoever asked is gone: nobody to tell
		return err
	}
	debug.SetGCPercent(8 * collect) // a session may be over before there is anything to collect
	defer time.AfterFunc(settling, func() { debug.SetGCPercent(collect) }).Stop()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if tell(Started{ID: s.ID()}) != nil {
		cancel(errors.New("whoever started it was gone by then")) // nobody knows of the session: it ends
	}
	return finish(ctx)
}

// start makes the session and its socket; finish serves it until its end.
func start(ctx context.Context, in io.Reader) (_ *session.Session, finish func(context.Context) error, err error) {
	var req Request
	if err := json.NewDecoder(io.LimitReader(in, 16<<20)).Decode(&req); err != nil {
		return nil, nil, fmt.Errorf("cannot read what to run: %w", err)
	}
	dir, err := store.Dir()
	if err != nil {
		return nil, nil, err
	}
	root, err := RunRoot()
	if err != nil {
		return nil, nil, err
	}
	st, err := store.Open(ctx, dir)
	if err != nil {
		return nil, nil, err
	}
	var cfg session.Config
	if req.Resume != "" || req.Fork != nil {
		cfg, err = req.following(ctx, st, dir, root)
	} else {
		cfg, err = req.config(dir, root)
	}
	if err != nil {
		st.Close()
		return nil, nil, err
	}
	key := keyIn(dir, st)
	var over atomic.Bool // its end is sealed, or will be by whom its folder tells
	cfg.Seal = func(ctx context.Context, by string) (uint64, error) {
		seq, err := seal.Seal(ctx, st, key, cfg.ID, by)
		over.Store(by == seal.Final && (err == nil || seal.Stays(err)))
		return seq, err
	}
	applies := applier(st, files.NewHistory(st, registryIn(dir).live), dir, cfg.Env, nil)
	cfg.Returned, cfg.Applied = applies.Returned, applies.Settled
	if err := server.CheckPath(socket(root, cfg.ID)); err != nil { // before anything runs
		return nil, nil, errors.Join(err, st.Close())
	}
	if !cfg.Resume && ledger.IsID(ctx, st, cfg.Name) {
		if req.Name != "" {
			err := &Error{Code: 2, Message: fmt.Sprintf("a session can't be called %q: that is another's id", req.Name)}
			return nil, nil, errors.Join(err, st.Close())
		}
		cfg.Name = "folder-" + cfg.Name
	}
	if old, alive, err := registryIn(dir).read(cfg.ID); cfg.Resume && err == nil && !alive { // its note gives way to this one's
		if err := (undertaker{st, key, registryIn(dir), false}).one(ctx, cfg.ID, old); err != nil {
			return nil, nil, errors.Join(err, st.Close())
		}
	}
	called := ledger.Called(ctx, st, cfg.ID, cfg.Name)
	n := note{Name: called, Root: root, Socket: socket(root, cfg.ID), PID: os.Getpid(), Stepbox: api.Build(), Folder: cfg.Workspace}
	var mine *announced
	err = untilFree(ctx, st, cfg, func() (err error) {
		mine, err = registryIn(dir).announce(cfg.ID, &n, req.Name != "" && !cfg.Resume)
		return err
	})
	if err != nil {
		return nil, nil, errors.Join(err, st.Close())
	}
	if called == cfg.Name { // else that is no event's
		cfg.Name = n.Name
	}
	defer func() {
		if err != nil {
			_ = mine.withdraw() // a dead supervisor's note is nobody's word
		}
	}()
	var release func() error // held on to: a lock goes with its file, and that with the last who has it
	err = untilFree(ctx, st, cfg, func() (err error) {
		release, err = st.Own(cfg.ID)
		return err
	})
	if err != nil {
		if errors.Is(err, store.ErrOwned) {
			err = &Error{Code: codeRefused, Message: fmt.Sprintf("cannot resume session %s: something of it is just being applied, undone or removed; try again when that is through", cfg.ID)}
		}
		return nil, nil, errors.Join(err, st.Close())
	}
	s, err := run(ctx, st, key, cfg)
	if err != nil {
		return nil, nil, errors.Join(err, st.Close())
	}
	ls, err := registryIn(dir).listen(root, cfg.ID, cfg.Log)
	if err != nil {
		_, kerr := s.Kill(ctx)
		err = errors.Join(err, kerr, st.Close())
		return nil, nil, err
	}
	me := api.Neighbour{ID: cfg.ID, Name: n.Name, Folder: cfg.Workspace}
	return s, func(ctx context.Context) error {
		defer st.Close()
		defer indexed(ctx, st, cfg)
		defer func() { _ = release() }() // nobody writes after that
		defer Tell(context.WithoutCancel(ctx), api.News{Kind: api.NewsEnded, From: me})
		defer func() {
			if over.Load() {
				_ = mine.withdraw() // as above
			} else { // the next command finds it as it does one that was killed
				_ = mine.file.Close()
			}
		}()
		var met sync.WaitGroup
		met.Go(func() { meet(context.WithoutCancel(ctx), registryIn(dir), s, me) })
		defer met.Wait()
		reader := s.Reader()
		return serve(ctx, s, reader, applier(st, reader.History, dir, cfg.Env, func(string) apply.Owner { return s.Desk() }), ls, cfg.Log)
	}, nil
}

// indexed makes a session that has ended quick to search. Whoever searches goes on
// where this didn't come to.
func indexed(ctx context.Context, st *store.Store, cfg session.Config) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	h := files.NewHistory(st, func(string) bool { return false })
	if err := find.New(h).Index(ctx, cfg.ID); err != nil && cfg.Log != nil {
		cfg.Log.Warn("the session isn't indexed yet", "error", err)
	}
}

// run starts the session, once what it takes to resume it is kept.
func run(ctx context.Context, st *store.Store, key seal.Key, cfg session.Config) (*session.Session, error) {
	dir, verifier := st.SessionDir(cfg.ID), verifierOf(st, key, registryIn(cfg.DataDir))
	if cfg.Resume {
		if err := sound(ctx, verifier, "resume it", cfg.ID); err != nil {
			return nil, err
		}
		return again(ctx, st, cfg)
	}
	err := keep(dir, cfg)
	if err == nil && cfg.Parent != nil {
		if err = sound(ctx, verifier, "fork it", cfg.Parent.ID); err == nil {
			err = layOut(ctx, st, &cfg)
		}
	}
	if err == nil {
		var s *session.Session
		if s, err = session.Start(ctx, st, cfg); err == nil {
			return s, nil
		}
	}
	return nil, errors.Join(err, holder.RemoveAll(dir))
}

// grace is how long clients may take to fetch the end of a session.
const grace = 2 * time.Second

// serve answers clients until the session has ended. A signal to the
// supervisor ends the session in good order.
func serve(ctx context.Context, s *session.Session, r *session.Live, a *apply.Applier, ls []net.Listener, log *slog.Logger) error {
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	h := server.New(r, a, func(id string) server.Controller {
		if id != s.ID() {
			return nil
		}
		return s
	})
	served := make(chan error, 1)
	go func() { served <- server.Serve(serving, ls, h, log, grace) }()
	select {
	case <-s.Done():
	case <-ctx.Done():
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		_, _ = s.End(end, "its supervisor was told to end: "+context.Cause(ctx).Error()) // it has ended meanwhile, or it couldn't: nothing more can be done
		cancel()
	}
	stop()
	return <-served
}
