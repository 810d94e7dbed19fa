package scan

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"stepbox/runner/overlay/content"
	"stepbox/runner/overlay/manifest"
)

// upperByHand is an upper that no mount made, to hold what agents can't make.
func upperByHand(t *testing.T) (dir string, s *Scanner) {
	t.Helper()
	dir = t.TempDir()
	s, err := New(dir, newMemory(), nil)
	must(t, err)
	t.Cleanup(func() { must(t, s.Close()) })
	return dir, s
}

func TestScanForms(t *testing.T) {
	dir, sc := upperByHand(t)
	set := func(path, name, value string) {
		t.Helper()
		must(t, unix.Setxattr(filepath.Join(dir, path), name, []byte(value), 0))
	}
	for _, d := range []string{"opaque", "xwhiteouts", "plain"} {
		must(t, os.Mkdir(filepath.Join(dir, d), 0o755))
	}
	for _, f := range []string{"xwhiteouts/gone", "file", "meta", "origin"} {
		must(t, os.WriteFile(filepath.Join(dir, f), nil, 0o644))
	}
	set("opaque", "user.overlay.opaque", "y")
	set("xwhiteouts", "user.overlay.opaque", "x")
	set("xwhiteouts/gone", "user.overlay.whiteout", "")
	set("file", "user.overlay.overlay.opaque", "forged")
	set("file", "user.overlay.overlay.overlay.x", "nested")
	set("file", "user.mine", "v")
	set("meta", "user.overlay.metacopy", "")
	set("origin", "user.overlay.origin", "")
	set("plain", "user.overlay.impure", "y")
	m, st := scanWith(t, sc, Options{})
	if !m.Lookup("opaque").Opaque || m.Lookup("xwhiteouts").Opaque || m.Lookup("xwhiteouts/gone").Kind != manifest.KindWhiteout {
		t.Error("opaque directories or whiteouts aren't told apart")
	}
	want := []manifest.Xattr{{Name: "user.mine", Value: []byte("v")}, {Name: "user.overlay.opaque", Value: []byte("forged")}, {Name: "user.overlay.overlay.x", Value: []byte("nested")}}
	if got := (&manifest.Meta{Xattrs: want}); !got.SameXattrs(&m.Lookup("file").Meta) {
		t.Errorf("attributes %q", m.Lookup("file").Xattrs)
	}
	if m.Lookup("meta").Unsaved == "" || len(st.Problems) != 1 {
		t.Errorf("a file without its own data passes: %q", st.Problems)
	}
	if len(m.Lookup("origin").Xattrs)+len(m.Lookup("plain").Xattrs) > 0 {
		t.Error("overlayfs' own attributes are kept")
	}
}

// Where two writes can leave one time stamp, what was written just before a
// scan is read again by the next.
func TestScanRacy(t *testing.T) {
	dir, sc := upperByHand(t)
	must(t, os.WriteFile(filepath.Join(dir, "file"), []byte("one"), 0o644))
	sc.racy = true
	scanWith(t, sc, Options{})
	if !moved(t, sc) {
		t.Error("a file written just now is trusted")
	}
	_, st := scanWith(t, sc, Options{})
	if st.Opened != 1 {
		t.Errorf("%d files read again", st.Opened)
	}
	eventually(t, "the file is old enough", func() bool {
		m, st := scanWith(t, sc, Options{})
		return st.Opened == 0 && m == sc.Last()
	})
}

func TestScanErrors(t *testing.T) {
	if _, err := New("/nonexistent/upper", nil, nil); err == nil {
		t.Error("a missing upper was opened")
	}
	dir, sc := upperByHand(t)
	ctx, cancel := context.WithCancel(bg)
	cancel()
	for i := range 200 {
		must(t, os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), nil, 0o644))
	}
	if _, _, err := sc.Scan(ctx, Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	bad := &failing{memory: newMemory()}
	sc2, err := New(dir, bad, nil)
	must(t, err)
	if _, _, err := sc2.Scan(bg, Options{}); !errors.Is(err, errDisk) {
		t.Errorf("a store that fails: %v", err)
	}
	bad.lie = true
	if _, _, err := sc2.Scan(bg, Options{}); err == nil || !strings.Contains(err.Error(), "stored as") {
		t.Errorf("a store that lies: %v", err)
	}
	must(t, sc2.Close(), sc2.Close())
	if _, _, err := sc2.Scan(bg, Options{}); !errors.Is(err, os.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
}

type failing struct {
	*memory
	lie bool
}

var errDisk = errors.New("the disk is gone")

func (f *failing) PutBatch(_ context.Context, bodies [][]byte) ([]content.Hash, error) {
	if f.lie {
		return make([]content.Hash, len(bodies)), nil
	}
	return nil, errDisk
}

func TestLimits(t *testing.T) {
	dir, sc := upperByHand(t)
	deep := strings.Repeat("/d", manifest.MaxDeep+50)
	must(t, os.MkdirAll(dir+deep, 0o755))
	must(t, os.WriteFile(filepath.Join(dir, "big"), bytes.Repeat([]byte("x"), 100_000), 0o644), os.WriteFile(filepath.Join(dir, "small"), []byte("x"), 0o644))
	set(t, &maxScanned, 100)
	if _, _, err := sc.Scan(bg, Options{}); !errors.Is(err, ErrTooMany) {
		t.Fatalf("too many entries gave %v", err)
	}
	set(t, &maxScanned, 2_000)
	set(t, &maxFileData, 50_000)
	m, st := scanWith(t, sc, Options{})
	if e := m.Lookup("big"); e.Unsaved == "" || m.Lookup("small").Unsaved != "" {
		t.Errorf("the large file is %+v", e)
	}
	if len(st.Problems) != 2 {
		t.Errorf("problems %q", st.Problems)
	}
}
