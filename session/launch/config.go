package launch

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base32"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"stepbox/policy"
	"stepbox/runner"
	"stepbox/session"
	"stepbox/session/api"
	"stepbox/session/apply"
	"stepbox/session/blame"
	"stepbox/session/export"
	"stepbox/session/files"
	"stepbox/session/find"
	"stepbox/session/scratch"
	"stepbox/session/seal"
	"stepbox/session/server"
	"stepbox/session/tree"
	"stepbox/store"
)

// config checks a request and completes it.
func (r Request) config(dir, root string) (session.Config, error) {
	id := cmp.Or(r.Resume, NewID())
	c := session.Config{
		ID: id, Resume: r.Resume != "", Name: r.Name, Workspace: string(r.Workspace), Argv: r.Argv, Env: r.Env, Vars: latest(r.Vars), Home: r.Home, HomeKind: cmp.Or(r.HomeKind, api.HomeProfile), Mode: r.Mode, Extras: r.Extras,
		Limits: r.Limits, Disk: r.Disk, WallTime: r.WallTime, Asking: r.Asking, Cols: r.Cols, Rows: r.Rows, NoEcho: r.NoEcho, Program: string(r.Program), RunDir: root, DataDir: dir,
	}
	log, err := openLog(id)
	if err != nil {
		return c, err
	}
	c.Log = log
	if len(c.Argv) == 0 {
		return c, fmt.Errorf("cannot run nothing: name a command")
	}
	for _, v := range c.Vars {
		if err := policy.CheckGiven(v); err != nil {
			return c, fmt.Errorf("cannot give the agent a variable: %w", err)
		}
	}
	if !c.HomeKind.Valid() {
		return c, fmt.Errorf("cannot make a home of the kind %q: use profile, fresh or session", r.HomeKind)
	}
	if fault := r.Asking.Fault(); fault != "" {
		return c, fmt.Errorf("cannot tell what becomes of questions: %s", fault)
	}
	if len(r.Usual) > 0 {
		r.bounded(&c)
	}
	for _, h := range r.AllowHosts {
		rule, err := policy.ParseHost(h)
		if err != nil {
			return c, err
		}
		c.AllowHosts = append(c.AllowHosts, rule)
	}
	if err := CheckCredentials(r.Credentials, r.Tokens); err != nil {
		return c, err
	}
	if c.Credentials = r.Credentials; r.Tokens != "" {
		l, _ := policy.ParseTokens(r.Tokens) // it was checked
		c.Tokens = []policy.Limit{l}
	}
	if err := runner.CheckWorkspace(c.Workspace, dir, root); err != nil {
		return c, err
	}
	if c.Name == "" {
		if c.Name = api.Escape(filepath.Base(c.Workspace)); api.Reserved(c.Name) {
			c.Name = "folder-" + c.Name
		}
	}
	return c, nil
}

// CheckHost says what is wrong with a host that is to be allowed.
func CheckHost(host string) error {
	_, err := policy.ParseHost(host)
	return err
}

// CheckCredentials says what is wrong with credentials that are to be put in, and with the
// tokens that may be spent.
func CheckCredentials(names []string, tokens string) error {
	for _, name := range names {
		if _, err := policy.KnownCredential(name); err != nil {
			return fmt.Errorf("--credential: %w", err)
		}
	}
	if tokens == "" {
		return nil
	}
	if _, err := policy.ParseTokens(tokens); err != nil {
		return fmt.Errorf("--tokens: %w", err)
	}
	return nil
}

// openLog is where a supervisor says what is odd: the file that STEPBOX_LOG
// names, else nowhere. The file is closed with the process.
func openLog(id string) (*slog.Logger, error) {
	name := os.Getenv("STEPBOX_LOG")
	if name == "" {
		return slog.New(slog.DiscardHandler), nil
	}
	f, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot open the file that STEPBOX_LOG names: %w", err)
	}
	return slog.New(slog.NewTextHandler(f, nil)).With("session", id), nil
}

// NewID makes a session's name: 40 random bits, in letters that are easy to read out.
func NewID() string {
	var b [5]byte
	_, _ = rand.Read(b[:]) // never fails, crypto/rand
	return strings.ToLower(base32.StdEncoding.EncodeToString(b[:]))
}

// Hub connects to all sessions: those recorded through this process, those
// alive through their supervisors. Closing it ends only this process's part. A
// record that can't be written can still be looked at.
func Hub(ctx context.Context) (*api.Client, func(), error) {
	return hub(ctx, func(h http.Handler) http.Handler { return h })
}

// Watch is Hub for who is only to watch: nothing can be changed through it.
func Watch(ctx context.Context) (*api.Client, func(), error) { return hub(ctx, server.Watching) }

func hub(ctx context.Context, through func(http.Handler) http.Handler) (*api.Client, func(), error) {
	dir, err := store.Dir()
	if err != nil {
		return nil, nil, err
	}
	log, err := openLog("")
	if err != nil {
		return nil, nil, err
	}
	st, err := store.Open(ctx, dir)
	if errors.Is(err, store.ErrReadOnly) || errors.Is(err, store.ErrFull) || errors.Is(err, store.ErrInUse) {
		why := err
		if st, err = store.OpenReadOnly(ctx, dir); errors.Is(err, store.ErrNotFound) {
			err = fmt.Errorf("there is no record, and none can be made: %w", why)
		}
	}
	if err != nil {
		return nil, nil, err
	}
	live, key := registryIn(dir), keyIn(dir, st)
	dead, clean, err := sweep(ctx, dir, live)
	if err != nil {
		log.Warn("what a dead session left isn't removed", "error", err)
	}
	history := files.NewHistory(st, live.live)
	a := applier(st, history, dir, os.Environ(), func(id string) apply.Owner {
		return apply.Ended{Store: st, ID: id, Live: live.live, Foretell: func(ctx context.Context, events []store.Event) error {
			return seal.Foretell(ctx, st, id, events)
		}, Seal: func(ctx context.Context, id string) {
			if err := sealAfter(ctx, st, key, id); err != nil {
				log.Warn("what was recorded after a session's end isn't sealed", "error", err)
			}
		}}
	})
	verifier := verifierOf(st, key, live)
	a.Sound = verifier.Sound
	if !st.ReadOnly() {
		if err := mend(ctx, a); err != nil {
			log.Warn("what an interrupted apply left isn't settled", "error", err)
		}
		if err := (undertaker{st, key, live, clean}).bury(ctx, dead); err != nil {
			log.Warn("the record of a dead session isn't sealed", "error", err)
		}
	}
	travels := traveller{history, tree.Source{Store: st, Home: a.Person.Home, Env: os.Environ(), Same: a.Same}}
	exporter := &export.Exporter{Store: st, History: history, Environ: os.Environ(), Sign: key.Sign, Whole: verifier.Whole}
	profiles := sync.OnceValue(func() *policy.Profiles { return profilesOf(a.Person.Home) }) // most commands need none
	h := server.NewHub(server.Services{
		Reader:   history,
		Applier:  a,
		Keeper:   keeper{st, live, a.Journals, history},
		Homes:    homes{st, dir, live, profiles},
		Replayer: history,
		Exporter: exporter,
		Travel:   travels,
		Blamer:   &blame.Blamer{History: history, Open: travels.File, Applied: a.WroteAt},
		Bisector: bisector(a, history, travels.trees),
		Backtest: backtester(&history.History, dir, a.Person.Home, profiles),
		Finder:   find.New(history),
		Verifier: verifier,
		Key:      key,
		Policies: explainer(history.Session, dir, a.Person.Home),
	}, live.find, log)
	client, end := answered(through(h), log)
	return client, func() {
		end()
		a.Wait()
		st.Close()
	}, nil
}

// answered is a client of a handler in this process, until end.
func answered(h http.Handler, log *slog.Logger) (_ *api.Client, end func()) {
	pipe := server.NewPipe()
	srv := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, ErrorLog: server.ErrorLog(log)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = srv.Serve(pipe) // ends with Close
	}()
	client := api.NewClientFunc(pipe.Dial)
	client.Named(person())
	return client, func() {
		client.Close()
		srv.Close()
		pipe.Close()
		<-done
	}
}

// sweep removes what sessions left whose supervisor and holder both died, wherever their
// run-time folders are, and says which sessions they were, and whether nothing of them is left.
func sweep(ctx context.Context, dir string, live registry) (dead map[string]note, clean bool, err error) {
	var failures []error
	roots := map[string]bool{scratch.Folder(dir): true}
	root, err := RunRoot()
	if err == nil {
		roots[root] = true
	} else {
		failures = append(failures, err)
	}
	_, dead, err = live.list()
	failures = append(failures, err)
	clean = true
	for root := range roots {
		if _, err := runner.Sweep(ctx, root); err != nil {
			clean = false
			failures = append(failures, err)
		}
	}
	for id, n := range dead {
		if !filepath.IsAbs(n.Root) || roots[n.Root] {
			continue
		}
		if _, err := runner.SweepOne(ctx, n.Root, id); err != nil { // whose else is there nobody knows
			clean = false
			failures = append(failures, err)
		}
	}
	return dead, clean, errors.Join(failures...)
}

// Folders are where something changes whenever the list of sessions does: the
// record's, and that of the notes of live sessions.
func Folders() ([]string, error) {
	dir, err := store.Dir()
	if err != nil {
		return nil, err
	}
	return []string{dir, string(registryIn(dir))}, nil
}
