package runner

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"stepbox/runner/box"
	"stepbox/runner/overlay/restore"
)

// OpenHome is OpenUpper for a home's HomeUpper.
func (s *Sandbox) OpenHome(ctx context.Context, rel string) (*os.File, error) {
	return s.holder.Open(ctx, s.spec.HomeUpper, rel)
}

// RestoreHome is Restore for a home with a HomeUpper. Nothing may be restored where
// something is mounted, or above that: see HomeUse.
func (s *Sandbox) RestoreHome(ctx context.Context, plan *restore.Plan, source restore.Source) (restore.Report, error) {
	return s.restore(ctx, s.spec.HomeTarget, plan, source)
}

// HomeUse is what of the home is in use, as paths below it, sorted.
type HomeUse struct {
	// Written are files that processes of the agent's tree can store to just now.
	Written []string
	// Mounts are where something of the host's, such as the project, is mounted in the
	// home. The holder is in another mount namespace, from where taking away what something
	// is mounted on takes the mount away with it, mount_namespaces(7).
	Mounts []string
}

// HomeUse looks for it. It is a snapshot.
func (s *Sandbox) HomeUse() (HomeUse, error) {
	var out HomeUse
	mounts, err := box.MountsBelow(s.box.PID, s.spec.HomeTarget)
	if err != nil {
		return out, fmt.Errorf("cannot tell what is mounted in the home: %w", err)
	}
	prefix := s.spec.HomeTarget + "/"
	for _, m := range mounts {
		out.Mounts = append(out.Mounts, strings.TrimPrefix(m, prefix))
	}
	out.Written = s.mapped(s.spec.HomeTarget).Shared
	for _, pid := range s.pids() {
		proc := filepath.Join("/proc", strconv.Itoa(pid))
		open, _ := os.ReadDir(filepath.Join(proc, "fd")) // it may have ended, and this only warns
		for _, fd := range open {
			path, err := os.Readlink(filepath.Join(proc, "fd", fd.Name()))
			rel, in := strings.CutPrefix(path, prefix)
			if err == nil && in && writable(filepath.Join(proc, "fdinfo", fd.Name())) {
				out.Written = append(out.Written, rel)
			}
		}
	}
	slices.Sort(out.Written)
	out.Written = slices.Compact(out.Written)
	return out, nil
}

// writable says by a file of fdinfo, proc_pid_fdinfo(5), whether one is open for writing.
func writable(info string) bool {
	text, _ := os.ReadFile(info)
	for line := range bytes.Lines(text) {
		if octal, ok := strings.CutPrefix(string(line), "flags:"); ok {
			flags, err := strconv.ParseUint(strings.TrimSpace(octal), 8, 64)
			return err == nil && flags&unix.O_ACCMODE != unix.O_RDONLY && flags&unix.O_PATH == 0
		}
	}
	return false
}
