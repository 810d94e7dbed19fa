package seal

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
	"golang.org/x/sys/unix"

	"stepbox/session/api"
	"stepbox/store"
)

// Ring is a person's keys: the one that signs now, and those that did before. It may be
// used from many goroutines and processes; each call reads what is in the folder.
type Ring struct {
	Dir   string // below the data folder, which no sandbox sees; 0700
	Agent string // the ssh-agent's socket; "": there is none

	// Used says whether anything was sealed, which a first key isn't made after; nil: nobody knows.
	Used func(context.Context) (bool, error)

	// Newest says which session has the newest seal, and of when that is; nil: nobody knows.
	Newest func(context.Context) (session string, at time.Time, err error)
}

// key is an entry of the ring's list, oldest first. The last one signs.
type key struct {
	Public   string    `json:"public"`         // as a line of authorized_keys
	File     string    `json:"file,omitempty"` // of the private key, in the folder; "": an ssh-agent has it
	From     time.Time `json:"from"`
	Until    time.Time `json:"until,omitzero"`
	Endorsed string    `json:"endorsed,omitempty"` // signed by the key before it
}

const listName = "keys.json"

// agentTime bounds how long an ssh-agent may take, which may be asking its person.
const agentTime = 20 * time.Second

func (k key) public() (ssh.PublicKey, error) {
	pub, _, _, _, err := ssh.ParseAuthorizedKey([]byte(k.Public))
	return pub, err
}

func (k key) api() (api.Key, error) {
	pub, err := k.public()
	if err != nil {
		return api.Key{}, fmt.Errorf("cannot read the list of keys: %w", err)
	}
	return api.Key{Fingerprint: ssh.FingerprintSHA256(pub), Public: k.Public, InAgent: k.File == "", From: k.From, Until: k.Until}, nil
}

// Keys lists the keys, the one that signs last; none before the first seal.
func (r Ring) Keys(ctx context.Context) ([]api.Key, error) {
	list, err := r.list()
	if err == nil && len(list) == 0 {
		err = r.maymake(ctx, true)
	}
	var out []api.Key
	for _, k := range list {
		a, bad := k.api()
		err = errors.Join(err, bad)
		out = append(out, a)
	}
	return out, err
}

func (r Ring) list() (list []key, err error) {
	b, err := os.ReadFile(filepath.Join(r.Dir, listName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = json.Unmarshal(b, &list)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the list of keys %q: %w", filepath.Join(r.Dir, listName), err)
	}
	return list, nil
}

// change locks the ring while f makes another list of it. An older one never wins.
func (r Ring) change(f func(list []key) ([]key, error)) error {
	if err := os.MkdirAll(r.Dir, 0o700); err != nil {
		return fmt.Errorf("cannot make the folder of the keys: %w", err)
	}
	dir, err := os.Open(r.Dir)
	if err != nil {
		return fmt.Errorf("cannot open the folder of the keys: %w", err)
	}
	defer dir.Close() // and so the lock, flock(2)
	for err = unix.EINTR; err == unix.EINTR; {
		err = unix.Flock(int(dir.Fd()), unix.LOCK_EX)
	}
	if err != nil {
		return fmt.Errorf("cannot lock %q: %w", r.Dir, err)
	}
	before, err := r.list()
	if err != nil {
		return err
	}
	list, err := f(slices.Clone(before))
	if err != nil || len(list) == len(before) {
		return err
	}
	b, err := json.MarshalIndent(list, "", "  ")
	if err == nil {
		err = r.write(listName, b)
	}
	return err
}

// write gives a file of the ring its content in one step that survives power loss, for
// its owner alone.
func (r Ring) write(name string, b []byte) error {
	if err := store.WriteDurably(filepath.Join(r.Dir, name), b); err != nil {
		return fmt.Errorf("cannot keep a key: %w", err)
	}
	return nil
}

// signer gives the key that signs now. If there is none, and never was, it may make one.
func (r Ring) signer(ctx context.Context, first bool) (ssh.Signer, func(), error) {
	list, err := r.list()
	if err == nil && len(list) == 0 {
		err = r.maymake(ctx, first)
	}
	if err == nil && len(list) == 0 {
		err = r.change(func(now []key) ([]key, error) {
			if len(now) == 0 { // else another process was first
				k, err := r.make()
				now = append(now, k)
				if err != nil {
					return nil, err
				}
			}
			list = now
			return now, nil
		})
	}
	if err != nil {
		return nil, nil, err
	}
	return r.open(ctx, list[len(list)-1])
}

// maymake says why no first key is made, if that is so.
func (r Ring) maymake(ctx context.Context, first bool) (err error) {
	used := !first
	if first && r.Used != nil {
		used, err = r.Used(ctx)
	}
	if err == nil && used {
		err = fmt.Errorf("there is no key in %q: put it back, or have a new one with stepbox key rotate", r.Dir)
	}
	return err
}

// make makes a key and its file.
func (r Ring) make() (key, error) {
	if err := os.MkdirAll(r.Dir, 0o700); err != nil {
		return key{}, fmt.Errorf("cannot make the folder of the keys: %w", err)
	}
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return key{}, err
	}
	pub, err := ssh.NewPublicKey(public)
	if err != nil {
		return key{}, err
	}
	block, err := ssh.MarshalPrivateKey(private, "stepbox")
	if err != nil {
		return key{}, err
	}
	name := fmt.Sprintf("seal-%x", public[:8])
	return key{Public: line(pub), File: name, From: time.Now().UTC()}, r.write(name, pem.EncodeToMemory(block))
}

func line(pub ssh.PublicKey) string { return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(pub))) }

// open makes a listed key ready to sign, until it is let go.
func (r Ring) open(ctx context.Context, k key) (ssh.Signer, func(), error) {
	if k.File == "" {
		pub, err := k.public()
		if err != nil {
			return nil, nil, err
		}
		return r.fromAgent(ctx, func(have ssh.PublicKey) bool { return string(have.Marshal()) == string(pub.Marshal()) }, ssh.FingerprintSHA256(pub))
	}
	b, err := os.ReadFile(filepath.Join(r.Dir, filepath.Base(k.File)))
	if err != nil {
		return nil, nil, fmt.Errorf("cannot read the key that seals the record: %w", err)
	}
	s, err := ssh.ParsePrivateKey(b)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot use the key %q: %w", filepath.Join(r.Dir, k.File), err)
	}
	if line(s.PublicKey()) != k.Public {
		return nil, nil, fmt.Errorf("cannot use the key %q: it isn't the one that is listed", filepath.Join(r.Dir, k.File))
	}
	return s, func() {}, nil
}

// fromAgent finds a key in the ssh-agent, see ssh-agent(1).
func (r Ring) fromAgent(ctx context.Context, is func(ssh.PublicKey) bool, name string) (ssh.Signer, func(), error) {
	if r.Agent == "" {
		return nil, nil, fmt.Errorf("cannot reach the key %s: there is no ssh-agent (SSH_AUTH_SOCK is empty)", name)
	}
	d := net.Dialer{Timeout: agentTime}
	c, err := d.DialContext(ctx, "unix", r.Agent)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot reach the ssh-agent that has the key %s: %w", name, err)
	}
	_ = c.SetDeadline(time.Now().Add(agentTime))                                  // a socket has one
	stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) }) // as above
	let := func() { stop(); c.Close() }
	signers, err := agent.NewClient(c).Signers()
	if err == nil {
		if i := slices.IndexFunc(signers, func(s ssh.Signer) bool { return is(s.PublicKey()) }); i >= 0 {
			return signers[i], let, nil
		}
		err = errors.New("ssh-add -l doesn't list it")
	}
	let()
	return nil, nil, fmt.Errorf("cannot use the key %s of the ssh-agent: %w", name, err)
}
