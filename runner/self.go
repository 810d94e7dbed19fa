package runner

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"stepbox/runner/box"
	"stepbox/runner/gate"
	"stepbox/runner/pid1"
)

// SelfPath is where a sandbox has this program, for hooks and the like, which its
// agent starts. What it may do there is up to who judges programs; see Sandbox.Self.
const SelfPath = pid1.ProgramDir + "/stepbox"

// Self is this program as the sandbox has it: a file of the same device, inode, size
// and time is it, and nothing in the sandbox can make one. Known is false when it
// hasn't any.
func (s *Sandbox) Self() (file gate.File, known bool) { return s.self, s.self.Ino != 0 }

// withSelf is what is shown, with this program. The kernel binds no memfd (it isn't
// of any mount namespace), so it is the file that the memfd was made of, or a copy.
func (s *Sandbox) withSelf() ([]box.Bind, error) {
	inRun := slices.ContainsFunc(s.spec.Binds, func(b Bind) bool { return b.Target == "/run" })
	if s.spec.Self == "" || inRun {
		return s.spec.Binds, nil
	}
	path, err := filepath.EvalSymlinks(s.spec.Self)
	if err == nil {
		s.self, err = program(path)
	}
	if err != nil {
		path = filepath.Join(s.dir, "self")
		if err = copySelf(path); err == nil {
			s.self, err = program(path)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("cannot show this program in the sandbox: %w", err)
	}
	binds := append(slices.Clone(s.spec.Binds), Bind{Source: path, Target: SelfPath})
	for _, name := range s.spec.SelfAs {
		binds = append(binds, Bind{Source: path, Target: filepath.Join(filepath.Dir(SelfPath), name)})
	}
	return binds, nil
}

// program looks at a file that everybody may run, as whom it likes.
func program(path string) (gate.File, error) {
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return gate.File{}, err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG || st.Mode&0o100 == 0 || st.Mode&(unix.S_ISUID|unix.S_ISGID) != 0 {
		return gate.File{}, errors.New("it isn't a program")
	}
	return gate.File{Path: SelfPath, Dev: st.Dev, Ino: st.Ino, Size: st.Size, Changed: time.Unix(st.Ctim.Unix())}, nil
}

func copySelf(path string) error {
	self, err := box.Self()
	if err != nil {
		return err
	}
	info, err := self.Stat()
	if err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o500)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, io.NewSectionReader(self, 0, info.Size()))
	return errors.Join(err, file.Close())
}
