package scratch

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stepbox/runner/overlay/manifest"
	"stepbox/session/api"
	"time"
)

// listing prints all that a program can tell of the files, but for what holds no
// matter: sizes and link counts of folders.
const listing = `find . -type d -printf '%P %y %m %T@\n' -o -printf '%P %y %m %n %s %T@ %l\n' | sort
find . -type f -perm -u=r -print0 | sort -z | xargs -0 sha256sum; tar --sort=name --hard-dereference --format=gnu -cf - . 2>/dev/null | sha256sum
find . -type f -perm -u=r -exec python3 -c 'import os, sys; [print(p, n, os.getxattr(p, n)) for p in sys.argv[1:] for n in os.listxattr(p)]' {} + | grep user | sort`

func TestStateIsExact(t *testing.T) {
	t.Parallel()
	r := newRig(t, map[string]string{
		"kept": "host\n", "changed": "host\n", "deleted": "host\n", "dir/a": "a", "dir/b": "b", "again/old": "x", "file": "x", "folder/x": "x", "mode": "x", "linked": "x",
	})
	state := r.agent(`echo more >>changed; rm deleted dir/b; rm -r again; mkdir again; echo new >again/new
		rm file; mkdir file; echo in >file/in; rm -r folder; echo now a file >folder; chmod 751 mode; chmod 700 dir; touch -d '2001-02-03 04:05:06.789' mode dir
		ln linked other; ln -s /nowhere/at/all link; mkfifo pipe; truncate -s 1M sparse; echo end >>sparse; mkdir -p e/m/p/t/y; chmod 000 kept; chmod 0 pipe
		head -c 6000000 /dev/urandom >large; touch "$(printf 'b\nad\377')"; python3 -c 'import os; os.setxattr("changed", "user.note", b"own")'; chmod 750 .
		` + listing)
	want := r.said
	got, err := r.Check(t.Context(), state, listing, nil)
	r.must(err)
	if !got.Passed() || strings.Count(want, "\n") < 35 || got.Output != escaped(want) {
		t.Errorf("%+v\nthe check saw\n%s\nthe agent saw\n%s", got.Exit, got.Output, escaped(want))
	}
	if got := r.check(nil, "cat deleted; ls again"); got.Output != "host\nold\n" {
		t.Errorf("the project as it is has %+v", got)
	}
}

// escaped is a text as a check's result has it.
func escaped(s string) string {
	t := tail{most: 1 << 20}
	t.add([]byte(s))
	return t.text()
}

// A check may do what it likes: nothing of it is anywhere afterwards.
func TestChecksLeaveNothing(t *testing.T) {
	r := newRig(t, map[string]string{"a.txt": "host\n", ".env": "hunter2\n", "other": "host\n", "bin/tool": "#!/bin/sh\necho tool\n"})
	r.must(os.Mkdir(filepath.Join(r.cfg.Home, "tools"), 0o755))
	r.must(os.WriteFile(filepath.Join(r.cfg.Home, "tools", "mine"), []byte("#!/bin/sh\necho mine\n"), 0o755))
	r.must(os.WriteFile(filepath.Join(r.cfg.Home, ".bashrc"), []byte("secret"), 0o644))
	r.must(os.MkdirAll(filepath.Join(r.cfg.Home, "go/pkg/mod/x"), 0o755))
	r.cfg.Env[0] = "PATH=" + filepath.Join(r.cfg.Home, "tools") + ":" + strings.TrimPrefix(r.cfg.Env[0], "PATH=")
	r.cfg.Hidden = []string{"other"}
	state := r.agent("echo agent >b.txt; rm -f bin/tool")
	got := r.check(state, `mine; cat .env other; cat ~/.bashrc; ls ~/go/pkg/mod
		for f in a.txt b.txt .env new ~/own ~/tools/mine ~/tools/new ~/go/pkg/mod/new /tmp/own /usr/new /etc/new ../new /new `+r.cfg.DataDir+`/new; do echo own >$f; done 2>/dev/null
		cat b.txt ~/own; rm -rf bin * .[a-z]* 2>/dev/null; (trap '' HUP TERM; sleep 1000) & setsid sleep 1000 & exit 0`)
	if !got.Passed() || !strings.HasPrefix(got.Output, "mine\n") || !strings.HasSuffix(got.Output, "x\nown\nown\n") || strings.Contains(got.Output, "hunter2") || strings.Contains(got.Output, "secret") || strings.Contains(got.Output, "host") {
		t.Errorf("the check %+v", got)
	}
	if got := r.check(state, `cat a.txt b.txt; ls -A1 . ~; cat /tmp/own 2>/dev/null`); got.Output != "host\nagent\n.:\na.txt\nb.txt\nbin\n\n"+r.cfg.Home+":\ngo\ntools\n" {
		t.Errorf("the next check saw %+v", got)
	}
	for name, want := range map[string]string{"project/a.txt": "host\n", "project/.env": "hunter2\n", "project/bin/tool": "#!/bin/sh\necho tool\n", "home/tools/mine": "#!/bin/sh\necho mine\n"} {
		if text, err := os.ReadFile(filepath.Join(filepath.Dir(r.project), name)); err != nil || string(text) != want {
			t.Errorf("%s is %q, %v", name, text, err)
		}
	}
	for _, name := range []string{"project/new", "home/own", "home/tools/new", "home/go/pkg/mod/new", "new", "data/new"} {
		if _, err := os.Lstat(filepath.Join(filepath.Dir(r.project), name)); err == nil {
			t.Errorf("%s is there", name)
		}
	}
}

func TestChecksHaveNoNetwork(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	r.must(err)
	defer l.Close()
	abstract, err := net.Listen("unix", "@"+filepath.Base(r.cfg.DataDir)+filepath.Base(t.TempDir())+fmt.Sprint(os.Getpid()))
	r.must(err)
	defer abstract.Close()
	reached := make(chan string, 9)
	for _, l := range []net.Listener{l, abstract} {
		go func() {
			if c, err := l.Accept(); err == nil {
				reached <- c.LocalAddr().String()
				c.Close()
			}
		}()
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	got := r.check(nil, `tail -n +3 /proc/net/dev | cut -d: -f1
		bash -c 'echo >/dev/tcp/127.0.0.1/`+port+`; echo >/dev/tcp/1.1.1.1/80; echo >/dev/udp/8.8.8.8/53' 2>&1 | grep -c -e '/.*: Connection refused' -e '/.*: Network is unreachable'
		python3 -c 'import socket, sys; socket.socket(socket.AF_UNIX).connect("\0" + sys.argv[1])' '`+abstract.Addr().String()[1:]+`' 2>/dev/null || echo no`)
	if strings.TrimSpace(strings.Join(strings.Fields(got.Output), " ")) != "lo 3 no" {
		t.Errorf("the check found %q", got.Output)
	}
	select {
	case who := <-reached:
		t.Errorf("it reached %s", who)
	default:
	}
}

func TestChecksThatNeverEnd(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	was := most
	t.Cleanup(func() { most = was })
	most.wall = 700 * time.Millisecond
	got := r.check(nil, `trap '' HUP TERM INT; echo begun; (setsid sleep 1000) & cat; while :; do sleep 1; done`)
	if got.Exit != nil || got.Passed() || !strings.Contains(got.Failure, "it was ended after 700ms") || got.Output != "begun\n" {
		t.Errorf("it ended with %+v", got)
	}
	most.wall = was.wall
	ctx, cancel := context.WithCancelCause(t.Context())
	mine := errors.New("enough")
	_, err := r.Check(ctx, nil, "echo begun; sleep 1000", func(line string) {
		if line == "begun" {
			cancel(mine)
		}
	})
	if !errors.Is(err, mine) {
		t.Errorf("a check that was cancelled ended with %v", err)
	}
}

// What a check prints costs no memory, and who waits hears of it.
func TestChecksThatPrint(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it prints 100 MB")
	}
	r := newRig(t, nil)
	told := 0
	got, err := r.Check(t.Context(), nil, `yes "$(head -c 200 /dev/zero | tr '\0' x)" | head -c 100000000; echo; echo end`, func(line string) {
		if told++; len(line) > 200 {
			t.Errorf("a line of %d bytes", len(line))
		}
	})
	if err != nil || !got.Passed() || len(got.Output) > most.output || len(got.Output) < most.output/2 || !strings.HasSuffix(got.Output, "x\nend\n") || told == 0 {
		t.Errorf("%v, passed %v (%s), %d bytes of output, told %d times", err, got.Passed(), got.Failure, len(got.Output), told)
	}
	t.Logf("100 MB took %v", got.Duration)
}

// What can't be laid out as the state has it isn't checked.
func TestAMissingBodyIsNamed(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	state := r.agent("head -c 300000 /dev/zero | tr '\\0' x >lost")
	bodies := filepath.Join(r.cfg.DataDir, "bodies")
	r.must(filepath.WalkDir(bodies, func(p string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			return os.Remove(p)
		}
		return err
	}))
	got := r.check(state, "echo ran")
	if got.Exit != nil || !strings.Contains(got.Failure, "lost") || strings.Contains(got.Output, "ran") {
		t.Errorf("it ended with %+v", got)
	}
}

// A git in the sandbox that lies: it says what it likes, and leaves what it likes.
func TestALyingGit(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ does, note string }{
		"a FIFO":        {`mkfifo /tmp/1.bundle`, "isn't a regular file"},
		"a link":        {`ln -s /etc/passwd /tmp/1.bundle`, "symbolic links"},
		"nothing":       {`:`, "no such file"},
		"a huge file":   {`truncate -s 1100M /tmp/1.bundle`, "more than"},
		"garbage":       {`exec /usr/bin/git "$@"; `, ""},
		"a folder":      {`mkdir /tmp/1.bundle`, "isn't a regular file"},
		"other commits": {`printf 'update refs/stepbox-out/0 %s\n' $(/usr/bin/git -c user.name=x -c user.email=x commit-tree -p HEAD -m other HEAD^{tree}) | /usr/bin/git update-ref --stdin; exec /usr/bin/git "$@"`, "other commits than were listed"},
		"one more":      {`/usr/bin/git update-ref refs/heads/more HEAD; echo refs/heads/more >>/tmp/1.revs; exec /usr/bin/git "$@" <<<"$(cat /tmp/1.revs)"`, "other commits than were listed"},
		"a cut bundle":  {`/usr/bin/git "$@"; truncate -s -30 /tmp/1.bundle`, "git fetch"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRepository(t)
			r.write("bin/README", "x")
			r.git("", "add", "-A")
			r.git("", "commit", "-qm", "bin")
			r.cfg.Env[0] = "PATH=" + filepath.Join(r.project, "bin") + ":" + strings.TrimPrefix(r.cfg.Env[0], "PATH=")
			refs := r.git("", "for-each-ref")
			state := r.agent(asAda + `/usr/bin/git commit -qm work --allow-empty
				cat >bin/git <<'END'
#!/bin/bash
case "$*" in *" bundle create "*) ` + test.does + `;; *) exec /usr/bin/git "$@";; esac
END
				chmod +x bin/git`)
			got, err := r.fetched("s1", state)
			r.must(err)
			if n := strings.ToLower(notes(got.Commits)); !strings.Contains(n, test.note) || (n == "") != (test.note == "") {
				t.Errorf("the notes are %q", n)
			}
			if now := r.git("", "for-each-ref"); (now == refs) != (test.note != "") {
				t.Errorf("the references are now\n%s", now)
			}
			r.git("", "fsck", "--strict")
		})
	}
}

// A list that leaves out what it is made on top of isn't believed.
func TestHiddenCommits(t *testing.T) {
	t.Parallel()
	r := newRepository(t)
	r.write("bin/README", "x")
	r.cfg.Env[0] = "PATH=" + filepath.Join(r.project, "bin") + ":" + strings.TrimPrefix(r.cfg.Env[0], "PATH=")
	refs := r.git("", "for-each-ref")
	state := r.agent(asAda + `/usr/bin/git commit -qm hidden --allow-empty; /usr/bin/git commit -qm shown --allow-empty
		cat >bin/git <<'END'
#!/bin/bash
case "$*" in
*" rev-list "*) /usr/bin/git "$@" | head -n 1;;
*" bundle create "*) cat /tmp/1.revs | sed 1q >/tmp/only; exec /usr/bin/git "$@" </tmp/only;;
*) exec /usr/bin/git "$@";;
esac
END
		chmod +x bin/git`)
	got, err := r.fetched("s1", state)
	r.must(err)
	if n := notes(got.Commits); !strings.Contains(n, "on top of others that the project's repository doesn't have") {
		t.Errorf("the notes are %q", n)
	}
	if r.git("", "for-each-ref") != refs {
		t.Error("the references changed")
	}
}

// The person's git isn't one that the agent's work could be.
func TestGitOfTheProjectIsntRun(t *testing.T) {
	t.Parallel()
	r := newRepository(t)
	ran := filepath.Join(r.cfg.Home, "ran")
	r.write("bin/git", "#!/bin/sh\ntouch "+ran+"\nexec /usr/bin/git \"$@\"\n")
	r.must(os.Chmod(filepath.Join(r.project, "bin/git"), 0o755))
	state := r.agent(asAda + "git commit -qm work --allow-empty")
	r.cfg.Env[0] = "PATH=" + filepath.Join(r.project, "bin") + ":" + strings.TrimPrefix(r.cfg.Env[0], "PATH=")
	got, err := r.fetched("s1", state)
	r.must(err)
	if n := notes(got.Commits); !strings.Contains(n, "is in the project") {
		t.Errorf("the notes are %q", n)
	}
	if _, err := os.Lstat(ran); err == nil {
		t.Error("it ran")
	}
}

// fetched fetches what a person was shown just before.
func (r *rig) fetched(session string, state *manifest.Manifest) (Fetched, error) {
	r.Helper()
	shown, err := r.Commits(r.Context(), state, whole(state))
	r.must(err)
	return r.Fetch(r.Context(), session, state, shown.List)
}

// What git in the sandbox lists the second time isn't fetched if it listed other
// commits when a person looked.
func TestOnlyWhatWasShownIsFetched(t *testing.T) {
	t.Parallel()
	r := newRepository(t)
	refs := r.git("", "for-each-ref")
	state := r.agent(asAda + "git commit -qm one --allow-empty; git branch other; git commit -qm two --allow-empty")
	all, err := r.Commits(t.Context(), state, whole(state))
	r.must(err)
	if len(all.List) != 2 {
		t.Fatalf("it lists %+v", all)
	}
	renamed := slices.Clone(all.List)
	renamed[0].Subject = "else"
	for name, shown := range map[string][]api.Commit{"none": nil, "one less": all.List[:1], "another": renamed} {
		if got, err := r.Fetch(t.Context(), "s1", state, shown); err == nil || !strings.Contains(err.Error(), "shown") || got.Ref != "" {
			t.Errorf("%s: it fetched %+v, %v", name, got, err)
		}
	}
	if now := r.git("", "for-each-ref"); now != refs {
		t.Errorf("the references are now\n%s", now)
	}
	shown := slices.Clone(all.List)
	shown[0].Danger = "what the person's branch was then" // fetching merges nothing
	got, err := r.Fetch(t.Context(), "s1", state, shown)
	r.must(err)
	if !slices.Equal(got.List, shown) || len(got.Notes) > 0 {
		t.Errorf("it fetched %+v", got)
	}
}

// A tree of a few kilobytes can be one of ten million paths: what it changes isn't listed
// without a bound.
func TestATreeOfTooManyPaths(t *testing.T) {
	r := newRepository(t)
	state := r.agent(asAda + `many() { for i in 0 1 2 3 4 5 6 7 8 9; do printf "$1 $2 $3\t$i\n"; done | git mktree; }
		tree=$(many 100644 blob $(git hash-object -w --stdin </dev/null))
		for i in 1 2 3 4 5 6; do tree=$(many 040000 tree $tree); done
		git update-ref HEAD $(git commit-tree -p HEAD -m many $tree)`)
	got, err := r.Commits(t.Context(), state, Shown{Deletes: func(string) bool { return false }, Writes: nothing, Paths: func(func(string) bool) {}})
	r.must(err)
	if len(got.List) != 1 || !strings.Contains(got.List[0].Danger, "couldn't be compared") {
		t.Errorf("it says %+v", got)
	}
}
