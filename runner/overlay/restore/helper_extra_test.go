package restore

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// What single tests ask of the helper beside the usual.
type extras struct {
	swaps  func() int
	held   map[string]*os.File
	mapped map[string][]byte
	procs  map[string]*exec.Cmd
}

func (s *served) extra(q request, r *response) error {
	x := &s.extras
	path := filepath.Join(q.Merged, q.Path)
	switch q.Op {
	case "storm":
		return storm(q.Merged, q.Path, q.Half)
	case "swap":
		x.swaps = swapper(filepath.Join(q.Merged, q.Swap), path)
		return nil
	case "unswap":
		r.Data = make([]byte, min(x.swaps(), 100))
		return nil
	case "cover":
		return unix.Mount("tmpfs", path, "tmpfs", 0, "")
	case "uncover":
		return unix.Unmount(path, 0)
	case "hold": // open for appending, as a logger does
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
		if x.held == nil {
			x.held = map[string]*os.File{}
		}
		x.held[q.Path] = f
		return err
	case "held write":
		_, err := x.held[q.Path].WriteString("late")
		return err
	case "held close":
		return x.held[q.Path].Close()
	case "lease": // whoever opens it for writing has to wait for its holder, who does nothing
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		if x.held == nil {
			x.held = map[string]*os.File{}
		}
		x.held[q.Path] = f
		_, err = unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_RDLCK)
		return err
	case "map": // writable and shared
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			return err
		}
		defer f.Close()
		b, err := unix.Mmap(int(f.Fd()), 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		if x.mapped == nil {
			x.mapped = map[string][]byte{}
		}
		x.mapped[q.Path] = b
		return err
	case "store":
		x.mapped[q.Path][0]++
		return nil
	case "unmap":
		return unix.Munmap(x.mapped[q.Path])
	case "run": // a program from the merged view, until "stop"
		self, err := os.ReadFile("/proc/self/exe")
		if err != nil {
			return err
		}
		if err := os.WriteFile(path, self, 0o755); err != nil {
			return err
		}
		cmd := exec.Command(path)
		cmd.Env = []string{helperEnv + "=wait", "GORACE=" + os.Getenv("GORACE")}
		in, err := cmd.StdinPipe()
		if err != nil {
			return err
		}
		_ = in // closed with the helper, or by Wait
		out, err := cmd.StdoutPipe()
		if err != nil {
			return err
		}
		if err := cmd.Start(); err != nil {
			return err
		}
		if _, err := out.Read(make([]byte, 1)); err != nil {
			return err
		}
		if x.procs == nil {
			x.procs = map[string]*exec.Cmd{}
		}
		x.procs[q.Path] = cmd
		return nil
	case "stop":
		p := x.procs[q.Path]
		return errors.Join(p.Process.Kill(), func() error { _ = p.Wait(); return nil }())
	}
	return fmt.Errorf("unknown request %q", q.Op)
}
