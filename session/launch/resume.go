package launch

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"stepbox/runner"
	"stepbox/runner/pid1"
	"stepbox/session"
	"stepbox/session/api"
	"stepbox/session/ledger"
	"stepbox/session/outfit"
	"stepbox/session/redact"
	"stepbox/session/seal"
	"stepbox/store"
)

// kept is what a session's folder has of how it was started, since the record
// has it escaped, or not at all.
type kept struct {
	Argv       pid1.Exact    `json:"argv"`
	Secret     bool          `json:"secret,omitempty"` // Argv isn't kept: it held a secret
	Vars       pid1.Exact    `json:"vars,omitempty"`   // without secrets, see keepable
	AllowHosts []string      `json:"allow_hosts,omitempty"`
	Extras     outfit.Extras `json:"extras,omitzero"`
	Limits     runner.Limits `json:"limits"` // as they were asked for
	Disk       int64         `json:"disk,omitempty"`
	WallTime   time.Duration `json:"wall_time,omitempty"`
	Asking     api.Asking    `json:"asking,omitzero"`
	Home       api.HomeKind  `json:"home,omitempty"`
	Folder     identity      `json:"folder"`
	Root       string        `json:"root"` // where its run-time folder was

	Credentials []string `json:"credentials,omitempty"`
	Tokens      string   `json:"tokens,omitempty"`
}

// identity tells a project folder from another that has its name later.
type identity struct {
	Inode  uint64 `json:"inode"`
	Device uint64 `json:"device"`
	Born   int64  `json:"born,omitempty"` // in nanoseconds; 0 where the filesystem doesn't say
}

// is says whether it is the same folder: a restart may number devices anew, and
// an overlay, as a container has it, gives a folder that is written another birth.
func (i identity) is(o identity) bool {
	return i.Inode == o.Inode && (i.Device == o.Device || i.Born != 0 && i.Born == o.Born)
}

func identityOf(folder string) (identity, error) {
	var st unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, folder, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_INO|unix.STATX_BTIME, &st); err != nil {
		return identity{}, err
	}
	id := identity{Inode: st.Ino, Device: unix.Mkdev(st.Dev_major, st.Dev_minor)}
	if st.Mask&unix.STATX_BTIME != 0 {
		id.Born = st.Btime.Sec*int64(time.Second) + int64(st.Btime.Nsec)
	}
	return id, nil
}

// elsewhere says how to have what a session did without its project folder.
func elsewhere(s api.Session) string {
	return fmt.Sprintf("have its changes as a patch for git apply (stepbox export %s --format patch), or its files in a new folder (stepbox checkout %s --into DIR)", s.ID, s.ID)
}

// same says why a session's project folder isn't the one that it worked on. Of
// sessions of which nothing was kept nothing is known.
func same(dir string, s api.Session) error {
	var k kept
	body, err := os.ReadFile(filepath.Join(dir, keptName))
	if err != nil || json.Unmarshal(body, &k) != nil {
		return nil
	}
	what := "isn't the folder that session %s worked on, but another of that name"
	now, err := identityOf(s.Folder)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		what = "isn't there any more, which session %s worked on"
	case err != nil || now.is(k.Folder):
		return nil // what else is wrong with it is told by who opens it
	}
	return api.Problemf(api.CodeBusy, "%s "+what+": put that one back there, or %s", s.Workspace, s.Name, elsewhere(s))
}

const keptName = "resume.json"

// keep keeps in a session's folder what it takes to resume it.
func keep(dir string, cfg session.Config) error {
	folder, err := identityOf(cfg.Workspace)
	if err == nil {
		err = os.MkdirAll(dir, 0o700)
	}
	if err != nil {
		return fmt.Errorf("cannot keep how the session was started: %w", err)
	}
	k := kept{Argv: cfg.Argv, Vars: keepable(cfg.Vars, cfg.Env), Extras: cfg.Extras, Limits: cfg.Limits, Disk: cfg.Disk, WallTime: cfg.WallTime, Asking: cfg.Asking, Home: cfg.HomeKind, Folder: folder, Root: cfg.RunDir, Credentials: cfg.Credentials}
	for _, l := range cfg.Tokens {
		k.Tokens = l.Text
	}
	if redact.Recording(slices.Concat(cfg.Env, cfg.Vars), cfg.Argv).Hides(cfg.Argv) {
		k.Argv, k.Secret = nil, true
	}
	for _, h := range cfg.AllowHosts {
		k.AllowHosts = append(k.AllowHosts, h.String())
	}
	body, err := json.Marshal(k)
	if err == nil {
		err = store.WriteDurably(filepath.Join(dir, keptName), body)
	}
	if err != nil {
		return fmt.Errorf("cannot keep how the session was started: %w", err)
	}
	return nil
}

// goneTime bounds how long a resume waits for what a killed supervisor's holder cleans up.
const goneTime = 20 * time.Second

// as makes a request one for what another session was started with: its folder, its
// bounds and, unless there is one, its command.
func (r *Request) as(st *store.Store, was api.Session) (k kept, err error) {
	body, err := os.ReadFile(filepath.Join(st.SessionDir(was.ID), keptName))
	if err == nil {
		err = json.Unmarshal(body, &k)
	}
	if err != nil {
		return k, fmt.Errorf("how it was started can't be read: %w", err)
	}
	if len(r.Argv) == 0 {
		r.Argv = k.Argv
	}
	r.Workspace, r.AllowHosts, r.Limits, r.Disk, r.WallTime = []byte(was.Folder), k.AllowHosts, k.Limits, k.Disk, k.WallTime
	r.Extras = k.Extras
	r.HomeKind = cmp.Or(k.Home, was.Home) // a fork's begins as the profile's is now, or empty
	r.Credentials, r.Tokens = k.Credentials, k.Tokens
	r.Vars = append(slices.Clone(k.Vars), r.Vars...)
	r.asking(k.Asking)
	return k, nil
}

// asking takes from another session what isn't said of what becomes of questions.
func (r *Request) asking(was api.Asking) {
	nothing := r.Asking == (api.Asking{})
	if nothing || r.KeepOn {
		r.Asking.On = was.On
	}
	if nothing || r.KeepTimeout {
		r.Asking.Timeout = was.Timeout
	}
	if nothing || r.KeepOn && r.Asking.On == api.OnAskDeny { // where it is said goes with what counts of it
		r.Asking.By = was.By
	}
}

// following is the session that goes on, or the fork of one, with that one's rules.
func (r Request) following(ctx context.Context, st *store.Store, dir, root string) (session.Config, error) {
	verb, id := "resume", r.Resume
	if r.Fork != nil {
		verb, id = "fork", r.Fork.Session
	}
	refuse := func(format string, args ...any) (session.Config, error) {
		return session.Config{}, &Error{Code: 1, Message: fmt.Sprintf("cannot %s session %s: ", verb, api.Escape(api.Trim(id, 80))) + fmt.Sprintf(format, args...)}
	}
	was, err := ledger.Session(ctx, st, id)
	if errors.Is(err, store.ErrNotFound) {
		return refuse("there is no such session; stepbox ls lists them")
	}
	if err != nil {
		return session.Config{}, err
	}
	called := ledger.Called(ctx, st, id, was.Name)
	if !api.ValidName(was.Name) { // nobody gave it
		was.Name = called
	}
	k, err := r.as(st, was)
	if err != nil {
		return refuse("%v", err)
	}
	if len(r.Argv) == 0 && k.Secret {
		return refuse("its command has a secret, which isn't kept, and was %s: say what is to run: stepbox %s %s -- COMMAND; what is given as --env NAME is asked of your environment instead", was.Command, verb, was.ID)
	}
	if r.Fork != nil {
		r.Name, r.Mode = cmp.Or(r.Name, called+"-fork"), cmp.Or(r.Mode, was.Mode)
	} else {
		r.Name, r.Mode = was.Name, was.Mode // as it was recorded: what a person calls it since isn't
	}
	if r.Cols <= 0 || r.Rows <= 0 {
		r.Cols, r.Rows = was.Cols, was.Rows
	}
	cfg, err := r.config(dir, root)
	if err != nil {
		return cfg, fmt.Errorf("cannot %s session %s: its project folder can't be used: %w", verb, was.ID, err)
	}
	now, err := identityOf(cfg.Workspace)
	if err != nil || !now.is(k.Folder) {
		return refuse("%s isn't the folder that it worked on, but another of that name: put that one back there, or %s", was.Workspace, elsewhere(was))
	}
	if r.Fork == nil && cfg.HomeKind == api.HomeSession && profilesOf(r.Home).Named(was.Agent) != nil {
		cfg.HomeOf = was.Agent // with another agent, too, it is the same home
	}
	if r.Fork != nil {
		cfg.Parent = &api.Parent{ID: was.ID, Name: called, At: r.Fork.At}
	}
	return cfg, nil
}

// untilFree tries again, for a moment, to have what a supervisor still has whose
// session has ended, and that is just going away.
func untilFree(ctx context.Context, st *store.Store, cfg session.Config, try func() error) error {
	for end := time.Now().Add(goneTime); ; {
		err := try()
		var e *Error
		had := errors.Is(err, store.ErrOwned) || errors.As(err, &e) && e.Code == codeRefused
		if !cfg.Resume || !had || time.Now().After(end) {
			return err
		}
		if s, failure := ledger.Session(ctx, st, cfg.ID); failure != nil || s.Live() {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// again starts a session that goes on. The caller has its note, so that nobody
// else does.
func again(ctx context.Context, st *store.Store, cfg session.Config) (*session.Session, error) {
	dir := st.SessionDir(cfg.ID)
	before, err := os.ReadFile(filepath.Join(dir, keptName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("cannot read how the session was started: %w", err)
	}
	var k kept
	_ = json.Unmarshal(before, &k) // without it the run-time folders are where they are now
	for _, root := range []string{k.Root, cfg.RunDir} {
		if root == "" {
			continue
		}
		wait, cancel := context.WithTimeout(ctx, goneTime)
		err := runner.Gone(wait, root, cfg.ID)
		cancel()
		if err != nil {
			return nil, fmt.Errorf("cannot resume session %s: %w", cfg.ID, err)
		}
	}
	if err := keep(dir, cfg); err != nil {
		return nil, err
	}
	cfg.Foretell = func(events []store.Event) error { return seal.Foretell(context.WithoutCancel(ctx), st, cfg.ID, events) }
	s, err := session.Start(ctx, st, cfg)
	switch {
	case err == nil:
	case before == nil:
		err = errors.Join(err, os.Remove(filepath.Join(dir, keptName)))
	default:
		err = errors.Join(err, store.WriteDurably(filepath.Join(dir, keptName), before))
	}
	return s, err
}
