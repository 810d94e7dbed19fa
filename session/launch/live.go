package launch

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"stepbox/session/server"
)

// note is what a live session's supervisor says of itself in the data folder,
// where every process of the same person finds it, whatever its run-time folder
// is: one started by cron, over ssh or by sudo has another. The supervisor holds
// the note's file locked for as long as it lives, see flock(2), so that nobody
// takes a dead one's word, nor another process's number for it.
type note struct {
	Name   string `json:"name"`   // the session's
	Root   string `json:"root"`   // where the run-time folders of it and its siblings are
	Socket string `json:"socket"` // where it listens, soon
	PID    int    `json:"pid"`    // for a person
	Folder string `json:"folder"` // the project's; "" in notes of versions before it was noted

	// The supervisor's own version, which isn't always that of who reads this.
	Stepbox string `json:"stepbox,omitempty"`
}

// registry is the folder of notes.
type registry string

const noteSuffix = ".json"

func registryIn(dataDir string) registry { return registry(filepath.Join(dataDir, "live")) }

func (r registry) path(id string) string { return filepath.Join(string(r), id+noteSuffix) }

// door is where a session is served as well, beside its note: whoever knows of the session
// can reach it, whatever becomes of its run-time folder, which goes at a logout.
func (r registry) door(id string) string { return filepath.Join(string(r), id+".sock") }

// served is where to reach a session.
func (r registry) served(id string, n note) string {
	if _, err := os.Lstat(n.Socket); err != nil {
		return r.door(id)
	}
	return n.Socket
}

// listen serves a session in its run-time folder, where programs look for it, and at its
// door. A filesystem that has no sockets gives it no door.
func (r registry) listen(root, id string, log *slog.Logger) ([]net.Listener, error) {
	at, err := server.Listen(socket(root, id))
	if err != nil {
		return nil, err
	}
	_ = os.Remove(r.door(id)) // a dead supervisor's
	door, err := server.Listen(r.door(id))
	if err != nil {
		if log != nil {
			log.Warn("the session can't be reached once its run-time folder is gone", "error", err)
		}
		return []net.Listener{at}, nil
	}
	return []net.Listener{at, door}, nil
}

// codeRefused is the exit code for a session that has a supervisor, and so for what
// may be had a moment later.
const codeRefused = 3

// announced is a supervisor's own note. Withdraw it when the session is over.
type announced struct {
	file *os.File
	path string
	door string
}

// lock keeps all others from starting a session, and from taking notes away,
// until unlock.
func (r registry) lock() (unlock func() error, err error) {
	dir, err := os.Open(string(r))
	if err != nil {
		return nil, err
	}
	for err = unix.EINTR; err == unix.EINTR; { // held for a moment by others
		err = unix.Flock(int(dir.Fd()), unix.LOCK_EX)
	}
	if err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	return dir.Close, nil
}

// forget takes a dead session's note away, unless it was resumed meanwhile.
func (r registry) forget(id string) error {
	unlock, err := r.lock()
	if err != nil {
		return err
	}
	defer unlock()
	if r.live(id) {
		return nil
	}
	_ = os.Remove(r.door(id)) // there may be none
	return os.Remove(r.path(id))
}

// announce writes a session's note. No two live sessions get one name: if it
// was chosen, the second is refused; if it is only the folder's, it gets a
// number. No session has two supervisors.
func (r registry) announce(id string, n *note, chosen bool) (*announced, error) {
	if err := os.MkdirAll(string(r), 0o700); err != nil {
		return nil, fmt.Errorf("cannot note the session: %w", err)
	}
	unlock, err := r.lock()
	if err != nil {
		return nil, fmt.Errorf("cannot note the session: %w", err)
	}
	defer unlock()
	live, _, err := r.list()
	if err != nil {
		return nil, err
	}
	if o, ok := live[id]; ok { // it goes on already, or was just told to
		return nil, &Error{Code: codeRefused, Message: fmt.Sprintf("session %s is running: stepbox attach %s joins it", o.Name, id)}
	}
	r.tidy()
	taken := make(map[string]string)
	for other, m := range live {
		taken[m.Name] = other
	}
	if other := taken[n.Name]; other != "" && chosen {
		return nil, &Error{Code: 2, Message: fmt.Sprintf("a session named %q is running (%s): use another --name, or end it with stepbox kill %s", n.Name, other, other)}
	}
	base := n.Name
	for i := 2; taken[n.Name] != ""; i++ {
		n.Name = fmt.Sprintf("%s-%d", base, i)
	}
	return r.write(id, *n)
}

// tidy removes what starts that were killed left of their notes. The registry is
// locked, so that none of it is anyone's.
func (r registry) tidy() {
	left, _ := filepath.Glob(filepath.Join(string(r), ".*")) // the pattern is fine
	for _, path := range left {
		_ = os.Remove(path) // else the next start tries again
	}
}

// write makes the note: it is there with its lock held, or not at all.
func (r registry) write(id string, n note) (*announced, error) {
	body, err := json.Marshal(n)
	if err != nil {
		return nil, err
	}
	made := filepath.Join(string(r), "."+id)
	f, err := os.OpenFile(made, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot note the session: %w", err)
	}
	_, err = f.Write(body)
	if err == nil {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	}
	if err == nil {
		err = os.Rename(made, r.path(id))
	}
	if err != nil {
		os.Remove(made)
		f.Close()
		return nil, fmt.Errorf("cannot note the session: %w", err)
	}
	return &announced{f, r.path(id), r.door(id)}, nil
}

// withdraw takes the note away: the session isn't live any more.
func (a *announced) withdraw() error {
	_ = os.Remove(a.door) // there may be none
	// A process that was just forked has the file as well.
	return errors.Join(os.Remove(a.path), unix.Flock(int(a.file.Fd()), unix.LOCK_UN), a.file.Close())
}

// read reads a session's note and says whether its supervisor lives.
func (r registry) read(id string) (n note, live bool, err error) {
	if id == "" || filepath.Base(id) != id || strings.HasPrefix(id, ".") {
		return n, false, fs.ErrNotExist
	}
	f, err := os.Open(r.path(id))
	if err != nil {
		return n, false, err
	}
	defer f.Close()
	if err := json.NewDecoder(f).Decode(&n); err != nil {
		return n, false, fmt.Errorf("cannot read the note of session %s: %w", id, err)
	}
	// Shared: others that look at the same moment aren't taken for its owner.
	return n, unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB) == unix.EWOULDBLOCK, nil
}

// list reads all notes: those of live sessions, and those whose supervisor died.
func (r registry) list() (live, dead map[string]note, err error) {
	entries, err := os.ReadDir(string(r))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("cannot look for live sessions: %w", err)
	}
	live, dead = make(map[string]note), make(map[string]note)
	for _, e := range entries {
		id, ok := strings.CutSuffix(e.Name(), noteSuffix)
		if !ok {
			continue
		}
		n, alive, err := r.read(id)
		switch {
		case errors.Is(err, fs.ErrNotExist): // it went meanwhile
		case alive:
			live[id] = n
		default: // a note that can't be read is of nobody's use
			dead[id] = n
		}
	}
	return live, dead, nil
}

// find says where a live session is served.
func (r registry) find(id string) server.Supervisor {
	if n, live, err := r.read(id); err == nil && live {
		return server.Supervisor{Socket: r.served(id, n), Stepbox: n.Stepbox}
	}
	return server.Supervisor{}
}

// live says whether a session's supervisor lives.
func (r registry) live(id string) bool {
	_, live, err := r.read(id)
	return err == nil && live
}
