package runner

import (
	"maps"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"stepbox/runner/gate"
	"stepbox/session/e2e/must"
)

// idle says whether no process that an earlier look saw has run since.
func idle(before, now []Activity) bool {
	for _, b := range before {
		i := slices.IndexFunc(now, func(a Activity) bool { return a.PID == b.PID && a.Start == b.Start })
		if b.Running || i < 0 || !maps.Equal(b.Threads, now[i].Threads) {
			return false
		}
	}
	return true
}

// TestActivity: a process that waits has run nothing, one that was woken has,
// and so has one whose first thread ended.
func TestActivity(t *testing.T) {
	run := newRig(t).start("/usr/bin/python3", "-c", `
import ctypes, threading
def rest():
    open("ready", "w").close()
    while True:
        input()
        open("woken", "a").close()
        print("woken", flush=True)
threading.Thread(target=rest).start()
print("started", flush=True)
ctypes.CDLL(None).pthread_exit(None)`)
	run.expect("started")
	look := func() []Activity {
		t.Helper()
		list, err := run.Activity()
		must.OK(t, err)
		return list
	}
	var before []Activity
	eventually(t, func() bool {
		before = look()
		return len(before) == 1 && idle(before, look()) && before[0].State == 'Z'
	}, func() string { return "it doesn't come to rest" })
	run.typeIn("\n")
	run.expect("woken")
	if idle(before, look()) {
		t.Error("it printed and is said not to have run")
	}
	p := before[0].Process
	if !run.Alive(p.PID, p.Start) {
		t.Error("it runs and is said to have ended")
	}
	for _, mark := range []uint64{gate.OwnMark, gate.OwnMark + 1} {
		if mark != gate.OwnMark {
			must.OK(t, gate.SetMark(p.PID, mark))
		}
		if got := run.Marks(); len(got) != 1 || got[mark] != 1 {
			t.Errorf("the marks are %v, want one %d", got, mark)
		}
		for _, m := range []uint64{mark, mark + 1} {
			list, err := run.Marked(func(of uint64) bool { return of == m })
			if err != nil || (m == mark) != (len(list) == 1 && list[0].PID == p.PID) {
				t.Errorf("with the mark %d are %v, %v", m, list, err)
			}
		}
		if got := look()[0].Mark; got != mark {
			t.Errorf("its mark is %d, want %d", got, mark)
		}
	}
	must.OK(t, run.Signal(p.PID, p.Start, unix.SIGKILL))
	eventually(t, func() bool { return len(look()) == 0 }, func() string { return "it lives" })
	if run.Alive(p.PID, p.Start) {
		t.Error("it was killed and is said to live")
	}
}

func TestOpenFiles(t *testing.T) {
	run := newRig(t).start("/usr/bin/python3", "-c", `
import mmap, os
names = ["open", "shared", "gone", "line\nend"]
files = [open(n, "w+b") for n in names]
for f in files: f.write(b"x" * 4096); f.flush()
m = mmap.mmap(files[1].fileno(), 4096)
files[1].close()
p = mmap.mmap(os.open("open", os.O_RDONLY), 4096, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ)
os.unlink("gone")
print("ready", flush=True)
input()`)
	run.expect("ready")
	run.freezeNow()
	files := run.OpenFiles()
	if want := []string{"shared"}; !slices.Equal(files.Shared, want) {
		t.Errorf("mapped for writing are %q, want %q", files.Shared, want)
	}
	if got := slices.Sorted(maps.Keys(files.runs)); !slices.Equal(got, []string{"open"}) || !files.Runs("open") || files.Runs("line\nend") {
		t.Errorf("mapped privately are %q", got)
	}
}
