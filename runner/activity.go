package runner

import (
	"bytes"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"stepbox/runner/box"
	"stepbox/runner/gate"
)

// Activity is one process of the agent's tree, and what it had done by the time
// that it was looked at.
type Activity struct {
	Process
	Mark    uint64         // as gate.SetMark has put it
	Threads map[int]string // what each had run, by thread id
	Running bool           // one of them ran at that moment
}

// Activity looks at all processes of the agent's tree. A thread whose text is
// the same in two looks, and that wasn't running at the first, ran nothing in
// between: the text counts how often it was given a processor.
func (s *Sandbox) Activity() ([]Activity, error) {
	var list []Activity
	for _, pid := range s.pids() {
		mark := gate.MarkOf(pid)
		threads, status, running, err := box.Ran(pid)
		if runs, err := lives(status, err); err != nil {
			return nil, err
		} else if runs {
			list = append(list, Activity{
				Process: process(status), Mark: mark, Threads: threads, Running: running,
			})
		}
	}
	return list, nil
}

// Still says whether a process has run nothing since a look before. Frozen allows
// each of its threads the moment that this takes.
func (a Activity) Still(before Activity, frozen bool) bool {
	return !before.Running && maps.EqualFunc(before.Threads, a.Threads, func(b, n string) bool {
		return b == n || frozen && box.OnlyFroze(b, n)
	})
}

// OpenFiles are files of the project that processes of the agent's tree have
// mapped, as paths below the project.
type OpenFiles struct {
	Shared []string // so that stores reach the file
	runs   map[string]bool
	unread bool // of a process that lives nothing could be read
}

// Runs says whether a file is mapped in another way, as programs and libraries
// are; or may be, where that can't be told.
func (o OpenFiles) Runs(path string) bool { return o.unread || o.runs[path] }

// OpenFiles looks for them. Freeze the sandbox first: the list is a snapshot.
func (s *Sandbox) OpenFiles() OpenFiles { return s.mapped(s.spec.Workspace) }

// mapsOf are the mappings of a process, proc_pid_maps(5). Where its first thread has ended before the others, these have them.
func mapsOf(pid int) ([]byte, error) {
	dir := filepath.Join("/proc", strconv.Itoa(pid))
	mapped, err := os.ReadFile(filepath.Join(dir, "maps"))
	if err != nil || len(mapped) > 0 {
		return mapped, err
	}
	tasks, _ := os.ReadDir(filepath.Join(dir, "task")) // it may be gone
	for _, task := range tasks {
		if mapped, err = os.ReadFile(filepath.Join(dir, "task", task.Name(), "maps")); err == nil && len(mapped) > 0 {
			return mapped, nil
		}
	}
	return nil, nil
}

// mapped is OpenFiles for any folder inside.
func (s *Sandbox) mapped(folder string) OpenFiles {
	shared, o := map[string]bool{}, OpenFiles{runs: map[string]bool{}}
	for _, pid := range s.pids() {
		mapped, err := mapsOf(pid)
		// A process that ended has none.
		o.unread = o.unread || err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ESRCH)
		for line := range bytes.Lines(mapped) {
			// address perms offset dev inode path, proc_pid_maps(5)
			fields := strings.SplitN(strings.TrimSuffix(string(line), "\n"), " ", 6)
			if len(fields) < 6 || len(fields[1]) != 4 {
				continue
			}
			path, ok := strings.CutPrefix(strings.ReplaceAll(strings.TrimLeft(fields[5], " "), `\012`, "\n"), folder+"/")
			switch {
			case !ok:
			case fields[1][3] != 's':
				o.runs[path] = true
			case fields[1][1] == 'w':
				shared[path] = true
			}
		}
	}
	o.Shared = slices.Sorted(maps.Keys(shared))
	return o
}
