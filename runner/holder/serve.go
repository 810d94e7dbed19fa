package holder

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"stepbox/runner/seqpacket"
)

// The descriptors that a supervisor hands over.
const (
	controlFD = 3
	lockFD    = 4 // the run-time folder's lock, held for as long as one of the two lives
	aliveFD   = 5 // what shows others that one of them does, held as long
)

// cleanLimit bounds what a holder takes to end a sandbox whose supervisor went.
const cleanLimit = 10 * time.Second

// Ops is what a holder does by code of other packages.
type Ops struct {
	// Link makes the sandbox's only way out, on a locked thread in the sandbox's
	// network namespace: what describes it, and its descriptors.
	Link func() (any, []*os.File, error)
	// Open opens what an asker for a path below a folder wants: without
	// following links, and without anything that could block.
	Open func(root *os.File, path string) (*os.File, error)
	// Restore carries a plan out on the project as the sandbox sees it, with
	// contents that the supervisor writes into a pipe. The report becomes JSON.
	Restore func(ctx context.Context, project *os.File, plan []byte, contents *os.File) (any, error)
}

// Main is a holder. It never returns.
func Main(ops Ops) {
	if err := intended(); err != nil {
		fmt.Fprintln(os.Stderr, "stepbox: holder is a helper that a session starts by itself:", err)
		os.Exit(2)
	}
	// Not dumpable: a process of the sandbox has the same uid and, should it ever
	// get capabilities in the user namespace, still can't look into this one.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		os.Exit(3)
	}
	_ = unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
	signal.Ignore(unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGPIPE)
	unix.CloseOnExec(lockFD)
	unix.CloseOnExec(aliveFD)
	conn, err := seqpacket.New(controlFD)
	if err != nil {
		os.Exit(3)
	}
	h := &server{ops: ops, pidfd: -1}
	h.ready = loopback()
	share()
	_ = newPeer(conn, h.handle).serve(context.Background())
	h.clean()
	os.Exit(0)
}

// intended checks that this process is what a supervisor makes: its child, with
// a socket that it made, in a user namespace with one id mapped.
func intended() error {
	conn, err := seqpacket.New(dup(controlFD))
	if err != nil {
		return errors.New("there is no control socket")
	}
	defer conn.Close()
	peer, err := conn.Peer()
	if err != nil || int(peer.Pid) != os.Getppid() {
		return errors.New("its parent didn't make the control socket")
	}
	for _, name := range []string{"uid_map", "gid_map"} {
		text, err := os.ReadFile("/proc/self/" + name)
		fields := strings.Fields(string(text))
		if err != nil || len(fields) != 3 || fields[0] != "0" || fields[2] != "1" {
			return errors.New("it isn't in a user namespace of its own")
		}
	}
	return nil
}

func dup(fd int) int {
	copied, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 10)
	if err != nil {
		return -1
	}
	return copied
}

// loopback brings lo up in the sandbox's network namespace.
func loopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("cannot bring lo up: %w", err)
	}
	defer unix.Close(fd)
	request, err := unix.NewIfreq("lo")
	if err == nil {
		request.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
		err = unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, request)
	}
	if err != nil {
		return fmt.Errorf("cannot bring lo up: %w", err)
	}
	return nil
}

// share leaves half of the inotify instances and watches that the kernel lets this user have
// to whatever else is theirs: without watches of its own no session starts. It is the user
// namespace's limit (namespaces(7), /proc/sys/user). Where it can't be set the sandbox may
// have all, and what fails for it says so.
func share() {
	for _, kind := range []string{"instances", "watches"} {
		text, err := os.ReadFile("/proc/sys/fs/inotify/max_user_" + kind)
		most, bad := strconv.Atoi(strings.TrimSpace(string(text)))
		if err == nil && bad == nil {
			_ = os.WriteFile("/proc/sys/user/max_inotify_"+kind, strconv.AppendInt(nil, int64(max(1, most/2)), 10), 0)
		}
	}
}

// server is the holder's side.
type server struct {
	ops   Ops
	ready error // why this holder is of no use; answers hello

	mu    sync.Mutex
	guard Guard // guarded by mu
	pidfd int   // guarded by mu; of PID 1, -1 before there is one
}

func (h *server) clean() {
	h.mu.Lock()
	defer h.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), cleanLimit)
	defer cancel()
	if err := h.guard.Clean(ctx, h.pidfd); err != nil {
		fmt.Fprintln(os.Stderr, "stepbox holder:", err)
	}
}

func (h *server) handle(ctx context.Context, op string, body json.RawMessage, files []*os.File) (any, []*os.File, error) {
	switch op {
	case opGuard:
		return nil, nil, h.setGuard(body, files)
	case opRestore:
		report, err := h.restore(ctx, body, files)
		return report, nil, err
	}
	closeAll(files)
	switch op {
	case opHello:
		return nil, nil, h.ready
	case opProbe:
		return nil, nil, probe(body)
	case opLayers:
		out, err := layers(body)
		return out, nil, err
	case opLink:
		return h.ops.Link()
	case opOpen:
		return one(h.open(body))
	case opSocket:
		return one(socket(body))
	case opIPC:
		var request sharedRequest
		if err := json.Unmarshal(body, &request); err != nil {
			return nil, nil, err
		}
		_, pidfd := h.first()
		return nil, nil, boundIPC(pidfd, request.Bytes)
	case opAnchor:
		var request anchorRequest
		if err := json.Unmarshal(body, &request); err != nil {
			return nil, nil, err
		}
		_, pidfd := h.first()
		return nil, nil, anchor(pidfd, request.Folders)
	case opSegments:
		_, pidfd := h.first()
		n, err := segments(pidfd)
		return sharedRequest{n}, nil, err
	case opView:
		var request projectRequest
		if err := json.Unmarshal(body, &request); err != nil {
			return nil, nil, err
		}
		return one(h.project(request.Project))
	}
	return nil, nil, fmt.Errorf("there is no operation %q", op)
}

// socket is not connected, nor bound.
func socket(body json.RawMessage) (*os.File, error) {
	var request socketRequest
	if err := json.Unmarshal(body, &request); err != nil {
		return nil, err
	}
	if request.Family != unix.AF_INET && request.Family != unix.AF_INET6 {
		return nil, fmt.Errorf("there are no sockets of family %d", request.Family)
	}
	fd, err := unix.Socket(request.Family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("cannot make a socket in the sandbox: %w", err)
	}
	return os.NewFile(uintptr(fd), "socket"), nil
}

func one(file *os.File, err error) (any, []*os.File, error) {
	if err != nil {
		return nil, nil, err
	}
	return nil, []*os.File{file}, nil
}

func (h *server) setGuard(body json.RawMessage, files []*os.File) error {
	var guard Guard
	if err := json.Unmarshal(body, &guard); err != nil {
		closeAll(files)
		return err
	}
	pidfd := -1
	if len(files) == 1 {
		fd, err := unix.FcntlInt(files[0].Fd(), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			closeAll(files)
			return err
		}
		pidfd = fd
	}
	closeAll(files)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.pidfd >= 0 {
		unix.Close(h.pidfd)
	}
	h.guard, h.pidfd = guard, pidfd
	return nil
}

// restore carries a plan out through the merged mount of the sandbox, so that
// its kernel-side state stays in step with its layers.
func (h *server) restore(ctx context.Context, body json.RawMessage, files []*os.File) (any, error) {
	defer closeAll(files)
	var request projectRequest
	if err := json.Unmarshal(body, &request); err != nil {
		return nil, err
	}
	if len(files) != 2 {
		return nil, errors.New("the plan or its contents are missing")
	}
	plan, err := readAll(files[0])
	if err != nil {
		return nil, err
	}
	project, err := h.project(request.Project)
	if err != nil {
		return nil, err
	}
	defer project.Close()
	return h.ops.Restore(ctx, project, plan, files[1])
}

// first is the sandbox's first process, -1 before there is one.
func (h *server) first() (pid, pidfd int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.guard.PID, h.pidfd
}

// project opens a folder as the sandbox sees it. The agent may move what is
// below the project's root, but neither the root nor what is above it.
func (h *server) project(path string) (*os.File, error) {
	pid, pidfd := h.first()
	if pidfd < 0 {
		return nil, errors.New("there is no sandbox")
	}
	root, err := unix.Open("/proc/"+strconv.Itoa(pid)+"/root", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("cannot open the sandbox's files: %w", err)
	}
	defer unix.Close(root)
	// The number could have become another process's; not while this one lives.
	if err := unix.PidfdSendSignal(pidfd, 0, nil, 0); err != nil {
		return nil, fmt.Errorf("cannot open the sandbox's files: %w", err)
	}
	fd, err := unix.Openat2(root, strings.TrimPrefix(filepath.Clean(path), "/"), &unix.OpenHow{
		Flags:   unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	})
	if err != nil {
		return nil, fmt.Errorf("cannot open the project in the sandbox: %w", err)
	}
	return os.NewFile(uintptr(fd), path), nil
}

// open opens what is below a folder that the caller's uid alone may not read,
// as a file of mode 000 is. The agent chose all of the names and may change
// them meanwhile.
func (h *server) open(body json.RawMessage) (*os.File, error) {
	var request openRequest
	if err := json.Unmarshal(body, &request); err != nil {
		return nil, err
	}
	fd, err := unix.Open(request.Root, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: request.Root, Err: err}
	}
	root := os.NewFile(uintptr(fd), request.Root)
	defer root.Close()
	return h.ops.Open(root, string(request.Path))
}
