package frozen

import (
	"path/filepath"
	"strings"
	"testing"
)

// What goes with a session is said, by what leads to it.
func TestUnfetched(t *testing.T) {
	const commit, beyond = "git commit -qm x --allow-empty; ", ", commits on more references than are looked at"
	const push = ", which no apply fetches: push it from the session"
	for name, test := range map[string]struct{ host, agent, upper, has, want string }{
		"a look":            {agent: "git status; git log"},
		"one":               {agent: commit, want: "1 commit on main"},
		"several":           {agent: commit + commit + "git switch -qc side; " + commit + "git switch -q main; git branch same", want: "2 commits on main, 1 commit on side"},
		"had by now":        {agent: commit + commit, has: "git rev-parse HEAD HEAD^"},
		"had in part":       {agent: commit + commit, has: "git rev-parse HEAD^", want: "1 commit on main"},
		"on no branch":      {agent: "git checkout -q --detach; " + commit + "git worktree add -q --detach tree; (cd tree; git commit -qm y --allow-empty)", want: "1 commit on no branch, 1 commit on no branch"},
		"stashes":           {agent: "echo 2 >a; git stash -q; echo 3 >a; git stash -q", want: "2 stashes"},
		"the host's stash":  {host: "echo 2 >a; git stash -q", agent: "echo 3 >a; git stash -q", want: "1 stash"},
		"a tag":             {agent: "git checkout -q --detach; " + commit + "git tag -am v v1; git checkout -q main", want: "1 commit on the tag v1"},
		"a tag of theirs":   {agent: "git tag -am v v1; git tag v2; git branch other", want: "the text of the tag v1" + push},
		"a text had by now": {agent: "git tag -am v v1; git tag -am w v2 v1", has: "git rev-parse v1 HEAD", want: "the text of the tag v2" + push},
		"a tag, and more":   {agent: commit + "git tag -am v v1", want: "1 commit on main, the text of the tag v1" + push},
		"a packed tag":      {agent: "git tag -am v v1; git gc -q", want: "commits on the tag v1"},
		"notes":             {agent: "git notes add -m n", want: "1 commit on the notes commits"},
		"another name":      {agent: "git update-ref refs/wip/x $(git commit-tree -m x HEAD^{tree}); git update-ref refs/remotes/o/x $(git commit-tree -m y HEAD^{tree})", want: "1 commit on refs/wip/x"},
		"put aside":         {agent: "git branch b; echo 2 >a; git commit -qam x; git switch -q b; echo 3 >a; git commit -qam y; echo 4 >>c; git add c; git merge -q --autostash main || true", want: "1 commit on b, 1 commit on main, 1 stash"},
		"no log of it":      {agent: "echo 3 >a; git stash -q; git reflog expire --expire=now --all", want: "1 stash"},
		"among thousands": {host: "h=$(git rev-parse HEAD); for i in $(seq 1200); do printf \"$h refs/%s/$i\\n\" tags remotes/o; done >.git/packed-refs; git branch old; git pack-refs --all",
			agent: "git branch -qd old; git switch -qc keep; " + commit, want: "1 commit on keep"},
		"thousands": {agent: "for i in $(seq 1100); do printf '%040d refs/heads/x%d\\n' $i $i; done >.git/packed-refs",
			want: "commits on x1, commits on x10, commits on x100, commits on x1000, commits on x1001, and 996 more"},
		"a hash as name":         {agent: commit + "git branch -m $(git hash-object a)", want: "1 commit on d00491fd7e5bb6fa28c517a0bb32b8b506539d4d"},
		"packed names":           {agent: commit + "git pack-refs --all; " + commit, want: "2 commits on main"},
		"packed":                 {agent: commit + "git gc -q", want: "commits on main"},
		"many":                   {agent: "for i in 1 2 3 4 5 6 7; do git switch -qc b$i main; git commit -qm $i --allow-empty; done", want: "1 commit on b1, 1 commit on b2, 1 commit on b3, 1 commit on b4, 1 commit on b5, and 2 more"},
		"large names":            {agent: commit, upper: "truncate -s 1G .git/refs/heads/z1; truncate -s 1T .git/refs/heads/z2 .git/ORIG_HEAD .git/MERGE_AUTOSTASH", want: "1 commit on main" + beyond},
		"hostile":                {agent: commit + "git branch other", upper: "find .git/objects -type f -exec rm -f {} ';' -exec mkfifo {} ';'; rm -rf .git/HEAD .git/logs; mkfifo .git/HEAD .git/worktrees .git/packed-refs; mkdir .git/refs/tags; ln -s /etc/passwd .git/refs/tags/x; ln -s / .git/logs", want: "commits on main" + beyond},
		"a link":                 {agent: commit, upper: "mv .git/refs/heads/main .git/x; ln -s ../../x .git/refs/heads/main", want: beyond[2:]},
		"a link's folder":        {agent: commit, upper: "mv .git/refs .git/x; ln -s x .git/refs", want: beyond[2:]},
		"a linked tree":          {agent: commit, upper: "mkdir .git/worktrees; ln -s ../x .git/worktrees/x", want: "1 commit on main" + beyond},
		"more than a hash":       {agent: commit, upper: "sed -i 's/$/ x/' .git/refs/heads/main", want: beyond[2:]},
		"in capitals":            {agent: commit, upper: "sed -i y/abcdef/ABCDEF/ .git/refs/heads/main", want: beyond[2:]},
		"in capitals, packed":    {agent: commit + "git pack-refs --all", upper: "sed -i '/main/y/abcdef/ABCDEF/' .git/packed-refs", want: beyond[2:]},
		"elsewhere":              {agent: commit, upper: "mv .git/refs/heads/main .git/X; echo ref: X >.git/refs/heads/main", want: beyond[2:]},
		"as another":             {agent: commit + "git symbolic-ref refs/heads/other refs/heads/main", want: "1 commit on main"},
		"left by a crash":        {agent: commit, upper: "touch .git/refs/heads/x.lock .git/refs/heads/.x; mknod .git/refs/heads/gone c 0 0 || true", want: "1 commit on main"},
		"deep":                   {agent: commit, upper: "cd .git/refs/heads; for i in $(seq 2000); do mkdir a; cd -P a; done", want: "1 commit on main" + beyond},
		"deep, and no reference": {agent: commit, upper: "mkdir .git/x; cd .git/x; for i in $(seq 2000); do mkdir a; cd -P a; done", want: "1 commit on main, more files than are looked at in .git"},
		"a tree of theirs":       {agent: "git tag t HEAD^{tree}; git tag -am v v HEAD:a", has: "git rev-parse HEAD^{tree}", want: "the text of the tag v" + push},
		"a blob": {agent: "git tag t $(printf 'x\\nparent %040d\\n' 1 | git hash-object -w --stdin); git tag -am v v $(echo 7 | git hash-object -w --stdin); git tag u $(head -c 90000 /dev/zero | git hash-object -w --stdin)",
			want: "a blob on the tag t" + push + ", a blob on the tag u" + push + ", a blob on the tag v" + push},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			if test.host != "" {
				r.host(test.host)
			}
			r.take()
			r.agent(test.agent)
			r.sh(filepath.Join(r.Folder, "upper"), test.upper)
			got := r.Unfetched(func(repository string, hashes []string) map[string]bool {
				has := map[string]bool{}
				if test.has != "" {
					for hash := range strings.FieldsSeq(r.sh(r.work, test.has)) {
						has[hash] = true
					}
				}
				return has
			})
			if got != test.want {
				t.Errorf("it is said %q, want %q", got, test.want)
			}
		})
	}
}
