package project

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"stepbox/runner/overlay/content"
	"stepbox/runner/overlay/manifest"
	"stepbox/session/e2e/must"
)

const (
	childEnv        = "STEPBOX_PROJECT_TEST_CHILD"
	unprivilegedEnv = "STEPBOX_PROJECT_TEST_UNPRIVILEGED"
	otherUID        = 12345
)

// child is this test program again, doing what a child does in a folder.
func child(t testing.TB, what, dir string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe")
	cmd.Env = append(os.Environ(), childEnv+"="+what, "DIR="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd
}

func childMain() {
	dir := os.Getenv("DIR")
	err := errors.New("no such child")
	switch what := os.Getenv(childEnv); what {
	case "full":
		err = fullChild(dir)
	default:
		var n int
		if _, serr := fmt.Sscanf(what, "die %d", &n); serr == nil {
			err = dyingChild(dir, n)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// dyingChild carries out many steps and kills itself before the nth change.
func dyingChild(dir string, n int) error {
	w := &world{root: filepath.Join(dir, "project"), bodies: newMemory()}
	w.in = Journals{Dir: filepath.Join(dir, "journals"), Bodies: w.bodies}
	from, to := allKinds(w.bodies)
	f, err := Open(w.root)
	if err != nil {
		return err
	}
	defer f.Close()
	crashed = func() {
		if n--; n < 0 {
			_ = unix.Kill(os.Getpid(), unix.SIGKILL)
			select {}
		}
	}
	_, err = f.Carry(context.Background(), w.in, "k", between(from, to), nil)
	return err
}

// A process that is really killed leaves what the next one mends, and what a
// program in the middle of its exit does makes no difference.
func TestKilledProcess(t *testing.T) {
	w := newWorld(t)
	t.Cleanup(w.clear)
	from, to := allKinds(w.bodies)
	seen := map[Phase]int{}
	for n := 3; ; n += 37 {
		w.put(from)
		err := child(t, fmt.Sprint("die ", n), filepath.Dir(w.root)).Run()
		if err == nil {
			break
		}
		got, err := w.in.Recover(t.Context())
		must.OK(t, err)
		if len(got) != 1 || got[0].Err != nil || len(got[0].Left) > 0 {
			t.Fatalf("killed at %d: recovered %+v", n, got)
		}
		want := treeFor(from)
		if got[0].Phase == Done {
			want = treeFor(to)
		}
		if d := treeOf(t, w.root).diff(want); d != "" {
			t.Fatalf("killed at %d, and it is %s:\n%s", n, got[0].Phase, d)
		}
		seen[got[0].Phase]++
		must.OK(t, w.in.Remove("k"))
	}
	if seen[Done] == 0 || seen[Failed] == 0 {
		t.Errorf("it wasn't killed on both sides of the line: %v", seen)
	}
}

// fullChild carries out steps on a disk that is too small for them, of its own.
func fullChild(dir string) error {
	w := &world{root: filepath.Join(dir, "project"), bodies: newMemory()}
	w.in = Journals{Dir: filepath.Join(dir, "journals"), Bodies: w.bodies}
	if err := unix.Mount("tmpfs", w.root, "tmpfs", 0, "size=1m,mode=0755"); err != nil {
		return err
	}
	if err := errors.Join(os.WriteFile(w.root+"/a", []byte("old"), 0o644), os.WriteFile(w.root+"/gone", []byte("old"), 0o644)); err != nil {
		return err
	}
	f, err := Open(w.root)
	if err != nil {
		return err
	}
	defer f.Close()
	ctx := context.Background()
	var steps []Step
	for p, s := range map[string]State{"a": w.bodies.file("new", 0o644), "gone": {}, "n": dirState(0o755),
		"n/small": w.bodies.file("s", 0o644), "n/zbig": w.bodies.file(strings.Repeat("x", 3<<20), 0o644)} {
		old, err := f.Look(ctx, p)
		if err != nil {
			return err
		}
		steps = append(steps, Step{p, old, s})
	}
	_, err = f.Carry(ctx, w.in, "full", steps, nil)
	if !errors.Is(err, unix.ENOSPC) || !strings.Contains(err.Error(), "the disk is full") {
		return fmt.Errorf("it said %w", err)
	}
	names, err := os.ReadDir(w.root)
	if err != nil || len(names) != 2 {
		return fmt.Errorf("left %v %w", names, err)
	}
	for _, n := range names {
		if b, err := os.ReadFile(filepath.Join(w.root, n.Name())); err != nil || string(b) != "old" {
			return fmt.Errorf("%s has %q %w", n, b, err)
		}
	}
	j, err := w.in.Read("full")
	if err == nil && j.Phase != Failed {
		err = fmt.Errorf("it is %s", j.Phase)
	}
	return err
}

// A disk that becomes full half-way: taken back, and said.
func TestFullDisk(t *testing.T) {
	w := newWorld(t)
	cmd := child(t, "full", filepath.Dir(w.root))
	cmd.SysProcAttr.Cloneflags = unix.CLONE_NEWUSER | unix.CLONE_NEWNS
	cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Geteuid(), Size: 1}}
	cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getegid(), Size: 1}}
	out, err := cmd.CombinedOutput()
	if errors.Is(err, unix.EPERM) {
		t.Skipf("no user namespace with mounts can be made here: %v", err)
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// A body that is missing or has other bytes is named with its path, all of them
// are, and the project is as it was.
func TestBodies(t *testing.T) {
	w := newWorld(t)
	w.write("a", "old", 0o644)
	w.write("b", "old b", 0o644)
	gone, wrong, large := w.bodies.file("gone", 0o644), w.bodies.file("wrong", 0o644), w.large("large", 6<<20)
	steps := w.steps(map[string]State{"a": gone, "b": wrong, "c/large": large, "c": dirState(0o755), "d": w.bodies.file("fine", 0o644)})
	before := treeOf(t, w.root)
	check := func(what, want string, n int) {
		t.Helper()
		_, res, err := w.carry(steps)
		var refused *RefusedError
		if !errors.As(err, &refused) || !strings.Contains(err.Error(), want) || len(refused.Conflicts) != n || len(res) > 0 {
			t.Errorf("%s: %v %+v", what, err, res)
		}
		if d := treeOf(t, w.root).diff(before); d != "" {
			t.Errorf("%s: written:\n%s", what, d)
		}
	}
	refs, err := content.Refs(t.Context(), w.bodies, large.Hash, large.Size)
	must.OK(t, err)
	chunk := w.bodies.bodies[refs[1]]
	delete(w.bodies.bodies, gone.Hash)
	delete(w.bodies.bodies, refs[1])
	check("two are missing", `"a" can't be written: `, 2)
	w.bodies.bodies[gone.Hash], w.bodies.bodies[refs[1]] = []byte("gonE"), append([]byte("x"), chunk[1:]...)
	w.bodies.bodies[wrong.Hash] = []byte("longer than it was")
	check("three have other bytes", `"a" can't be written`, 3)
	w.bodies.bodies[gone.Hash], w.bodies.bodies[refs[1]], w.bodies.bodies[wrong.Hash] = []byte("gone"), chunk, []byte("wrong")
	_, _, err = w.carry(steps)
	must.OK(t, err)
}

// large stores a content of that many bytes and says its state.
func (w *world) large(text string, size int64) State {
	w.t.Helper()
	path := filepath.Join(filepath.Dir(w.root), "large")
	must.OK(w.t, os.WriteFile(path, []byte(text), 0o600), os.Truncate(path, size))
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	must.OK(w.t, err)
	_, err = f.WriteAt([]byte(text+" at its end"), size-100)
	must.OK(w.t, err, f.Close())
	outer, err := Open(filepath.Dir(w.root))
	must.OK(w.t, err)
	defer outer.Close()
	s, err := outer.Keep(w.t.Context(), "large", w.bodies)
	must.OK(w.t, err, os.Remove(path))
	s.Mode = 0o644
	return s
}

// A file of 1 GiB that is mostly holes comes with its holes and costs what it
// holds; it is told how far it is, and can be cancelled in the middle.
func TestSparse(t *testing.T) {
	w := newWorld(t)
	s := w.large("start", 1<<30)
	f := w.open()
	defer f.Close()
	ctx, cancel := context.WithCancel(t.Context())
	_, err := f.Carry(ctx, w.in, "cancelled", []Step{{Path: "big", New: s}}, func(p Progress) {
		if p.Stage == "write" && p.Part > 0 {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) || len(treeOf(t, w.root)) > 0 {
		t.Errorf("cancelled: %v", err)
	}
	var last Progress
	_, err = f.Carry(t.Context(), w.in, "big", []Step{{Path: "big", New: s}}, func(p Progress) {
		if p.Stage == "write" {
			last = p
		}
	})
	must.OK(t, err)
	if last.Part != 1<<30 || last.Whole != 1<<30 {
		t.Errorf("it told %+v at last", last)
	}
	if size, used := sparse(t, filepath.Join(w.root, "big")); size != 1<<30 || used > 4<<20 {
		t.Errorf("it is %d bytes long and takes %d", size, used)
	}
	got, err := f.Look(t.Context(), "big")
	must.OK(t, err)
	if !got.Same(s) {
		t.Errorf("it is %+v, not %+v", got, s)
	}
	_, err = f.Undo(t.Context(), w.in, "big", nil)
	must.OK(t, err)
	if len(treeOf(t, w.root)) > 0 {
		t.Error("it is still there")
	}
}

// Ten thousand files cost calls that reach the disk by the folder, not by the file.
func TestManyFiles(t *testing.T) {
	const many = 3_000
	w := newWorld(t)
	news := map[string]State{}
	var steps []Step
	for i := range many {
		d := fmt.Sprintf("d%02d", i/200)
		if news[d].Absent() {
			news[d] = dirState(0o755)
			steps = append(steps, Step{Path: d, New: news[d]})
		}
		p := fmt.Sprintf("%s/f%d", d, i)
		news[p] = w.bodies.file(fmt.Sprint("content ", i), 0o644)
		steps = append(steps, Step{Path: p, New: news[p]})
	}
	w.put(nil)
	name, _, err := w.carry(steps)
	must.OK(t, err)
	if d := treeOf(t, w.root).diff(treeFor(news)); d != "" {
		t.Fatal(d)
	}
	steps = slices.DeleteFunc(steps, func(s Step) bool { return s.New.Kind == manifest.KindDir })
	for i := range steps {
		steps[i].Old, steps[i].New = steps[i].New, w.bodies.file(fmt.Sprint("other ", i), 0o644)
	}
	changes := 0
	crashed = func() { changes++ }
	second, _, err := w.carry(steps)
	crashed = nil
	must.OK(t, err)
	if changes < many || changes > 6*many {
		t.Errorf("%d files were written with %d calls that change something", many, changes)
	}
	_, err = w.undo(second)
	must.OK(t, err)
	if d := treeOf(t, w.root).diff(treeFor(news)); d != "" {
		t.Fatal(d)
	}
	_, err = w.undo(name)
	must.OK(t, err)
	if left := treeOf(t, w.root); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// An undoing long after: nothing is undone when the person has touched a file of
// it, which is named; and what the person put into a new folder stays.
func TestUndoLater(t *testing.T) {
	w := newWorld(t)
	w.write("a", "old", 0o640)
	first, _, err := w.carry(w.steps(map[string]State{"a": w.bodies.file("new", 0o600), "d": dirState(0o755), "d/x": w.bodies.file("x", 0o644)}))
	must.OK(t, err)
	_, _, err = w.carry(w.steps(map[string]State{"b": w.bodies.file("b", 0o644)}))
	must.OK(t, err)
	w.write("a", "mine", 0o600)
	_, err = w.undo(first)
	var refused *RefusedError
	if !errors.As(err, &refused) || len(refused.Conflicts) != 1 || refused.Conflicts[0].Path != "a" || w.read("d/x") != "x" {
		t.Fatalf("touched: %v", err)
	}
	w.write("a", "new", 0o600)
	w.write("d/mine", "mine", 0o644)
	res, err := w.undo(first)
	must.OK(t, err)
	if len(res) != 1 || res[0].Path != "d" {
		t.Errorf("left: %+v", res)
	}
	want := tree{"a": "file 640 " + content.Sum([]byte("old")).String(), "b": "file 644 " + content.Sum([]byte("b")).String(),
		"d": "dir 755", "d/mine": "file 644 " + content.Sum([]byte("mine")).String()}
	if d := treeOf(t, w.root).diff(want); d != "" {
		t.Error(d)
	}
	if _, err := w.undo(first); err == nil || !strings.Contains(err.Error(), "undone") {
		t.Errorf("twice: %v", err)
	}
	j, err := w.in.Read(first)
	must.OK(t, err)
	names, err := w.in.List()
	must.OK(t, err)
	if j.Phase != Undone || j.Project != w.root || len(j.Steps) != 3 || len(names) != 2 {
		t.Errorf("%+v %v", j, names)
	}
	must.OK(t, w.in.Remove(first))
	if _, err := w.in.Read(first); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("removed: %v", err)
	}
}

// What is as it shall be already is no conflict, and undoing leaves it so.
func TestAlreadySo(t *testing.T) {
	w := newWorld(t)
	w.write("a", "old", 0o644)
	w.write("b", "old", 0o644)
	steps := w.steps(map[string]State{"a": w.bodies.file("new", 0o644), "b": {}})
	w.write("a", "new", 0o644)
	name, _, err := w.carry(steps)
	must.OK(t, err)
	if j, err := w.in.Read(name); err != nil || len(j.Steps) != 1 || j.Steps[0].Path != "b" {
		t.Errorf("%+v %v", j, err)
	}
	_, err = w.undo(name)
	must.OK(t, err)
	if w.read("a") != "new" || w.read("b") != "old" {
		t.Error("undone what was so before")
	}
}

// Steps that contradict each other or the project are refused before anything.
func TestRefused(t *testing.T) {
	w := newWorld(t)
	w.write("a", "mine", 0o644)
	w.write("d/x", "mine", 0o644)
	old, nu := w.bodies.file("old", 0o644), w.bodies.file("new", 0o644)
	before := treeOf(t, w.root)
	for what, test := range map[string]struct {
		steps []Step
		want  string
	}{
		"changed":              {[]Step{{"a", old, nu}, {Path: "ok", New: nu}}, `"a" was changed`},
		"deleted":              {[]Step{{"b", old, nu}}, "was deleted"},
		"came":                 {[]Step{{Path: "a", New: nu}}, "is there as a file"},
		"file became a folder": {[]Step{{"d", old, nu}}, "is a dir in the project"},
		"mode":                 {[]Step{{"a", w.bodies.file("mine", 0o755), nu}}, "has mode 0644"},
		"folder with unknown":  {[]Step{{"d", dirState(0o755), nu}}, "something in it"},
		"no folder":            {[]Step{{Path: "e/x", New: nu}}, "its folder isn't there"},
		"twice":                {[]Step{{Path: "n", New: nu}, {Path: "n", New: old}}, "two steps"},
		"below a file":         {[]Step{{Path: "n", New: nu}, {Path: "n/x", New: nu}}, "no folder"},
		"all of them":          {[]Step{{"a", old, nu}, {"b", old, nu}, {"d", old, nu}}, "and 2 more"},
	} {
		_, res, err := w.carry(test.steps)
		if err == nil || !strings.Contains(err.Error(), test.want) || len(res) > 0 {
			t.Errorf("%s: %v %+v", what, err, res)
		}
		if d := treeOf(t, w.root).diff(before); d != "" {
			t.Errorf("%s: written:\n%s", what, d)
		}
	}
}

// FuzzRecord reads journals that somebody wrote to.
func FuzzRecord(f *testing.F) {
	b := newMemory()
	from, to := allKinds(b)
	r := record{id: strings.Repeat("ab", idBytes), path: "/p", dev: 1, ino: 2, steps: between(from, to)}
	raw := r.encode()
	f.Add(raw[:len(raw)-32])
	f.Add([]byte(recordMagic))
	f.Fuzz(func(t *testing.T, b []byte) {
		sum := content.Sum(b) // the checksum would keep all else out
		b = append(b, sum[:]...)
		r, err := decodeRecord(b)
		if err != nil {
			return
		}
		if string(r.encode()) != string(b) {
			t.Fatalf("read otherwise than written")
		}
		layout(r.steps, r.id)
		for _, s := range r.steps {
			if Never(s.Path) != "" {
				t.Fatalf("%q would be written", s.Path)
			}
		}
	})
}

// TestAsUnprivileged runs the tests as an ordinary user too, but for those that are about
// how many files there are and about moments, which are the same for all.
func TestAsUnprivileged(t *testing.T) {
	if os.Getenv(unprivilegedEnv) != "" || os.Geteuid() != 0 {
		return
	}
	home, err := os.MkdirTemp("", "stepbox-project-")
	must.OK(t, err)
	defer os.RemoveAll(home)
	must.OK(t, os.Mkdir(filepath.Join(home, "tmp"), 0o700), os.Chown(home, otherUID, otherUID), os.Chown(filepath.Join(home, "tmp"), otherUID, otherUID))
	args := []string{"-test.v=" + fmt.Sprint(testing.Verbose()), "-test.timeout=8m", "-rapid.nofailfile", "-test.skip=^Test(ManyFiles|EditorAnywhere|LivingEditor|LivingWriter|KilledAnywhere|CancelledAnywhere)$"}
	if r := flag.Lookup("test.run").Value.String(); r != "" {
		args = append(args, "-test.run="+r)
	}
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", args...)
	cmd.Dir = home
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "TMPDIR=" + home + "/tmp", unprivilegedEnv + "=1"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: otherUID, Gid: otherUID}, Pdeathsig: syscall.SIGKILL}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("as uid %d: %v\n%s", otherUID, err, out)
	}
}

// What nobody could read would be what nobody can undo.
func TestUnreadable(t *testing.T) {
	w := newWorld(t)
	name, _, err := w.carry([]Step{{Path: "d", New: dirState(0)}, {Path: "d/f", New: w.bodies.file("f", 0)}, {Path: "g", New: w.bodies.file("g", 0o022)}})
	must.OK(t, err)
	want := tree{"d": "dir 500", "d/f": "file 400 " + content.Sum([]byte("f")).String(), "g": "file 422 " + content.Sum([]byte("g")).String()}
	if d := treeOf(t, w.root).diff(want); d != "" {
		t.Error(d)
	}
	if _, err := w.undo(name); err != nil || len(treeOf(t, w.root)) > 0 {
		t.Errorf("undo: %v", err)
	}
	// What is there and can't be read isn't replaced.
	if os.Geteuid() != 0 {
		w.write("h", "mine", 0)
		_, _, err := w.carry([]Step{{"h", w.bodies.file("mine", 0), w.bodies.file("other", 0o644)}})
		if err == nil || !strings.Contains(err.Error(), "can't be read") {
			t.Errorf("unreadable: %v", err)
		}
	}
}

// A journal that can't be read is named, holds nothing else up, and can be removed;
// one whose project is gone too, but not one that can still be recovered.
func TestSpoiltJournal(t *testing.T) {
	w := newWorld(t)
	w.write("a", "old", 0o644)
	f := w.open()
	defer f.Close()
	if !dying(8, func() {
		_, _ = f.Carry(t.Context(), w.in, "dead", w.steps(map[string]State{"a": w.bodies.file("new", 0o644)}), nil)
	}) {
		t.Fatal("it had fewer changes")
	}
	if err := w.in.Remove("dead"); !errors.Is(err, ErrUnfinished) {
		t.Errorf("removed one to recover: %v", err)
	}
	found, err := w.in.find()
	must.OK(t, err)
	path := found[0].file(found[0].stage)
	raw, err := os.ReadFile(path)
	must.OK(t, err)
	for i := range raw {
		if _, err := decodeRecord(raw[:i]); err == nil {
			t.Fatalf("the first %d of %d bytes are a journal", i, len(raw))
		}
	}
	raw[len(raw)/2] ^= 1
	must.OK(t, os.WriteFile(path, raw, 0o600))
	got, err := w.in.Recover(t.Context())
	must.OK(t, err)
	if len(got) != 1 || got[0].Err == nil || !strings.Contains(got[0].Err.Error(), "checksum") || got[0].Name != "dead" {
		t.Errorf("recovered: %+v", got)
	}
	if _, _, err := w.carry([]Step{{Path: "b", New: w.bodies.file("b", 0o644)}}); err != nil {
		t.Errorf("another: %v", err)
	}
	must.OK(t, w.in.Remove("dead"))
	if names, err := w.in.List(); err != nil || len(names) != 1 {
		t.Errorf("%v %v", names, err)
	}
}
