package base

import (
	"bytes"
	"context"
	"crypto/sha256"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zeebo/blake3"
	"pgregory.net/rapid"

	"stepbox/runner/overlay/content"
	"stepbox/runner/overlay/lower"
	"stepbox/runner/overlay/manifest"
	"stepbox/session/e2e/must"
)

// memory keeps bodies in memory.
type memory map[content.Hash][]byte

func (m memory) Put(_ context.Context, r io.Reader) (content.Hash, int64, error) {
	data, err := io.ReadAll(r)
	h := content.Hash(blake3.Sum256(data))
	m[h] = data
	return h, int64(len(data)), err
}

func (m memory) Open(_ context.Context, h content.Hash) (io.ReadCloser, int64, error) {
	data, ok := m[h]
	if !ok {
		return nil, 0, fmt.Errorf("there is no body %s", h)
	}
	return io.NopCloser(bytes.NewReader(data)), int64(len(data)), nil
}

// run runs the real git.
func run(t rapid.TB, dir string, args ...string) string {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git to compare with")
	}
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = []string{
		"HOME=/nonexistent", "PATH=" + os.Getenv("PATH"), "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=t", "GIT_AUTHOR_EMAIL=t", "GIT_COMMITTER_NAME=t", "GIT_COMMITTER_EMAIL=t",
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=protocol.file.allow", "GIT_CONFIG_VALUE_0=always",
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("git %v: %v: %s", args, err, stderr.String())
	}
	return string(out)
}

// write makes files; a path that ends in a slash is a folder.
func write(t rapid.TB, dir string, files map[string]string) {
	for name, text := range files {
		p := filepath.Join(dir, name)
		if strings.HasSuffix(name, "/") {
			must.OK(t, os.MkdirAll(p, 0o755))
			continue
		}
		must.OK(t, os.MkdirAll(filepath.Dir(p), 0o755), os.WriteFile(p, []byte(text), 0o644))
	}
}

// take takes a record, keeps it, and gives it as it is read back.
func take(t rapid.TB, dir string, b memory, change ...func(*Options)) *Record {
	l, err := lower.Open(dir, lower.Options{})
	must.OK(t, err)
	o := Options{Folder: dir, Lower: l, Bodies: b}
	for _, f := range change {
		f(&o)
	}
	defer l.Close()
	if o.Lower != l {
		defer o.Lower.Close()
	}
	r, err := Take(context.Background(), o)
	must.OK(t, err)
	h, err := r.Save(context.Background(), b, content.Hash{})
	must.OK(t, err)
	back, err := Load(context.Background(), b, h)
	must.OK(t, err)
	if !bytes.Equal(r.encode(), back.encode()) || len(back.Entries) != len(r.Entries) {
		t.Fatalf("what was read back is\n%+v, not\n%+v", back, r)
	}
	refs, err := back.Refs(context.Background(), b)
	must.OK(t, err)
	for _, h := range refs {
		if b[h] == nil {
			t.Fatalf("body %s isn't kept", h)
		}
	}
	return back
}

// lines says what a record lists, a line for each path.
func lines(r *Record, b memory) []string {
	var out []string
	for _, e := range r.Entries {
		s := e.Path + " " + e.Kind.String()
		switch {
		case e.Unsaved != "":
			s += ": " + e.Unsaved
		case e.kept():
			s += " " + string(b[e.Hash])
		case e.Kind == manifest.KindSymlink:
			s += " " + e.Target
		}
		out = append(out, s)
	}
	return out
}

func expect(t *testing.T, r *Record, b memory, want ...string) {
	t.Helper()
	if got := lines(r, b); !slices.Equal(got, want) {
		t.Errorf("the record lists\n %s\nwant\n %s", strings.Join(got, "\n "), strings.Join(want, "\n "))
	}
	if r.Missing != "" {
		t.Errorf("it isn't complete: %s", r.Missing)
	}
}

func TestOfARepository(t *testing.T) {
	dir, b := t.TempDir(), memory{}
	run(t, dir, "init", "-q", "-b", "main")
	write(t, dir, map[string]string{
		"clean": "1", "dirty": "1", "gone": "1", "d/a": "1", "d/b": "1", "run": "1", "was": "1", "wasdir/x": "1", "staged": "1",
		".gitignore": "*.o\nbuild/\n",
	})
	must.OK(t, os.Symlink("clean", filepath.Join(dir, "link")))
	run(t, dir, "add", ".")
	run(t, dir, "commit", "-qm", "one")
	write(t, dir, map[string]string{"dirty": "2", "new": "n", "x.o": "o", "build/y": "y", "sub/z": "z", "empty/": "", "staged": "2", "added": "a"})
	must.OK(t, os.Chmod(filepath.Join(dir, "run"), 0o755), os.Remove(filepath.Join(dir, "gone")), os.RemoveAll(filepath.Join(dir, "d")),
		os.Remove(filepath.Join(dir, "was")), os.Symlink("new", filepath.Join(dir, "was")), os.RemoveAll(filepath.Join(dir, "wasdir")),
		os.Remove(filepath.Join(dir, "link")), os.Symlink("cleam", filepath.Join(dir, "link")))
	write(t, dir, map[string]string{"wasdir": "f"})
	run(t, dir, "add", "staged", "added")
	r := take(t, dir, b)
	expect(t, r, b,
		"build dir: not kept: git ignores it", "d whiteout", "dirty file 2", "empty dir", "gone whiteout", "link symlink cleam", "new file n",
		"run file 1", "sub dir", "sub/z file z", "was symlink new", "wasdir file f", "x.o file: not kept: git ignores it")
	if len(r.Repositories) != 1 || r.Kind() != "git" {
		t.Fatalf("repositories are %+v", r.Repositories)
	}
	repo := r.Repositories[0]
	if want := strings.TrimSpace(run(t, dir, "rev-parse", "HEAD")); repo.Commit != want || repo.Branch != "refs/heads/main" {
		t.Errorf("it is at %s on %s, git says %s", repo.Commit, repo.Branch, want)
	}
	var index strings.Builder
	for _, e := range repo.Tracked {
		fmt.Fprintf(&index, "%o %x %d\t%s\n", e.Mode, e.Hash, e.Stage, e.Path)
	}
	if want := run(t, dir, "ls-files", "-s"); index.String() != want {
		t.Errorf("tracked are\n%swant\n%s", index.String(), want)
	}
}

func TestOfAFolderWithout(t *testing.T) {
	dir, b := t.TempDir(), memory{}
	write(t, dir, map[string]string{"a": "secret", "d/b": "b", ".gitignore": "a\n"})
	must.OK(t, os.Symlink("a", filepath.Join(dir, "l")))
	r := take(t, dir, b)
	expect(t, r, b, ".gitignore file", "a file", "d dir", "d/b file", "l symlink a")
	if r.Kind() != "names" || r.Entries[1].Size != 6 || !r.Entries[1].Hash.IsZero() || len(b) != 1 {
		t.Errorf("it goes by %s, a is %+v, %d bodies are kept", r.Kind(), r.Entries[1], len(b))
	}
}

// A project may lie in a repository, be a linked working tree, and have others
// and submodules in it.
func TestOfRepositoriesInOthers(t *testing.T) {
	dir, b := t.TempDir(), memory{}
	other := t.TempDir()
	run(t, other, "init", "-q")
	write(t, other, map[string]string{"lib": "1"})
	run(t, other, "add", ".")
	run(t, other, "commit", "-qm", "lib")
	run(t, dir, "init", "-q")
	write(t, dir, map[string]string{"in/project/a": "1", "in/project/b": "1", "outside": "1"})
	run(t, dir, "submodule", "--quiet", "add", other, "in/project/mod")
	run(t, dir, "add", ".")
	run(t, dir, "commit", "-qm", "one")
	project := filepath.Join(dir, "in/project")
	run(t, project, "init", "-q", "mine")
	write(t, dir, map[string]string{"outside": "2", "in/project/a": "2", "in/project/mod/lib": "2", "in/project/mine/x": "x"})
	r := take(t, project, b)
	expect(t, r, b, "a file 2", "mine/x file x", "mod/lib file 2")
	var got []string
	for _, repo := range r.Repositories {
		got = append(got, fmt.Sprintf("%s in %s: %d tracked, %d of a commit", repo.Path, repo.Prefix, len(repo.Tracked), len(repo.Commit)))
	}
	if want := []string{" in in/project: 3 tracked, 40 of a commit", "mine in : 0 tracked, 0 of a commit", "mod in : 1 tracked, 40 of a commit"}; !slices.Equal(got, want) {
		t.Errorf("repositories are %q", got)
	}
	tree := filepath.Join(t.TempDir(), "tree")
	run(t, dir, "worktree", "add", "-q", tree)
	write(t, tree, map[string]string{"outside": "3"})
	expect(t, take(t, tree, b), b, "outside file 3")
}

// Of what is hidden from the agent there is neither content nor hash, git's
// hash included; nor is it said to be deleted.
func TestSecretsAreNotInIt(t *testing.T) {
	dir, b := t.TempDir(), memory{}
	run(t, dir, "init", "-q")
	write(t, dir, map[string]string{".npmrc": "hunter2", ".aws/credentials": "hunter2", "new.pem": "hunter3", "a": "1"})
	run(t, dir, "add", ".npmrc", ".aws", "a")
	write(t, dir, map[string]string{".npmrc": "hunter4"})
	r := take(t, dir, b, func(o *Options) {
		var err error
		o.Lower, err = lower.Open(dir, lower.Options{Hidden: []string{".npmrc", ".aws", "new.pem"}})
		must.OK(t, err)
	})
	expect(t, r, b)
	for _, e := range r.Repositories[0].Tracked {
		if (len(e.Hash) == 0) != (e.Path != "a") {
			t.Errorf("the record has hash %x of %s", e.Hash, e.Path)
		}
	}
	for h, body := range b {
		if bytes.Contains(body, []byte("hunter")) {
			t.Errorf("body %s is %q", h, body)
		}
	}
}

func TestBounds(t *testing.T) {
	dir := t.TempDir()
	run(t, dir, "init", "-q")
	write(t, dir, map[string]string{"a": "12345", "b": "123456", "c": "1", "d": "22", "e": "333"})
	for what, tt := range map[string]struct {
		limit   func(*limits)
		want    []string
		missing bool
	}{
		"a file":  {func(l *limits) { l.fileData = 5 }, []string{"a file 12345", "b file: not kept: it is larger than 0 MiB", "c file 1", "d file 22", "e file 333"}, false},
		"all":     {func(l *limits) { l.data = 8 }, []string{"a file 12345", "b file: not kept: there is too much that git doesn't have", "c file 1", "d file 22", "e file: not kept: there is too much that git doesn't have"}, false},
		"files":   {func(l *limits) { l.files = 4 }, []string{"a file 12345", "b file 123456", "c file 1", "d file 22", "e file: not kept: there are too many files that git doesn't have"}, false},
		"reading": {func(l *limits) { l.read = 13 }, []string{"a file 12345", "b file 123456", "c file 1", "d file: not kept, nor read: there is too much that git doesn't have", "e file: not kept, nor read: there is too much that git doesn't have"}, false},
		"names":   {func(l *limits) { l.names = 3 }, []string{"a file 12345", "b file 123456"}, true},
	} {
		b := memory{}
		all := most
		tt.limit(&most)
		r := take(t, dir, b)
		most = all
		if got := lines(r, b); !slices.Equal(got, tt.want) || (r.Missing != "") != tt.missing {
			t.Errorf("%s: %q, missing %q", what, got, r.Missing)
		}
		if what == "all" && r.Entries[1].Hash.IsZero() {
			t.Error("what isn't kept has no hash")
		}
	}
}

// interrupted are bodies whose first content ends the session.
type interrupted struct {
	memory
	end func()
}

func (i interrupted) Put(ctx context.Context, r io.Reader) (content.Hash, int64, error) {
	i.end()
	if err := ctx.Err(); err != nil {
		panic(err)
	}
	return i.memory.Put(ctx, r)
}

// What the sandbox hasn't got the owner or group of is counted, hidden files apart.
// What a resumed session's project was costs what differs from the first time.
func TestPackedOver(t *testing.T) {
	b, r := memory{}, &Record{Repositories: []Repository{{}}}
	for i := range 2000 {
		h := sha256.Sum256([]byte{byte(i), byte(i >> 8)})
		r.Repositories[0].Tracked = append(r.Repositories[0].Tracked, Tracked{Path: fmt.Sprintf("d/%04d", i), Mode: 0o100644, Hash: h[:]})
	}
	first, err := r.Save(t.Context(), b, content.Hash{})
	must.OK(t, err)
	r.Repositories[0].Tracked = slices.Delete(r.Repositories[0].Tracked, 1000, 1001)
	r.Entries = append(r.Entries, Entry{"new", manifest.Entry{Kind: manifest.KindFile, Size: 1, Hash: content.Hash{1}}})
	second, err := r.Save(t.Context(), b, first)
	must.OK(t, err)
	back, err := Load(t.Context(), b, second)
	must.OK(t, err)
	if !bytes.Equal(back.encode(), r.encode()) {
		t.Error("another record is read back")
	}
	if n, m := len(b[second]), len(b[first]); n > m/20 {
		t.Errorf("the first has %d bytes, and what differs by two paths %d", m, n)
	}
	delete(b, first)
	if _, err := Load(t.Context(), b, second); err == nil {
		t.Error("it is read without the first")
	}
}

func TestForeign(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root gives files away")
	}
	dir := t.TempDir()
	write(t, dir, map[string]string{"a": "", "d/b": "", "d/c": "", "secret": ""})
	must.OK(t, os.Chown(filepath.Join(dir, "d"), -1, 4242), os.Chown(filepath.Join(dir, "d/c"), 4242, -1), os.Chown(filepath.Join(dir, "secret"), 4242, 4242))
	l, err := lower.Open(dir, lower.Options{Hidden: []string{"secret"}})
	must.OK(t, err)
	defer l.Close()
	r, err := Take(t.Context(), Options{Folder: dir, Lower: l, Bodies: memory{}})
	must.OK(t, err)
	if r.Foreign != 2 || r.Foreigner != "d" {
		t.Errorf("%d, as %q", r.Foreign, r.Foreigner)
	}
}

func TestOfASessionThatEnds(t *testing.T) {
	dir, b := t.TempDir(), memory{}
	run(t, dir, "init", "-q")
	for i := range 600 { // more than go to the bodies at once
		write(t, dir, map[string]string{fmt.Sprintf("%03d", i): fmt.Sprint(i)})
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	l, err := lower.Open(dir, lower.Options{})
	must.OK(t, err)
	defer l.Close()
	r, err := Take(ctx, Options{Folder: dir, Lower: l, Bodies: interrupted{b, cancel}})
	must.OK(t, err)
	if r.Missing == "" || len(r.Entries) < 500 || len(r.Entries) == 600 || len(r.Repositories) != 1 {
		t.Errorf("%d entries, missing %q", len(r.Entries), r.Missing)
	}
	for _, e := range r.Entries {
		if e.Kind == manifest.KindWhiteout || b[e.Hash] == nil {
			t.Fatalf("%s of %s isn't among the bodies", e.Kind, e.Path)
		}
	}
}

// What differs is what git says differs, whatever was done to the files.
func TestDiffersAsGitSays(t *testing.T) {
	run(t, t.TempDir(), "--version")
	if err := flag.Set("rapid.checks", "30"); err != nil { // each runs git often
		t.Fatal(err)
	}
	names := []string{"a", "b", "d/a", "d/b", "d/e/a", "x.o", "o/a", ".gitignore", "e"}
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp("", "base")
		must.OK(t, err)
		defer os.RemoveAll(dir)
		run(t, dir, "init", "-q")
		if rapid.Bool().Draw(t, "version 4") {
			run(t, dir, "config", "index.version", "4")
		}
		t.Repeat(map[string]func(*rapid.T){
			"write": func(t *rapid.T) {
				p := filepath.Join(dir, rapid.SampledFrom(names).Draw(t, "name"))
				text := rapid.SampledFrom([]string{"", "1", "2", "*.o\n", "o/\n", "d\n!d/e\n", "long\n"}).Draw(t, "text")
				if os.MkdirAll(filepath.Dir(p), 0o755) == nil {
					_ = os.WriteFile(p, []byte(text), 0o644) // or it is a folder
				}
				if rapid.Bool().Draw(t, "long ago") {
					_ = os.Chtimes(p, time.Time{}, time.Unix(1e9, 0))
				}
			},
			"write at the same time": func(t *rapid.T) {
				p := filepath.Join(dir, rapid.SampledFrom(names).Draw(t, "name"))
				if info, err := os.Lstat(p); err == nil && info.Mode().IsRegular() && info.Size() == 1 {
					must.OK(t, os.WriteFile(p, []byte("3"), 0o644), os.Chtimes(p, time.Time{}, info.ModTime()))
				}
			},
			"remove": func(t *rapid.T) {
				_ = os.RemoveAll(filepath.Join(dir, rapid.SampledFrom(append([]string{"d", "o", "d/e"}, names...)).Draw(t, "name"))) // or a file is in the way
			},
			"link": func(t *rapid.T) {
				p := filepath.Join(dir, rapid.SampledFrom(append([]string{"d", "o"}, names[:7]...)).Draw(t, "name"))
				_ = os.RemoveAll(p)
				_ = os.Symlink(rapid.SampledFrom([]string{"a", "b", "nowhere"}).Draw(t, "to"), p) // or its folder isn't there
			},
			"chmod": func(t *rapid.T) {
				p := filepath.Join(dir, rapid.SampledFrom(names).Draw(t, "name"))
				if info, err := os.Lstat(p); err == nil && info.Mode().IsRegular() {
					must.OK(t, os.Chmod(p, rapid.SampledFrom([]os.FileMode{0o644, 0o755, 0o600}).Draw(t, "mode")))
				}
			},
			"add":    func(t *rapid.T) { run(t, dir, "add", "-A") },
			"commit": func(t *rapid.T) { run(t, dir, "commit", "-q", "--allow-empty", "-m", "x") },
			"unadd":  func(t *rapid.T) { run(t, dir, "rm", "-rfq", "--cached", "--ignore-unmatch", "d") },
		})
		compareWithGit(t, dir)
	})
}

func compareWithGit(t *rapid.T, dir string) {
	r := take(t, dir, memory{})
	ours, folders := map[string]bool{}, map[string]bool{}
	covered := func(p string) bool {
		for ; p != "."; p = filepath.Dir(p) {
			if ours[p] {
				return true
			}
		}
		return false
	}
	for _, e := range r.Entries {
		folders[e.Path] = e.Kind == manifest.KindDir
		if e.Kind != manifest.KindDir && e.Unsaved != ignored {
			ours[e.Path] = true
		}
	}
	theirs := map[string]bool{}
	// Git goes by an index that knows no times, and so reads all: in its own it takes a file
	// for unchanged that was written with its old size and time in the second of its last change.
	run(t, dir, "read-tree", strings.TrimSpace(run(t, dir, "write-tree")))
	for line := range strings.SplitSeq(run(t, dir, "status", "--porcelain", "-z", "-uall", "--no-renames"), "\x00") {
		if line == "" || line[1] == ' ' {
			continue
		}
		p := line[3:]
		if line[1] == 'D' { // what is deleted with its folder is told by that
			if !covered(p) && !folders[p] {
				t.Fatalf("git says %q, which isn't in %q", line, lines(r, nil))
			}
			continue
		}
		theirs[p] = true
		if !ours[p] {
			t.Fatalf("git says %q, which isn't in %q", line, lines(r, nil))
		}
	}
	for _, e := range r.Entries {
		if ours[e.Path] && e.Kind != manifest.KindWhiteout && !theirs[e.Path] {
			t.Fatalf("%q is in the record and git doesn't say so", e.Path)
		}
	}
	for _, e := range r.Entries {
		if _, err := os.Lstat(filepath.Join(dir, e.Path)); (err != nil) != (e.Kind == manifest.KindWhiteout) {
			t.Fatalf("%q is a %s, and looking at it says %v", e.Path, e.Kind, err)
		}
	}
}

// A record has one form, and nothing else is read.
func FuzzDecode(f *testing.F) {
	type entry = manifest.Entry
	e := entry{Kind: manifest.KindFile, Meta: manifest.Meta{Mode: 0o644, MTime: manifest.Time{Sec: -5, Nsec: 7}}, Size: 3, Hash: content.Hash{1}}
	r := &Record{Missing: "x", Entries: []Entry{
		{"a", entry{Kind: manifest.KindDir, Meta: manifest.Meta{Mode: 0o755}}}, {"a/b", e}, {"a/bc", entry{Kind: manifest.KindSymlink, Target: "../x"}},
		{"c", entry{Kind: manifest.KindWhiteout}}, {"d", entry{Kind: manifest.KindFile, Unsaved: "why"}},
	}, Repositories: []Repository{{Commit: strings.Repeat("ab", 20), Branch: "refs/heads/x", Tracked: []Tracked{
		{Path: "a", Mode: ModeFile, Stage: 1, Hash: bytes.Repeat([]byte{1}, 20)}, {Path: "a", Mode: ModeFile, Stage: 2}, {Path: "ab", Sparse: true},
	}}, {Path: "x", Prefix: "y", Unread: "z"}}}
	if back, err := decode(r.encode()); err != nil || !reflect.DeepEqual(back.Entries, r.Entries) {
		f.Fatalf("%+v, %v", back, err)
	}
	f.Add(r.encode())
	f.Add((&Record{}).encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		if r, err := decode(b); err == nil && !bytes.Equal(r.encode(), b) {
			t.Errorf("%q is read as %+v, which is written as %q", b, r, r.encode())
		}
	})
}
