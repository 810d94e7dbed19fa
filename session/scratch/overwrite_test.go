package scratch

import (
	"os"
	"path/filepath"
	"testing"
)

// What the person has taken out of git since is ignored as well.
func TestWhatAMergeWouldWriteOverThatGitHad(t *testing.T) {
	t.Parallel()
	r := newRig(t, map[string]string{".env": "SECRET\n", "a.txt": "one\n"})
	r.commitAll("")
	state := r.layer(asAda + `echo FAKE >.env; git commit -qam x`)
	r.git("", "rm", "-q", "--cached", ".env")
	r.write(".gitignore", ".env\n")
	r.git("", "add", ".gitignore")
	r.git("", "commit", "-qm", "no secrets")
	got, err := r.Commits(t.Context(), state, whole(state))
	r.must(err)
	if len(got.List) != 1 || got.List[0].Danger != "merged into main it writes over 1 file that git has no copy of: .env" {
		t.Errorf("it is said %+v", got.List)
	}
}

// Where there is no history in common a merge, or a pick, writes over all the same.
func TestWhatIsWrittenOverWithoutAHistory(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		before func(r *rig)
		does   string
		into   string
	}{
		"there is none yet": {func(r *rig) { r.git("", "init", "-q", "-b", "main") }, "", "what is checked out"},
		"another one":       {func(r *rig) { r.commitAll("") }, "git checkout -q --orphan topic; git rm -qr --cached .; ", "main"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, map[string]string{".gitignore": ".env\n", "a.txt": "one\n"})
			test.before(r)
			r.write(".env", "SECRET\n")
			state := r.layer(asAda + test.does + `echo FAKE >.env; git add -f .env a.txt; git commit -qm x`)
			got, err := r.Commits(t.Context(), state, whole(state))
			r.must(err)
			if len(got.List) != 1 || got.List[0].Danger != "merged into "+test.into+" it writes over 1 file that git has no copy of: .env" {
				t.Errorf("it is said %+v, %s", got.List, notes(got))
			}
		})
	}
}

// What git ignores it has no copy of, and writes over: a plan says so first.
func TestWhatAMergeWouldWriteOver(t *testing.T) {
	t.Parallel()
	const over = "merged into main it writes over 1 file that git has no copy of: "
	for name, test := range map[string]struct{ does, want string }{
		"a hidden file":                     {`echo FAKE >.env; git add -f .env`, over + ".env"},
		"an ignored file":                   {`echo theirs >local.cfg; git add -f local.cfg`, over + "local.cfg"},
		"the same content":                  {`git add -f local.cfg link`, "merged into main it has 2 files that git ignores there: link, local.cfg"},
		"a link":                            {`ln -sfn elsewhere link; git add -f link`, over + "link"},
		"a file for a folder":               {`rm -rf build; echo f >build; git add -f build`, over + "build/in/precious"},
		"a folder for a file":               {`rm local.cfg; mkdir local.cfg; echo f >local.cfg/x; git add -f local.cfg`, over + "local.cfg"},
		"a file below a link":               {`rm link; mkdir link; echo f >link/x; git add -f link`, over + "link"},
		"what git refuses":                  {`rm -r seen; echo theirs >seen; git add seen`, ""},
		"what it ignores by then":           {`rm -r seen; echo seen >>.gitignore; git add .gitignore; git commit -qm y; echo theirs >seen; git add -f seen`, over + "seen/file"},
		"what it doesn't by then":           {`rm -r seen; printf '%s\n' '!seen' >many/.gitignore; git add -f many/.gitignore; git commit -qm y; echo theirs >seen; git add -f seen`, over + "seen/file"},
		"what another branch has it ignore": {`git switch -qc topic; echo seen >>.gitignore; git commit -qam y; git switch -q main; rm -r seen; echo theirs >seen; git add seen`, over + "seen/file"},
		"what the plan has it ignore":       {`rm -r seen; echo theirs >seen; git add seen; git commit -qm x; echo seen >>.gitignore; exit`, over + "seen/file"},
		"one that goes again":               {`echo FAKE >.env; git add -f .env; git commit -qm mid; git rm -q --cached .env; git add new`, over + ".env"},
		"beside what is there":              {`mkdir -p build/in; echo f >build/in/new; echo n >new; git add -f build/in/new new`, ""},
		"a folder of git's for one":         {`git rm -rq dir; echo f >dir; git add dir`, ""},
		"many": {`for i in 1 2 3 4 5; do echo f >many/$i; done; git add -f many`,
			"merged into main it writes over 5 files that git has no copy of: many/1, many/2, many/3 and 2 more"},
		"out of the tree": {`b=$(echo x | git hash-object -w --stdin); t=$(printf "100644 blob $b\tkeep\n" | git mktree)
			git update-ref refs/heads/main $(git commit-tree -p HEAD -m x $( (git ls-tree HEAD; printf "040000 tree $t\t..\n") | git mktree)); exit`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, map[string]string{"a.txt": "one\n", "dir/c.txt": "c\n", ".gitignore": ".env\nlocal.cfg\nbuild/\nlink\nmany\n"})
			r.commitAll("")
			r.write(".env", "SECRET\n")
			r.write("local.cfg", "mine\n")
			r.write("build/in/precious", "art\n")
			r.write("../keep", "else\n")
			r.write("seen/file", "untracked\n")
			r.must(os.Symlink("nowhere", filepath.Join(r.project, "link")))
			for _, n := range []string{"1", "2", "3", "4", "5"} {
				r.write("many/"+n, n)
			}
			r.cfg.Hidden = []string{".env"}
			state := r.layer(asAda + "umask 022; echo new >new; " + test.does + "; git commit -qm x")
			got, err := r.Commits(t.Context(), state, whole(state))
			r.must(err)
			if len(got.List) == 0 || got.List[0].Danger != test.want || len(got.Notes) > 0 {
				t.Errorf("it is said %+v, %s", got.List, notes(got))
			}
		})
	}
}
