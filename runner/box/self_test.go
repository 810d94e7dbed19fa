package box

import (
	"fmt"
	"os"
	"os/exec"
	"testing"

	"stepbox/session/e2e/must"
)

// What a process with many files open gives a child doesn't take the place of the program
// that the child is to run.
func TestSelfBesideManyFiles(t *testing.T) {
	self, err := Self()
	must.OK(t, err)
	var open []*os.File
	for range 600 {
		f, err := os.Open(os.DevNull)
		must.OK(t, err)
		defer f.Close()
		open = append(open, f)
	}
	for _, f := range open[:20] { // for the pipe that exec.Cmd makes, which then moves beyond all that the child has
		f.Close()
	}
	for _, f := range open[230:260] {
		if f.Fd() < 253 || f.Fd() > 257 { // the lowest that the program's own could have
			continue
		}
		cmd := exec.Command(fmt.Sprintf("/proc/self/fd/%d", self.Fd()), "-test.run=^$")
		cmd.ExtraFiles = []*os.File{f}
		if err := cmd.Run(); err != nil {
			t.Fatalf("with file %d: %v", f.Fd(), err)
		}
	}
}
