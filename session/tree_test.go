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
	"stepbox/runner/overlay/manifest"
	"stepbox/session"
	"stepbox/session/api"
	"stepbox/session/files"
	"stepbox/session/scratch"
	"stepbox/session/tree"
)

// gitIn runs the real git in a folder.
func gitIn(t testing.TB, dir string, args ...string) {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=t", "-c", "user.email=t", "-c", "protocol.file.allow=always", "-c", "gc.auto=0"}, args...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %v: %v: %s", args, err, out)
	}
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
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git to make a repository with")
	}
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
	if err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
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
					if !slices.ContainsFunc(gaps, func(g tree.Gap) bool { return strings.HasPrefix(line[2:], g.Path) }) {
						t.Errorf("at %s the tree (+) and what the agent saw (-) differ: %s", at, line)
					}
				}
				for _, g := range gaps {
					if !strings.HasSuffix(g.Path, ".git") && !strings.HasPrefix(g.Path, "build") && !strings.HasPrefix(g.Path, "ignored") {
						t.Errorf("at %s %q isn't exact: %s", at, g.Path, g.Why)
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
func (d *driven) forksAs(source tree.Source, at api.Moment, gaps []tree.Gap, was string) {
	d.Helper()
	tr, err := source.In(d.Context(), &d.read.History.History, d.ID(), at)
	d.must(err)
	defer tr.Close()
	upper, more, err := tr.Over(d.Context())
	d.must(err)
	below, _, err := tr.Beneath(d.Context(), upper)
	d.must(err)
	gaps = append(gaps, more...)
	cfg := d.config
	d.n++
	cfg.ID = fmt.Sprintf("%sf%d", d.ID(), d.n)
	cfg.Argv = []string{"bash", "-c", "cp -a . /tmp/copy; echo own >own"}
	cfg.Parent, cfg.Laid = &api.Parent{ID: d.ID(), Name: "t", At: at}, &manifest.Manifest{Root: upper.Root, Base: below}
	d.must(scratch.New(scratch.Config{Store: d.store, Workspace: d.project, Home: cfg.Home, Env: cfg.Env, DataDir: cfg.DataDir}).Lay(d.Context(), d.store.SessionDir(cfg.ID), upper))
	s, err := session.Start(d.Context(), d.store, cfg)
	d.must(err)
	<-s.Done()
	folder := d.store.SessionDir(cfg.ID)
	d.Cleanup(func() { d.must(holder.RemoveAll(folder)) })
	is := onDisk(d, filepath.Join(folder, "tmp", "copy"))
	for _, line := range differing(is, was) {
		if !slices.ContainsFunc(gaps, func(g tree.Gap) bool { return strings.HasPrefix(line[2:], g.Path) }) {
			d.Errorf("the fork at %s (+) and what the agent saw (-) differ: %s", at, line)
		}
	}
	history := files.NewHistory(d.store, func(string) bool { return false })
	own, err := history.Changes(d.Context(), cfg.ID, api.Scope{From: "start"}, api.Page{})
	d.must(err)
	if len(own.Files) != 1 || own.Files[0].Path != "own" || own.Files[0].Inherited {
		d.Errorf("what the fork at %s did itself is %+v", at, own.Files)
	}
	all, err := history.Changes(d.Context(), cfg.ID, api.Scope{}, api.Page{})
	d.must(err)
	for _, c := range all.Files {
		if c.Inherited == (c.Path == "own") {
			d.Errorf("of %s it is said that it was inherited: %v", c.Path, c.Inherited)
		}
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
