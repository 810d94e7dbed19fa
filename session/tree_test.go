package session_test

import (
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stepbox/runner/holder"
	"stepbox/runner/overlay/lower"
	"stepbox/runner/overlay/manifest"
	"stepbox/session"
	"stepbox/session/api"
	"stepbox/session/apply"
	"stepbox/session/e2e/must"
	"stepbox/session/files"
	"stepbox/session/project"
	"stepbox/session/scratch"
	"stepbox/session/tree"
	"stepbox/store"
)

func needGit(t testing.TB) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git to make a repository with")
	}
}

// gitIn runs the real git in a folder, and gives what it prints.
func gitIn(t testing.TB, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=t", "-c", "user.email=t", "-c", "protocol.file.allow=always", "-c", "gc.auto=0"}, args...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// script runs a shell in a folder.
func script(t testing.TB, dir, text string) {
	t.Helper()
	cmd := exec.Command("bash", "-euc", text)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", text, err, out)
	}
}

const someFiles = `umask 022; mkdir -p sub/deep empty bin; echo tracked >tracked; echo changed >changed; echo deleted >deleted; echo deep >sub/deep/file; echo gone >sub/gone
	ln -s tracked link; ln -s /nowhere/at/all dangling; echo '#!/bin/sh' >bin/tool; chmod 755 bin/tool; seq 2000 >long; printf 'b\0i' >binary; touch nothing; echo x >"$(printf 'odd\nname')"`

// someRepository is a repository with all that there can be in one.
func someRepository(t *testing.T) func(string) {
	needGit(t)
	return func(project string) {
		module := filepath.Join(filepath.Dir(project), "module")
		script(t, filepath.Dir(project), "mkdir module; echo in the module >module/file")
		gitIn(t, module, "init", "-q")
		gitIn(t, module, "add", "-A")
		gitIn(t, module, "commit", "-qm", "module")
		gitIn(t, project, "init", "-q")
		script(t, project, someFiles+"; printf 'ignored*\n/build/\n' >.gitignore")
		gitIn(t, project, "add", "-A")
		gitIn(t, project, "submodule", "--quiet", "add", module, "module")
		gitIn(t, project, "commit", "-qm", "one")
		script(t, project, `echo more >>changed; rm deleted; echo new >untracked; mkdir -p new/folder build; echo n >new/folder/n; echo o >build/out; echo i >ignored.txt
			chmod 755 long; git mv sub/gone sub/renamed; echo own >>module/file; rm binary; mkdir binary; echo in >binary/in`)
	}
}

// seen is a tree as text: a line for each path, without git's own folders.
func seen(t testing.TB, tr *tree.Tree) string {
	t.Helper()
	lines := map[string]string{}
	err := tr.Walk(t.Context(), "", func(f *tree.File) error {
		if f.Path == "" {
			return nil
		}
		if f.Name == ".git" || f.Kind == manifest.KindFile && strings.Contains(f.Path, ".git/") {
			return fs.SkipDir
		}
		switch f.Kind {
		case manifest.KindDir:
			lines[f.Path] = "d"
		case manifest.KindSymlink:
			lines[f.Path] = "l " + f.Target
		case manifest.KindFile:
			r, size, err := tr.Open(t.Context(), f.Path)
			if err != nil {
				lines[f.Path] = err.Error()
				return nil
			}
			defer r.Close()
			b, err := io.ReadAll(r)
			if err != nil || int64(len(b)) != size {
				t.Errorf("%s has %d bytes and not %d: %v", f.Path, len(b), size, err)
			}
			lines[f.Path] = fmt.Sprintf("f %v %x", f.Mode&0o100 != 0, sha256.Sum256(b))
		default:
			lines[f.Path] = f.Kind.String()
		}
		return nil
	})
	must.OK(t, err)
	return joined(lines)
}

func joined(lines map[string]string) string {
	var b strings.Builder
	for _, p := range slices.Sorted(maps.Keys(lines)) {
		fmt.Fprintf(&b, "%q %s\n", p, lines[p])
	}
	return b.String()
}

// onDisk is the same of a folder.
func onDisk(t testing.TB, dir string) string {
	t.Helper()
	lines := map[string]string{}
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		rel := strings.TrimPrefix(strings.TrimPrefix(p, dir), "/")
		switch {
		case err != nil:
			return err
		case rel == "":
		case d.Name() == ".git" && d.IsDir():
			return fs.SkipDir
		case d.Name() == ".git":
		case d.IsDir():
			lines[rel] = "d"
		case d.Type()&fs.ModeSymlink != 0:
			to, err := os.Readlink(p)
			lines[rel] = "l " + to
			return err
		case d.Type().IsRegular():
			b, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			info, err := d.Info()
			lines[rel] = fmt.Sprintf("f %v %x", err == nil && info.Mode()&0o100 != 0, sha256.Sum256(b))
			return err
		default:
			lines[rel] = "fifo"
		}
		return nil
	})
	must.OK(t, err)
	return joined(lines)
}

// deeds are what an agent does to such a project, each whatever there is by then.
var deeds = []string{
	"echo one >>tracked", "rm -f tracked deleted", "echo made >made", "mkdir -p a/b; echo c >a/b/c", "rm -rf sub", "rm -rf sub; mkdir sub; echo again >sub/again",
	"mv sub/deep moved", "mv -f changed renamed", "ln -sf other link", "rm -rf link; mkdir link; echo in >link/in", "rm -rf binary; echo a file >binary", "chmod -x bin/tool",
	"chmod 755 tracked", "chmod 700 sub", "rm -rf new build", "echo i >ignored.txt", "echo mine >build/out", "echo mod >>module/file", "rm -rf module/file", "cp -a sub copied",
	"ln tracked hard", "head -c 5000000 /dev/urandom >large", "mkfifo pipe", "git add -A; git -c user.name=x -c user.email=x commit -qm x", "git rm -qf long", "rm -rf .gitignore", "git reset -q --hard",
	"truncate -s 3M holes; echo x >>holes", "rm -rf empty", "mkdir empty/more",
}

func TestTree(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(*testing.T) func(string){
		"a repository": someRepository,
		"a folder": func(t *testing.T) func(string) {
			return func(project string) { script(t, project, someFiles) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := drive(t, api.ModeWatch, prepare(t))
			baseOf(d.world)
			seed := rand.Uint64()
			t.Logf("the seed is %d", seed)
			random := rand.New(rand.NewPCG(seed, 0))
			copies := filepath.Join(d.store.SessionDir(d.ID()), "tmp", "copies")
			want := map[int]string{1: onDisk(t, d.project)}
			d.run("mkdir /tmp/copies")
			last := 0
			for range 12 {
				deed := deeds[random.IntN(len(deeds))]
				n := d.run("(" + deed + ") >/tmp/noise; cp -a . /tmp/copies/new; sync /tmp/copies; mv /tmp/copies/new /tmp/copies/$$; echo $$ >/tmp/copies/last")
				name, err := os.ReadFile(filepath.Join(copies, "last"))
				d.must(err)
				want[n], last = onDisk(t, filepath.Join(copies, strings.TrimSpace(string(name)))), n
				t.Logf("%d: %s", n, deed)
			}
			if name == "a repository" { // what the person does later is in no tree
				script(t, d.project, "echo person >>changed; echo person >>tracked; rm -rf sub bin; echo person >persons; echo p >>untracked")
				gitIn(t, d.project, "add", "-A")
				gitIn(t, d.project, "commit", "-qm", "two")
				gitIn(t, d.project, "repack", "-qad")
			}
			source := tree.Source{Store: d.store, Home: d.config.Home, Env: d.config.Env}
			for n, was := range want {
				at := api.Moment(fmt.Sprint(n))
				if n == 1 {
					at = "start"
				}
				tr, err := source.In(t.Context(), &d.read.History.History, d.ID(), at)
				d.must(err)
				gaps, err := tr.Inexact(t.Context())
				d.must(err)
				for _, line := range differing(seen(t, tr), was) {
					if !slices.ContainsFunc(gaps, func(g manifest.Problem) bool { return strings.HasPrefix(line[2:], g.Path) }) {
						t.Errorf("at %s the tree (+) and what the agent saw (-) differ: %s", at, line)
					}
				}
				for _, g := range gaps {
					if !strings.HasSuffix(g.Path, ".git") && !strings.HasPrefix(g.Path, "build") && !strings.HasPrefix(g.Path, "ignored") {
						t.Errorf("at %s %q isn't exact: %s", at, g.Path, g.Text)
					}
				}
				if n == 1 || n == last {
					d.forksAs(source, at, gaps, was)
				}
				tr.Close()
			}
		})
	}
}

// forksAs starts a fork of the session at a moment, which has to begin with what was
// there, but for what is said not to be had.
func (d *driven) forksAs(source tree.Source, at api.Moment, gaps []manifest.Problem, was string) {
	d.Helper()
	id, more := d.fork(source, d.ID(), at, "cp -a . /tmp/copy; echo own >own")
	gaps = append(gaps, more...)
	is := onDisk(d, filepath.Join(d.store.SessionDir(id), "tmp", "copy"))
	for _, line := range differing(is, was) {
		if !slices.ContainsFunc(gaps, func(g manifest.Problem) bool { return strings.HasPrefix(line[2:], g.Path) }) {
			d.Errorf("the fork at %s (+) and what the agent saw (-) differ: %s", at, line)
		}
	}
	history := files.NewHistory(d.store, func(string) bool { return false })
	own, err := history.Changes(d.Context(), id, api.Scope{From: "start"}, api.Page{})
	d.must(err)
	if len(own.Files) != 1 || own.Files[0].Path != "own" || own.Files[0].Inherited {
		d.Errorf("what the fork at %s did itself is %+v", at, own.Files)
	}
	all, err := history.Changes(d.Context(), id, api.Scope{}, api.Page{})
	d.must(err)
	for _, c := range all.Files {
		if c.Inherited == (c.Path == "own") {
			d.Errorf("of %s it is said that it was inherited: %v", c.Path, c.Inherited)
		}
	}
}

// fork has a fork of a session run a script to its end.
func (d *driven) fork(source tree.Source, of string, at api.Moment, script string) (id string, gaps []manifest.Problem) {
	d.Helper()
	cfg, gaps := d.laid(source, of, at, script)
	s, err := session.Start(d.Context(), d.store, cfg)
	d.must(err)
	<-s.Done()
	return cfg.ID, gaps
}

// laid is a fork that isn't started, with the files in its folder.
func (d *driven) laid(source tree.Source, of string, at api.Moment, script string) (cfg session.Config, gaps []manifest.Problem) {
	d.Helper()
	tr, err := source.In(d.Context(), &d.read.History.History, of, at)
	d.must(err)
	defer tr.Close()
	upper, gaps, err := tr.Over(d.Context(), false)
	d.must(err)
	below, _, err := tr.Beneath(d.Context(), upper)
	d.must(err)
	cfg = d.config
	d.n++
	cfg.ID, cfg.Resume = fmt.Sprintf("%sf%d", d.ID(), d.n), false
	cfg.Argv = []string{"bash", "-c", script}
	cfg.Parent, cfg.Laid = &api.Parent{ID: of, Name: "t", At: at}, &manifest.Manifest{Root: upper.Root, Base: below}
	d.must(scratch.New(scratch.Config{Store: d.store, Workspace: d.project, Home: cfg.Home, Env: cfg.Env, DataDir: cfg.DataDir}).Lay(d.Context(), d.store.SessionDir(cfg.ID), upper, nil))
	d.Cleanup(func() { d.must(holder.RemoveAll(d.store.SessionDir(cfg.ID))) })
	return cfg, gaps
}

// A folder that the session made is in the project by now, by hand: some files the same to
// the time stamp, others not, some more. A fork begins with exactly what the session saw,
// and with nothing at all if its folder hasn't got that.
func TestForksOverThePersonsCopies(t *testing.T) {
	t.Parallel()
	for round := range 2 {
		t.Run(fmt.Sprint(round), func(t *testing.T) {
			seed := rand.Uint64()
			t.Logf("the seed is %d", seed)
			random := rand.New(rand.NewPCG(seed, 0))
			paths := []string{"p/x", "p/y", "p/z", "p/q/x", "p/q/y", "r/x", "r/y", "r/q/x", "a", "b"}
			deed := func() string {
				path := paths[random.IntN(len(paths))]
				top, _, _ := strings.Cut(path, "/")
				switch random.IntN(8) {
				case 0:
					return "rm -rf " + path
				case 1:
					return "rm -rf " + top
				case 2:
					return fmt.Sprintf("rm -rf %s; mkdir %[1]s; seq 3 >%[1]s/x; seq 5 >%[1]s/y", top)
				case 3:
					return fmt.Sprintf("mkdir -p p; rm -rf r; mv %s r", path)
				case 4:
					return fmt.Sprintf("mkdir -p p; ln -f %s p/hard; ln -sf x p/link; chmod 700 p", path)
				}
				return fmt.Sprintf("mkdir -p $(dirname %s); echo %d >%[1]s", path, random.IntN(3))
			}
			d := drive(t, api.ModeWatch, func(project string) {
				script(t, project, "mkdir -p r/q; echo 0 >r/x; echo 0 >r/q/x; echo 0 >a")
				if round%2 == 0 {
					gitIn(t, project, "init", "-q")
					gitIn(t, project, "add", "-A")
					gitIn(t, project, "commit", "-qm", "one")
				}
			})
			baseOf(d.world)
			d.run("mkdir /tmp/copies; mkdir p; seq 20 >p/x; seq 30 >p/y; seq 40 >p/z")
			copies := filepath.Join(d.store.SessionDir(d.ID()), "tmp", "copies")
			want := map[int]string{}
			var last int
			for range 5 {
				did := deed()
				last = d.run("(" + did + ") 2>/tmp/noise; rm -rf /tmp/copies/last; cp -a . /tmp/copies/last; cd .")
				want[last] = onDisk(t, filepath.Join(copies, "last"))
				t.Logf("%d: %s", last, did)
			}
			_, err := d.Kill(t.Context())
			d.must(err)
			source := tree.Source{Store: d.store, Home: d.config.Home, Env: d.config.Env}
			for range 2 {
				for _, top := range []string{"p", "r", "a"} { // takes it over by hand
					if random.IntN(4) > 0 {
						script(t, d.project, fmt.Sprintf("rm -rf %s; cp -a %s/%[1]s %[1]s || true", top, filepath.Join(copies, "last")))
					}
				}
				did := deed()
				t.Log("person: " + did)
				script(t, d.project, "("+did+") 2>/dev/null || true")
				tr, err := source.In(t.Context(), &d.read.History.History, d.ID(), "end")
				d.must(err)
				gaps, err := tr.Inexact(t.Context())
				d.must(err)
				tr.Close()
				d.forksAs(source, "end", gaps, want[last])
			}
			cfg, _ := d.laid(source, d.ID(), "end", "true")
			upper := filepath.Join(d.store.SessionDir(cfg.ID), "upper")
			d.must(os.WriteFile(filepath.Join(upper, "foreign"), nil, 0o644))
			if s, err := session.Start(t.Context(), d.store, cfg); err == nil || !strings.Contains(err.Error(), "wouldn't be as it was") {
				t.Errorf("a fork began with what the session hadn't: %v", err)
				if err == nil {
					<-s.Done()
				}
			}
		})
	}
}

// What a fork's changes are told from has no more in the record than the session kept:
// nothing of a file beside one that it wrote, and no content of an ignored one that it
// removed. All that was in a folder that it made anew is known to have been there.
func TestForksKeepNoMoreThanTheirSession(t *testing.T) {
	t.Parallel()
	d := drive(t, api.ModeWatch, someRepository(t))
	baseOf(d.world)
	d.run("echo more >>changed; rm -rf build new; mkdir new; echo other >new/other; echo more >>module/file; rm -rf sub/deep; mkdir sub/deep; echo anew >sub/deep/anew")
	_, err := d.Kill(t.Context())
	d.must(err)
	<-d.Done()
	source := tree.Source{Store: d.store, Home: d.config.Home, Env: d.config.Env}
	tr, err := source.In(t.Context(), &d.read.History.History, d.ID(), "end")
	d.must(err)
	defer tr.Close()
	upper, _, err := tr.Over(t.Context(), false)
	d.must(err)
	below, _, err := tr.Beneath(t.Context(), upper)
	d.must(err)
	was := &manifest.Manifest{Root: below.Root}
	for path, want := range map[string]string{"build/out": lower.NotKept("git ignores it"), "changed": "", "module/file": "", "new/folder/n": "", "sub/deep/file": ""} {
		if e := was.Lookup(path); e == nil || e.Kind != manifest.KindFile || e.Unsaved != want || e.Hash.IsZero() == (want == "") {
			t.Errorf("before the fork %s was %+v, not kept: %q", path, e, want)
		}
	}
	for path, kept := range map[string]bool{"build/out": false, "sub/renamed": false, "module/.git": false, "changed": true} {
		text, err := os.ReadFile(filepath.Join(d.project, path))
		d.must(err)
		lost, err := d.store.HasBodies(t.Context(), []store.Hash{store.HashOf(text)})
		d.must(err)
		if kept != (len(lost) == 0) {
			t.Errorf("%s is in the record: %v", path, !kept)
		}
	}
}

// writes is a random deed at one of some paths.
func writes(random *rand.Rand) (path, deed string) {
	path = []string{"a", "b", "c", "d", "d/e", "d/f", "g/h", "g/i/j", "new", "n/m"}[random.IntN(10)]
	switch text := fmt.Sprint(random.IntN(3)); {
	case random.IntN(3) == 0 || path == "d":
		return path, "rm -rf " + path
	default:
		return path, fmt.Sprintf("mkdir -p $(dirname %s); echo %s >%s", path, text, path)
	}
}

// lines are those of onDisk, by path.
func lines(t testing.TB, text string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for line := range strings.Lines(text) {
		var path string
		if _, err := fmt.Sscanf(line, "%q", &path); err != nil {
			t.Fatal(err)
		}
		out[path] = line
	}
	return out
}

// applying applies a session and what it was forked from, again and again, and checks that
// none writes again what an earlier one wrote and a person changed since.
type applying struct {
	*driven
	*apply.Applier
	wrote map[string]string // what applies wrote last, by path; of what they deleted ""
}

// all applies all of a session, and says which lines of the project it changed.
func (a *applying) all(id string) []string {
	a.Helper()
	was := onDisk(a, a.project)
	plan, err := a.ApplyPlan(a.Context(), id, api.ApplyRequest{Looked: true, NoChecks: true})
	a.must(err)
	if plan.Blocked == "" {
		_, err = a.Apply(a.Context(), id, api.ApplyRequest{Looked: true, NoChecks: true, Hash: plan.Hash}, func(api.Progress) {})
		a.must(err)
	}
	is := onDisk(a, a.project)
	then, now := lines(a, was), lines(a, is)
	both := maps.Clone(then)
	maps.Copy(both, now)
	for path := range both {
		last, ok := a.wrote[path]
		switch file := strings.Contains(then[path]+now[path], " f "); {
		case then[path] == now[path] || !file: // folders come and go with files
		case ok && now[path] == last:
			a.Errorf("an apply of %s wrote again what a person had changed back: %q is %q and was %q", id, path, now[path], then[path])
		default:
			a.wrote[path] = now[path]
		}
	}
	return differing(is, was)
}

// Whatever a person does to a project while a session runs in it, between its end and its
// resume, and after: what neither the session nor a fork of it wrote is no change of the
// fork's, nor of a fork of that, and an apply leaves it as it is. What was applied before and
// the person changed back stays so.
func TestForksLeaveAPersonsWorkAlone(t *testing.T) {
	t.Parallel()
	for round := range 3 {
		t.Run(fmt.Sprint(round), func(t *testing.T) {
			seed := rand.Uint64()
			switch round {
			case 1: // a folder that hid the project's, laid out anew so that it doesn't
				seed = 11193402964910452046
			case 2: // a person makes again what a session had applied once, after a fork of it removed that
				seed = 1294766522455624911
			}
			t.Logf("the seed is %d", seed)
			random := rand.New(rand.NewPCG(seed, 0))
			d := drive(t, api.ModeWatch, func(project string) {
				script(t, project, "for f in a b c d/e d/f g/h g/i/j; do mkdir -p $(dirname $f); echo 0 >$f; done")
				if round%2 == 0 {
					gitIn(t, project, "init", "-q")
					gitIn(t, project, "add", "-A")
					gitIn(t, project, "commit", "-qm", "one")
				}
			})
			baseOf(d.world)
			live := true // else a commit pauses the session where it shows
			person := func() {
				for range random.IntN(4) {
					_, deed := writes(random)
					t.Log("person: " + deed)
					script(t, d.project, deed+" || true")
				}
				if random.IntN(3) == 0 && round%2 == 0 && !live {
					gitIn(t, d.project, "add", "-A")
					gitIn(t, d.project, "commit", "-qm", "more", "--allow-empty")
				}
			}
			source := tree.Source{Store: d.store, Home: d.config.Home, Env: d.config.Env}
			history := files.NewHistory(d.store, func(string) bool { return false })
			a := &applying{driven: d, wrote: map[string]string{}, Applier: &apply.Applier{
				Store: d.store, History: history, Journals: project.Journals{Dir: filepath.Join(d.config.DataDir, "journals"), Bodies: files.Bodies{Store: d.store}},
				Owner: func(id string) apply.Owner {
					return apply.Ended{Store: d.store, ID: id, Live: func(string) bool { return false }}
				},
			}}
			var wrote, then []string // all that the session wrote, and up to the moment
			at, moment := api.Moment("start"), random.IntN(8)
			for i := range 8 {
				path, deed := writes(random)
				n := d.run("(" + deed + ")")
				t.Logf("%d: %s", n, deed)
				if wrote = append(wrote, path); i == moment {
					at, then = api.Moment(fmt.Sprint(n)), slices.Clone(wrote)
				}
				person()
				if i == 4 {
					d.again(func(string) {
						live = false
						a.all(d.ID())
						person()
						live = true
					})
					d.do = d.feed("feed")
				}
			}
			_, err := d.Kill(t.Context())
			d.must(err)
			live = false
			person()
			id := d.ID()
			a.all(id)
			person()
			for i := range 2 { // a fork, and one of it
				path, deed := writes(random)
				t.Logf("fork at %s: %s", at, deed)
				id, _ = d.fork(source, id, at, "("+deed+"); sleep 0")
				then, at = append(then, path), "end"
				person()
				if i == 0 {
					a.all(id)
					person()
				}
			}
			touched := func(path string) bool {
				return strings.HasPrefix(path, ".git/") || slices.ContainsFunc(then, func(w string) bool { return manifest.Within(path, w) || manifest.Within(w, path) })
			}
			all, err := history.Changes(t.Context(), id, api.Scope{}, api.Page{})
			d.must(err)
			for _, c := range all.Files {
				if !touched(c.Path) {
					t.Errorf("%s is told to be %s by the fork", c.Path, c.Status)
				}
			}
			for _, line := range a.all(id) {
				var path string
				if _, err := fmt.Sscanf(line[1:], "%q", &path); err != nil || !touched(path) {
					t.Errorf("an apply changed %s", line)
				}
			}
			person()
			a.all(d.ID()) // what it was forked from knows of the fork's
		})
	}
}

// differing lists the lines that one text has and the other hasn't.
func differing(is, was string) (out []string) {
	for i, pair := range [][2]string{{is, was}, {was, is}} {
		for line := range strings.Lines(pair[0]) {
			if !strings.Contains("\n"+pair[1], "\n"+line) {
				out = append(out, "+-"[i:i+1]+line)
			}
		}
	}
	return out
}
