// Package watch tells when something in a folder changes, without looking again
// and again.
package watch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"github.com/fsnotify/fsnotify"
)

// Lull is how long changes are gathered before they are told: whoever writes a
// file does so in several steps.
const Lull = 150 * time.Millisecond

// Folders tells on the channel that something in one of the folders changed, with
// at least Lull between two times. What happens while nobody receives is told
// once. The folders themselves may come and go; what is below folders in them
// isn't looked at. The channel is closed when ctx is done; nothing is left then.
func Folders(ctx context.Context, dirs ...string) (<-chan struct{}, error) {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("cannot watch folders: %w", err)
	}
	if err := follow(w, dirs); err != nil {
		w.Close()
		return nil, err
	}
	told := make(chan struct{}, 1)
	go func() {
		defer close(told)
		defer w.Close()
		var lull <-chan time.Time
		for {
			select {
			case e := <-w.Events:
				if lull == nil && matters(e, dirs) {
					lull = time.After(Lull)
				}
			case <-w.Errors: // the queue ran over: something changed
				lull = time.After(Lull)
			case <-lull:
				lull = nil
				_ = follow(w, dirs) // those that can't be watched now may be after the next change
				select {
				case told <- struct{}{}:
				default: // it is still to be received
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	return told, nil
}

// follow watches each folder, or the nearest one above that is there.
func follow(w *fsnotify.Watcher, dirs []string) error {
	for _, dir := range dirs {
		for {
			err := w.Add(dir)
			if err == nil {
				break
			}
			if up := filepath.Dir(dir); up != dir && errors.Is(err, fs.ErrNotExist) {
				dir = up
				continue
			}
			return fmt.Errorf("cannot watch %q: %w", dir, err)
		}
	}
	return nil
}

// matters says whether an event is about one of the folders, or what is in them:
// a folder above may be watched too, where much else goes on.
func matters(e fsnotify.Event, dirs []string) bool {
	if e.Op == fsnotify.Chmod {
		return false
	}
	return slices.ContainsFunc(dirs, func(dir string) bool {
		if filepath.Dir(e.Name) == dir {
			return true
		}
		rel, err := filepath.Rel(e.Name, dir)
		return err == nil && filepath.IsLocal(rel)
	})
}
