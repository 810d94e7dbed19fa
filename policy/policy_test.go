package policy

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"stepbox/session/e2e/must"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// asking are the rules of a person who is to be asked about much.
var asking = sync.OnceValue(func() *Policy {
	data, err := os.ReadFile("testdata/rules.yaml")
	if err != nil {
		panic(err)
	}
	l, err := ParseLayer("yours", "rules.yaml", data)
	if err != nil {
		panic(err)
	}
	return Of(l)
})

// line judges a script as bash -c gets it, in the project folder.
func line(script string) Judgement {
	return asking().Command(Command{
		Argv: []string{"/bin/bash", "-c", script}, Program: "/usr/bin/bash",
		Cwd: "/home/me/proj", Project: "/home/me/proj", Home: "/home/me",
		Hidden: func(file string) bool { return file == "/home/me/proj/out-of-sight/.env" },
	})
}

// Every rule that asks, with what it must catch and what comes near.
var askingCases = []struct {
	rule   string // a piece of its words
	caught []string
	missed []string
}{
	{"rm -r|-R|--recursive", []string{
		"rm -rf .", "rm -r -f .", "rm -fr ./", "rm -Rf ..", "rm --recursive --force .", "rm --recurs .", "rm . -rf", "rm -v -rf -- .",
		"rm -rf *", "rm -rf ./*", "rm -rf ./", "rm -rf .*", "rm -rf .[!.]*", "rm -rf {.,..}", "rm -rf src/..", "rm -rf ../proj", "rm -rf ../proj/",
		"rm -rf /", "rm -rf //", "rm -rf /.", "rm -rf /*", "rm -rf /usr", "rm -rf ~", "rm -rf ~/", "rm -rf ~/*", "rm -rf $HOME", `rm -rf "$HOME"/`, "rm -rf ~/.ssh",
		"rm -rf .git", "rm -rf .git/", "rm -rf ./.git/objects", "rm -rf sub/.git", "rm -rf /home/me/proj", "rm -rf $PWD", "rm -rf /proc/self/cwd/",
		`rm -rf "$X"`, "rm -rf $X", "rm -rf $X/", `rm -rf "$(pwd)"`, "rm -rf ./$X", "rm $X", `rm "$@"`,
		"rm\t-rf\t.", "rm -r\\f .", `r\m -rf .`, `"rm" '-rf' "."`, `r''m -r"f" .`, `$'rm' -rf .`, `$'\x72m' -rf .`, "/bin/rm -rf .", "./../../usr/bin/rm -rf .", "{rm,-rf,.}",
		"rm -rf a b c d e f g h i j", "unlink *; rm -rf .",
		"find . -delete", "find -delete", "find . -type f -delete", "find / -name '*' -delete", "find . ! -name x -delete", "find . -name a -o -name b -delete",
		"find . -exec rm -rf {} +", `find . -type d -exec rm -rf {} \;`, "find . -print0 | xargs -0 rm -rf", "find . -execdir rm -r {} ';'", "bfs -S dfs . -delete",
		"timeout 5 rm -rf .", "timeout -s KILL 5 rm -rf .", "env X=1 rm -rf .", "env -i -u Y X=1 rm -rf .", "env -S 'rm -rf .'", "nice -n 5 rm -rf .", "nice -5 rm -rf .",
		"nohup rm -rf . &", "command rm -rf .", "exec rm -rf .", "exec -a ls rm -rf .", "time rm -rf .", "time -p rm -rf .", "busybox rm -rf .", "busybox sh -c 'rm -rf .'",
		"builtin command rm -rf .", "stdbuf -oL rm -rf .", "setsid -w rm -rf .", "flock /tmp/l rm -rf .", "flock /tmp/l -c 'rm -rf .'", "script -qc 'rm -rf .' /dev/null", "watch rm -rf .",
		"nice --new-option x rm -rf .", "timeout --new 1 x rm -rf .", "xargs -I{} rm -rf {}", "parallel rm -rf ::: .",
		"sh -c 'rm -rf .'", `bash -lc "rm -rf ."`, `bash -euo pipefail -c 'rm -rf .'`, "bash --norc -c 'rm -rf .'", `sh -c "sh -c 'rm -rf .'"`, "zsh -fc 'rm -rf .'", "fish -c 'rm -rf .'", "fish -c 'and rm -rf .'",
		"eval 'rm -rf .'", "eval rm -rf .", "trap 'rm -rf .' EXIT", "bash <<'E'\nrm -rf .\nE", "sh <<< 'rm -rf .'", "cat <<E\n$(rm -rf .)\nE",
		"echo $(rm -rf .)", "echo `rm -rf .`", `X="$(rm -rf .)"`, "echo ${X:-$(rm -rf .)}", "[ -n \"$(rm -rf .)\" ]", "echo $(( $(rm -rf .) ))", "a[$(rm -rf .)]=1", "cat <(rm -rf .)",
		"true && rm -rf .", "false || rm -rf .", "(rm -rf .)", "{ rm -rf .; }", "if true; then rm -rf .; fi", "for i in 1; do rm -rf .; done", "while :; do rm -rf .; done",
		"case x in x) rm -rf . ;; esac", "! rm -rf .", "coproc rm -rf .", "f() { rm -rf .; }; f", "ls() { rm -rf /; }; ls", "export X=$(rm -rf .)", "rm -rf . > /dev/null 2>&1 &",
		"cd build; rm -rf *", "cd build || true; rm -rf *", "cd \"$X\" && rm -rf *", "cd / && rm -rf *", "cd && rm -rf *", "cd .. && rm -rf proj", "pushd build; popd; rm -rf *", "cd build && cd .. && rm -rf *",
		"cd() { :; }; cd build && rm -rf *", "while cd ..; do rm -rf *; done", "(cd build); rm -rf *", "cd build && true; rm -rf *",
		"X=/; HOME=/ ; rm -rf $HOME/x/y",
	}, []string{
		"rm -rf build", "rm -rf ./build/", "rm -rf src/gen", "rm -rf build/*", "rm -rf *.o", "rm -rf *.go", "rm -rf **/node_modules", "rm file.txt", "rm -f .gitignore", "rm -rf .github/workflows",
		"rm -rf /tmp/x", "rm -rf /tmp/x-$$", "rm -rf /tmp/x-$RANDOM/y", "rm -rf build/$X", "rm -f build/\"$X\".o", `rm "$f"`, `rm -f "$tmp"`, "rm -rf ~/.cache/x", "rm -f .git/index.lock",
		"rm -rf a b c", "rm -rf 'src/*'", "echo rm -rf .", "echo 'rm -rf .'", "grep -rf . rm", "cat <<'E'\n$(rm -rf .)\nE", "git commit -m 'rm -rf .'", "git commit -m \"$(cat <<'E'\nrm -rf .\nE\n)\"",
		"find . -name '*.pyc' -delete", "find build -delete", "find . -type f -name '*.o' -exec rm {} +", "find . -name x", "find . -exec grep -l rm {} +",
		"cd build && rm -rf *", "cd build && rm -rf ./* && ls", "(cd build && rm -rf *)", "cd build || exit 1; rm -rf *", "timeout 5 rm -rf build", "command -v rm", "man rm", "which rm",
		"env FOO=bar grep rm .", "timeout 10 grep -rn sudo src", "mkdir -p src/{a,b}", "rmdir *.d",
	}},
	{"rm ** <everything>", []string{"rm *", "rm -f ./*", "rm -- *", "cd /tmp; cd ~/proj && rm *"}, []string{"rm *.txt", "rm a*b", "rm build/*"}},
	{"unlink|rmdir", []string{"rmdir *", "trash ./*"}, []string{"rmdir x", "unlink x"}},
	{"srm|trash|rip", []string{"trash .", "srm .git"}, []string{"trash x"}},
	{"mv ** <wide>", []string{"mv . /tmp/x", "mv * /tmp", "mv ./* ../x", "mv .git /tmp", "mv ~ /tmp/x", "mv -v -- /home/me/proj /tmp"},
		[]string{"mv a b", "mv a .", "mv build/x .", "mv *.txt docs/", "mv a ~", "mv a b ./"}},
	{"mv -t|--target-directory", []string{"mv -t /tmp *", "mv --target-directory=/tmp ./*", "mv -t /tmp ."}, []string{"mv -t . a", "mv -t docs a.txt"}},
	{"chmod|chown|chgrp", []string{"chmod -R 777 .", "chmod 777 -R .", "chown -R me: ~", "chmod --recursive a+w *", "chgrp -vR x /", "chmod -R $M ."},
		[]string{"chmod +x run.sh", "chmod -R 755 bin", "chmod 644 .", "chmod -r x", `chmod +x "$f"`, "chown me x"}},
	{"setfacl", []string{"setfacl -R -m u:x:rwx ."}, []string{"setfacl -m u:x:r file"}},
	{"dd ** of=*", []string{"dd if=/dev/zero of=x", "dd of=/dev/sda", "dd bs=1M if=a of=b count=1"}, []string{"dd if=a bs=1 count=1", "dd --help"}},
	{"mkfs|mkfs.*", []string{"mkfs.ext4 x", "mkfs x", "wipefs -a x", "/sbin/fdisk x"}, []string{"ls mkfs", "mkfifo x"}},
	{"shred", []string{"shred x", "shred -u x"}, []string{"grep shred x"}},
	{"truncate", []string{"truncate -s 0 x"}, []string{"echo truncate"}},
	{"rsync --delete*", []string{"rsync -a --delete a/ .", "rsync --delete-after x/ ~/"}, []string{"rsync -a a/ b/", "rsync -a --delete a/ build/out"}},
	{"kill ** -1", []string{"kill -9 -1", "kill -- -1", "kill -s KILL -1", "kill -KILL -- -1", "kill -1"}, []string{"kill -l", "kill 123", "kill -1 123", "kill -9 $$", "kill %1", "kill -9 1234"}},
	{"pkill|killall .", []string{"pkill .", "pkill -9 .", "pkill -f '.*'", "pkill ''$X"}, []string{"pkill -f vite", "pkill myserver", "killall myserver"}},
	{"pkill|killall -u", []string{"pkill -u root", "killall --user me", "pkill -v xx", "pkill -9u me"}, []string{"pkill -x server"}},
	{"pkill|killall claude", []string{"pkill node", "killall -9 claude", "pkill -f codex"}, []string{"pkill -f 'node server.js'"}},
	{"killall5", []string{"killall5"}, nil},
	{"git push|send-email", []string{"git --shallow-file x push", "git --unheard-of x push",
		"git push", "git push origin main", "git -C x push", "git -c a=b push", "git --git-dir=x push", "git --git-dir x push", "git --no-pager push",
		"git-push origin", "/usr/lib/git-core/git-push", "git $X", "git \"$X\" origin", "git pus$X", "git add . && git commit -m x && git push", "GIT_SSH_COMMAND=x git push", "git -C \"$D\" push", "git push --dry-run origin",
	}, []string{"git status", "git stash push", "git log --grep push", "git commit -m push", "git -C push status", "git pull", "git fetch", "git diff push", "git checkout push", "git st$X", "git push --dry-run", "git commit -m $MSG", "git log -- $F"}},
	{"git push -f|--force", []string{"git push --force", "git push -f origin x", "git push --force-with-lease", "git push -uf origin x", "git push origin --delete x", "git -C x push -f"}, []string{"git stash push -f x"}},
	{"git push ** +*|:[a-zA-Z]*", []string{"git push origin +main", "git push origin :old", "git push origin main +x"}, nil},
	{"git svn|p4", []string{"git svn dcommit", "git p4 submit"}, []string{"git svn log"}},
	{"git lfs push", []string{"git lfs push origin"}, []string{"git lfs pull"}},
	{"git reset --hard", []string{"git reset --hard", "git reset HEAD~3 --hard", "git reset --har", "git -C . reset --hard"}, []string{"git reset", "git reset --soft HEAD~1", "git reset HEAD x"}},
	{"git reset --merge", []string{"git reset --merge"}, nil},
	{"git clean", []string{"git clean -fdx", "git clean -d -f", "git clean --force", "git clean -xdf", "git clean $F", "git -c clean.requireForce=false clean -dx", "git clean -n --no-dry-run -f"}, []string{"git clean -n", "git clean -nd", "git clean -n -d", "git clean --dry-run"}},
	{"git checkout|switch -f", []string{"git checkout -f", "git switch --discard-changes main", "git checkout --force x", "git switch -f x"}, []string{"git checkout main", "git checkout -b f", "git switch -c x"}},
	{"git checkout|restore|checkout-index", []string{"git checkout .", "git checkout -- .", "git checkout HEAD -- .", "git restore .", "git restore --staged --worktree .", "git restore :/", "git checkout -- '*'", "git restore ':(top)'", "git checkout HEAD -- ./"},
		[]string{"git checkout -- a.go", "git restore a.go", "git restore '*.go'", "git checkout feature/x", "git restore src/x"}},
	{"git checkout-index -a", []string{"git checkout-index -a -f", "git checkout-index --all"}, nil},
	{"git rm", []string{"git rm -r .", "git rm -rf '*'", "git rm --cached -r ."}, []string{"git rm a.go", "git rm -r old"}},
	{"git stash drop|clear", []string{"git stash drop", "git stash clear"}, []string{"git stash", "git stash pop", "git stash list"}},
	{"git read-tree --reset", []string{"git read-tree --reset -u HEAD"}, []string{"git read-tree HEAD"}},
	{"git filter-branch", []string{"git filter-branch --all", "git filter-repo --path x", "git-filter-repo", "git replace a b"}, []string{"git rebase -i HEAD~2", "git commit --amend"}},
	{"git reflog", []string{"git reflog expire --all", "git reflog delete x"}, []string{"git reflog", "git reflog show"}},
	{"git update-ref -d", []string{"git update-ref -d refs/heads/x"}, []string{"git update-ref refs/heads/x HEAD"}},
	{"git -c=gc.", []string{"git -c gc.pruneExpire=now gc", "git -cgc.reflogexpire=now gc"}, []string{"git -c gc.auto=0 fetch"}},
	{"git gc|prune", []string{"git gc --prune=now", "git prune --expire=now"}, []string{"git gc", "git prune"}},
	{"git config --global", []string{"git config --global user.name x", "git config --glob alias.x y", "git config --system x y", "git config x y --global"}, []string{"git config user.name x", "git config --global --get user.name", "git config --global -l", "git config --list"}},
	{"git credential|credential-*", []string{"git credential fill", "git credential-store get", "git-credential-store get"}, nil},
	{"git config ** credential.*", []string{"git config credential.helper store", "git config core.sshCommand x", "git config --local core.hooksPath x"}, []string{"git config core.editor vi", "git config --get core.askPass", "git config core.fsmonitor false", "git config --unset core.sshCommand"}},
	{"git -c=credential.*", []string{"git -c credential.helper=x fetch", "git -c core.sshCommand=x fetch", "git -c core.askPass= -c core.askPass=./x fetch"}, []string{"git -c color.ui=never status", "git -c core.askPass= -c credential.helper= -c core.sshCommand=false remote get-url origin"}},
	{"npm|pnpm|yarn|bun publish", []string{"npm publish", "npm --prefix x publish", "pnpm publish --access public", "yarn publish", "npm unpublish x", "npm token list", "npm login", "npm -w x publish", "npm pub", "npm --access public publish", "npm --cache /tmp/x publish"},
		[]string{"npm install", "npm run publish-docs", "npm test", "npm ci", "npm run build", "npm publish --dry-run", "npm --silent run publish"}},
	{"yarn npm publish", []string{"yarn npm publish"}, []string{"yarn npm audit"}},
	{"cargo publish", []string{"cargo publish", "cargo --config x publish", "cargo yank x", "cargo login"}, []string{"cargo build", "cargo test", "cargo publish --dry-run"}},
	{"twine upload", []string{"twine upload dist/*", "python -m twine upload dist/*", "python3.12 -m twine upload x", "python -mtwine upload x", "python3 -Im twine upload x", "uvx twine upload x"}, []string{"twine check dist/*", "python -m pytest"}},
	{"poetry|uv", []string{"poetry publish", "uv publish", "deno publish"}, []string{"poetry install", "uv sync"}},
	{"mix hex.publish", []string{"mix hex.publish"}, []string{"mix test"}},
	{"gem push", []string{"gem push x.gem"}, []string{"gem install x"}},
	{"gradle|gradlew publish*", []string{"./gradlew publishToMavenCentral", "gradle publish"}, []string{"./gradlew build"}},
	{"mvn|mvnw deploy", []string{"mvn deploy", "./mvnw -B release:perform"}, []string{"mvn test", "mvn package"}},
	{"dotnet|nuget", []string{"dotnet nuget push x", "nuget push x"}, []string{"dotnet build"}},
	{"vsce|ovsx", []string{"vsce publish", "npx vsce publish"}, []string{"vsce package"}},
	{"goreleaser release", []string{"goreleaser release"}, []string{"goreleaser check"}},
	{"helm push", []string{"helm push x y"}, nil},
	{"composer global", []string{"composer global require x"}, []string{"composer install"}},
	{"pod trunk", []string{"pod trunk push"}, []string{"pod install"}},
	{"gh release|pr", []string{"gh release create v1", "gh pr create --fill", "gh pr merge 1", "gh repo delete x", "gh -R a/b issue close 1", "gh secret set X", "gh pr create --body \"$X\""}, []string{"gh pr view 1", "gh pr list", "gh release list", "gh run view"}},
	{"gh auth|api", []string{"gh auth token", "gh api repos/x", "gh auth login"}, []string{"gh --version"}},
	{"glab|hub|tea", []string{"glab mr create"}, nil},
	{"wrangler|vercel", []string{"vercel deploy", "wrangler publish", "fly deploy", "terraform apply", "terraform destroy -auto-approve", "npx wrangler deploy", "pulumi up"}, []string{"terraform plan", "terraform fmt"}},
	{"kubectl|helm|oc", []string{"kubectl delete pod x", "kubectl -n x apply -f y", "helm upgrade x y"}, []string{"kubectl get pods", "helm template x"}},
	{"docker|podman", []string{"docker run x", "docker ps", "podman build .", "docker-compose up", "timeout 5 docker run x"}, []string{"docker --version", "cat docker-compose.yml"}},
	{"ssh|sftp", []string{"ssh host", "ssh host ls", "sftp x", "exec ssh x", "ssh $X"}, []string{"ssh -V", "ssh-keygen -l -f x", "ls ~/.ssh"}},
	{"scp|rsync ** <remote>", []string{"scp a host:b", "scp me@host:a .", "rsync -av x host:/y", "rsync rsync://h/x .", `scp x "$T"`}, []string{"rsync -a a/ b/", "scp a b", "rsync -a ./a:b c"}},
	{"rclone", []string{"rclone sync a b:c", "rclone copy x y:"}, []string{"rclone ls x:"}},
	{"aws|gsutil", []string{"aws s3 cp x s3://y", "gsutil rm gs://x", "aws --profile x s3 sync . s3://y"}, []string{"aws s3 ls"}},
	{"ssh-add|ssh-agent", []string{"ssh-add -l", "gpg --list-keys", "pass show x", "op read x"}, []string{"echo pass"}},
	{"sudo|su", []string{"sudo ls", "su -c ls", "doas ls", "pkexec ls", "timeout 5 sudo ls", "sudo -u x ls", "env sudo ls"}, []string{"echo sudo", "sum x"}},
	{"cat|tac", []string{"cat .env"}, []string{"cat x"}},
	{"grep|egrep", []string{"grep x .env"}, []string{"grep .env x"}},
	{"cp|install", []string{"cp .env x"}, []string{"cp x .env"}},
	{"crontab|at", []string{"crontab -e", "crontab x", "echo ls | at now", "crontab -l | crontab"}, []string{"crontab -l", "cat at"}},
	{"systemctl", []string{"systemctl restart x", "systemctl --user enable x"}, []string{"systemctl status"}},
	{"systemd-run", []string{"systemd-run ls"}, nil},
	{"shutdown|reboot", []string{"shutdown now", "reboot"}, nil},
}

func TestAskingRules(t *testing.T) {
	for _, c := range askingCases {
		for _, s := range c.caught {
			j := line(s)
			if j.Verdict != Ask {
				t.Errorf("%s: not asked\n%s", s, j.Explain())
				continue
			}
			found := false
			for _, p := range j.Parts {
				found = found || strings.HasPrefix(p.Rule, "ask "+c.rule)
			}
			if !found && !strings.Contains(s, "$") {
				t.Errorf("%s: asked by another rule than %q\n%s", s, c.rule, j.Explain())
			}
		}
		for _, s := range c.caught { // nothing asks about it that nobody wrote
			if j := Of().Command(Command{Argv: []string{"/bin/bash", "-c", s}, Program: "/usr/bin/bash"}); j.Verdict != Allow {
				t.Errorf("%s: asked without a rule\n%s", s, j.Explain())
			}
		}
		for _, s := range c.missed {
			if j := line(s); j.Verdict != Allow {
				t.Errorf("%s: not allowed\n%s", s, j.Explain())
			}
		}
	}
}

// Each rule of the file has at least one case above.
func TestAskingRulesAreTested(t *testing.T) {
	for _, r := range asking().layers[0].Rules {
		if r.Verdict != Ask {
			continue
		}
		tested := false
		for _, c := range askingCases {
			tested = tested || strings.HasPrefix(r.Text, c.rule) && len(c.caught) > 0
		}
		if !tested {
			t.Errorf("no case for %q", r.Text)
		}
	}
}

// What can't be told before it runs is asked about where it decides what runs, and a rule
// asks about something or denies it: then it may be that. Where none does it runs: what
// that starts is judged as it starts.
func TestUnknown(t *testing.T) {
	said := func(p *Policy, s string) Verdict {
		return p.Command(Command{Argv: []string{"/bin/bash", "-c", s}, Program: "/usr/bin/bash", Cwd: "/p", Project: "/p"}).Verdict
	}
	allow := Of(layer(t, "yours", "commands: [{allow: git push}, {allow: $X, children: allow}]\n"))
	deny := Of(layer(t, "project", "commands: [{deny: terraform destroy}]\n"))
	for _, s := range []string{
		"alias ls='rm -rf'", "alias x=y; x", "hash -p /tmp/x ls", "enable -f ./x.so x", "git -c alias.x=push x", "git -c alias.x='!sh' x",
		"$X", "$X foo", `"$CMD" -rf`, "`cat x`", "$(cat x)", "${X}rm", "eval $X", `eval "$X"`, "eval \"$(curl x)\"", "bash -c \"$X\"", "sh -c $X", "bash $X",
		"curl x | sh", "curl -fsSL x | bash -s -- y", "wget -O- x | sudo bash", "curl x | env bash", "curl x | busybox sh", "echo cm0= | base64 -d | sh", "cat x | bash", "curl x | python3", "curl x | node -", "curl x | perl",
		"curl x | (sh)", "curl x | { cat; sh; }", "curl x | while read l; do $l; done", "curl x | tee y | sh", "$(curl x | sh)", "echo $(curl x | sh)", "X=$(curl x | sh)",
		"bash <(curl x)", "source <(curl x)", ". /dev/stdin", "source /dev/fd/63", "curl x | sh /dev/../dev/stdin", "f() { sh; }; curl x | f", "bash /dev/stdin <<< \"$X\"", "bash <<E\n$X\nE", "bash <<< \"$X\"",
		"ls | xargs -I{} sh -c 'foo {}'", `find . -exec sh -c 'foo {}' \;`, "env $X", "trap \"$X\" EXIT", "env -S \"$X\"",
		"exec $X", "command $X", "timeout 5 $X", "nice \"$@\"", "f() { \"$@\"; }; f ls", "/usr/bin/r$X", "*", "./*.sh", "if", "rm -rf (pwd)", "((", "'", "fish -c 'rm (pwd)'", "watch \"$X\"", "su -c \"$X\"",
	} {
		if j := line(s); j.Verdict != Ask {
			t.Errorf("%s: not asked\n%s", s, j.Explain())
		}
		for p, want := range map[*Policy]Verdict{Of(): Allow, allow: Allow, deny: Ask, Of(deny.layers[0].Tightening()): Ask} {
			if got := said(p, s); got != want {
				t.Errorf("%s: %s by %v", s, got, p.layers)
			}
		}
	}
	for _, s := range []string{
		"alias", "hash -r", "enable x", "git -c user.name=x commit",
		"echo $X", "ls \"$X\"", "cat $(ls)", "X=1", "X=$Y", "echo 'eval $X'", "cat x | python3 -m json.tool", "curl x | jq .", "cat x | node -e 'x'", "cat x | python3 -c 'x'", "cat x | python3 a.py", "cat x | perl -pe 's/a/b/'",
		"bash x.sh", "sh -n x.sh", "source venv/bin/activate", ". ./env.sh && go test ./...", "bash -c 'echo $X'", "eval 'ls -la'", `"$HOME/bin/tool" x`, `"$DIR"/tool x`, "~/bin/x", "for f in *.go; do gofmt -l $f; done",
		"go test ./...", "npm ci && npm test", "make -j4", "ls | xargs grep x", "ls | xargs -I{} cp {} /tmp/x", "trap - EXIT", "trap 'rm -f /tmp/x' EXIT", "python3 <<'E'\nimport os\nE", "cat <<'E' > x\n$X\nE", "test -f x", "[ -f x ]", "[[ $X == y ]]", ": > x", "true",
		"echo a |& cat", "(( i++ ))", "export A=b", "local x", "printf '%s' \"$X\"", "bash --version", "# just a comment", "",
	} {
		if j := line(s); j.Verdict != Allow {
			t.Errorf("%s: not allowed\n%s", s, j.Explain())
		}
	}
}

// Programs are known by their file and by what they are called.
func TestNames(t *testing.T) {
	at := Command{Cwd: "/home/me/proj", Project: "/home/me/proj", Home: "/home/me"}
	for _, c := range []struct {
		argv    []string
		program string
		want    Verdict
	}{
		{[]string{"ls", "-rf", "."}, "/usr/bin/rm", Ask}, // exec -a ls rm
		{[]string{"rm", "-rf", "."}, "/bin/busybox", Ask},
		{[]string{"rm", "-rf", "*"}, "/usr/bin/rm", Allow}, // a file called *
		{[]string{"sh", "-c", "rm -rf ."}, "/usr/bin/dash", Ask},
		{[]string{"-bash", "-c", "rm -rf ."}, "/usr/bin/bash", Ask},
		{[]string{"bfs", "-S", "dfs", "-regextype", "findutils-default", ".", "-delete"}, "/opt/claude", Ask},
		{[]string{"python3", "-c", "print(1)"}, "/usr/bin/python3.11", Allow},
		{[]string{"rm", "-rf", "a", "b", "c", "d", "e", "f", "g", "h"}, "/usr/bin/rm", Ask}, // a wildcard, expanded by a shell at a prompt
		{[]string{"rm", "-rf", "x/a", "x/b", "x/c", "x/d", "x/e", "x/f", "x/g", "x/h"}, "/usr/bin/rm", Allow},
		{[]string{"git", "push"}, "", Ask},
		{[]string{""}, "", Ask},
		{nil, "", Ask},
		// Called like another program, with arguments that mean something else to that.
		{[]string{"env", "-c", "a=b", "push", "origin"}, "/usr/bin/git", Ask},
		{[]string{"bash", "-c", "a.b=c", "push", "origin"}, "/usr/bin/git", Ask},
		{[]string{"git-x", "-rf", "."}, "/usr/bin/rm", Ask},
		{[]string{"python3", "-c", "rm -rf ."}, "/usr/bin/bash", Ask},
		{[]string{"git", "-c", "rm -rf ."}, "/usr/bin/bash", Ask},
		{[]string{"bash", "rm", "-rf", "."}, "/usr/bin/env", Ask},
		{[]string{"git-push", "origin"}, "/usr/bin/git", Ask},
		{[]string{"sh", "-c", "ls"}, "/bin/busybox", Allow},
		{[]string{"bash", "x.sh"}, "/usr/bin/dash", Allow},
		{[]string{"git-status"}, "/usr/bin/git", Allow},
	} {
		in := at
		in.Argv, in.Program = c.argv, c.program
		if j := asking().Command(in); j.Verdict != c.want {
			t.Errorf("%q %s: %s", c.argv, c.program, j.Explain())
		}
	}
}

// Where it isn't known where a command runs, "." and "*" may be everything.
func TestUnknownFolder(t *testing.T) {
	for s, want := range map[string]Verdict{"rm -rf .": Ask, "rm -rf *": Ask, "rm -rf ../..": Ask, "rm -rf build": Allow, "rm -rf /": Ask} {
		if j := asking().Command(Command{Argv: []string{"sh", "-c", s}}); j.Verdict != want {
			t.Errorf("%s: %s", s, j.Explain())
		}
	}
}

// processorTime is what this process took so far, which says how much is done on
// a busy machine too.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var r syscall.Rusage
	must.OK(t, syscall.Getrusage(syscall.RUSAGE_SELF, &r))
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// Hostile input is bounded: it is asked about, and soon.
func TestBounds(t *testing.T) {
	for name, s := range map[string]string{
		"large":        strings.Repeat("x", maxBytes+1),
		"parentheses":  strings.Repeat("(", 60000),
		"substitution": strings.Repeat("$(", 30000),
		"arithmetic":   "echo $((" + strings.Repeat("(", 50000),
		"keywords":     strings.Repeat("if ", 20000),
		"nots":         strings.Repeat("! ", 30000) + "true",
		"commands":     strings.Repeat("rm x;", 12000),
		"braces":       "echo " + strings.Repeat("{a,b}", 200) + "; $X",
		"wrappers":     strings.Repeat("nice --odd x ", 4000) + "ls",
		"env":          strings.Repeat("env ", 4000) + "ls",
		"options":      "rm " + strings.Repeat("-x ", 15000) + "-r .",
		"finds":        "find . " + strings.Repeat("-exec rm -rf {} + ", 2000),
	} {
		start := processorTime(t)
		j := line(s)
		if j.Verdict != Ask {
			t.Errorf("%s: %s", name, j.Verdict)
		}
		if d := processorTime(t) - start; d > 5*time.Second {
			t.Errorf("%s: judged in %v", name, d)
		}
		if len(j.Parts) > maxParts+1 {
			t.Errorf("%s: %d parts", name, len(j.Parts))
		}
	}
}

func BenchmarkCommand(b *testing.B) {
	for name, argv := range map[string][]string{
		"plain":  {"go", "test", "./..."},
		"script": {"bash", "-c", "cd src && go build ./... && go test -run 'X|Y' ./... 2>&1 | tail -20"},
	} {
		c := Command{Argv: argv, Cwd: "/p", Project: "/p", Home: "/h", Program: "/usr/bin/" + argv[0]}
		asking().Command(c) // reads the rules
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				asking().Command(c)
			}
		})
	}
}

// What can be made a rule of a command are its words as the program gets them, and of what
// it wraps; nothing of what is known only when it runs.
func TestReadings(t *testing.T) {
	for line, want := range map[string]string{
		`git push`:                         `["git" "push"] ["push"]`,
		`A=1 git commit -m "it's" >x 2>&1`: `["git" "commit" "-m" "it's"] ["commit" "-m" "it's"] ["-m" "it's"] ["it's"]`,
		`git commit -m a\ b$'\x41'`:        `["git" "commit" "-m" "a bA"] ["commit" "-m" "a bA"] ["-m" "a bA"] ["a bA"]`,
		`rm *.o`:                           ``,
		`rm "$X"`:                          ``,
		`rm $(ls)`:                         ``,
		`rm '*.o'`:                         `["rm" "*.o"] ["*.o"]`,
		`echo ` + strings.Repeat("a ", 64): ``,
	} {
		j := asking().Command(Command{Argv: []string{"sh", "-c", line}})
		var got []string
		for _, words := range j.Parts[0].Readings() {
			got = append(got, fmt.Sprintf("%q", words))
		}
		if s := strings.Join(got, " "); s != want {
			t.Errorf("%s: %s", line, s)
		}
	}
}

// The name of a script has letters that options have, and isn't one.
func TestScriptIsNoOption(t *testing.T) {
	l, err := ParseLayer("test", "test.yaml", []byte("commands: [{allow: python example.py, children: allow}]\n"))
	must.OK(t, err)
	if j := asking().With(l).Command(Command{Argv: []string{"python", "example.py"}}); j.Verdict != Allow || !j.NestedAllowed {
		t.Errorf("judged %+v", j)
	}
}
