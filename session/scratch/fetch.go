package scratch

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"stepbox/runner/overlay/manifest"
	"stepbox/session/api"
	"stepbox/session/outfit"
)

// Fetched is what was put into the real repositories.
type Fetched struct {
	Commits
	Ref string   // below which the commits are: refs/stepbox/ID/; "" when there are none
	How []string // commands with which a person merges or picks them
}

// maxBundle bounds the bundle of one repository, in bytes.
const maxBundle = 1 << 30

// inside names the references that a bundle has.
const inside = "refs/stepbox-out/"

// Fetch puts the commits that the agent made into the repositories that the
// project has on the host, below refs/stepbox/ID, where ID is the session's, and
// changes nothing else there. It may be done again. Git bundles them in a sandbox;
// the person's own git sees the bundle and the real repository, neither of which
// the agent can write by then. It fetches them all or, in each repository, none.
func (s *Scratch) Fetch(ctx context.Context, session string, state *manifest.Manifest) (Fetched, error) {
	list, err := s.gather(ctx, state)
	if err != nil {
		return Fetched{}, err
	}
	var asked []*repository
	argv, temp := []string{"/bin/sh", "-c", bundleScript, "bundle"}, make(map[string]string)
	for _, r := range list {
		if r.trouble != "" || len(r.tips) == 0 {
			continue
		}
		asked = append(asked, r)
		argv = append(argv, s.at(r))
		var update, revs strings.Builder
		for i, t := range r.tips {
			fmt.Fprintf(&update, "update %s%d %s\n", inside, i, t.hash)
			fmt.Fprintf(&revs, "%s%d\n", inside, i)
		}
		for _, hash := range r.before() {
			revs.WriteString("^" + hash + "\n")
		}
		n := strconv.Itoa(len(asked))
		temp[n+".update"], temp[n+".revs"] = update.String(), revs.String()
	}
	out := Fetched{}
	if len(asked) > 0 {
		err = s.git(ctx, state, argv, temp, func(temp string) error {
			for i, r := range asked {
				err := s.fetch(ctx, r, session, filepath.Join(temp, strconv.Itoa(i+1)))
				switch {
				case ctx.Err() != nil:
					return context.Cause(ctx)
				case err != nil:
					r.trouble = api.Escape(api.Trim("its commits weren't fetched: "+err.Error(), 700))
				default:
					out.Ref = ours + session + "/"
					out.How = append(out.How, r.how(out.Ref)...)
				}
			}
			return nil
		})
	}
	out.Commits = listed(list)
	return out, err
}

// bundleScript makes the bundles. What it was told to bundle is ours.
const bundleScript = scriptStart + `	{ g update-ref --stdin <$n.update && g bundle create -q $n.bundle --stdin <$n.revs; } >$n.said 2>&1 || echo failed >$n.failed
done
`

// fetch fetches one repository's bundle, which is in a file that begins with a name.
func (s *Scratch) fetch(ctx context.Context, r *repository, session, prefix string) error {
	if _, err := os.Lstat(prefix + ".failed"); err == nil {
		text, _ := readRegular(prefix+".said", 64<<10) // else there is nothing to add
		line, _, _ := strings.Cut(string(text), "\n")
		return fmt.Errorf("git can't bundle them: %s", line)
	}
	if err := r.checkBundle(prefix + ".bundle"); err != nil {
		return fmt.Errorf("the bundle that git made of them is bad: %w", err)
	}
	// Out of the folder that was the sandbox's.
	bundle := filepath.Join(filepath.Dir(filepath.Dir(prefix)), "fetched.bundle")
	if err := os.Rename(prefix+".bundle", bundle); err != nil {
		return err
	}
	if err := r.complete(ctx, s); err != nil {
		return err
	}
	args := []string{
		"fetch", "--quiet", "--atomic", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules", "--no-auto-maintenance", "--no-show-forced-updates", bundle,
	}
	for i, t := range r.tips {
		args = append(args, fmt.Sprintf("+%s%d:%s%s/%s", inside, i, ours, session, t.name))
	}
	_, err := s.real(ctx, r, nil, args...)
	return err
}

// checkBundle reads a bundle's head, see gitformat-bundle(5): it has the commits
// that were asked for under the names that they got, and nothing else.
func (r *repository) checkBundle(file string) error {
	f, err := openRegular(file, maxBundle)
	if err != nil {
		return err
	}
	defer f.Close()
	want := make(map[string]string, len(r.tips))
	for i, t := range r.tips {
		want[inside+strconv.Itoa(i)] = t.hash
	}
	lines := bufio.NewReaderSize(io.LimitReader(f, maxRefsFile), 64<<10)
	for n := 0; ; n++ {
		line, err := lines.ReadSlice('\n')
		if err != nil {
			return errors.New("its head isn't well-formed")
		}
		text := string(bytes.TrimSuffix(line, []byte("\n")))
		switch {
		case n == 0:
			if text != "# v2 git bundle" && text != "# v3 git bundle" {
				return errors.New("it isn't a bundle")
			}
		case strings.HasPrefix(text, "@"):
			if text != "@object-format=sha1" && text != "@object-format=sha256" {
				return errors.New("it asks for more than is known of bundles")
			}
		case text == "":
			if len(want) > 0 {
				return errors.New("commits are missing")
			}
			return nil
		case text[0] == '-': // what it is on top of, which git looks for
		default:
			hash, ref, _ := strings.Cut(text, " ")
			if want[ref] != hash || hash == "" {
				return errors.New("it has other commits than were listed")
			}
			delete(want, ref)
		}
	}
}

// complete makes sure that nothing is fetched that wasn't listed: what the listed
// commits are on top of is in the real repository.
func (r *repository) complete(ctx context.Context, s *Scratch) error {
	before := r.before()
	if len(before) == 0 {
		return nil
	}
	out, err := s.real(ctx, r, []byte(strings.Join(before, "\n")+"\n"), "cat-file", "--batch-check=%(objecttype)")
	if err != nil {
		return err
	}
	if got := strings.Fields(string(out)); len(got) != len(before) || slices.ContainsFunc(got, func(s string) bool { return s != "commit" }) {
		return errors.New("they are made on top of commits that the project's repository doesn't have")
	}
	return nil
}

// real runs the person's git on a repository that the agent can't write: nothing
// of a session goes below a .git but what this fetches.
func (s *Scratch) real(ctx context.Context, r *repository, in []byte, args ...string) ([]byte, error) {
	if err := s.straight(r); err != nil {
		return nil, fmt.Errorf("the project's git folder isn't there any more, or is behind a link: %w", err)
	}
	program := outfit.Program("git", s.cfg.Env)
	path, err := filepath.EvalSymlinks(program)
	switch in, outside := filepath.Rel(s.cfg.Workspace, path); {
	case program == "" || err != nil:
		return nil, errors.New("there is no git on this machine")
	case outside == nil && filepath.IsLocal(in):
		return nil, fmt.Errorf("the git that PATH has first, %q, is in the project, where the agent's work goes", program)
	}
	dir := s.at(r)
	ctx, cancel := context.WithTimeout(ctx, gitTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, slices.Concat([]string{
		"-C", dir, "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "fetch.fsckObjects=true", "-c", "fetch.writeCommitGraph=false",
		"-c", "gc.auto=0", "-c", "maintenance.auto=false", "-c", "protocol.allow=never", "-c", "protocol.file.allow=always",
	}, args)...)
	cmd.Dir = "/"
	cmd.Env = []string{"LC_ALL=C", "GIT_TERMINAL_PROMPT=0", "GIT_NO_LAZY_FETCH=1", "GIT_CEILING_DIRECTORIES=" + filepath.Dir(dir), "HOME=" + s.cfg.Home}
	for _, v := range s.cfg.Env {
		if name, _, _ := strings.Cut(v, "="); name == "PATH" || name == "XDG_CONFIG_HOME" {
			cmd.Env = append(cmd.Env, v)
		}
	}
	var out, said bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(in), &out, &said
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("git %s: %s (%w)", args[0], strings.TrimSpace(api.Trim(said.String(), 500)), err)
	}
	return out.Bytes(), nil
}

// maxHow bounds how many branches a person is told what to do with.
const maxHow = 20

// how says what merges or picks a repository's commits.
func (r *repository) how(below string) (out []string) {
	command := "git "
	if r.folder != "" {
		command += "-C " + quoted(r.folder) + " "
	}
	at := make(map[string]int, len(r.commits))
	for i := range r.commits {
		at[r.commits[i].hash] = i
	}
	for _, t := range r.tips[:min(len(r.tips), maxHow)] {
		ref := below + t.name
		base, linear, rooted := r.from(at, t.hash)
		if rooted {
			out = append(out, command+"merge --allow-unrelated-histories "+ref)
			continue
		}
		out = append(out, command+"merge "+ref)
		if linear {
			out = append(out, command+"cherry-pick "+base[:12]+".."+ref)
		}
	}
	return out
}

// from follows new commits down to the one that they are on top of. Linear says
// that there is no merge among them, rooted that they begin with nothing.
func (r *repository) from(at map[string]int, hash string) (base string, linear, rooted bool) {
	seen := make(map[string]bool)
	linear, rooted = true, true
	for left := map[string]bool{hash: true}; len(left) > 0; {
		hash := slices.Collect(maps.Keys(left))[0]
		delete(left, hash)
		i, fresh := at[hash]
		if !fresh {
			base, rooted = hash, false
			continue
		}
		if seen[hash] {
			continue
		}
		seen[hash] = true
		linear = linear && len(r.commits[i].parents) == 1
		for _, p := range r.commits[i].parents {
			left[p] = true
		}
	}
	return base, linear, rooted
}

// quoted is a word for a shell.
func quoted(s string) string {
	if !api.Unclear(s) && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._/-") == "" && s[0] != '-' {
		return s
	}
	return "'" + strings.ReplaceAll(api.Escape(s), "'", `'\''`) + "'"
}
