// Package kept remembers small things of a person from one run to the next: one file
// for each, in a folder of the person's own. Screens may use it at once: each file is
// whole, and the last word counts.
package kept

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"stepbox/ui/layout"
)

// Folder is where they are. It is made when something first is kept.
type Folder string

// Looked, Layout and Screen are the folders in it for what was looked at, for how the
// workbench is divided, and for the rest.
func (f Folder) Looked() Looked { return Looked(filepath.Join(string(f), "looked")) }
func (f Folder) Layout() Layout { return Layout(filepath.Join(string(f), "layout")) }
func (f Folder) Screen() Folder { return Folder(filepath.Join(string(f), "screen")) }

// most is how much a file has, in bytes. What has more isn't ours.
const most = 4 << 10

func (f Folder) path(name string) (string, error) {
	if name == "" || name != filepath.Base(name) || strings.HasPrefix(name, ".") {
		return "", fmt.Errorf("%q is no name", name)
	}
	return filepath.Join(string(f), name), nil
}

// Read is what is kept under a name; "" when nothing is, or it can't be read.
func (f Folder) Read(name string) string {
	path, err := f.path(name)
	if err != nil {
		return ""
	}
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe has nobody wait
	if err != nil {
		return ""
	}
	defer file.Close()
	if st, err := file.Stat(); err != nil || !st.Mode().IsRegular() {
		return ""
	}
	text, err := io.ReadAll(io.LimitReader(file, most))
	if err != nil {
		return ""
	}
	return string(text)
}

// Write keeps a text.
func (f Folder) Write(name, text string) error {
	path, err := f.path(name)
	if err == nil {
		err = os.MkdirAll(string(f), 0o700)
	}
	if err != nil {
		return err
	}
	next, err := os.CreateTemp(string(f), "."+name+".*")
	if err != nil {
		return err
	}
	_, err = next.WriteString(text)
	if e := next.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Rename(next.Name(), path) // so that nobody reads half of it
	}
	if err != nil {
		_ = os.Remove(next.Name())
	}
	return err
}

// Layout keeps how a person divides the workbench, for each kind of room.
type Layout Folder

// Shapes are what is kept. What can't be read is as at first.
func (l Layout) Shapes() (all layout.Shapes) {
	for kind := range all {
		var s layout.Shape
		if json.Unmarshal([]byte(Folder(l).Read(layout.Kind(kind).String())), &s) == nil {
			all[kind] = s.Clean()
		}
	}
	return all
}

// Keep keeps one of them.
func (l Layout) Keep(kind layout.Kind, s layout.Shape) error {
	text, err := json.Marshal(s)
	if err == nil {
		err = Folder(l).Write(kind.String(), string(text)+"\n")
	}
	if err != nil {
		return fmt.Errorf("cannot remember the layout: %w", err)
	}
	return nil
}

// Looked keeps up to which checkpoint of each session a person has looked at its changes.
type Looked Folder

// At is the checkpoint that was looked at last; 0 when none was, or it can't be
// read: all that changed is shown then.
func (l Looked) At(session string) int64 {
	n, err := strconv.ParseInt(strings.TrimSpace(Folder(l).Read(session)), 10, 64)
	if err != nil {
		return 0
	}
	return max(n, 0)
}

// Set remembers a checkpoint.
func (l Looked) Set(session string, checkpoint int64) error {
	if err := Folder(l).Write(session, strconv.FormatInt(checkpoint, 10)+"\n"); err != nil {
		return fmt.Errorf("cannot remember what was looked at: %w", err)
	}
	return nil
}
