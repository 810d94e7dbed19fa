package patch_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stepbox/runner/overlay/content"
	"stepbox/runner/overlay/diff"
	"stepbox/runner/overlay/manifest"
	"stepbox/session/api"
	"stepbox/session/e2e/must"
	"stepbox/session/patch"
)

// file is one of a tree's.
type file struct {
	exec bool
	link bool // body is where it leads
	body string
}

type tree map[string]file

type source map[content.Hash]string

func (s source) Open(_ context.Context, f *diff.File) (io.ReadCloser, int64, error) {
	body := f.Target
	if f.Kind == manifest.KindFile {
		var ok bool
		if body, ok = s[f.Hash]; !ok {
			return nil, 0, fmt.Errorf("cannot open %q: it isn't here", f.Path)
		}
	}
	return io.NopCloser(strings.NewReader(body)), int64(len(body)), nil
}

func (s source) file(path string, f file, ok bool) *diff.File {
	if !ok {
		return nil
	}
	e := manifest.Entry{Kind: manifest.KindFile, Meta: manifest.Meta{Mode: 0o644}, Size: int64(len(f.body)), Hash: content.Sum([]byte(f.body))}
	if f.exec {
		e.Mode = 0o755
	}
	if f.link {
		e = manifest.Entry{Kind: manifest.KindSymlink, Meta: manifest.Meta{Mode: 0o777}, Target: f.body}
	} else {
		s[e.Hash] = f.body
	}
	return &diff.File{Entry: e, Path: path}
}

func (s source) changes(from, to tree) (out []diff.Change) {
	all := maps.Clone(from)
	maps.Copy(all, to)
	for _, p := range slices.Sorted(maps.Keys(all)) {
		a, was := from[p]
		b, is := to[p]
		if was && is && a == b {
			continue
		}
		c := diff.Change{Path: p, Status: diff.Modified, Old: s.file(p, a, was), New: s.file(p, b, is), Content: a.body != b.body, Mode: a.exec != b.exec}
		switch {
		case !was:
			c.Status = diff.Added
		case !is:
			c.Status = diff.Deleted
		case a.link != b.link:
			c.Status = diff.Retyped
		}
		out = append(out, c)
	}
	return out
}

func (tr tree) write(t *testing.T, dir string) {
	t.Helper()
	for p, f := range tr {
		at := filepath.Join(dir, p)
		err := os.MkdirAll(filepath.Dir(at), 0o755)
		mode := os.FileMode(0o644)
		if f.exec {
			mode = 0o755
		}
		if err == nil && f.link {
			err = os.Symlink(f.body, at)
		} else if err == nil {
			err = os.WriteFile(at, []byte(f.body), mode)
		}
		must.OK(t, err)
	}
}

func read(t *testing.T, dir string) tree {
	t.Helper()
	out := tree{}
	err := filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, _ := filepath.Rel(dir, p)
		if d.Type()&os.ModeSymlink != 0 {
			to, err := os.Readlink(p)
			out[rel] = file{link: true, body: to}
			return err
		}
		st, err := d.Info()
		if err != nil {
			return err
		}
		b, err := os.ReadFile(p)
		out[rel] = file{exec: st.Mode()&0o100 != 0, body: string(b)}
		return err
	})
	must.OK(t, err)
	return out
}

// apply has git apply a patch in a folder.
func apply(t *testing.T, dir string, p []byte, args ...string) {
	t.Helper()
	cmd := exec.Command("git", append([]string{"apply", "--whitespace=nowarn"}, args...)...)
	cmd.Dir, cmd.Stdin = dir, bytes.NewReader(p)
	cmd.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git apply %v: %v: %s\n%q", args, err, out, p)
	}
}

// both has git take a patch there and back.
func both(t *testing.T, from, to tree) {
	t.Helper()
	src := source{}
	var out bytes.Buffer
	if err := patch.Write(t.Context(), &out, src.Open, src.changes(from, to)); err != nil || strings.HasPrefix(out.String(), "#") {
		t.Fatalf("%v, or something was left out:\n%s", err, out.Bytes())
	}
	dir := t.TempDir()
	from.write(t, dir)
	apply(t, dir, out.Bytes())
	if got := read(t, dir); !maps.Equal(got, to) {
		t.Fatalf("git made\n%v\nof\n%v, want\n%v\nby\n%s", got, from, to, out.Bytes())
	}
	apply(t, dir, out.Bytes(), "-R")
	if got := read(t, dir); !maps.Equal(got, from) {
		t.Fatalf("git went back to\n%v, want\n%v", got, from)
	}
}

func TestGitTakesIt(t *testing.T) {
	big := strings.Repeat("a line of some text\n", 300_000) // too large for lines
	for name, c := range map[string]struct{ from, to tree }{
		"text":             {tree{"a": {body: "1\n2\n3\n"}}, tree{"a": {body: "1\nx\n3\n"}}},
		"no end of line":   {tree{"a": {body: "1\n2"}, "b": {body: "1\n"}}, tree{"a": {body: "1\n2\n"}, "b": {body: "1"}}},
		"carriage return":  {tree{"a": {body: "1\r\n2\r\n"}}, tree{"a": {body: "1\r\n3\n"}}},
		"made and gone":    {tree{"d/a": {body: "x\n"}}, tree{"e/b c": {body: "y\n"}}},
		"empty":            {tree{"a": {}, "c": {body: "1\n"}}, tree{"b": {}, "c": {}}},
		"executable":       {tree{"a": {body: "1\n"}, "b": {exec: true}}, tree{"a": {body: "1\n", exec: true}, "b": {body: "x"}}},
		"binary":           {tree{"a": {body: "\x00\x01" + strings.Repeat("z", 500)}}, tree{"a": {body: "\x00\x02"}, "b": {body: "\xff\x00"}}},
		"link":             {tree{"a": {link: true, body: "x"}, "b": {body: "1\n"}}, tree{"a": {link: true, body: "y/z"}, "b": {link: true, body: "a"}}},
		"file for folder":  {tree{"a/b": {body: "1\n"}, "c": {body: "2\n"}}, tree{"a": {body: "1\n"}, "c/d": {body: "2\n"}}},
		"odd names":        {tree{}, tree{"a\"b\\": {body: "1\n"}, "tab\there": {body: "2\n"}, "nl\nx": {body: "3\n"}, "\xff\xfe": {body: "4\n"}, "ü ö": {body: "5\n"}, "\x1b[31m": {body: "6\n"}, " lead ": {body: "7\n"}}},
		"blank at the end": {tree{"a /b": {body: "\x00"}, "a / c ": {}, "a /d": {body: "1\n"}}, tree{"a /e": {body: "\x01"}, "x / /y": {exec: true}, "a /d": {body: "2\n"}}},
		"large":            {tree{"a": {body: big}}, tree{"a": {body: big + "more\n"}}},
	} {
		t.Run(name, func(t *testing.T) { both(t, c.from, c.to) })
	}
}

// TestGitTakesRandomOnes: whatever two trees hold, git gets from one to the other
// by the patch, and back.
func TestGitTakesRandomOnes(t *testing.T) {
	words := []string{"a\n", "b\n", "c", "\n", "\x00", "d\r\n", "\xff", "e e e\n"}
	paths := []string{"a", "b", "d/a", "d/b", "d/e/f", "g h"}
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 1))
		random := func() tree {
			tr := tree{}
			for _, p := range paths {
				if r.IntN(3) == 0 {
					continue
				}
				f := file{exec: r.IntN(4) == 0}
				for range r.IntN(12) {
					f.body += words[r.IntN(len(words))]
				}
				if r.IntN(6) == 0 {
					f = file{link: true, body: "to" + fmt.Sprint(r.IntN(3))}
				}
				tr[p] = f
			}
			return tr
		}
		both(t, random(), random())
	}
}

func TestRename(t *testing.T) {
	src := source{}
	from, to := file{body: "1\n2\n3\n"}, file{body: "1\n2\nx\n", exec: true}
	for _, edited := range []file{from, to} {
		var out bytes.Buffer
		c := diff.Change{Path: "new name", From: "old", Status: diff.Renamed, Old: src.file("old", from, true), New: src.file("new name", edited, true)}
		must.OK(t, patch.Write(t.Context(), &out, src.Open, []diff.Change{c}))
		dir := t.TempDir()
		tree{"old": from}.write(t, dir)
		apply(t, dir, out.Bytes())
		if got := read(t, dir); !maps.Equal(got, tree{"new name": edited}) {
			t.Fatalf("git made %v by\n%s", got, out.Bytes())
		}
	}
}

// TestUnfit: what git can't hold is named and the rest can still be applied.
func TestUnfit(t *testing.T) {
	src := source{}
	made := func(path string, e manifest.Entry) diff.Change {
		return diff.Change{Path: path, Status: diff.Added, New: &diff.File{Entry: e, Path: path}, Content: true}
	}
	changes := []diff.Change{
		made(".git/config", manifest.Entry{Kind: manifest.KindFile}),
		made("d", manifest.Entry{Kind: manifest.KindDir}),
		made("f\n", manifest.Entry{Kind: manifest.KindFIFO}),
		made("g", manifest.Entry{Kind: manifest.KindFile, Unsaved: "too large"}),
		made("sub/.GIT/hooks/x", manifest.Entry{Kind: manifest.KindFile}),
		{Path: "z", Status: diff.Added, New: src.file("z", file{body: "1\n"}, true), Content: true},
	}
	var out bytes.Buffer
	must.OK(t, patch.Write(t.Context(), &out, src.Open, changes))
	if strings.Count(out.String(), "not in this patch: ") != 4 || !strings.Contains(out.String(), api.PatchLost+"g: too large") || !strings.Contains(out.String(), "2 of git's own files") || strings.Contains(out.String(), "f\n:") {
		t.Errorf("the patch says\n%s", out.String())
	}
	dir := t.TempDir()
	apply(t, dir, out.Bytes())
	if got := read(t, dir); !maps.Equal(got, tree{"z": {body: "1\n"}}) {
		t.Errorf("git made %v", got)
	}
	// What the record lost is named in a line that says so to whoever takes the patch.
	lost := made("m\n", manifest.Entry{Kind: manifest.KindFile, Size: 3, Hash: content.Sum([]byte("gone"))})
	out.Reset()
	must.OK(t, patch.Write(t.Context(), &out, src.Open, []diff.Change{changes[5], lost, {Path: "zz", Status: diff.Added, New: src.file("zz", file{body: "2\n"}, true), Content: true}}))
	if strings.Count(out.String(), "\n"+api.PatchLost+`"m\012": cannot open`) != 1 {
		t.Errorf("the patch says\n%s", out.String())
	}
	dir = t.TempDir()
	apply(t, dir, out.Bytes())
	if got := read(t, dir); !maps.Equal(got, tree{"z": {body: "1\n"}, "zz": {body: "2\n"}}) {
		t.Errorf("git made %v", got)
	}
}

// TestTooMuchToRead tells how an agent keeps who asks for a patch waiting for hours: one
// call makes a sparse file of a terabyte. It isn't read, nor are many that come to as much.
func TestTooMuchToRead(t *testing.T) {
	src := source{}
	opened := 0
	open := func(ctx context.Context, f *diff.File) (io.ReadCloser, int64, error) {
		if f.Size >= 1<<30 {
			opened++
			return nil, 0, fmt.Errorf("cannot open %q: it would take too long", f.Path)
		}
		return src.Open(ctx, f)
	}
	sparse := func(path string, size int64) diff.Change {
		return diff.Change{Path: path, Status: diff.Added, Content: true, New: &diff.File{Path: path, Entry: manifest.Entry{Kind: manifest.KindFile, Meta: manifest.Meta{Mode: 0o644}, Size: size}}}
	}
	changes := []diff.Change{sparse("a", 1<<40)}
	for i := range 9 {
		changes = append(changes, sparse(fmt.Sprint("b", i), 1<<30))
	}
	changes = append(changes, sparse("c", 1<<62), diff.Change{Path: "z", Status: diff.Added, New: src.file("z", file{body: "1\n"}, true), Content: true})
	changes[10].Old = &diff.File{Path: "c", Entry: changes[10].New.Entry}
	var out bytes.Buffer
	must.OK(t, patch.Write(t.Context(), &out, open, changes))
	if opened > 4 {
		t.Errorf("%d GiB are read", opened)
	}
	if !strings.Contains(out.String(), "# not in this patch: a: ") || !strings.Contains(out.String(), "# not in this patch: c: ") {
		t.Errorf("it isn't said what is left out:\n%s", out.String())
	}
	dir := t.TempDir()
	apply(t, dir, out.Bytes())
	if got := read(t, dir); !maps.Equal(got, tree{"z": {body: "1\n"}}) {
		t.Errorf("git made %v", got)
	}
}
