package frozen

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// What was taken before is kept beside what is taken now until all that the session wrote
// on top of it is let go of: with an old index on top of a new commit, the agent's next one
// would take back what the person has committed.

func before(folder string) string { return filepath.Join(folder, "git", "before") }

// moved is there once all of the layers was put aside.
func moved(folder string) string { return filepath.Join(before(folder), "moved") }

func layers(folder string) map[string]string {
	return map[string]string{
		Layer(folder):      filepath.Join(before(folder), "project"),
		OuterLayer(folder): filepath.Join(before(folder), "outer"),
		Restored(folder):   filepath.Join(before(folder), "restored"),
	}
}

// aside puts the layers aside; their own folders stay, since they may be open.
func (g Git) aside() error {
	if err := g.Recover(); err != nil {
		return err
	}
	if err := os.MkdirAll(before(g.Folder), 0o700); err != nil {
		return err
	}
	if err := os.Rename(note(g.Folder), filepath.Join(before(g.Folder), "taken.json")); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return g.clear() // nothing was taken, or not to its end
		}
		return err
	}
	for layer, to := range layers(g.Folder) {
		if err := move(layer, to); err != nil {
			return err
		}
	}
	return os.WriteFile(moved(g.Folder), nil, 0o600)
}

// Recover puts back what was taken before, if what came after it wasn't settled.
func (g Git) Recover() error {
	if g.Folder == "" {
		return nil
	}
	old := filepath.Join(before(g.Folder), "taken.json")
	if !exists(old) {
		return remove(before(g.Folder))
	}
	if exists(moved(g.Folder)) {
		if err := g.clear(); err != nil {
			return err
		}
		if err := os.Remove(moved(g.Folder)); err != nil {
			return err
		}
	}
	for layer, from := range layers(g.Folder) {
		if err := move(from, layer); err != nil {
			return err
		}
	}
	if err := os.Rename(old, note(g.Folder)); err != nil {
		return err
	}
	return remove(before(g.Folder))
}

// Settle lets go of what was taken before: nothing of the session stands on it any more.
func (g Git) Settle() error {
	if g.Folder == "" {
		return nil
	}
	if err := os.Remove(filepath.Join(before(g.Folder), "taken.json")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return remove(before(g.Folder))
}

// move moves all that is in a folder.
func move(from, to string) error {
	entries, err := os.ReadDir(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = os.MkdirAll(to, 0o700)
	}
	for _, e := range entries {
		if err == nil {
			err = os.Rename(filepath.Join(from, e.Name()), filepath.Join(to, e.Name()))
		}
	}
	return err
}
