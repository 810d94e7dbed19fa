package rules

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/zeebo/blake3"
)

// Trust is the folder that keeps which projects' policies the person confirmed: a note
// for each path and content. It is in the data folder, which no sandbox has.
type Trust string

// TrustIn is the one in a data folder.
func TrustIn(data string) Trust { return Trust(filepath.Join(data, "trust")) }

// confirmed is one such note.
type confirmed struct {
	Path string    `json:"path"`
	Hash string    `json:"hash"`
	By   string    `json:"by,omitempty"`
	At   time.Time `json:"at"`
}

// note is where a note is. Its name tells path and content apart from all others.
func (t Trust) note(path, hash string) string {
	return filepath.Join(string(t), noteOf(path)+hash)
}

// noteOf is how the names of all notes of a path begin.
func noteOf(path string) string {
	sum := blake3.Sum256([]byte(path))
	return hex.EncodeToString(sum[:]) + "-"
}

// Has says whether a person confirmed this content at this path.
func (t Trust) Has(path, hash string) bool {
	if hash == "" {
		return false
	}
	data, err := os.ReadFile(t.note(path, hash))
	var c confirmed
	return err == nil && json.Unmarshal(data, &c) == nil && c.Path == path && c.Hash == hash
}

// Confirm keeps that a person confirmed a content at a path.
func (t Trust) Confirm(path, hash, by string) error {
	if t.Has(path, hash) {
		return nil
	}
	doc, err := json.Marshal(confirmed{path, hash, by, time.Now().UTC()})
	if err == nil {
		err = os.MkdirAll(string(t), 0o700)
	}
	if err == nil {
		err = replace(t.note(path, hash), doc, 0o600, -1, -1)
	}
	if err != nil {
		return fmt.Errorf("cannot keep that %q is trusted: %w", path, err)
	}
	return nil
}

// Forget forgets whatever a person confirmed at a path, and says whether there was any.
func (t Trust) Forget(path string) (any bool, err error) {
	notes, err := filepath.Glob(filepath.Join(string(t), noteOf(path)+"*"))
	for _, n := range notes {
		if rerr := os.Remove(n); rerr == nil {
			any = true
		} else if !errors.Is(rerr, fs.ErrNotExist) {
			err = errors.Join(err, rerr)
		}
	}
	if err != nil {
		return any, fmt.Errorf("cannot forget that %q is trusted: %w", path, err)
	}
	return any, nil
}

// replace puts a file in another's place whole, or leaves that as it is. Owners of -1
// are as they come.
func replace(path string, data []byte, mode fs.FileMode, uid, gid int) error {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, "."+filepath.Base(path)+".*.tmp")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // nothing is there once it was renamed
	_, err = f.Write(data)
	err = errors.Join(err, f.Chmod(mode))
	if err == nil && os.Geteuid() == 0 && uid >= 0 {
		err = f.Chown(uid, gid)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	return synced(dir)
}

// remove takes a file away for good.
func remove(path string) error {
	if err := os.Remove(path); err != nil {
		return err
	}
	return synced(filepath.Dir(path))
}

// synced has a folder's names be on the disk.
func synced(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
