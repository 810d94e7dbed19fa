package scratch

import (
	"cmp"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"stepbox/runner/overlay/manifest"
)

// whole is what a plan of all that a session did shows.
func whole(state *manifest.Manifest) Shown {
	writes := func(p string) (*manifest.Entry, error) {
		if e := state.Lookup(p); e != nil && (e.Kind == manifest.KindFile || e.Kind == manifest.KindSymlink) {
			return e, nil
		}
		return nil, nil
	}
	paths := func(yield func(string) bool) {
		for p, e := range state.All() {
			if e.Kind != manifest.KindDir && e.Kind != manifest.KindWhiteout && !strings.HasPrefix(p, ".git/") && !yield(p) {
				return
			}
		}
	}
	return Shown{Writes: writes, Paths: paths, Deletes: func(p string) bool {
		for at := p; at != "."; at = path.Dir(at) {
			e := state.Lookup(at)
			if e != nil && at == p && e.Kind != manifest.KindWhiteout {
				return false
			}
			if e != nil && (e.Kind != manifest.KindDir || e.Opaque) {
				return true
			}
		}
		return false
	}}
}

// A file that the session deleted goes unseen where the plan doesn't delete it.
func TestWhatAPlanLeavesOut(t *testing.T) {
	t.Parallel()
	r := newRig(t, map[string]string{"a.txt": "one\n", "b.txt": "b\n"})
	r.commitAll("")
	state := r.layer(asAda + `git rm -q a.txt b.txt; git commit -qm x`)
	got, err := r.Commits(t.Context(), state, Shown{Deletes: func(p string) bool { return p == "a.txt" }, Writes: nothing, Paths: func(func(string) bool) {}})
	r.must(err)
	if len(got.List) != 1 || got.List[0].Danger != "merged into main it deletes 1 file that this plan doesn't: b.txt" {
		t.Errorf("it is said %+v", got.List)
	}
}

// What a merge would take is told by what the trees are, however the agent's git was
// made to leave it out.
func TestWhatAMergeWouldTake(t *testing.T) {
	t.Parallel()
	const left = "merged into main it deletes 3 files that this plan doesn't: b.txt, dir/c.txt, key.txt"
	for name, test := range map[string]struct{ does, want string }{
		"an honest commit":         {`echo more >>a.txt; rm b.txt; git mv dir/c.txt dir/d.txt; echo n >n; git add -A; git commit -qm x`, ""},
		"a folder that goes":       {`rm -r dir; echo now a file >dir; git add -A; git commit -qm x`, ""},
		"read-tree":                {`git read-tree HEAD~1; git commit -qm x`, "merged into main it deletes 1 file that this plan doesn't: dir/c.txt; merged into main it leaves 1 file otherwise than this plan: a.txt"},
		"a temporary index":        {`export GIT_INDEX_FILE=/tmp/index; git add a.txt; git commit -qm x`, left},
		"a deleted index":          {`rm .git/index; echo more >>a.txt; git add a.txt; git commit -qm x`, left},
		"an index without a file":  {`git update-index --force-remove key.txt; git rm -q --cached b.txt dir/c.txt; git commit -qm x`, left},
		"plumbing":                 {`t=$(printf '100644 blob %s\ta.txt\n' $(git rev-parse HEAD:a.txt) | git mktree); git update-ref refs/heads/main $(git commit-tree -p HEAD -m x $t)`, left},
		"an honest one after that": {`git rm -q --cached b.txt; git commit -qm x; git add b.txt; git commit -qm y`, ""},
		"a revert, which is shown": {`git revert --no-edit HEAD >/dev/null`, ""},
		"one elsewhere":            {`git switch -qc topic; git revert --no-edit HEAD >/dev/null; git switch -q main`, "merged into main it deletes 1 file that this plan doesn't: dir/c.txt; merged into main it puts 1 file back to what had been there before: a.txt"},
		"one that is shown, too":   {`git revert --no-edit HEAD >/dev/null; git switch -qc next; git commit -qm x --allow-empty`, ""},
		"a file that is hidden":    {`git update-index --force-remove key.txt; git commit -qm x`, "merged into main it deletes 1 file that this plan doesn't: key.txt"},
		"another branch":           {`git switch -qc topic; git rm -q --cached b.txt; git commit -qm x`, "merged into main it deletes 1 file that this plan doesn't: b.txt"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, map[string]string{"a.txt": "one\n", "b.txt": "b\n", "key.txt": "k\n"})
			r.commitAll("")
			r.write("a.txt", "two\n")
			r.write("dir/c.txt", "c\n")
			r.git("", "add", "-A")
			r.git("", "commit", "-qm", "second")
			r.cfg.Hidden = []string{"key.txt"}
			state := r.layer(asAda + "git config advice.addEmptyPathspec false; git update-index --skip-worktree key.txt; " + test.does)
			got, err := r.fetched("s1", state)
			r.must(err)
			if len(got.List) == 0 || got.List[0].Danger != test.want || len(got.Notes) > 0 {
				t.Errorf("it is said %+v, %s", got.List, notes(got.Commits))
			}
			for _, c := range got.List[1:] {
				if c.Danger != "" {
					t.Errorf("of an older one it is said %q", c.Danger)
				}
			}
		})
	}
}

// A branch that counts as merged brings nothing any more; notes are merged as well.
func TestWhatAMergeMakesOfOthers(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ does, want string }{
		"a branch":                        {`git merge -q --no-edit side`, ""},
		"one of which it takes nothing":   {`git merge -q -s ours -m m side`, "merged into main it counts 3 files of other branches as merged and leaves them out: a.txt, l.txt, s.txt"},
		"one whose file it takes none of": {`sed -i '1s/.*/mine/' l.txt; git commit -qam x; git merge -q side >&2 || true; git checkout -q --ours l.txt; git commit -qam m`, "merged into main it counts 1 file of other branches as merged and leaves them out: l.txt"},
		"one where it answers":            {`echo mine >a.txt; sed -i '1s/.*/mine/' l.txt; git commit -qam x; git merge -q side >&2 || true; git checkout -q --ours a.txt; sed -i '/^<<<<<<< /d;/^=======/,/^>>>>>>> /d' l.txt; git commit -qam m`, ""},
		"one that it goes on in its way":  {`git merge -q --no-ff --no-edit side; git mv s.txt t.txt; sed -i 's/^side$/better/; s/^/  /' a.txt l.txt; git commit -qam x`, ""},
		"one that went on since":          {`git merge -q -s ours -m m side~1`, "merged into main it counts 3 files of other branches as merged and leaves them out: a.txt, l.txt, s.txt"},
		"one whose file it wrote anew":    {`echo mine >a.txt; git commit -qam x; git merge -q side >&2 || true; (echo mine; echo side) >a.txt; git commit -qam m`, ""},
		"one that it goes on in":          {`echo mine >a.txt; git commit -qam x; git merge -q side >&2 || true; echo side >a.txt; git commit -qam m; echo more >>s.txt; echo more >>a.txt; git commit -qam x`, ""},
		"one that it reverts":             {`git merge -q --no-ff --no-edit side; git revert --no-edit -m1 HEAD`, "merged into main it counts 3 files of other branches as merged and leaves them out: a.txt, l.txt, s.txt"},
		"one that it went back on":        {`git switch -q side; echo x >x; git add x; git commit -qm x; git switch -q main; git merge -q -s ours -m m side`, "merged into main it counts 3 files of other branches as merged and leaves them out: a.txt, l.txt, s.txt"},
		"one of another repository":       {`git merge -q -s ours -m m origin/far`, "merged into main it counts 1 file of other branches as merged and leaves them out: f.txt"},
		"one that it leaves its own for":  {`git switch -q side; git merge -q -s ours -m m main; git switch -q main; git merge -q side`, ""},
		"a note":                          {`git notes add -fm mine`, "merged into yours it changes 1 note: "},
		"one that is merged unasked":      {`git notes add -fm other`, "merged into yours it changes 1 note: "},
		"one that is merged":              {`git notes add -fm other; echo 'a.txt -text' >.gitattributes; git add -A; git commit -qm x`, ""},
		"one of another commit":           {`git notes add -m mine HEAD~1`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, map[string]string{"a.txt": "one\n", "l.txt": "1\n2\n3\n4\n5\n"})
			r.commitAll("")
			r.git("", "switch", "-qc", "side")
			r.write("a.txt", "side\n")
			r.write("l.txt", "side\n2\n3\n4\nside\n")
			r.write("s.txt", "side\n")
			r.git("", "add", "-A")
			r.git("", "commit", "-qm", "on the side")
			r.git("", "commit", "-qm", "and on", "--allow-empty")
			r.git("", "switch", "-q", "main")
			r.git("", "switch", "-qc", "far")
			r.write("f.txt", "far\n")
			r.git("", "add", "-A")
			r.git("", "commit", "-qm", "far")
			r.git("", "switch", "-q", "main")
			r.git("", "update-ref", "refs/remotes/origin/far", "far")
			r.git("", "branch", "-qD", "far")
			r.git("", "commit", "-qm", "on main", "--allow-empty")
			r.git("", "notes", "add", "-m", "noted")
			want := test.want
			if strings.HasSuffix(want, "note: ") {
				want += r.git("", "rev-parse", "HEAD")[:12]
			}
			state := r.layer(asAda + test.does)
			if strings.HasPrefix(name, "one that is merged") {
				r.git("", "notes", "add", "-fm", "noted again")
			}
			if name == "one that is merged unasked" {
				r.git("", "config", "notes.mergeStrategy", "theirs")
			}
			r.saysOf(state, want)
		})
	}
}

// What a commit has though the session changed nothing there is the person's: it is said where
// they have taken it back since.
func TestWhatAMergeBringsBack(t *testing.T) {
	t.Parallel()
	const writes = "merged into main it leaves 1 file otherwise than this plan: "
	const older = "merged into main it puts 1 file back to what had been there before: "
	stay := func(*rig) {}
	long := func(r *rig, five, twentyFive string) {
		rest := strings.Repeat("x\n", 19)
		r.write("l.txt", "1\n2\n3\n4\n"+five+"\n"+rest+twentyFive+"\n26\n27\n")
		r.git("", "add", "-A")
	}
	debugged := func(r *rig) {
		long(r, "5", "25")
		r.git("", "commit", "-qm", "a long one")
		long(r, "5 DEBUG", "25")
		r.git("", "reset", "-q")
	}
	encoded := func(r *rig) {
		r.write(".gitattributes", "c.txt working-tree-encoding=UTF-16LE\n")
		r.write("c.txt", "c\x00")
		r.git("", "add", "-A")
		r.git("", "commit", "-qm", "an encoding")
	}
	bad := func(r *rig) {
		r.write("c.txt", "bad\n")
		r.git("", "commit", "-qam", "bad")
	}
	edited := func(r *rig) { r.write("c.txt", "mine\r\n") }
	for name, test := range map[string]struct {
		before func(*rig)
		does   string
		after  func(*rig)
		want   string
	}{
		"what was amended": {func(r *rig) {
			r.write("s.txt", "secret\n")
			r.git("", "add", "-A")
			r.git("", "commit", "-qm", "with it")
			r.freeze()
		}, "echo b >>b.txt; git add -A", func(r *rig) {
			r.git("", "rm", "-q", "s.txt")
			r.git("", "commit", "-qm", "without it", "--amend", "--allow-empty")
		}, writes + "s.txt"},
		"an edit that was thrown away": {edited, "git add -A", func(r *rig) { r.git("", "checkout", "-q", "c.txt") }, writes + "c.txt"},
		"one that stands":              {edited, "git add -A", stay, ""},
		"one with other ends of lines": {edited, "git config core.autocrlf input; git add -A", stay, ""},
		"one that a filter changes": {func(r *rig) {
			r.write(".gitattributes", "c.txt filter=x\n")
			r.git("", "add", "-A")
			r.git("", "commit", "-qm", "a filter")
			r.git("", "config", "filter.x.clean", "tr a-z A-Z")
			edited(r)
		}, "git config filter.x.clean 'tr a-z A-Z'; git add -A", stay, writes + "c.txt"},
		"an encoded one that stands": {func(r *rig) {
			encoded(r)
			r.write("c.txt", "m\x00m\x00")
		}, "git add -A", stay, writes + "c.txt"},
		"one of which its size doesn't tell that": {func(r *rig) {
			encoded(r)
			r.write("c.txt", "m\x00")
		}, "git add -A", stay, writes + "c.txt"},
		"one thrown away beside a change in the same file": {debugged, "git add -A", func(r *rig) {
			long(r, "5", "25 mine")
			r.git("", "commit", "-qam", "mine")
		}, writes + "l.txt"},
		"one thrown away where there is another change by now": {debugged, "git add -A", func(r *rig) {
			long(r, "5 mine", "25")
			r.git("", "commit", "-qam", "mine")
		}, ""},
		"one that was thrown away, in a file renamed since": {debugged, "git add -A", func(r *rig) {
			r.git("", "checkout", "-q", "l.txt")
			r.git("", "mv", "l.txt", "m.txt")
			r.git("", "commit", "-qm", "renamed")
		}, writes + "m.txt"},
		"what git takes for renamed": {func(r *rig) {
			long(r, "5", "25")
			r.git("", "commit", "-qm", "a long one")
		}, "cp l.txt e.txt; git rm -q --cached l.txt; git add e.txt", func(r *rig) {
			long(r, "5 mine", "25")
			r.git("", "commit", "-qam", "mine")
		}, "merged into main it deletes 1 file that this plan doesn't: l.txt"},
		"what was reset away and is in another branch": {bad, "echo b >>b.txt; git add -A", func(r *rig) {
			r.git("", "branch", "backup")
			r.git("", "reset", "-q", "--hard", "HEAD~1")
		}, writes + "c.txt"},
		"behind an identity": {func(r *rig) {
			r.write(".gitattributes", "c.txt ident\n")
			r.write("c.txt", "$Id$\n")
			r.git("", "add", "-A")
			r.git("", "commit", "-qm", "an identity")
			r.must(os.Remove(filepath.Join(r.project, "c.txt")))
			r.git("", "checkout", "-q", "c.txt")
			edited(r)
		}, "git add -A", func(r *rig) { r.git("", "checkout", "-q", "c.txt") }, writes + "c.txt"},
		"a large one": {func(r *rig) {
			r.must(os.Truncate(filepath.Join(r.project, "c.txt"), maxBlob+1))
			r.git("", "commit", "-qam", "large")
			edited(r)
		}, "git add -A", func(r *rig) { r.git("", "checkout", "-q", "c.txt") }, writes + "c.txt"},
		"a large one that the plan has": {stay, `head -c 2000000 /dev/zero | tr '\0' x >c.txt; git add -A`, stay, ""},
		"where a link says what is checked out": {edited, "git add -A; git commit -qm x; ln -sf refs/heads/main .git/HEAD; exit",
			func(r *rig) { r.git("", "checkout", "-q", "c.txt") }, writes + "c.txt"},
		"where that is said in another way": {edited, `git add -A; git commit -qm x; printf 'ref:\trefs/heads/main\n' >.git/HEAD; exit`,
			func(r *rig) { r.git("", "checkout", "-q", "c.txt") }, writes + "c.txt"},
		"what a side branch had put back": {func(r *rig) {
			r.git("", "switch", "-qc", "side")
			bad(r)
			r.git("", "commit", "-qm", "side", "--allow-empty")
			r.git("", "revert", "--no-edit", "HEAD~1")
			r.git("", "switch", "-q", "main")
			r.git("", "commit", "-qm", "main", "--allow-empty")
			r.git("", "merge", "-q", "--no-edit", "side")
		}, "git switch -qc topic; echo bad >c.txt; git add -A; git commit -qm x; git switch -q main; exit", stay, older + "c.txt"},
		"what merges alone had": {func(r *rig) {
			for _, text := range []string{"bad\n", "c\n"} {
				r.git("", "switch", "-qc", "side"+text[:1])
				r.git("", "commit", "-qm", "side", "--allow-empty")
				r.git("", "switch", "-q", "main")
				r.git("", "commit", "-qm", "main", "--allow-empty")
				r.git("", "merge", "-q", "--no-commit", "side"+text[:1])
				r.write("c.txt", text)
				r.git("", "commit", "-qam", "merged")
			}
		}, "git switch -qc topic; echo bad >c.txt; git add -A; git commit -qm x; git switch -q main; exit", stay, older + "c.txt"},
		"one that goes on":   {edited, "git add -A", func(r *rig) { r.write("c.txt", "mine and more\n") }, ""},
		"whether it may run": {func(r *rig) { r.must(os.Chmod(filepath.Join(r.project, "c.txt"), 0o755)) }, "git add -A", func(r *rig) { r.git("", "checkout", "-q", "c.txt") }, writes + "c.txt"},
		"what was amended, and pushed before": {func(r *rig) {
			r.write("s.txt", "secret\n")
			r.git("", "add", "-A")
			r.git("", "commit", "-qm", "with it")
			r.git("", "update-ref", "refs/remotes/origin/main", "HEAD")
			r.freeze()
		}, "echo b >>b.txt; git add -A", func(r *rig) {
			r.git("", "rm", "-q", "s.txt")
			r.git("", "commit", "-qm", "without it", "--amend", "--allow-empty")
		}, writes + "s.txt"},
		"a new file where one was": {func(r *rig) {
			r.git("", "rm", "-q", "c.txt")
			r.git("", "commit", "-qm", "c goes")
		}, "echo else >c.txt; git add -A", stay, ""},
		"behind a filter that there isn't": {func(r *rig) {
			r.write(".gitattributes", "c.txt filter=x\n")
			edited(r)
		}, "git add -A", func(r *rig) { r.git("", "checkout", "-q", "c.txt") }, writes + "c.txt"},
		"in a merge": {func(r *rig) {
			r.git("", "branch", "side")
			r.git("", "commit", "-qm", "main", "--allow-empty")
			edited(r)
		}, "git merge -q --no-ff --no-commit -s ours side; git add -A", func(r *rig) { r.git("", "checkout", "-q", "c.txt") }, writes + "c.txt"},
		"without a branch":            {edited, "git checkout -q --detach; git add -A", func(r *rig) { r.git("", "checkout", "-q", "c.txt") }, writes + "c.txt"},
		"a new file that was removed": {func(r *rig) { r.write("new", "n\n") }, "git add -A", func(r *rig) { r.must(os.Remove(filepath.Join(r.project, "new"))) }, writes + "new"},
		"a branch that isn't left":    {edited, "git switch -qc topic; git add -A", func(r *rig) { r.git("", "checkout", "-q", "c.txt") }, writes + "c.txt"},
		"another branch":              {stay, "git switch -qc topic; echo t >t; git add -A; git commit -qm t; git switch -q main; echo b >>b.txt; git add -A", stay, ""},
		"a line that was picked and taken off, which is shown": {func(r *rig) { long(r, "5", "25"); r.git("", "commit", "-qm", "a long one") },
			"sed -i 's/^5$/5 bad/; s/^26$/26 good/' l.txt; git add -A", func(r *rig) {
				for _, five := range []string{"5 bad", "5"} {
					long(r, five, "25")
					r.git("", "commit", "-qm", five)
				}
			}, ""},
		"one that was picked and stays": {func(r *rig) { long(r, "5", "25"); r.git("", "commit", "-qm", "a long one") },
			"sed -i 's/^5$/5 bad/; s/^26$/26 good/' l.txt; git add -A", func(r *rig) {
				for _, last := range []string{"x", "y"} {
					long(r, "5 bad", "25")
					r.write("l.txt", "first "+last+"\n"+r.git("", "show", ":l.txt")+"\n")
					r.git("", "commit", "-qam", last)
				}
			}, ""},
		"odd names": {func(r *rig) {
			for _, text := range []string{"bad\n", "c\n"} {
				r.write("odd\nname", text)
				r.write("*\r", text)
				r.git("", "add", "-A")
				r.git("", "commit", "-qm", text)
			}
		}, `git switch -qc topic; for f in *[!a-z.]*; do echo bad >"$f"; done; git add -A; git commit -qm x; git switch -q main; exit`, stay, "merged into main it puts 2 files back to what had been there before: *\\r, odd\\nname"},
		"picked and reverted": {func(r *rig) {
			r.write("p.txt", "p\n")
			r.git("", "add", "-A")
			r.git("", "commit", "-qm", "picked")
			r.git("", "revert", "--no-edit", "HEAD")
		}, "git switch -qc topic; echo p >p.txt; git add -A; git commit -qm x; git switch -q main; exit", stay, "merged into main it puts 1 file back to what had been there before: p.txt"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, map[string]string{"a.txt": "one\n", "b.txt": "b\n", "c.txt": "c\n"})
			r.commitAll("")
			test.before(r)
			state := r.layer(asAda + test.does + "; git commit -qm x")
			test.after(r)
			got, err := r.Commits(t.Context(), state, whole(state))
			r.must(err)
			if len(got.List) == 0 || got.List[0].Danger != test.want || len(got.Notes) > 0 {
				t.Errorf("it is said %+v, %s", got.List, notes(got))
			}
		})
	}
}

// A git that can't merge apart leaves untold what it makes of files that both sides changed.
func TestWhatAnOlderGitWouldMerge(t *testing.T) {
	t.Parallel()
	r := newRig(t, map[string]string{"a.txt": "one\n", "b.txt": "b\n", "c.txt": "c\n", "d.txt": "d\n", "e.txt": "e\n", "f.txt": "f\n"})
	r.commitAll("")
	for _, name := range []string{"c.txt", "d.txt", "e.txt"} {
		r.write(name, "thrown away\n")
	}
	state := r.layer(asAda + "echo two >a.txt; echo mine >f.txt; git rm -q b.txt; git commit -qam x")
	for name, text := range map[string]string{"a.txt": "mine\n", "b.txt": "mine\n", "c.txt": "c\n", "d.txt": "mine\n", "f.txt": "mine\n"} {
		r.write(name, text)
	}
	r.git("", "mv", "-f", "e.txt", "g.txt")
	r.git("", "commit", "-qam", "mine")
	bin := t.TempDir()
	r.must(os.WriteFile(filepath.Join(bin, "git"), []byte("#!/bin/sh\ncase \"$*\" in *' merge-tree '*) exit 129;; esac\nexec /usr/bin/git \"$@\"\n"), 0o755))
	r.cfg.Env[0] = "PATH=" + bin + ":" + strings.TrimPrefix(r.cfg.Env[0], "PATH=")
	r.saysOf(state, "merged into main it leaves 1 file otherwise than this plan: c.txt; merged into main it may change 2 files that both sides changed: d.txt, e.txt")
}

// saysOf is what is said of the one new commit of a state.
func (r *rig) saysOf(state *manifest.Manifest, want string) {
	r.Helper()
	got, err := r.Commits(r.Context(), state, whole(state))
	r.must(err)
	if len(got.List) == 0 || got.List[0].Danger != want {
		r.Errorf("it is said %+v, %s", got.List, notes(got))
	}
}

// What a driver may merge isn't asked about; none runs where it is told what a merge leaves.
func TestNoMergeDriverRuns(t *testing.T) {
	t.Parallel()
	r := newRig(t, map[string]string{"c.txt": "c\n", "d.txt": "d\n", ".gitattributes": "c.txt merge=x\n"})
	r.commitAll("")
	ran := filepath.Join(t.TempDir(), "ran")
	driver := "[merge \"x\"]\n\tdriver = touch " + ran + "\n[core]\n\tattributesFile = " + filepath.Join(r.cfg.Home, "attributes") + "\n"
	r.must(os.WriteFile(filepath.Join(r.cfg.Home, ".gitconfig"), []byte(driver), 0o644))
	for _, file := range []string{filepath.Join(r.cfg.Home, "attributes"), filepath.Join(r.project, ".git/info/attributes")} {
		r.must(os.MkdirAll(filepath.Dir(file), 0o755))
		r.must(os.WriteFile(file, []byte("c.txt merge=x\n"), 0o644))
	}
	r.git("", "config", "merge.x.driver", "touch "+ran)
	for _, name := range []string{"c.txt", "d.txt"} {
		r.write(name, "thrown away\n")
	}
	state := r.layer(asAda + "git commit -qam x")
	for _, name := range []string{"c.txt", "d.txt"} {
		r.write(name, "mine\n")
	}
	r.git("", "commit", "-qam", "mine")
	r.saysOf(state, "merged into main it leaves 1 file otherwise than this plan: c.txt")
	r.git("", "config", "merge.default", "x")
	r.saysOf(state, "merged into main it leaves 2 files otherwise than this plan: c.txt, d.txt")
	if _, err := os.Lstat(ran); err == nil {
		t.Error("a merge driver ran")
	}
}

// What isn't a content is put back as well.
func TestModesAndSubmodulesThatArePutBack(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ does, want string }{
		"a mode":                {`git update-index --chmod=-x a.txt`, "leaves 1 file otherwise than this plan: a.txt"},
		"and another content":   {`echo new >a.txt; chmod -x a.txt; git add a.txt`, ""},
		"one elsewhere":         {`git switch -qc topic; git update-index --chmod=-x a.txt; git commit -qm x; git switch -qf main; exit`, "puts 1 file back to what had been there before: a.txt"},
		"a new mode":            {`git update-index --chmod=+x b.txt`, "leaves 1 file otherwise than this plan: b.txt"},
		"a submodule's commit":  {`git update-index --cacheinfo 160000,$(git rev-parse HEAD^:lib),lib`, "leaves 1 file otherwise than this plan: lib"},
		"another one's, unseen": {`git update-index --cacheinfo 160000,$(git rev-parse HEAD),lib`, "leaves 1 file otherwise than this plan: lib"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, map[string]string{"a.txt": "one\n", "b.txt": "b\n", "lib/c.txt": "c\n"})
			r.commitAll("lib")
			r.commitAll("")
			r.git("lib", "commit", "-qm", "more", "--allow-empty")
			r.must(os.Chmod(filepath.Join(r.project, "a.txt"), 0o755))
			r.git("", "commit", "-qam", "second")
			state := r.layer(asAda + test.does + "; git commit -qm x")
			got, err := r.Commits(t.Context(), state, whole(state))
			r.must(err)
			want := test.want
			if want != "" {
				want = "merged into main it " + want
			}
			if len(got.List) != 1 || got.List[0].Danger != want || len(got.Notes) > 0 {
				t.Errorf("it is said %+v, %s", got.List, notes(got))
			}
		})
	}
}

// A branch of the same name is compared as well as what the person has checked out, and
// what they changed meanwhile is git's to merge.
func TestWhatAMergeWouldTakeFromOtherBranches(t *testing.T) {
	t.Parallel()
	r := newRig(t, map[string]string{"a.txt": "one\n", "b.txt": "b\n", "c.txt": "c\n"})
	r.commitAll("")
	state := r.layer(asAda + `git rm -q --cached b.txt c.txt; git commit -qm x`)
	r.git("", "rm", "-q", "c.txt")
	r.git("", "commit", "-qm", "c goes")
	r.git("", "switch", "-qc", "side")
	r.git("", "rm", "-q", "b.txt")
	r.git("", "commit", "-qm", "b goes")
	got, err := r.Commits(t.Context(), state, whole(state))
	r.must(err)
	if want := "merged into main it deletes 1 file that this plan doesn't: b.txt"; len(got.List) != 1 || got.List[0].Danger != want {
		t.Errorf("it is said %+v", got.List)
	}
}

// A branch whose newest commit is one of another's is compared as well.
func TestWhatABranchWithinAnotherWouldTake(t *testing.T) {
	t.Parallel()
	r := newRig(t, map[string]string{"a.txt": "one\n", "b.txt": "b\n"})
	r.commitAll("")
	state := r.layer(asAda + `git rm -q --cached b.txt; git commit -qm without; git branch z; git add b.txt; git commit -qm with`)
	got, err := r.Commits(t.Context(), state, whole(state))
	r.must(err)
	if len(got.List) != 2 || got.List[0].Danger != "" || !strings.Contains(got.List[1].Danger, "b.txt") {
		t.Errorf("it is said %+v", got.List)
	}
}

// A git in the sandbox that packs nothing, or something else, leaves it untold, which is said.
func TestWhatCantBeComparedIsSaid(t *testing.T) {
	t.Parallel()
	for name, does := range map[string]string{"nothing": ":", "nonsense": "echo nonsense", "a link": `ln -sf /etc/passwd /tmp/1.pack`, "none of them": `/usr/bin/git pack-objects -q --stdout </dev/null`} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRepository(t)
			r.write("bin/README", "x")
			r.cfg.Env[0] = "PATH=" + filepath.Join(r.project, "bin") + ":" + strings.TrimPrefix(r.cfg.Env[0], "PATH=")
			state := r.layer(asAda + `/usr/bin/git commit -qm work --allow-empty
				printf '#!/bin/bash\ncase "$*" in *" pack-objects "*) %s;; *) exec /usr/bin/git "$@";; esac\n' '` + does + `' >bin/git; chmod +x bin/git`)
			got, err := r.Commits(t.Context(), state, whole(state))
			r.must(err)
			if len(got.List) != 1 || !strings.Contains(got.List[0].Danger, "couldn't be compared") {
				t.Errorf("it is said %+v", got)
			}
			r.git("", "fsck", "--strict")
			if objects, err := os.ReadDir(filepath.Join(r.project, ".git/objects/pack")); err != nil || len(objects) > 0 {
				t.Errorf("there are %v, %v", objects, err)
			}
		})
	}
}

// What the person's git was told not to have in the working tree they haven't let go of.
func TestWhatIsntCheckedOut(t *testing.T) {
	t.Parallel()
	const left = "merged into main it deletes 1 file that this plan doesn't: out/b.txt"
	for name, test := range map[string]struct {
		before func(*rig)
		want   string
	}{
		"sparse":         {func(r *rig) { r.git("", "sparse-checkout", "set", "in") }, left},
		"sparse folders": {func(r *rig) { r.git("", "sparse-checkout", "set", "--cone", "--sparse-index", "in") }, left},
		"a bit": {func(r *rig) {
			r.git("", "update-index", "--skip-worktree", "out/b.txt")
			r.must(os.Remove(filepath.Join(r.project, "out/b.txt")))
		}, left},
		"nothing": {func(r *rig) {
			r.must(os.RemoveAll(filepath.Join(r.project, "out")))
			r.must(os.Remove(filepath.Join(r.project, ".git/index")))
		}, left},
		"it was let go": {func(r *rig) { r.must(os.Remove(filepath.Join(r.project, "out/b.txt"))) }, ""},
		"and staged":    {func(r *rig) { r.git("", "rm", "-q", "out/b.txt") }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, map[string]string{"in/a.txt": "a\n", "out/b.txt": "b\n"})
			r.commitAll("")
			test.before(r)
			r.saysOf(r.layer(asAda+`export GIT_INDEX_FILE=/tmp/index; echo a2 >in/a.txt; git add -A; git commit -qm x`), test.want)
		})
	}
}

// A commit may be without what the session's files have again.
func TestWhatTheFilesKeep(t *testing.T) {
	t.Parallel()
	const text = "1\n2\nfunc mine() {\n\tx\n\treturn\n}\n3\n4\nfunc b() {\n\tx\n\treturn\n}\n"
	const takes = "merged into main it leaves 1 file otherwise than this plan: a.txt"
	const without = "sed -i '/mine/,/}/d' a.txt; git commit -qam x; "
	for name, test := range map[string]struct{ does, want string }{
		"lines":                    {"cp a.txt /tmp/a; " + without + "(echo new; cat /tmp/a) >a.txt", takes},
		"some of them":             {without + `sed -i '2a func mine() {' a.txt`, takes},
		"lines that there are two": {`sed -i 5d a.txt; git commit -qam x; sed -i '4a\	return' a.txt; echo new >>a.txt`, takes},
		"with other ends of lines": {"cp a.txt /tmp/a; " + without + `(echo new; cat /tmp/a) | sed 's/$/\r/' >a.txt`, takes},
		"a mode":                   {"chmod -x a.txt; git commit -qam x; chmod +x a.txt; echo new >>a.txt", takes},
		"what it is":               {"mv a.txt /tmp/a; ln -s b a.txt; git commit -qam x; rm a.txt; cp /tmp/a a.txt; echo new >>a.txt", takes},
		"in a renamed file":        {"cp a.txt /tmp/a; git mv a.txt b.txt; sed -i '/mine/,/}/d' b.txt; git commit -qam x; (echo new; cat /tmp/a) >b.txt", strings.ReplaceAll(takes, "a.txt", "b.txt")},
		"taken off by a merge":     {"git switch -qc side; git commit -qm y --allow-empty; git switch -q main; git merge -q --no-ff --no-commit side; cp a.txt /tmp/a; sed -i '/mine/,/}/d' a.txt; git commit -qam x; (echo new; cat /tmp/a) >a.txt", takes},
		"a line that stands twice": {"cp a.txt /tmp/a; sed -i '/mine/d' a.txt; git commit -qam x; (cat /tmp/a; echo 'func mine() {') >a.txt", takes},
		"in what was moved":        {"cp a.txt /tmp/a; " + without + "mv /tmp/a a.txt; mkdir t; mv a.txt t", strings.ReplaceAll(takes, "a.txt", "t/a.txt")},
		"in what was moved, with other ends of lines": {"cp a.txt /tmp/a; " + without + "rm a.txt; mkdir t; sed 's/$/\\r/' /tmp/a >t/a.txt", strings.ReplaceAll(takes, "a.txt", "t/a.txt")},
		"what git-lfs keeps": {`echo new >>l.bin; printf 'version https://git-lfs.github.com/spec/v1\noid sha256:%s\nsize %s\n' $(sha256sum l.bin | cut -d' ' -f1) $(stat -c %s l.bin) >/tmp/p
			git update-index --cacheinfo 100644,$(git hash-object -w --no-filters /tmp/p),l.bin; git commit -qm x`, ""},
		"behind an encoding":      {"iconv -t UTF-16LE a.txt >u.txt; git add -A; git commit -qm e; grep -v mine a.txt | iconv -t UTF-16LE >u.txt; git commit -qam x; (cat a.txt; echo new) | iconv -t UTF-16LE >u.txt", strings.ReplaceAll(takes, "a.txt", "u.txt")},
		"it goes on":              {without + `sed -i '2s/.*/two/' a.txt; echo new >>a.txt`, ""},
		"another text there":      {without + `sed -i '2a func other() {\n\tx\n\treturn\n}' a.txt`, takes},
		"another text at the end": {`sed -i '/func b/,$d' a.txt; git commit -qam x; printf 'func c() {\n\tx\n\treturn\n}\n' >>a.txt`, takes},
		"a line that moved":       {`sed -i '1d;$a 1' a.txt; git commit -qam x; sed -i '1i 1' a.txt`, takes},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, map[string]string{"a.txt": text, ".gitattributes": "u.txt working-tree-encoding=UTF-16LE\nt/* text\n*.bin filter=lfs\n", "l.bin": "l\n"})
			r.must(os.Chmod(filepath.Join(r.project, "a.txt"), 0o755))
			r.commitAll("")
			r.saysOf(r.layer(asAda+test.does), test.want)
		})
	}
}

// Where each side has merged the other, they go on from more than one commit.
func TestWhatAMergeTakesOfTwoBases(t *testing.T) {
	t.Parallel()
	r := newRig(t, map[string]string{"f.txt": "one\n", "g.txt": "one\n"})
	r.commitAll("")
	r.git("", "switch", "-qc", "side")
	r.write("f.txt", "side\n")
	r.git("", "commit", "-qam", "side")
	r.git("", "switch", "-q", "main")
	r.write("g.txt", "main\n")
	r.git("", "commit", "-qam", "main")
	state := r.layer(asAda + `git merge -q --no-edit side; echo one >f.txt; echo one >g.txt; git commit -qam x; git checkout -q HEAD~1 f.txt g.txt`)
	r.git("", "merge", "-q", "--no-edit", "side")
	for _, text := range []string{"one\n", ""} {
		r.write("f.txt", cmp.Or(text, "side\n"))
		r.write("g.txt", cmp.Or(text, "main\n"))
		if text != "" {
			r.git("", "commit", "-qam", "as it was")
		}
	}
	r.saysOf(state, "merged into main it leaves 2 files otherwise than this plan: f.txt, g.txt")
}

// Settings may have a merge ask nothing.
func TestWhatSettingsMerge(t *testing.T) {
	t.Parallel()
	const writes = "merged into main it leaves 1 file otherwise than this plan: a.txt"
	for name, test := range map[string]struct{ key, value, want string }{
		"attributes":         {"", "a.txt merge=union", strings.NewReplacer("1 file", "2 files", ": ", ": .gitattributes, ").Replace(writes)},
		"a side":             {"branch.main.mergeOptions", "--no-ff -Xtheirs", writes},
		"a strategy":         {"branch.main.mergeOptions", "--strategy=ours", writes},
		"a driver":           {"merge.default", "union", writes},
		"how it is recorded": {"branch.main.mergeOptions", "--no-ff --log", ""},
		"of another branch":  {"branch.side.mergeOptions", "-Xtheirs", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, map[string]string{"a.txt": "one\n"})
			r.commitAll("")
			does := "echo theirs >a.txt; git commit -qam x; git reset -q --soft HEAD~1; "
			if test.key == "" {
				does += "echo '" + test.value + "' >.gitattributes; git add -A; "
			}
			state := r.layer(asAda + does + "git commit -qm x")
			r.write("a.txt", "mine\n")
			r.git("", "commit", "-qam", "mine")
			if test.key != "" {
				r.git("", "config", test.key, test.value)
			}
			unplanned := whole(state)
			unplanned.Writes = func(string) (*manifest.Entry, error) { return nil, nil }
			got, err := r.Commits(t.Context(), state, unplanned)
			r.must(err)
			if len(got.List) != 1 || got.List[0].Danger != test.want {
				t.Errorf("it is said %+v, %s", got.List, notes(got))
			}
		})
	}
}

// nothing is what a plan writes that writes nothing.
func nothing(string) (*manifest.Entry, error) { return nil, nil }
