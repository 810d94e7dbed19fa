package holder

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// probe mounts an overlay as sandboxes have it, in this holder's own mount
// namespace, and deletes a file through it.
func probe(body json.RawMessage) error {
	var request probeRequest
	if err := json.Unmarshal(body, &request); err != nil {
		return err
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("cannot make the mounts private: %w", err)
	}
	// Short relative names need no escaping, whatever dir is called.
	if err := os.Chdir(request.Dir); err != nil {
		return err
	}
	for _, name := range []string{"lower", "upper", "work", "merged"} {
		if err := os.Mkdir(name, 0o700); err != nil {
			return err
		}
	}
	const file = "file"
	if err := os.WriteFile(filepath.Join("lower", file), []byte("x"), 0o600); err != nil {
		return err
	}
	if err := unix.Mount("overlay", "merged", "overlay", 0, "lowerdir=lower,upperdir=upper,workdir=work,userxattr"); err != nil {
		return fmt.Errorf("cannot mount an overlay in a user namespace: %w", err)
	}
	if err := os.Remove(filepath.Join("merged", file)); err != nil {
		return fmt.Errorf("cannot delete a file in an overlay: %w", err)
	}
	return nil
}
