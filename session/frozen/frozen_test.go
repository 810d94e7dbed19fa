package frozen

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stepbox/policy/git"
	"stepbox/runner/overlay/manifest"
	"stepbox/session/base"
)

// Whatever the host's git does, the session has all that it had.
func TestWhatIsTakenStays(t *testing.T) {
	for name, does := range map[string]string{
		"amend":     `git commit -q --amend -m other --allow-empty; git reflog expire --expire=now --all; git gc -q --prune=now`,
		"repack":    `git repack -qad; git prune-packed`,
		"pack-refs": `git pack-refs --all`,
		"switch":    `git checkout -q -b side; git branch -qD main; git rm -q a; git commit -qm x; git reflog expire --expire=now --all; git gc -q --prune=now`,
		"pull":      `git clone -q . ../other; cd ../other; echo 2 >a; git commit -qam more; cd ../project; git pull -q ../other main`,
		"a rebase":  `git checkout -q -b side; echo 2 >a; git commit -qam side; git checkout -q main; echo 3 >a; git commit -qam main; git rebase side || true`,
		"all gone":  `rm -rf .git; git init -q`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			head := r.frozenHead()
			r.take()
			r.host(does)
			if now := r.frozenHead(); now != head {
				t.Errorf("the session is at %+v, and was at %+v", now, head)
			}
			if out := r.agent("git fsck --strict --no-dangling; git status --short; git log --format=%s; git show HEAD:a"); out != "first\n1" {
				t.Errorf("its git says %q", out)
			}
			if w := r.written(); w.Own() {
				t.Errorf("by a look it wrote %+v", w)
			}
		})
	}
}

// What a session's git wrote is a history of its own, or isn't.
func TestWritten(t *testing.T) {
	for name, test := range map[string]struct {
		does             string
		own, index, more bool
		tips, logged     int
	}{
		"a look":         {does: "git status; git diff; git log; git stash list; git branch"},
		"a setting":      {does: "git config user.name x"},
		"a touched file": {does: "touch a; git status"},
		"a blob":         {does: "git hash-object -w a"},
		"a commit":       {does: "echo 2 >a; git commit -qam x", own: true, index: true, tips: 1},
		"staged":         {does: "echo 2 >a; git add a", own: true, index: true},
		"a switch":       {does: "git switch -qc other", own: true, tips: 1},
		"back again":     {does: "git switch -qc other; git switch -q main", own: true, tips: 1},
		"a tag":          {does: "git tag x", own: true, tips: 1},
		"packed":         {does: "git tag x; git pack-refs --all", own: true, more: true},
		"gc":             {does: "git gc -q", own: true, tips: 1},
		"left":           {does: "git checkout -q --detach; git commit -qm x --allow-empty; git checkout -q main", own: true, logged: 2},
		"reset":          {does: "git commit -qm x --allow-empty; git reset -q --hard HEAD^", own: true, logged: 2},
		"amended":        {does: "git commit -qm x --allow-empty; git commit -q --amend -m y --allow-empty", own: true, tips: 1, logged: 1},
		"a stash":        {does: "echo 2 >a; git stash -q", own: true, index: false, tips: 1},
		"a merge":        {does: "git checkout -q -b o; echo 2 >a; git commit -qam x; git checkout -q main; git merge -q --no-commit --no-ff o", own: true, index: true, more: true, tips: 1},
		"a nonsense ref": {does: "mkdir -p .git/refs/heads; echo nonsense >.git/refs/heads/x", own: true, more: true},
		"a link":         {does: "ln -s /etc/passwd .git/packed-refs", own: true, more: true},
		"a broken index": {does: "echo nonsense >.git/index", own: true, more: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.take()
			r.agent(test.does)
			w := r.written()
			if w.Own() != test.own || (w.Index != nil) != test.index || w.Other != test.more || len(w.Tips) != test.tips || test.logged > 0 && len(w.Logged) != test.logged {
				t.Errorf("it wrote %+v", w)
			}
		})
	}
}

// What the host did is said.
func TestApart(t *testing.T) {
	for name, test := range map[string]struct{ host, agent, want, cheap string }{
		"nothing":     {},
		"commits":     {host: "git commit -qm x --allow-empty; git commit -qm y --allow-empty", want: "the host's main has 2 commits more", cheap: "the host's main is at another commit"},
		"one":         {host: "git commit -qm x --allow-empty; git pack-refs --all", want: "the host's main has 1 commit more", cheap: "the host's main is at another commit"},
		"an amend":    {host: "git commit -q --amend -m x", want: "the host's main was rewritten", cheap: "the host's main is at another commit"},
		"a switch":    {host: "git switch -qc side", want: "the host has side checked out, not main"},
		"detached":    {host: "git checkout -q --detach", want: "the host has no branch checked out, not main"},
		"unborn":      {host: "git switch -q --orphan new", want: "the host has new checked out, not main"},
		"own":         {agent: "git commit -qm x --allow-empty", want: "own history"},
		"own and gc":  {agent: "git commit -qm x --allow-empty; git gc -q", want: "own history"},
		"own, both":   {host: "git switch -qc side", agent: "git commit -qm x --allow-empty", want: "the host has side checked out, not main; own history"},
		"stashed":     {agent: "echo 2 >a; git stash -q", want: "own history"},
		"a look":      {agent: "git status; git log"},
		"merged":      {agent: "git commit -qm x --allow-empty", host: "git pull -q ../work main", want: "the host's main has 1 commit more", cheap: "the host's main is at another commit; own history"},
		"hostile":     {agent: "git commit -qm x --allow-empty; echo 'ref: ../../../etc/passwd' >.git/HEAD", want: "own history"},
		"hostile ref": {agent: "git commit -qm x --allow-empty; echo --help >.git/refs/heads/main", want: "own history"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.take()
			if test.agent != "" {
				r.agent(test.agent)
			}
			if test.host != "" {
				r.host(test.host)
			}
			if test.cheap == "" {
				test.cheap = test.want
			}
			if got := r.Apart(r.ask); got != test.want {
				t.Errorf("it is said %q, want %q", got, test.want)
			}
			if got := r.Apart(nil); got != test.cheap {
				t.Errorf("by references alone it is said %q, want %q", got, test.cheap)
			}
		})
	}
}

// What a session has checked out is told by what its git wrote, and else by what was taken.
func TestTip(t *testing.T) {
	for name, test := range map[string]struct{ host, agent string }{
		"nothing":          {agent: "true"},
		"a commit":         {agent: "git commit -qm x --allow-empty"},
		"packed":           {agent: "git commit -qm x --allow-empty; git pack-refs --all", host: "git pack-refs --all"},
		"another":          {agent: "git switch -q side", host: "git branch side; git commit -qm x --allow-empty"},
		"another, packed":  {agent: "git switch -q side", host: "git branch side; git commit -qm x --allow-empty; git pack-refs --all"},
		"no branch":        {agent: "git checkout -q --detach HEAD^", host: "git commit -qm x --allow-empty"},
		"on it":            {agent: "git commit -qm x --allow-empty", host: "git checkout -q --detach"},
		"back on a branch": {agent: "git switch -q main", host: "git checkout -q --detach"},
		"new":              {agent: "git switch -q --orphan new"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.host(cmp.Or(test.host, "true"))
			r.take()
			r.agent(test.agent)
			want := r.sh(r.work, "git symbolic-ref -q HEAD || true; git rev-parse -q --verify HEAD || true")
			is := r.Tip("")
			if got := strings.TrimSpace(strings.TrimSpace(is.Branch) + "\n" + is.Commit); got != want {
				t.Errorf("it has %q checked out, want %q", got, want)
			}
		})
	}
}

// References that are kept in tables are told by which those are, and go with a session
// as files do.
func TestReftable(t *testing.T) {
	r := newRig(t)
	table := filepath.Join(r.Project, ".git", "reftable")
	list := func(text string) {
		r.must(os.MkdirAll(table, 0o755))
		r.must(os.WriteFile(filepath.Join(table, "tables.list.new"), []byte(text), 0o644))
		r.must(os.Rename(filepath.Join(table, "tables.list.new"), filepath.Join(table, "tables.list")))
	}
	list("one.ref\n")
	r.must(os.WriteFile(filepath.Join(r.Project, ".git/HEAD"), []byte("ref: refs/heads/.invalid\n"), 0o644))
	r.take()
	if got := r.Apart(r.ask); got != "" {
		t.Errorf("nothing was done, and it is said %q", got)
	}
	list("one.ref\ntwo.ref\n")
	if got := r.Apart(r.ask); got != "the host's branches are others" {
		t.Errorf("it is said %q", got)
	}
	if text, err := os.ReadFile(filepath.Join(Layer(r.Folder), ".git/reftable/tables.list")); err != nil || string(text) != "one.ref\n" {
		t.Errorf("the session has %q, %v", text, err)
	}
	upper := filepath.Join(r.Folder, "upper/.git/reftable")
	r.must(os.MkdirAll(upper, 0o755))
	r.must(os.WriteFile(filepath.Join(upper, "tables.list"), []byte("one.ref\nmine.ref\n"), 0o644))
	if w := r.written(); !w.Other {
		t.Errorf("it wrote %+v", w)
	}
	if got := r.Apart(nil); got != "the host's branches are others; own history" {
		t.Errorf("it is said %q", got)
	}
	for fetched, want := range map[bool]string{false: "commits that its tables may lead to", true: ""} {
		if got := r.Unfetched(func(string, []string) map[string]bool { return map[string]bool{"": fetched} }); got != want {
			t.Errorf("to be fetched is %q", got)
		}
	}
}

// What is written in place isn't shared; what git only replaces is, and what another program
// has there by its content's hash, which may be larger than all that is copied.
func TestTake(t *testing.T) {
	r := newRig(t)
	hash := strings.Repeat("0123456789abcdef", 4)
	r.host("git branch " + hash + "; mkdir -p .git/lfs/objects/01; truncate -s 1G .git/lfs/objects/01/" + hash + "; echo x >.git/lfs/cache")
	r.host("git config user.name x; git remote add o https://me:secret@example.org/x; git gc -q; touch .git/index.lock .git/objects/pack/tmp_pack_x; mkdir .git/empty")
	r.take()
	in := filepath.Join(Layer(r.Folder), ".git")
	same := func(name string) bool {
		a, err := os.Stat(filepath.Join(r.Project, ".git", name))
		r.must(err)
		b, err := os.Stat(filepath.Join(in, name))
		r.must(err)
		return os.SameFile(a, b)
	}
	packs, err := filepath.Glob(filepath.Join(in, "objects/pack/*.pack"))
	if err != nil || len(packs) != 1 || !same("objects/pack/"+filepath.Base(packs[0])) {
		t.Errorf("the packs are %q, %v", packs, err)
	}
	if !same("lfs/objects/01/" + hash) {
		t.Error("what is named by its content's hash isn't shared")
	}
	if same("index") || same("config") || same("packed-refs") || same("HEAD") || same("lfs/cache") || same("logs/refs/heads/"+hash) {
		t.Error("what git, or a person, writes in place is shared")
	}
	for _, gone := range []string{"index.lock", "objects/pack/tmp_pack_x"} {
		if exists(filepath.Join(in, gone)) {
			t.Errorf("%s came along", gone)
		}
	}
	if text, err := os.ReadFile(filepath.Join(in, "config")); err != nil || strings.Contains(string(text), "secret") {
		t.Errorf("the configuration is %q, %v", text, err)
	}
	if !exists(filepath.Join(in, "empty")) {
		t.Error("an empty folder is gone")
	}
	// What is taken again takes the place of it all, and a fork has the same.
	r.host("rm .git/index.lock; git commit -qm more --allow-empty")
	r.take()
	fork := Git{Project: r.Project, Folder: r.Folder + "-fork", Repositories: r.Repositories}
	r.must(Fork(r.Folder, fork.Folder))
	for _, g := range []Git{r.Git, fork} {
		if git.CheckedOut(g.Project, g.Of) != git.CheckedOut(r.Project, git.Here) {
			t.Errorf("in %s it isn't what the host has", g.Folder)
		}
		if _, ok, err := Load(g.Folder); !ok || err != nil {
			t.Errorf("in %s nothing is known of it: %v", g.Folder, err)
		}
	}
}

// What git writes while it is copied is noticed; what others write isn't git's state.
func TestCopiedMeanwhile(t *testing.T) {
	for name, test := range map[string]struct {
		before, does  string
		moved, locked bool
	}{
		"a look":            {does: "git log; git show"},
		"an object":         {does: "echo 3 | git hash-object -w --stdin"},
		"another program":   {before: "mkdir -p .git/lfs", does: "mkdir .git/lfs/objects; echo x >.git/lfs/cache"},
		"staged":            {does: "echo 2 >a; git add a", moved: true},
		"a commit":          {does: "git commit -qm x --allow-empty", moved: true},
		"a branch":          {does: "git branch side", moved: true},
		"another one":       {before: "git branch side", does: "git symbolic-ref HEAD refs/heads/side", moved: true},
		"packed":            {does: "git pack-refs --all", moved: true},
		"fetched":           {does: "git update-ref refs/remotes/o/x HEAD", moved: true},
		"a rebase":          {before: "mkdir .git/rebase-merge", does: "echo x >.git/rebase-merge/done", moved: true},
		"a module":          {before: "git init -q .git/modules/x", does: "git -C .git/modules/x config a.b c", moved: true},
		"it begins":         {does: "touch .git/index.lock", moved: true},
		"it is about to be": {before: "touch .git/refs/heads/main.lock", does: "true", locked: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.host(test.before)
			c := &copier{names: maxNames, bytes: maxCopied}
			_, err := c.folder(filepath.Join(r.Project, ".git"), filepath.Join(r.Folder, "copy"), copied)
			r.must(err)
			r.host(test.does)
			if c.moved() != test.moved || c.locked != test.locked {
				t.Errorf("that it moved is %v, locked %v", c.moved(), c.locked)
			}
		})
	}
}

// What moves is copied again, and what never stands still isn't taken; a lock that stays is
// nobody's that writes.
func TestStandsStill(t *testing.T) {
	for name, test := range map[string]struct {
		moved, locked int // looks
		want          int
		err           error
	}{
		"at once":  {want: 1},
		"a commit": {moved: 2, locked: 3, want: 4},
		"left":     {locked: 1000, want: patience + 1},
		"no end":   {moved: 1000, want: tries, err: errBusy},
	} {
		n := 0
		err := still(func() (moved, locked bool, err error) {
			n++
			return n <= test.moved, n <= test.locked, nil
		})
		if n != test.want || !errors.Is(err, test.err) {
			t.Errorf("%s: after %d looks it is said %v", name, n, err)
		}
	}
}

// A session whose process was killed while it took over the host's state has the one of
// before; a settled one has no other.
func TestKilledWhileTaking(t *testing.T) {
	for _, killed := range []string{"the note is put aside", "some is put aside", "all is put aside", "it is taken"} {
		t.Run(killed, func(t *testing.T) {
			r := newRig(t)
			r.take()
			was := git.CheckedOut(r.Project, r.Of)
			r.host("git commit -qm more --allow-empty")
			switch killed {
			case "the note is put aside":
				r.must(os.MkdirAll(before(r.Folder), 0o700))
				r.must(os.Rename(note(r.Folder), filepath.Join(before(r.Folder), "taken.json")))
			case "some is put aside":
				r.must(r.aside())
				r.must(os.Remove(moved(r.Folder)))
				r.must(os.WriteFile(filepath.Join(Layer(r.Folder), "yet"), nil, 0o600))
			case "all is put aside":
				r.must(r.aside())
				r.must(os.MkdirAll(filepath.Join(Layer(r.Folder), ".git"), 0o700))
			case "it is taken":
				_, err := r.Take(1)
				r.must(err)
			}
			if _, known, err := Load(r.Folder); !known || err != nil {
				t.Errorf("nothing is known of it: %v", err)
			}
			r.must(r.Recover())
			if is := git.CheckedOut(r.Project, r.Of); is != was {
				t.Errorf("it has %v, which was %v", is, was)
			}
			if taken, known, err := Load(r.Folder); !known || err != nil || taken.Run != 0 {
				t.Errorf("of it is known %+v, %v", taken, err)
			}
			r.take()
			r.must(r.Recover())
			if is := git.CheckedOut(r.Project, r.Of); is == was || exists(before(r.Folder)) {
				t.Errorf("once it is settled it has %v", is)
			}
		})
	}
}

// Where objects can't be linked they are copied, and the host's are shown beside, which
// is all that there is of larger ones.
func TestOnAnotherFilesystem(t *testing.T) {
	r := newRig(t)
	other, err := os.MkdirTemp("/dev/shm", "stepbox-test-")
	if err != nil {
		t.Skip("there is no other filesystem:", err)
	}
	t.Cleanup(func() { os.RemoveAll(other) })
	if err := os.Link(filepath.Join(r.Project, "a"), filepath.Join(other, "a")); err == nil {
		t.Skip("it is the same filesystem")
	}
	r.Folder = filepath.Join(other, "session")
	for _, large := range []bool{false, true} {
		if large {
			r.must(os.WriteFile(filepath.Join(r.Project, ".git/objects/pack/large.pack"), nil, 0o644))
			r.must(os.Truncate(filepath.Join(r.Project, ".git/objects/pack/large.pack"), maxStored))
		}
		taken, err := r.Take(0)
		r.must(err)
		store := filepath.Join(r.Project, ".git/objects")
		if len(taken.Stores) != 1 || taken.Stores[0].Source != store || taken.Stores[0].Kept == large || (len(taken.Lost()) == 1) != large {
			t.Errorf("large: %v, taken are %+v", large, taken.Stores)
		}
		objects := filepath.Join(Layer(r.Folder), ".git/objects")
		if text, err := os.ReadFile(filepath.Join(objects, "info/alternates")); err != nil || string(text) != taken.Stores[0].Target+"\n" {
			t.Errorf("git looks in %q, %v", text, err)
		}
		if n := size(objects) - int64(len(taken.Stores[0].Target)+1); (n == size(store)) == large {
			t.Errorf("large: %v, copied are %d bytes", large, n)
		}
	}
}

// A look at a project with submodules refreshes their indexes; what was committed in one
// is its history. Submodules may be called as git's own folders are.
func TestSubmodules(t *testing.T) {
	r := newRig(t)
	r.host("for n in lib objects refs; do git -c protocol.file.allow=always submodule --quiet add ./ $n 2>/dev/null || git -c protocol.file.allow=always submodule --quiet add \"$PWD\" $n; done; git commit -qm modules; git -C objects remote set-url origin https://me:secret@example.org/x")
	r.take()
	if text, err := os.ReadFile(filepath.Join(Layer(r.Folder), ".git/modules/objects/config")); err != nil || strings.Contains(string(text), "secret") {
		t.Errorf("a submodule's configuration is %q, %v", text, err)
	}
	folders := r.Folders()
	slices.Sort(folders)
	if !slices.Equal(folders, []string{"lib", "objects", "refs"}) {
		t.Errorf("the working trees are %q", folders)
	}
	r.agent("touch lib/a objects/a refs/a; git status; git submodule status")
	for _, w := range r.Wrote(r.state(), r.read) {
		if w.Own() {
			t.Errorf("by a look it wrote %+v", w)
		}
	}
	r.host("cd objects; git commit -qm more --allow-empty")
	r.agent("cd objects; echo 2 >a; git commit -qam agent")
	own := map[string]bool{}
	for _, w := range r.Wrote(r.state(), r.read) {
		if w.Own() {
			own[w.Tree] = true
		}
	}
	if len(own) != 1 || !own["objects"] {
		t.Errorf("a history of its own have %v", own)
	}
	if log, err := os.ReadFile(filepath.Join(Layer(r.Folder), ".git/modules/objects/logs/HEAD")); err != nil || strings.Contains(string(log), "more") {
		t.Errorf("the host's log is the session's: %s, %v", log, err)
	}
}

// What git has and is another on the host by now is put back as it was; nothing else.
func TestSince(t *testing.T) {
	file := func(p string, hash byte) base.Entry {
		e := base.Entry{Path: p, Entry: manifest.Entry{Kind: manifest.KindFile, Size: 1, Meta: manifest.Meta{Mode: 0o644}}}
		e.Hash[0] = hash
		return e
	}
	gone := func(p string) base.Entry {
		return base.Entry{Path: p, Entry: manifest.Entry{Kind: manifest.KindWhiteout}}
	}
	tracked := func(p string) base.Tracked { return base.Tracked{Path: p, Mode: 0o100644, Hash: []byte(p)} }
	index := []base.Repository{{Tracked: []base.Tracked{tracked("clean"), tracked("changed"), tracked("edited"), tracked("gone"), tracked("own"), tracked("file"), tracked("folder/sub/in")}}}
	then := &base.Record{Repositories: index, Entries: []base.Entry{file("edited", 1), file("untracked", 1)}}
	now := &base.Record{Repositories: index, Entries: []base.Entry{
		file("changed", 2), file("edited", 2), gone("gone"), file("own", 2), file("untracked", 2), file("new", 2), file("committed", 2),
		{Path: "file", Entry: manifest.Entry{Kind: manifest.KindDir}}, file("file/committed", 2), file("folder", 2)}}
	var got []string
	for _, b := range Since(then, now, func(p string) bool { return p == "own" }, func(_, p string) bool { return p == "committed" || p == "file/committed" || p == "folder" }) {
		got = append(got, fmt.Sprintf("%s %v %q", b.Path, b.Was.Kind, b.Blob))
	}
	slices.Sort(got)
	want := []string{
		fmt.Sprintf("changed %v %q", manifest.KindFile, "changed"), fmt.Sprintf("committed %v %q", manifest.KindWhiteout, ""),
		fmt.Sprintf("edited %v %q", manifest.KindFile, ""), fmt.Sprintf("file %v %q", manifest.KindFile, "file"),
		fmt.Sprintf("folder/sub/in %v %q", manifest.KindFile, "folder/sub/in"), fmt.Sprintf("gone %v %q", manifest.KindFile, "gone"),
	}
	if !slices.Equal(got, want) {
		t.Errorf("put back are %q, want %q", got, want)
	}
}

// Whether git checks a file out in another form than it has it is told as git does it.
func TestConverts(t *testing.T) {
	for _, config := range []string{"core.eol=lf", "core.eol=crlf", "core.autocrlf=true", "core.autocrlf=input"} {
		r := newRig(t)
		r.host("git config " + strings.Replace(config, "=", " ", 1) + `
			n=0
			for a in text=auto text -text ident !x; do for e in eol=crlf eol=lf !eol filter=rot; do
				n=$((n+1)); echo "f$n $a $e" >>.gitattributes; printf 'one $Id$\ntwo\n' >f$n
			done; done
			git config filter.rot.smudge 'tr a-z n-za-m'
			git add f* 2>/dev/null; git commit -qm more; rm f*; git checkout -q -- .`)
		files := strings.Fields(r.host("ls -d f*"))
		said := r.host("git check-attr -z " + strings.Join(Converting, " ") + " -- " + strings.Join(files, " "))
		for p, attributes := range Attributes(said) {
			is, err := os.ReadFile(filepath.Join(r.Project, p))
			r.must(err)
			want := string(is) != "one $Id$\ntwo\n"
			if got := Converts(attributes, config == "core.autocrlf=true", config == "core.eol=crlf"); got != want {
				t.Errorf("%s: with %v it is said %v of %q", config, attributes, got, is)
			}
		}
	}
}
