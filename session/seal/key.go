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
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/sys/unix"

	"stepbox/session/api"
	"stepbox/store"
)

// Key is the person's key that seals records: one for all of them, made on first use. It
// may be used from many goroutines and processes; each call reads what is in the folder.
type Key struct {
	Dir string // below the data folder, which no sandbox sees; 0700

	// Used says whether anything was sealed, which no key is made after; nil: nobody knows.
	Used func(context.Context) (bool, error)
}

// The files in a key's folder. The key counts once it is told of.
const (
	privateName = "seal"
	toldName    = "seal.json"
)

// told is what verifying needs: the public key, and what ended since when is sealed.
type told struct {
	Public string    `json:"public"` // as a line of authorized_keys; "": there is no key
	From   time.Time `json:"from"`
}

// Told tells of the key; a zero one before the first seal.
func (k Key) Told(ctx context.Context) (api.Key, error) {
	t, err := k.told()
	if err == nil && t.Public == "" {
		return api.Key{}, k.mayMake(ctx, true)
	}
	if err != nil {
		return api.Key{}, err
	}
	pub, _, _, _, err := ssh.ParseAuthorizedKey([]byte(t.Public))
	if err != nil {
		return api.Key{}, fmt.Errorf("cannot read the key in %q: %w", filepath.Join(k.Dir, toldName), err)
	}
	return api.Key{Fingerprint: ssh.FingerprintSHA256(pub), Public: t.Public, From: t.From}, nil
}

func (k Key) told() (t told, err error) {
	b, err := os.ReadFile(filepath.Join(k.Dir, toldName))
	if errors.Is(err, fs.ErrNotExist) {
		return t, nil
	}
	if err == nil {
		err = json.Unmarshal(b, &t)
	}
	if err != nil {
		return t, fmt.Errorf("cannot read the key in %q: %w", filepath.Join(k.Dir, toldName), err)
	}
	return t, nil
}

// mayMake says why no key is made, if that is so.
func (k Key) mayMake(ctx context.Context, first bool) (err error) {
	used := !first
	if first && k.Used != nil {
		used, err = k.Used(ctx)
	}
	if err == nil && used {
		err = fmt.Errorf("there is no key in %q, and seals that it made: put the folder back from a copy; a record of its own in another folder (STEPBOX_DATA) has another key", k.Dir)
	}
	return err
}

// signer is the key ready to sign. If there is none, and never was, it may make one.
func (k Key) signer(ctx context.Context, first bool) (ssh.Signer, error) {
	t, err := k.told()
	if err == nil && t.Public == "" {
		if err = k.mayMake(ctx, first); err == nil {
			t, err = k.make()
		}
	}
	if err != nil {
		return nil, err
	}
	file := filepath.Join(k.Dir, privateName)
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("cannot read the key that seals the record: %w", err)
	}
	s, err := ssh.ParsePrivateKey(b)
	if err != nil {
		return nil, fmt.Errorf("cannot use the key %q: %w", file, err)
	}
	if line(s.PublicKey()) != t.Public {
		return nil, fmt.Errorf("cannot use the key %q: it isn't the one of %s", file, toldName)
	}
	return s, nil
}

// make makes the key, unless another process was first.
func (k Key) make() (t told, err error) {
	if err := os.MkdirAll(k.Dir, 0o700); err != nil {
		return t, fmt.Errorf("cannot make the folder of the key: %w", err)
	}
	dir, err := os.Open(k.Dir)
	if err != nil {
		return t, fmt.Errorf("cannot open the folder of the key: %w", err)
	}
	defer dir.Close() // and so the lock, flock(2)
	for err = unix.EINTR; err == unix.EINTR; {
		err = unix.Flock(int(dir.Fd()), unix.LOCK_EX)
	}
	if err != nil {
		return t, fmt.Errorf("cannot lock %q: %w", k.Dir, err)
	}
	if t, err = k.told(); err != nil || t.Public != "" {
		return t, err
	}
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return t, err
	}
	pub, err := ssh.NewPublicKey(public)
	if err != nil {
		return t, err
	}
	block, err := ssh.MarshalPrivateKey(private, "stepbox")
	if err != nil {
		return t, err
	}
	return k.write(told{Public: line(pub), From: time.Now().UTC()}, pem.EncodeToMemory(block))
}

// write keeps a key, for its owner alone. Each file comes in one step that survives power
// loss; what tells of the key comes last.
func (k Key) write(t told, private []byte) (told, error) {
	b, err := json.MarshalIndent(t, "", "  ")
	if err == nil {
		err = store.WriteDurably(filepath.Join(k.Dir, privateName), private)
	}
	if err == nil {
		err = store.WriteDurably(filepath.Join(k.Dir, toldName), b)
	}
	if err != nil {
		return told{}, fmt.Errorf("cannot keep the key: %w", err)
	}
	return t, nil
}

func line(pub ssh.PublicKey) string { return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(pub))) }

// Sign signs a message as Ed25519 does (RFC 8032), for forms that have their own envelope.
// Name is the fingerprint of the public key.
func (k Key) Sign(ctx context.Context, message []byte) (signature []byte, name string, err error) {
	signer, err := k.signer(ctx, true)
	if err != nil {
		return nil, "", err
	}
	name = ssh.FingerprintSHA256(signer.PublicKey())
	sig, err := signer.Sign(rand.Reader, message)
	if err != nil {
		return nil, name, fmt.Errorf("cannot sign with the key %s: %w", name, err)
	}
	return sig.Blob, name, nil
}
