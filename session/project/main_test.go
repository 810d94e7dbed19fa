package project

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"stepbox/runner/overlay/content"
	"stepbox/runner/overlay/manifest"
	"stepbox/session/e2e/must"
)

func TestMain(m *testing.M) {
	os.Setenv("GORACE", "atexit_sleep_ms=0 "+os.Getenv("GORACE")) // else each process of a build with -race takes a second to end
	if os.Getenv(childEnv) != "" {
		childMain()
		return
	}
	goleak.VerifyTestMain(m)
}

// memory keeps bodies in memory. A fault, when set, is what opening one fails with.
type memory struct {
	mu     sync.Mutex
	bodies map[content.Hash][]byte // guarded by mu
}

func newMemory() *memory { return &memory{bodies: map[content.Hash][]byte{}} }

func (m *memory) Put(_ context.Context, r io.Reader) (content.Hash, int64, error) {
	b, err := io.ReadAll(r)
	h := content.Sum(b)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.bodies[h] = b
	return h, int64(len(b)), err
}

func (m *memory) Open(_ context.Context, h content.Hash) (io.ReadCloser, int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	b, ok := m.bodies[h]
	if !ok {
		return nil, 0, fmt.Errorf("body %s: %w", h, os.ErrNotExist)
	}
	return io.NopCloser(bytes.NewReader(b)), int64(len(b)), nil
}

func (m *memory) Missing(_ context.Context, hashes []content.Hash) (missing []content.Hash, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, h := range hashes {
		if _, ok := m.bodies[h]; !ok {
			missing = append(missing, h)
		}
	}
	return missing, nil
}

func (m *memory) has(h content.Hash) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.bodies[h] != nil
}

// file is the state of a file with that text, which is stored.
func (m *memory) file(text string, mode uint32) State {
	h, n, _ := m.Put(context.Background(), strings.NewReader(text))
	return State{Kind: manifest.KindFile, Meta: manifest.Meta{Mode: mode}, Size: n, Hash: h}
}

func dirState(mode uint32) State {
	return State{Kind: manifest.KindDir, Meta: manifest.Meta{Mode: mode}}
}
func link(target string) State { return State{Kind: manifest.KindSymlink, Target: target} }

// tree is what a folder has: by path, kind, permissions, content or target.
type tree map[string]string

// treeOf reads a folder. It may be called where folders can't be read otherwise.
func treeOf(t testing.TB, root string) tree {
	t.Helper()
	out := tree{}
	var walk func(string)
	walk = func(dir string) {
		entries, err := os.ReadDir(filepath.Join(root, dir))
		must.OK(t, err)
		for _, e := range entries {
			path := filepath.Join(dir, e.Name())
			info, err := e.Info()
			must.OK(t, err)
			full := filepath.Join(root, path)
			switch mode := info.Mode(); {
			case mode.IsRegular():
				b, err := readAnyway(full, mode)
				must.OK(t, err)
				out[path] = fmt.Sprintf("file %o %s", mode.Perm(), content.Sum(b))
			case mode.IsDir():
				out[path] = fmt.Sprintf("dir %o", mode.Perm())
				if mode.Perm()&0o500 != 0o500 {
					must.OK(t, os.Chmod(full, 0o700))
				}
				walk(path)
				if mode.Perm()&0o500 != 0o500 {
					must.OK(t, os.Chmod(full, mode.Perm()))
				}
			case mode&fs.ModeSymlink != 0:
				target, err := os.Readlink(full)
				must.OK(t, err)
				out[path] = "link " + target
			default:
				out[path] = mode.String()
			}
		}
	}
	walk("")
	return out
}

func readAnyway(path string, mode fs.FileMode) ([]byte, error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, os.ErrPermission) {
		if err = os.Chmod(path, 0o600); err == nil {
			b, err = os.ReadFile(path)
		}
		err = errors.Join(err, os.Chmod(path, mode.Perm()))
	}
	return b, err
}

// diff says how two trees differ, "" when they don't.
func (a tree) diff(b tree) string {
	var lines []string
	for p, s := range a {
		if b[p] != s {
			lines = append(lines, fmt.Sprintf("%q: %q, not %q", p, s, b[p]))
		}
	}
	for p, s := range b {
		if _, ok := a[p]; !ok {
			lines = append(lines, fmt.Sprintf("%q: nothing, not %q", p, s))
		}
	}
	return strings.Join(lines, "\n")
}

// world is a project folder with a place for journals.
type world struct {
	t      testing.TB
	root   string
	bodies *memory
	in     Journals
	n      int
}

func newWorld(t testing.TB) *world { t.Helper(); return worldIn(t, t.TempDir()) }

// fastWorld is one that needn't reach a disk, where there is such a place.
func fastWorld(t testing.TB) *world {
	t.Helper()
	top, err := os.MkdirTemp("/dev/shm", "stepbox-project-")
	if err != nil {
		return newWorld(t)
	}
	t.Cleanup(func() { must.OK(t, os.RemoveAll(top)) })
	return worldIn(t, top)
}

func worldIn(t testing.TB, top string) *world {
	t.Helper()
	w := &world{t: t, root: filepath.Join(top, "project"), bodies: newMemory()}
	w.in = Journals{Dir: filepath.Join(top, "journals"), Bodies: w.bodies}
	must.OK(t, os.Mkdir(w.root, 0o755), os.Mkdir(w.in.Dir, 0o700))
	return w
}

func (w *world) open() *Folder {
	w.t.Helper()
	f, err := Open(w.root)
	must.OK(w.t, err)
	return f
}

func (w *world) write(path, text string, mode uint32) {
	w.t.Helper()
	full := filepath.Join(w.root, path)
	must.OK(w.t, os.MkdirAll(filepath.Dir(full), 0o755), os.WriteFile(full, []byte(text), 0o600), unix.Chmod(full, mode))
}

func (w *world) read(path string) string {
	w.t.Helper()
	b, err := os.ReadFile(filepath.Join(w.root, path))
	must.OK(w.t, err)
	return string(b)
}

// look gives steps their Old from what is there.
func (w *world) steps(news map[string]State) []Step {
	w.t.Helper()
	f := w.open()
	defer f.Close()
	var steps []Step
	for path, s := range news {
		old, err := f.Look(w.t.Context(), path)
		must.OK(w.t, err)
		steps = append(steps, Step{path, old, s})
	}
	return steps
}

func (w *world) carry(steps []Step) (string, []manifest.Problem, error) {
	w.t.Helper()
	f := w.open()
	defer f.Close()
	w.n++
	name := fmt.Sprintf("test-%d", w.n)
	res, err := f.Carry(w.t.Context(), w.in, name, steps, nil)
	return name, res, err
}

func (w *world) undo(name string) ([]manifest.Problem, error) {
	w.t.Helper()
	f := w.open()
	defer f.Close()
	return f.Undo(w.t.Context(), w.in, name, nil)
}

// clear empties the project, whatever its modes.
func (w *world) clear() {
	w.t.Helper()
	must.OK(w.t, filepath.WalkDir(w.root, func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			return os.Chmod(p, 0o755)
		}
		return err
	}))
	entries, err := os.ReadDir(w.root)
	must.OK(w.t, err)
	for _, e := range entries {
		must.OK(w.t, os.RemoveAll(filepath.Join(w.root, e.Name())))
	}
}

// treeFor is the tree of what states say.
func treeFor(states map[string]State) tree {
	out := tree{}
	for p, s := range states {
		switch s.Kind {
		case manifest.KindFile:
			out[p] = fmt.Sprintf("file %o %s", s.Mode, s.Hash)
		case manifest.KindDir:
			out[p] = fmt.Sprintf("dir %o", s.Mode)
		default:
			out[p] = "link " + s.Target
		}
	}
	return out
}

// put makes the project what states say.
func (w *world) put(states map[string]State) {
	w.t.Helper()
	w.clear()
	paths := sorted(states)
	for _, p := range paths {
		full := filepath.Join(w.root, p)
		switch s := states[p]; s.Kind {
		case manifest.KindDir:
			must.OK(w.t, os.Mkdir(full, 0o700))
		case manifest.KindSymlink:
			must.OK(w.t, os.Symlink(s.Target, full))
		case manifest.KindFile:
			must.OK(w.t, os.WriteFile(full, w.bodies.bodies[s.Hash], 0o600), os.Chmod(full, os.FileMode(s.Mode)))
		}
	}
	for i := len(paths) - 1; i >= 0; i-- {
		if s := states[paths[i]]; s.Kind == manifest.KindDir {
			must.OK(w.t, os.Chmod(filepath.Join(w.root, paths[i]), os.FileMode(s.Mode)))
		}
	}
}

// between are the steps from one set of states to another.
func between(from, to map[string]State) (steps []Step) {
	all := map[string]State{}
	for p := range from {
		all[p] = State{}
	}
	for p := range to {
		all[p] = State{}
	}
	for _, p := range sorted(all) {
		if !from[p].Same(to[p]) {
			steps = append(steps, Step{p, from[p], to[p]})
		}
	}
	return steps
}

func sparse(t testing.TB, path string) (size, blocks int64) {
	t.Helper()
	var st unix.Stat_t
	must.OK(t, unix.Lstat(path, &st))
	return st.Size, st.Blocks * 512
}
