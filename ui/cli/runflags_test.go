package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"stepbox/session/api"
	"stepbox/session/e2e/must"
	"stepbox/ui/config"
)

// A flag goes over the settings, these over what is usual; folders are those of both.
func TestRunFlagsGoOverTheSettings(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.yaml")
	must.OK(t, os.WriteFile(file, []byte("mode: step\non-ask: deny\nown-questions: off\ncaches: off\nadd-dir: [/lib/a]\nlimits:\n  memory: 1G\n  cpus: 2\n"), 0o600))
	c := config.Load(func(name string) string { return map[string]string{"STEPBOX_CONFIG": file}[name] })
	if len(c.Warnings) > 0 {
		t.Fatal(c.Warnings)
	}
	f := RunSettings(c)
	if f.Mode != "step" || f.Memory != "1G" || f.CPUs != 2 || f.Pids != defaultPids || f.Unasked == nil || !*f.Unasked || !f.NoCaches ||
		!slices.Equal(f.Dirs, []string{"/lib/a"}) || !slices.Equal(f.Usual, []string{"pids", "disk", "wall-time"}) {
		t.Errorf("by the settings it is %+v", f)
	}
	if a, err := f.Asking.Asking(); err != nil || a.On != api.OnAskDeny || !strings.Contains(a.By, "on-ask") {
		t.Errorf("questions are %+v, %v", a, err)
	}

	f = RunFlags{}
	cmd := &cobra.Command{}
	f.Add(cmd)
	must.OK(t, cmd.ParseFlags([]string{"--mode", "watch", "--own-questions", "on", "--no-caches=false", "--pids", "9", "--on-ask", "wait", "--add-dir", "/b"}))
	f.Under(cmd, c)
	if f.Mode != "watch" || *f.Unasked || f.NoCaches || f.Pids != 9 || f.Asking.On != "wait" || f.Asking.By != "" || f.Memory != "1G" ||
		!slices.Equal(f.Dirs, []string{"/lib/a", "/b"}) || !slices.Equal(f.Usual, []string{"disk", "wall-time"}) {
		t.Errorf("with flags it is %+v", f)
	}
	if memory, disk, err := f.Limits(); err != nil || memory != 1<<30 || disk != 20<<30 {
		t.Errorf("the limits are %d and %d: %v", memory, disk, err)
	}
	if f.CPUs, f.cpusGiven = 0, true; !strings.Contains(errOf(f.Limits()), "no share of processors") {
		t.Error("no processor's time at all is a limit")
	}
}

func errOf(_, _ int64, err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
