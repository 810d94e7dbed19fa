package restore

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"stepbox/runner/overlay/content"
	"stepbox/runner/overlay/diff"
	"stepbox/runner/overlay/lower"
	"stepbox/runner/overlay/manifest"
)

func brief(changes []diff.Change) []string {
	var out []string
	for _, c := range changes {
		line := fmt.Sprintf("%s %s %s", c.Status, c.Path, c.Kind())
		if c.From != "" {
			line += " from " + c.From
		}
		for what, is := range map[string]bool{"content": c.Status == diff.Modified && c.Content, "mode": c.Mode, "xattrs": c.Xattrs, "owner": c.Owner} {
			if is {
				line += " " + what
			}
		}
		out = append(out, line)
	}
	return out
}

func project(t *testing.T) func(lower string) {
	return func(lower string) {
		for _, m := range []mutation{
			{Op: "mkdir", Path: "dir"}, {Op: "mkdir", Path: "dir/sub"}, {Op: "mkdir", Path: "empty"}, {Op: "mkdir", Path: "tree"}, {Op: "mkdir", Path: "tree/deep"},
			{Op: "write", Path: "a", Data: []byte("content a")}, {Op: "write", Path: "b", Data: []byte("content b")}, {Op: "write", Path: "c", Data: []byte("content c")},
			{Op: "write", Path: "dir/x", Data: []byte("content x")}, {Op: "write", Path: "dir/sub/y", Data: []byte("content y")},
			{Op: "write", Path: "tree/1", Data: []byte("one")}, {Op: "write", Path: "tree/deep/2", Data: []byte("two")},
			{Op: "symlink", Path: "link", To: "a"}, {Op: "fifo", Path: "fifo", N: 0o644}, {Op: "write", Path: "same", Data: []byte("s")}, {Op: "write", Path: "zero"},
		} {
			must(t, m.apply(lower))
		}
	}
}

func TestDiff(t *testing.T) {
	cases := []struct {
		name string
		muts []mutation
		want []string
	}{
		{"nothing", nil, nil},
		{"copied up only", []mutation{{Op: "touchup", Path: "a"}, {Op: "utimens", Path: "dir/x", N: 1}, {Op: "touchup", Path: "dir/sub/y"}}, nil},
		{"written back", []mutation{{Op: "write", Path: "a", Data: []byte("other")}, {Op: "write", Path: "a", Data: []byte("content a")}}, nil},
		{"content", []mutation{{Op: "rewrite", Path: "a"}, {Op: "append", Path: "dir/x", Data: []byte("y")}}, []string{"M a file content", "M dir/x file content"}},
		{"modes", []mutation{{Op: "chmod", Path: "a", N: 0o755}, {Op: "chmod", Path: "dir", N: 0o700}}, []string{"M a file mode", "M dir dir mode"}},
		{"xattrs", []mutation{{Op: "setxattr", Path: "a", To: "user.x", Data: []byte("1")}}, []string{"M a file xattrs"}},
		{"links and kinds", []mutation{{Op: "remove", Path: "link"}, {Op: "symlink", Path: "link", To: "b"}, {Op: "remove", Path: "fifo"}, {Op: "symlink", Path: "fifo", To: "x"}},
			[]string{"T fifo symlink", "M link symlink content"}},
		{"added", []mutation{{Op: "write", Path: "n", Data: []byte("n")}, {Op: "mkdir", Path: "newdir"}, {Op: "mkdir", Path: "newdir/e"}, {Op: "write", Path: "newdir/f"}},
			[]string{"A n file", "A newdir/e dir", "A newdir/f file"}},
		{"deleted", []mutation{{Op: "removeall", Path: "tree"}, {Op: "remove", Path: "a"}, {Op: "remove", Path: "empty"}},
			[]string{"D a file", "D empty dir", "D tree/1 file", "D tree/deep/2 file"}},
		{"dir to file", []mutation{{Op: "removeall", Path: "tree"}, {Op: "write", Path: "tree", Data: []byte("x")}},
			[]string{"T tree file", "D tree/1 file", "D tree/deep/2 file"}},
		{"file to dir", []mutation{{Op: "remove", Path: "a"}, {Op: "mkdir", Path: "a"}, {Op: "write", Path: "a/b", Data: []byte("x")}},
			[]string{"T a dir", "A a/b file"}},
		{"renamed", []mutation{{Op: "rename", Path: "a", To: "dir/renamed"}, {Op: "rename", Path: "dir/x", To: "x"}, {Op: "chmod", Path: "x", N: 0o600}},
			[]string{"R dir/renamed file from a", "R x file from dir/x mode"}},
		{"renamed and changed", []mutation{{Op: "rename", Path: "a", To: "a2"}, {Op: "append", Path: "a2", Data: []byte("!")}}, []string{"D a file", "A a2 file"}},
		{"empty files aren't renamed", []mutation{{Op: "rename", Path: "zero", To: "zero2"}}, []string{"D zero file", "A zero2 file"}},
		{"recreated the same", []mutation{{Op: "removeall", Path: "tree"}, {Op: "mkdir", Path: "tree"}, {Op: "mkdir", Path: "tree/deep"},
			{Op: "write", Path: "tree/1", Data: []byte("one")}, {Op: "write", Path: "tree/deep/2", Data: []byte("two")}}, nil},
		{"hard names", []mutation{{Op: "write", Path: "\xff\n", Data: []byte("1")}, {Op: "write", Path: ".wh.a", Data: []byte("2")}}, []string{"A .wh.a file", "A \xff\n file"}},
	}
	h := startHelper(t)
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := newSession(t, h, os.TempDir(), project(t))
			defer s.close()
			base := s.scan()
			s.agent(c.muts...)
			now := s.scan()
			for side, from := range map[string]*manifest.Manifest{"lower": nil, "first checkpoint": base} {
				if got := brief(s.diff(from, now)); !slices.Equal(got, c.want) {
					t.Errorf("from the %s:\n  want %q\n  got  %q", side, c.want, got)
				}
			}
			// The way back has as many, and as many renames.
			back := brief(s.diff(now, nil))
			count := func(lines []string, status string) (n int) {
				for _, l := range lines {
					if strings.HasPrefix(l, status) {
						n++
					}
				}
				return n
			}
			if len(back) != len(c.want) || count(back, "R") != count(c.want, "R") || count(back, "A") != count(c.want, "D") && count(c.want, "T") == 0 {
				t.Errorf("back: %q for %q", back, c.want)
			}
		})
	}
}

func TestDiffContents(t *testing.T) {
	s := newSession(t, startHelper(t), os.TempDir(), project(t))
	defer s.close()
	s.agent(mutation{Op: "write", Path: "a", Data: []byte("once")})
	once := s.scan()
	s.agent(mutation{Op: "write", Path: "a", Data: []byte("twice")}, mutation{Op: "remove", Path: "b"}, mutation{Op: "remove", Path: "link"},
		mutation{Op: "symlink", Path: "link", To: "\xffb"}, mutation{Op: "rename", Path: "c", To: "c2"})
	now := s.scan()
	read := func(f *diff.File) string {
		t.Helper()
		r, n, err := diff.Open(bg, s.lower, s.bodies, f)
		must(t, err)
		b, err := io.ReadAll(r)
		must(t, err, r.Close())
		if int64(len(b)) != n {
			t.Errorf("%d bytes of %d", len(b), n)
		}
		return string(b)
	}
	got := map[string]string{}
	for _, c := range slices.Concat(s.diff(nil, now), s.diff(once, now)) {
		got[c.Path+" "+string(c.Status)] += read(c.Old) + "->" + read(c.New) + ";"
	}
	want := map[string]string{
		"a M": "content a->twice;once->twice;", "b D": "content b->;content b->;", "c2 R": "content c->content c;content c->content c;",
		"link M": "a->\xffb;a->\xffb;",
	}
	if !maps.Equal(want, got) {
		t.Errorf("want %q\ngot  %q", want, got)
	}
	if d, err := diff.Compare(bg, s.lower, nil, now, diff.Options{Max: 2}); err != nil || len(d.Changes) != 2 || d.More == 0 {
		t.Errorf("bounded: %d and %d more, %v", len(d.Changes), d.More, err)
	}
	if d, err := diff.Compare(bg, s.lower, now, now, diff.Options{}); err != nil || len(d.Changes) != 0 {
		t.Errorf("with itself: %v %v", d, err)
	}
	if d, err := diff.Compare(bg, nil, nil, once, diff.Options{}); err != nil || len(d.Changes) != 1 || d.Changes[0].Status != diff.Added {
		t.Errorf("without a lower: %v %v", brief(d.Changes), err)
	}
}

// Several lower layers, as overlayfs itself shows them.
func TestLowerLayers(t *testing.T) {
	base, top := t.TempDir(), t.TempDir()
	for path, text := range map[string]string{"a": "base", "b": "base", "dir/x": "base", "dir/y": "base", "gone/z": "base", "opaque/x": "base", "file/x": "base"} {
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(base, path)), 0o755), os.WriteFile(filepath.Join(base, path), []byte(text), 0o644))
	}
	for path, text := range map[string]string{"a": "top", "dir/x": "top", "opaque/y": "top", "file": "top"} {
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(top, path)), 0o755), os.WriteFile(filepath.Join(top, path), []byte(text), 0o644))
	}
	for _, path := range []string{"gone", "dir/y"} {
		must(t, unix.Mknod(filepath.Join(top, path), unix.S_IFCHR, 0))
	}
	must(t, unix.Setxattr(filepath.Join(top, "opaque"), "user.overlay.opaque", []byte("y"), 0))
	h := startHelper(t)
	s := newSession(t, h, os.TempDir(), nil)
	defer s.close()
	q := s.q
	q.Op, q.Lower, q.Merged = "mount", top+":"+base, t.TempDir()
	upper, work := t.TempDir(), t.TempDir()
	q.Upper, q.Work = upper, work
	h.must(q)
	q.Op = "capture"
	want := h.must(q).Tree
	q.Op = "unmount"
	h.must(q)
	_ = os.RemoveAll(filepath.Join(work, "work")) // of mode 000
	l, err := lower.Open(base, lower.Options{Above: []string{top}})
	must(t, err)
	defer l.Close()
	d, err := diff.Compare(bg, l, &manifest.Manifest{Root: &manifest.Node{Entry: manifest.Entry{Kind: manifest.KindDir, Opaque: true}, Sub: manifest.NewDir(nil, nil)}}, nil, diff.Options{})
	must(t, err)
	got := map[string]content.Hash{}
	for _, c := range d.Changes {
		r, _, err := l.Open(bg, c.Path)
		must(t, err)
		var b bytes.Buffer
		_, err = b.ReadFrom(r)
		must(t, err, r.Close())
		got[c.Path] = content.Sum(b.Bytes())
	}
	for path, v := range want {
		if v.Kind == manifest.KindFile && got[path] != v.Hash {
			t.Errorf("%q is another file than in the merged view", path)
		}
		delete(got, path)
	}
	if len(got) > 0 {
		t.Errorf("too many: %v", got)
	}
}
