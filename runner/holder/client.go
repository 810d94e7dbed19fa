// Package holder is the supervisor's helper that owns a sandbox's user and
// network namespace: root there, and outside of the sandbox's pid namespace and
// cgroups, where no process of the sandbox can see or signal it.
//
// It does what takes rights in the user namespace and must never be done among
// hostile processes: making the link and sockets in the sandbox's network,
// opening files that the caller's uid alone can't, restoring files through the
// merged mount. And it outlives its supervisor just long enough to end the
// sandbox and remove what it leaves.
//
// The holder is this program re-executed; Main is its side, Holder is the
// supervisor's, and both trust each other. A Holder may be used from several
// goroutines; its operations run side by side.
package holder

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"stepbox/runner/seqpacket"
)

const (
	opHello   = "hello"
	opProbe   = "probe"
	opLayers  = "layers"
	opGuard   = "guard"
	opLink    = "link"
	opOpen    = "open"
	opRestore = "restore"
	opView    = "view"
	opSocket  = "socket"
	opIPC     = "ipc"

	opSegments = "segments"
	opAnchor   = "anchor"
)

type (
	openRequest struct {
		Root string
		Path []byte
	}
	probeRequest  struct{ Dir string }
	layersRequest struct {
		Empty   string
		Folders []string
	}
	layersAnswer   struct{ Refused []string } // one for each folder, "" for none
	projectRequest struct{ Project string }   // a path inside
	socketRequest  struct{ Family int }
	sharedRequest  struct{ Bytes int64 } // also an answer
	anchorRequest  struct{ Folders []string }
)

// Holder is the supervisor's side of a running holder.
type Holder struct {
	PID int

	peer   *peer
	cmd    *exec.Cmd
	served chan struct{} // closed once nothing comes from the holder any more
}

// Start makes a holder by command, this program's sealed copy, to be told what
// it is. Its namespaces exist at once; Ready says whether they can be used. It
// keeps lock open for as long as it lives, and alive unless that is nil; the caller
// keeps copies of its own.
func Start(cmd *exec.Cmd, lock, alive *os.File) (*Holder, error) {
	conn, theirs, err := seqpacket.Pair()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	cmd.Dir = "/"
	cmd.Env = []string{"GOMAXPROCS=2", "GORACE=" + os.Getenv("GORACE")} // the latter is for a build with the race detector
	cmd.Stderr = os.Stderr
	cmd.ExtraFiles = []*os.File{theirs, lock, alive}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
		Setsid:      true,
	}
	if err := cmd.Start(); err != nil {
		conn.Close()
		return nil, fmt.Errorf("cannot make a user namespace for the sandbox: %w", err)
	}
	h := &Holder{PID: cmd.Process.Pid, cmd: cmd, served: make(chan struct{})}
	h.peer = newPeer(conn, nil)
	go func() {
		_ = h.peer.serve(context.Background())
		close(h.served)
	}()
	return h, nil
}

// Ready waits until the holder answers, and says why it can't be used.
func (h *Holder) Ready(ctx context.Context) error {
	if _, err := h.peer.call(ctx, opHello, nil, nil); err != nil {
		return fmt.Errorf("cannot use the sandbox's user namespace: %w", err)
	}
	return nil
}

// Close tells the holder to end the sandbox and clean up, and waits until it
// has. Calls that still run fail. One that doesn't get there, since it is stopped
// or stuck, is killed: the caller cleans up what it leaves.
func (h *Holder) Close() error {
	h.peer.conn.Close()
	late := time.AfterFunc(2*CloseTimeout, func() { _ = h.cmd.Process.Kill() }) // it may just have ended
	defer late.Stop()
	<-h.served
	err := h.cmd.Wait()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return fmt.Errorf("the session's holder failed: %w", err)
	}
	return err
}

// Gone is closed once the holder doesn't answer any more.
func (h *Holder) Gone() <-chan struct{} { return h.served }

// SetGuard tells what has to go with the sandbox; it replaces what was told
// before. pidfd is PID 1's, nil before there is one.
func (h *Holder) SetGuard(ctx context.Context, guard Guard, pidfd *os.File) error {
	var files []*os.File
	if pidfd != nil {
		files = append(files, pidfd)
	}
	_, err := h.peer.call(ctx, opGuard, guard, nil, files...)
	return err
}

// Link makes the sandbox's link and decodes its description into link.
func (h *Holder) Link(ctx context.Context, link any) ([]*os.File, error) {
	files, err := h.peer.call(ctx, opLink, nil, link)
	if err != nil {
		return nil, fmt.Errorf("cannot link the sandbox's network: %w", err)
	}
	return files, nil
}

// Open opens what path names below root, a host path, where the caller's own
// rights don't reach. The path may hold any bytes, and is Ops.Open's to read.
func (h *Holder) Open(ctx context.Context, root, path string) (*os.File, error) {
	return h.file(ctx, opOpen, openRequest{Root: root, Path: []byte(path)})
}

// View opens the project, a path inside, as the sandbox sees it.
func (h *Holder) View(ctx context.Context, project string) (*os.File, error) {
	return h.file(ctx, opView, projectRequest{project})
}

// Socket makes a TCP socket of a family, AF_INET or AF_INET6, in the sandbox's network.
func (h *Holder) Socket(ctx context.Context, family int) (*os.File, error) {
	return h.file(ctx, opSocket, socketRequest{family})
}

// BoundIPC bounds the System V shared memory of the sandbox, whose guard is set.
func (h *Holder) BoundIPC(ctx context.Context, bytes int64) error {
	_, err := h.peer.call(ctx, opIPC, sharedRequest{bytes}, nil)
	return err
}

// Anchor has folders of the sandbox, by its paths, be mounts of themselves, each before those in it.
func (h *Holder) Anchor(ctx context.Context, folders []string) error {
	_, err := h.peer.call(ctx, opAnchor, anchorRequest{folders}, nil)
	return err
}

// Segments is how many bytes the System V shared memory of the sandbox has, attached or not.
func (h *Holder) Segments(ctx context.Context) (int64, error) {
	var out sharedRequest
	_, err := h.peer.call(ctx, opSegments, nil, &out)
	return out.Bytes, err
}

// ProbeOverlay mounts an overlay with an empty lower folder and an upper folder
// below dir, which has to be empty but for hidden names, and works in it. The
// mount goes with the holder.
func (h *Holder) ProbeOverlay(ctx context.Context, dir string) error {
	_, err := h.peer.call(ctx, opProbe, probeRequest{dir}, nil)
	return err
}

// ProbeLayers says, for each folder, why the kernel doesn't take it as a layer of
// a read-only overlay behind the empty folder; "" where it does.
func (h *Holder) ProbeLayers(ctx context.Context, empty string, folders []string) ([]string, error) {
	var out layersAnswer
	if _, err := h.peer.call(ctx, opLayers, layersRequest{empty, folders}, &out); err != nil {
		return nil, err
	}
	if len(out.Refused) != len(folders) {
		return nil, errors.New("the holder answered another question")
	}
	return out.Refused, nil
}

func (h *Holder) file(ctx context.Context, op string, request any) (*os.File, error) {
	files, err := h.peer.call(ctx, op, request, nil)
	if err != nil {
		return nil, err
	}
	if len(files) != 1 {
		closeAll(files)
		return nil, errors.New("the holder gave no file")
	}
	return files[0], nil
}

// Restore carries an encoded plan out on the project, a path inside, with what
// Ops.Restore reads from contents, and decodes the report.
func (h *Holder) Restore(ctx context.Context, project string, plan []byte, contents *os.File, report any) error {
	file, err := memory(plan)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = h.peer.call(ctx, opRestore, projectRequest{project}, report, file, contents)
	return err
}

// memory is an anonymous file that holds data, positioned at its start.
func memory(data []byte) (*os.File, error) {
	fd, err := unix.MemfdCreate("stepbox", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("cannot make a memfd: %w", err)
	}
	file := os.NewFile(uintptr(fd), "memory")
	_, err = file.Write(data)
	if err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("cannot fill a memfd: %w", err)
	}
	return file, nil
}

// readAll reads a file from its start, whatever its position is.
func readAll(file *os.File) ([]byte, error) {
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.NewSectionReader(file, 0, info.Size()))
}

// CloseTimeout bounds what callers should give a Close before they clean up
// themselves.
const CloseTimeout = 2 * time.Second
