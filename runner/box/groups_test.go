package box

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// agentCgroups makes a box's cgroups in one mounted hierarchy, whatever the host
// would use by itself.
func agentCgroups(t *testing.T, unified bool) *Cgroups {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root may make cgroups here")
	}
	all, err := hierarchies()
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(all, func(h hierarchy) bool {
		return h.unified && unified || !unified && slices.Contains(h.controllers, "freezer")
	})
	if i < 0 {
		t.Skip("the host has no such hierarchy")
	}
	folder := filepath.Join(all[i].own, cgroupName("groups"+strconv.Itoa(os.Getpid())))
	c := &Cgroups{folders: map[string]string{"freezer": folder}, freezer: filepath.Join(folder, agentFolder), unified: unified}
	if err := os.MkdirAll(c.freezer, 0o755); err != nil {
		t.Skipf("no cgroup may be made here: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		defer cancel()
		if err := c.Remove(ctx); err != nil {
			t.Error(err)
		}
	})
	return c
}

func groupOf(t *testing.T, c *Cgroups, pid int) string {
	t.Helper()
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cgroup")
	if err != nil {
		t.Fatal(err)
	}
	return c.GroupIn(text)
}

// What a process of a group starts is in it too, also once its parent is gone;
// it is frozen with the agent's tree, and a group goes when it is empty.
func TestGroups(t *testing.T) {
	for name, unified := range map[string]bool{"v1": false, "v2": true} {
		t.Run(name, func(t *testing.T) {
			c := agentCgroups(t, unified)
			cmd := exec.Command("sh", "-c", "read x; (sh -c 'echo $$; exec sleep 600' &); read x")
			in, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			ended := false
			end := func() {
				if !ended {
					ended = true
					in.Close()
					_ = cmd.Process.Kill()
					_ = cmd.Wait()
				}
			}
			defer end()
			if err := enter(c.freezer, cmd.Process.Pid); err != nil {
				t.Fatal(err)
			}
			if g := groupOf(t, c, cmd.Process.Pid); g != "" {
				t.Errorf("before it entered one, its group is %q", g)
			}
			if err := c.EnterGroup("7-1", cmd.Process.Pid); err != nil {
				t.Fatal(err)
			}
			if _, err := in.Write([]byte("\n")); err != nil {
				t.Fatal(err)
			}
			var b [32]byte
			n, err := out.Read(b[:])
			if err != nil {
				t.Fatal(err)
			}
			orphan, err := strconv.Atoi(string(b[:n-1]))
			if err != nil {
				t.Fatal(err)
			}
			end()
			defer unix.Kill(orphan, unix.SIGKILL)
			if g := groupOf(t, c, orphan); g != "7-1" {
				t.Errorf("an orphan's group is %q, want that of what started it", g)
			}
			if pids := c.GroupProcesses("7-1"); !slices.Equal(pids, []int{orphan}) {
				t.Errorf("in the group are %v, want %d", pids, orphan)
			}
			if pids, groups, _ := c.Processes(); !slices.Equal(pids, []int{orphan}) || groups[orphan] != "7-1" {
				t.Errorf("in the agent's tree are %v, in groups %v, want %d", pids, groups, orphan)
			}
			if c.DropGroup("7-1") {
				t.Error("a group was removed that has a process")
			}
			if err := c.Freeze(true); err != nil {
				t.Fatal(err)
			}
			var settling Settling
			wait(t, "the tree to be frozen", func() bool {
				frozen, err := c.Frozen(nil, &settling)
				return err == nil && frozen
			})
			if err := c.Freeze(false); err != nil {
				t.Fatal(err)
			}
			if err := unix.Kill(orphan, unix.SIGKILL); err != nil {
				t.Fatal(err)
			}
			wait(t, "the empty group to be removed", func() bool { return c.DropGroup("7-1") })
			if err := os.Mkdir(filepath.Join(c.freezer, "8-1"), 0o755); err != nil {
				t.Fatal(err) // one that is left for Remove
			}
		})
	}
}

func wait(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); !is(); <-time.After(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited for %s in vain", what)
		}
	}
}

// Nobody is taken for one of a group by a cgroup of another box, or by another
// hierarchy's.
func TestGroupInIsExact(t *testing.T) {
	c := &Cgroups{freezer: "/sys/fs/cgroup/freezer/" + cgroupName("x") + "/" + agentFolder}
	own := "/" + cgroupName("x") + "/" + agentFolder
	for text, want := range map[string]string{
		"5:freezer:" + own + "/3-1\n":                          "3-1",
		"6:freezer:/docker/a" + own + "/3-1\n":                 "3-1",
		"5:freezer:" + own + "\n":                              "",
		"5:memory:" + own + "/3-1\n0::" + own + "/3-1\n":       "",
		"5:freezer:/" + cgroupName("y") + "/agent/3-1\n":       "",
		"5:freezer:/\n":                                        "",
		"5:cpu,freezer:" + own + "/12-4\n0::" + own + "/3-1\n": "12-4",
	} {
		if got := c.GroupIn([]byte(text)); got != want {
			t.Errorf("%q is in group %q, want %q", text, got, want)
		}
	}
}
