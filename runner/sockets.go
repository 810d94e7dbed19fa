package runner

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"stepbox/runner/pid1"
	"stepbox/runner/socket"
)

// SocketPath is where the sandbox's programs find a socket of Handlers.Sockets.
func SocketPath(name string) string { return filepath.Join(pid1.SocketDir, name) }

// noSockets is said where PID 1 couldn't make them.
const noSockets = "programs in the sandbox can't speak to Stepbox (hooks, MCP): /run can't be written in it"

// sockets are the names of those that are wanted, in the order in which PID 1
// sends them.
func (h *Handlers) sockets() ([]string, error) {
	names := slices.Sorted(maps.Keys(h.Sockets))
	if len(names) > pid1.MaxSockets {
		return nil, fmt.Errorf("cannot serve %d sockets to a sandbox: at most %d", len(names), pid1.MaxSockets)
	}
	for _, name := range names {
		if !validID(name) {
			return nil, fmt.Errorf("cannot use %q as a socket's name", name)
		}
	}
	return names, nil
}

// serveSockets begins to answer at them. It owns the files.
func (s *Sandbox) serveSockets(files []*os.File, h *Handlers, names []string) error {
	if len(files) == 0 && len(names) > 0 {
		s.box.Notes = append(s.box.Notes, noSockets)
		return nil
	}
	for i, file := range files {
		server, err := socket.New(file, h.Sockets[names[i]])
		if err != nil {
			closeFiles(files[i+1:])
			return err
		}
		s.servers = append(s.servers, server)
	}
	return nil
}

func (s *Sandbox) closeSockets() {
	for _, server := range s.servers {
		_ = server.Close()
	}
}
