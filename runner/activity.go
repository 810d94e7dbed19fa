package runner

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"stepbox/runner/box"
	"stepbox/runner/gate"
)

// Activity is one process of the agent's tree, and what it had done by the time
// that it was looked at.
type Activity struct {
	Process
	Group   int            // process group
	Within  string         // the group that it was put into, as EnterGroup names it; "": in none
	Threads map[int]string // what each had run, by thread id
	Running bool           // one of them ran at that moment
}

// Activity looks at all processes of the agent's tree. A thread whose text is
// the same in two looks, and that wasn't running at the first, ran nothing in
// between: the text counts how often it was given a processor.
func (s *Sandbox) Activity() ([]Activity, error) {
	var list []Activity
	for _, pid := range s.pids() {
		a := Activity{Threads: make(map[int]string), Within: s.groups.name(gate.MarkOf(pid))}
		for _, thread := range box.Threads(pid) {
			// The count comes first: what runs after it was read counts
			// for the next look.
			ran, state := box.Ran(pid, thread)
			a.Threads[thread] = ran
			a.Running = a.Running || state == 'R'
		}
		status, runs, err := look(pid)
		if err != nil {
			return nil, err
		}
		if runs {
			a.Group, a.Process = status.Group, process(status)
			list = append(list, a)
		}
	}
	return list, nil
}

// OpenFiles are files of the project that processes of the agent's tree hold,
// as paths below the project.
type OpenFiles struct {
	Open    []string // by a descriptor
	Shared  []string // mapped so that stores reach the file
	Private []string // mapped otherwise, as programs and libraries are
}

// OpenFiles looks for them. Freeze the sandbox first: the list is a snapshot.
// What can't be looked at, as a process that ends, holds nothing that is found.
func (s *Sandbox) OpenFiles() OpenFiles {
	project := s.spec.Workspace
	var open, shared, private pathSet
	for _, pid := range s.pids() {
		dir := filepath.Join("/proc", strconv.Itoa(pid))
		names, _ := os.ReadDir(filepath.Join(dir, "fd"))
		for _, name := range names {
			if target, err := os.Readlink(filepath.Join(dir, "fd", name.Name())); err == nil {
				open.add(project, target)
			}
		}
		maps, err := os.ReadFile(filepath.Join(dir, "maps"))
		if err != nil {
			continue
		}
		for line := range bytes.Lines(maps) {
			// address perms offset dev inode path, proc_pid_maps(5)
			fields := strings.SplitN(strings.TrimSuffix(string(line), "\n"), " ", 6)
			if len(fields) < 6 || len(fields[1]) != 4 {
				continue
			}
			path := strings.ReplaceAll(strings.TrimLeft(fields[5], " "), `\012`, "\n")
			switch {
			case fields[1][3] != 's':
				private.add(project, path)
			case fields[1][1] == 'w':
				shared.add(project, path)
			default:
				open.add(project, path)
			}
		}
	}
	return OpenFiles{Open: open.list, Shared: shared.list, Private: private.list}
}

// pathSet gathers paths below a folder, each once.
type pathSet struct {
	seen map[string]bool
	list []string
}

func (p *pathSet) add(folder, path string) {
	rel, ok := strings.CutPrefix(path, folder+"/")
	if !ok || p.seen[rel] {
		return
	}
	if p.seen == nil {
		p.seen = make(map[string]bool)
	}
	p.seen[rel] = true
	p.list = append(p.list, rel)
}
