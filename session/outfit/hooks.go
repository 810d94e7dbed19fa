package outfit

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"stepbox/policy"
)

// hooks are the files by which a program tells what it does. What the host has under
// such a name is what somebody who manages it wants: that stays, and is named.
func hooks(p *policy.Profile, etc string) (files map[string][]byte, args, kept []string) {
	texts, args := p.Hooks()
	files = make(map[string][]byte, len(texts))
	for name, text := range texts {
		if _, err := os.Lstat(filepath.Join(etc, name)); !errors.Is(err, fs.ErrNotExist) {
			kept = append(kept, filepath.Join(etc, name))
			continue
		}
		files[name] = []byte(text)
	}
	return files, args, kept
}
