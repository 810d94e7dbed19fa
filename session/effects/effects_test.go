package effects

import (
	"context"
	"crypto/sha1"
	"encoding/binary"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/zeebo/blake3"
	"pgregory.net/rapid"

	"stepbox/policy/git"
	"stepbox/runner/overlay/content"
	"stepbox/runner/overlay/diff"
	"stepbox/runner/overlay/manifest"
	"stepbox/session/api"
	"stepbox/session/base"
	"stepbox/session/e2e/must"
)

// tree is a state of files that the session wrote: contents by path. One that
// begins with "-> " is a link, "+x " an executable, "+w " writable for all, and
// "dir" alone a folder.
type tree map[string]string

func (t tree) manifest() *manifest.Manifest {
	var dir func(at string) *manifest.Dir
	dir = func(at string) *manifest.Dir {
		nodes := map[string]*manifest.Node{}
		for p, text := range t {
			rest, ok := strings.CutPrefix(p, at)
			if !ok || rest == "" {
				continue
			}
			name, _, below := strings.Cut(rest, "/")
			n := &manifest.Node{Entry: manifest.Entry{Name: name, Kind: manifest.KindDir, Meta: manifest.Meta{Mode: 0o755}}}
			target, link := strings.CutPrefix(text, "-> ")
			switch {
			case below || text == "dir":
				n.Sub = dir(at + name + "/")
			case link:
				n.Kind, n.Mode, n.Target = manifest.KindSymlink, 0o777, target
			default:
				n.Kind, n.Mode = manifest.KindFile, 0o644
				for prefix, mode := range map[string]uint32{"+x ": 0o755, "+w ": 0o666} {
					if body, ok := strings.CutPrefix(text, prefix); ok {
						text, n.Mode = body, mode
					}
				}
				n.Size, n.Hash = int64(len(text)), content.Hash(blake3.Sum256([]byte(text)))
			}
			nodes[name] = n
		}
		var sorted []*manifest.Node
		for _, name := range slices.Sorted(maps.Keys(nodes)) {
			sorted = append(sorted, nodes[name])
		}
		return manifest.NewDir(sorted, nil)
	}
	return &manifest.Manifest{Root: &manifest.Node{Entry: manifest.Entry{Kind: manifest.KindDir, Meta: manifest.Meta{Mode: 0o755}}, Sub: dir("")}}
}

// with is a tree with changes to it; "gone" takes a path away.
func (t tree) with(changes tree) tree {
	out := maps.Clone(t)
	for p, text := range changes {
		if out[p] = text; text == "gone" {
			delete(out, p)
		}
	}
	return out
}

// index is a repository's, as git writes it, of some contents.
func index(files tree) string {
	b := binary.BigEndian.AppendUint32([]byte("DIRC\x00\x00\x00\x02"), uint32(len(files)))
	for _, p := range slices.Sorted(maps.Keys(files)) {
		start := len(b)
		b = append(b, make([]byte, 40)...)
		b = append(b, blob(20, []byte(files[p]))...)
		b = binary.BigEndian.AppendUint16(b, uint16(len(p)))
		b = append(b, p...)
		b = append(b, make([]byte, 8-(len(b)-start)%8)...)
	}
	return string(b) + string(make([]byte, sha1.Size))
}

func input(t rapid.TB, from, to tree, committed tree) Input {
	in := Input{From: from.manifest(), To: to.manifest(), Project: "/p"}
	found, err := diff.Compare(context.Background(), nil, in.From, in.To, diff.Options{})
	must.OK(t, err)
	in.Changed = found.Changes
	bodies := map[content.Hash]string{}
	for _, s := range []tree{from, to} {
		for _, text := range s {
			for _, prefix := range []string{"", "+x ", "+w "} {
				if body, ok := strings.CutPrefix(text, prefix); ok {
					bodies[content.Hash(blake3.Sum256([]byte(body)))] = body
				}
			}
		}
	}
	in.Open = func(f *diff.File, most int64) ([]byte, bool) {
		body, ok := bodies[f.Hash]
		return []byte(body), ok && int64(len(body)) <= most
	}
	in.Ignored = func(p string, _ bool) bool {
		return strings.HasSuffix(p, ".log") || strings.HasPrefix(p, "build/") || p == "local.db"
	}
	if committed != nil {
		repo := base.Repository{Commit: strings.Repeat("ab", 20)}
		for _, p := range slices.Sorted(maps.Keys(committed)) {
			repo.Tracked = append(repo.Tracked, base.Tracked{Path: p, Mode: 0o100644, Hash: blob(20, []byte(committed[p]))})
		}
		in.Base = &base.Record{Repositories: []base.Repository{repo}}
	}
	return in
}

const text = "one\ntwo\nthree\nfour\n"

var (
	// start is a project all of which git has, but for new.txt and what is ignored.
	start = tree{
		"src/a.go": text + "a", "src/b.go": text + "b", "src/deep/c.go": text + "c", "a_test.go": text, "new.txt": text + "new", "x.log": "log",
		"build/o": "o", "local.db": "rows", "package.json": `{"scripts":{"test":"x"}}`, "go.sum": "sums", "README.md": text + "r",
	}
	inGit = start.with(tree{"new.txt": "gone", "x.log": "gone", "build/o": "gone", "local.db": "gone"})
)

const zeros = "0000000000000000000000000000000000000000"

func log(messages ...string) string {
	var b strings.Builder
	for _, m := range messages {
		fmt.Fprintf(&b, "%s %s p <p@x> 1 +0000\t%s\n", zeros, zeros, m)
	}
	return b.String()
}

func TestOf(t *testing.T) {
	git := start.with(tree{
		".git/HEAD": "ref: refs/heads/main\n", ".git/logs/HEAD": log("commit: one"), ".git/logs/refs/heads/main": log("commit: one"), ".git/refs/heads/main": "a1\n",
		".git/refs/heads/side": "b2\n", ".git/config": "[core]\n\tbare = false\n", ".git/objects/aa/bb": "o", ".git/index": index(inGit),
	})
	for name, c := range map[string]struct {
		from, change tree
		folder       string
		want         []string // all words
		grave        bool
		check        func(e *api.Effects) bool
	}{
		"nothing":          {from: start, want: nil},
		"committed":        {from: start, change: tree{"src/a.go": "gone"}, want: []string{"deletes src/a.go"}},
		"some committed":   {from: start, change: tree{"src/a.go": "gone", "new.txt": "gone"}, want: []string{"deletes 2 files, 1 of them never committed"}, grave: true, check: func(e *api.Effects) bool { return e.Deleted == 2 && e.Uncommitted == 1 }},
		"changed since":    {from: start.with(tree{"src/a.go": "mine"}), change: tree{"src/a.go": "gone"}, want: []string{"deletes src/a.go, never committed"}, grave: true},
		"a folder":         {from: start, change: tree{"src/a.go": "gone", "src/b.go": "gone", "src/deep/c.go": "gone"}, want: []string{"deletes src with 3 files"}},
		"part of a folder": {from: start, change: tree{"src/deep/c.go": "gone", "src/b.go": "gone"}, want: []string{"deletes 2 files"}},
		"tests among them": {from: start, change: tree{"src/b.go": "gone", "a_test.go": "gone"}, want: []string{"deletes 2 files, 1 of them tests"}},
		"nothing in it":    {from: start.with(tree{"e": ""}), change: tree{"e": "gone"}, want: []string{"deletes e"}},
		"a new folder":     {from: start, change: tree{"d": "dir"}, want: []string{"makes folder d"}},
		"an empty folder":  {from: start.with(tree{"d": "dir"}), change: tree{"d": "gone"}, want: []string{"removes folder d"}},
		"ignored output":   {from: start, change: tree{"x.log": "gone", "build/o": "gone"}, want: []string{"deletes 2 ignored files"}, check: func(e *api.Effects) bool { return e.Ignored == 2 && e.Uncommitted == 0 }},
		"ignored data":     {from: start, change: tree{"local.db": "gone"}, want: []string{"deletes local.db, which git ignores"}, grave: true},
		"ignored changes":  {from: start, change: tree{"build/o": "1", "build/p": "2"}, want: []string{"changes 2 ignored files"}},
		"moved away": {from: start, change: tree{"src/a.go": "gone", "src/b.go": "gone", "src/deep/c.go": "gone", "lib/a.go": text + "a", "lib/b.go": text + "b", "lib/deep/c.go": text + "c"},
			want: []string{"moves 3 files out of src, which is gone"}, check: func(e *api.Effects) bool { return e.Renamed == 3 }},
		"moved out":                    {from: start, change: tree{"src/a.go": "gone", "a.go": text + "a"}, want: []string{"moves src/a.go to another folder"}},
		"renamed":                      {from: start, change: tree{"src/a.go": "gone", "src/z.go": text + "a"}, want: []string{"renames src/a.go"}},
		"emptied":                      {from: start, change: tree{"new.txt": ""}, want: []string{"empties new.txt, never committed"}, grave: true},
		"overwritten":                  {from: start, change: tree{"README.md": "other\nwords\n"}, want: []string{"overwrites all of README.md"}},
		"edited":                       {from: start, change: tree{"README.md": text + "more"}, want: []string{"changes README.md"}},
		"two edited":                   {from: start, change: tree{"README.md": text + "more", "new.txt": text}, want: []string{"changes 2 files"}},
		"thrown away":                  {from: start.with(tree{"src/a.go": "mine"}), change: tree{"src/a.go": text + "a"}, want: []string{"throws away uncommitted changes to src/a.go"}, grave: true},
		"taken back":                   {from: git.with(tree{"src/a.go": "mine", ".git/index": index(inGit.with(tree{"src/a.go": "mine"}))}), change: tree{"src/a.go": text + "a"}, want: []string{"puts src/a.go back to what was committed"}},
		"a link":                       {from: start, change: tree{"src/a.go": "-> b.go"}, want: []string{"replaces src/a.go by a link or folder"}},
		"links out":                    {from: start, change: tree{"l": "-> ../../x", "m": "-> /etc"}, want: []string{"makes 2 links that lead out of the project", "creates 2 files"}},
		"links inside":                 {from: start, change: tree{"src/l": "-> ../README.md", "m": "-> /p/src", "n": "-> ."}, want: []string{"creates 3 files"}},
		"executable":                   {from: start, change: tree{"src/a.go": "+x " + text + "a", "src/b.go": "+x " + text + "b"}, want: []string{"makes 2 files executable"}, check: func(e *api.Effects) bool { return e.Executable == 2 }},
		"new script":                   {from: start, change: tree{"run.sh": "+x echo"}, want: []string{"creates the executable run.sh"}},
		"open":                         {from: start, change: tree{"src/a.go": "+w " + text + "a"}, want: []string{"lets everyone write src/a.go"}},
		"tests":                        {from: start, change: tree{"a_test.go": text + "more"}, want: []string{"changes tests in a_test.go"}},
		"lock":                         {from: start, change: tree{"go.sum": "more"}, want: []string{"changes go.sum"}},
		"outside":                      {from: start, change: tree{"x/y": "1", "src/z": "2"}, folder: "/p/src", want: []string{"writes x/y, outside the folder it ran in", "creates 2 files"}},
		"inside":                       {from: start, change: tree{"src/z": "2"}, folder: "/p", want: []string{"creates src/z"}},
		"postinstall":                  {from: start, change: tree{"package.json": `{"scripts":{"test":"x","postinstall":"y"}}`}, want: []string{"sets postinstall in package.json, which runs by itself"}, grave: true},
		"a script":                     {from: start, change: tree{"package.json": `{"scripts":{"test":"true"}}`}, want: []string{"changes scripts in package.json: test"}},
		"no script":                    {from: start, change: tree{"package.json": `{"name":"y","scripts":{"test":"x"}}`}, want: []string{"changes package.json"}},
		"CI":                           {from: start, change: tree{".github/workflows/ci.yml": "x"}, want: []string{"changes .github/workflows/ci.yml, CI"}, grave: true},
		"a name that moves the cursor": {from: start, change: tree{"a\x1b[2Jb\nc": "x"}, want: []string{`creates a\x1b[2Jb\nc`}},
		"a long name":                  {from: start.with(tree{strings.Repeat("long/", 20) + "name": "1"}), change: tree{strings.Repeat("long/", 20) + "name": "gone"}, want: []string{"deletes …g/long/long/long/long/long/name, never committed"}, grave: true},

		"a commit":        {from: git, change: tree{".git/logs/HEAD": log("commit: one", "commit: two"), ".git/refs/heads/main": "c3\n", ".git/logs/refs/heads/main": log("commit: one", "commit: two"), ".git/objects/cc/dd": "o"}, want: []string{"commits"}},
		"amended":         {from: git, change: tree{".git/logs/HEAD": log("commit: one", "commit (amend): two"), ".git/refs/heads/main": "c3\n", ".git/logs/refs/heads/main": log("commit: one", "commit (amend): two")}, want: []string{"rewrites the branch main: an amended commit"}},
		"moved by hand":   {from: git, change: tree{".git/refs/heads/main": "c3\n"}, want: []string{"rewrites the branch main in a way that git didn't note"}},
		"a branch gone":   {from: git, change: tree{".git/refs/heads/side": "gone"}, want: []string{"deletes the branch side"}, grave: true},
		"a merged branch": {from: git.with(tree{".git/packed-refs": "b2 refs/heads/main2\n"}), change: tree{".git/refs/heads/side": "gone", ".git/packed-refs": "b2 refs/heads/main2\nx\n"}, want: []string{"deletes the branch side"}},
		"packed":          {from: git, change: tree{".git/refs/heads/side": "gone", ".git/packed-refs": "b2 refs/heads/side\n"}, want: []string{"changes git's own files"}},
		"stash":           {from: git, change: tree{".git/refs/stash": "d4\n", ".git/logs/refs/stash": log("WIP")}, want: []string{"stashes changes"}},
		"stash dropped":   {from: git.with(tree{".git/refs/stash": "d4\n", ".git/logs/refs/stash": log("1", "2", "3")}), change: tree{".git/refs/stash": "gone", ".git/logs/refs/stash": "gone"}, want: []string{"drops 3 stashes"}, grave: true},
		"a hook":          {from: git, change: tree{".git/hooks/pre-commit": "+x x"}, want: []string{"writes the git hook pre-commit"}, grave: true},
		"a sample":        {from: git, change: tree{".git/hooks/pre-commit.sample": "+x x"}, want: []string{"changes git's own files"}},
		"hooksPath":       {from: git, change: tree{".git/config": "[core]\n\tbare = false\n\thooksPath = x\n"}, want: []string{"sets git's core.hookspath, which makes git run or read more"}, grave: true},
		"a name":          {from: git, change: tree{".git/config": "[core]\n\tbare = false\n[user]\n\tname = x\n"}, want: []string{"changes git's config: user.name"}},
		"an alias":        {from: git, change: tree{".git/config": "[core]\n\tbare = false\n[alias]\n\tst = !sh\n"}, want: []string{"sets git's alias.st, which makes git run or read more"}, grave: true},
		"pruned":          {from: git, change: tree{".git/objects/aa/bb": "gone"}, want: []string{"deletes 1 of git's objects"}, grave: true},
		"repacked":        {from: git, change: tree{".git/objects/aa/bb": "gone", ".git/objects/pack/p.pack": "P"}, want: []string{"changes git's own files"}},
		"staged":          {from: git, change: tree{".git/index": index(tree{})}, want: []string{"changes what git has staged"}},
		"the repository":  {from: git, change: tree{".git/HEAD": "gone", ".git/config": "gone", ".git/objects/aa/bb": "gone"}, want: []string{"deletes the repository .git"}, grave: true},
		"a nested one":    {from: git, change: tree{"sub/.git/HEAD": "ref: x"}, want: []string{"makes a git repository"}},
	} {
		t.Run(name, func(t *testing.T) {
			in := input(t, c.from, c.from.with(c.change), inGit)
			if c.folder != "" {
				in.Folders = []string{c.folder}
			}
			got := Of(in)
			if got == nil {
				got = &api.Effects{}
			}
			if !slices.Equal(got.Words, c.want) || got.Grave != c.grave || c.check != nil && !c.check(got) {
				t.Errorf("it says %q, %+v, want %q, grave %v", got.Words, *got, c.want, c.grave)
			}
		})
	}
}

// Where it isn't known what the project was, nothing is said to be lost; where
// there is no repository, all that goes is lost, and nothing is said of commits.
func TestWithoutCommits(t *testing.T) {
	in := input(t, start, start.with(tree{"src/a.go": "gone"}), inGit)
	in.Base = nil
	if got := Of(in); got.Grave || !slices.Equal(got.Words, []string{"deletes src/a.go"}) {
		t.Errorf("of an unknown project it says %+v", got)
	}
	in = input(t, start, start.with(tree{"src/a.go": "gone"}), inGit)
	in.Base.Repositories[0] = base.Repository{Unread: "why"}
	if got := Of(in); got.Grave {
		t.Errorf("of one whose index can't be read it says %+v", got)
	}
	in.Base = &base.Record{}
	if got := Of(in); !got.Grave || got.Uncommitted != 1 || !slices.Equal(got.Words, []string{"deletes src/a.go"}) {
		t.Errorf("of one without a repository it says %+v", got)
	}
}

func TestCommitted(t *testing.T) {
	from := start.with(tree{".git/HEAD": "ref: refs/heads/main\n", ".git/logs/HEAD": log("commit: one"), ".git/index": index(inGit)})
	to := from.with(tree{".git/logs/HEAD": log("commit: one", "commit: docs: say \x1b[2Jmore")})
	if got := Of(input(t, from, to, inGit)); got.Committed != `docs: say \x1b[2Jmore` {
		t.Errorf("it committed with %q", got.Committed)
	}
}

// Whatever changed, there are a few short words for it.
func TestAnyChange(t *testing.T) {
	names := []string{"a", "src/a.go", "src/deep/b.go", "x.log", "build/o", ".git/HEAD", ".git/config", ".git/index", ".git/logs/HEAD", ".git/packed-refs",
		".git/refs/stash", ".git/refs/heads/m", ".git/logs/refs/stash", ".git/hooks/x", "n/.git/index", "package.json", "\x1b[2J\xff", strings.Repeat("d/", 60) + "f"}
	texts := []string{"", "1", text, text + "x", "-> /etc", "-> a", "+x y", "+w z", "[core]\n\thooksPath", "DIRC", `{"scripts":{"prepare":"x"}}`, zeros + " refs/heads/m\n", log("commit: x", "reset: y")}
	rapid.Check(t, func(t *rapid.T) {
		states := [2]tree{{}, {}}
		for _, s := range states {
			for _, n := range rapid.SliceOfNDistinct(rapid.SampledFrom(names), 0, len(names), rapid.ID[string]).Draw(t, "names") {
				if s[path.Dir(n)] == "" {
					s[n] = rapid.SampledFrom(texts).Draw(t, "text")
				}
			}
		}
		in := input(t, states[0], states[1], tree{"a": "1", "src/a.go": text})
		got := Of(in)
		if (got == nil) != (len(in.Changed) == 0) {
			t.Fatalf("%d changes: %+v", len(in.Changed), got)
		}
		if got == nil {
			return
		}
		if len(got.Words) == 0 || len(got.Words) > maxPhrases {
			t.Fatalf("it says %q", got.Words)
		}
		for _, w := range got.Words {
			if utf8.RuneCountInString(w) > columns || api.Unclear(w) {
				t.Fatalf("it says %q, of %d columns", w, utf8.RuneCountInString(w))
			}
		}
	})
}

// blob is git's hash of a content, of a length in bytes.
func blob(length int, content []byte) []byte {
	h := git.Object("blob", int64(len(content)), length)
	h.Write(content)
	return h.Sum(nil)
}
