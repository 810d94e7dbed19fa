package scratch

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"stepbox/runner/overlay/manifest"
	"stepbox/session/api"
)

// Fetched is what was put into the real repositories.
type Fetched struct {
	Commits
	Ref string   // below which the commits are: refs/stepbox/ID/; "" when there are none
	How []string // commands with which a person merges or picks them
}

const (
	maxBundle = 1 << 30 // bytes, of one repository
	maxHow    = 20      // branches that a person is told what to do with
)

// inside names the references that a bundle has.
const inside = "refs/stepbox-out/"

// bundleScript makes the bundles. What it was told to bundle is ours.
const bundleScript = `	{ g update-ref --stdin <$n.update && g bundle create -q $n.bundle --stdin <$n.revs; } >$n.said 2>&1 || echo failed >$n.failed
done
`

// Fetch puts the commits that the agent made into the repositories that the
// project has on the host, below refs/stepbox/ID, where ID is the session's, and
// changes nothing else there. It may be done again. Git bundles them in a sandbox;
// the person's own git sees a copy of the bundle and the real repository, neither
// of which the agent can write. It fetches them all or, in each repository, none;
// and nothing at all unless they are those that a person was shown, since git in the
// sandbox may be made to list others each time.
func (s *Scratch) Fetch(ctx context.Context, session string, state *manifest.Manifest, shown []api.Commit) (Fetched, error) {
	list, err := s.gather(ctx, state, Shown{})
	plain := slices.Clone(shown) // what a merge would take was told before files were written
	for i := range plain {
		plain[i].Danger = ""
	}
	if err == nil && !slices.Equal(said(list).List, plain) {
		err = errors.New("they aren't the commits that were shown any more; look at them again")
	}
	if err != nil {
		return Fetched{}, err
	}
	out := Fetched{}
	err = s.git(ctx, state, list, bundleScript, func(r *repository) (map[string]string, error) {
		if len(r.tips) == 0 {
			return nil, nil
		}
		before, err := s.before(ctx, r)
		if err == nil {
			err = s.keep(ctx, r, ours+session+"/")
		}
		if err != nil {
			return nil, err
		}
		var update, revs strings.Builder
		for i, t := range r.tips {
			fmt.Fprintf(&update, "update %s%d %s\n", inside, i, t.hash)
			fmt.Fprintf(&revs, "%s%d\n", inside, i)
		}
		for _, hash := range before {
			revs.WriteString("^" + hash + "\n")
		}
		return map[string]string{"update": update.String(), "revs": revs.String()}, nil
	}, func(r *repository, dir, prefix string) error {
		if err := s.fetch(ctx, r, session, filepath.Join(dir, "bundle"), prefix+"bundle"); err != nil {
			return fmt.Errorf("its commits weren't fetched: %w", err)
		}
		out.Ref = ours + session + "/"
		out.How = append(out.How, r.how(out.Ref)...)
		return nil
	})
	out.Commits = said(list)
	for i, c := range out.List {
		out.List[i] = shown[slices.Index(plain, c)]
	}
	return out, err
}

// how are the commands with which a person looks at what was fetched, and takes it over.
func (r *repository) how(below string) (out []string) {
	command := "git "
	if r.folder != "" {
		command += "-C " + quoted(r.folder) + " "
	}
	for _, t := range r.tips[:min(len(r.tips), maxHow)] {
		for _, how := range howTo(t.ref) {
			out = append(out, command+how+below+t.name)
		}
	}
	for _, name := range r.kept[:min(len(r.kept), maxHow)] {
		out = append(out, command+"log -p .."+below+name)
	}
	return out
}

// howTo is what a person looks at, and takes over, what a reference led to with.
func howTo(ref string) []string {
	switch {
	case api.IsStash(ref):
		return []string{"stash show -p ", "stash apply "}
	case api.IsNotes(ref):
		return []string{"log -p ", "notes merge "}
	}
	return []string{"log -p ..", "merge ", "cherry-pick .."}
}

// keep has what was fetched before stay though the agent's branch, amended or reset since,
// leads to it no more: as a commit on no branch.
func (s *Scratch) keep(ctx context.Context, r *repository, below string) error {
	list, err := s.real(ctx, r, call{}, "for-each-ref", "--format=%(objectname) %(refname)", below)
	ask := r.replaces(string(list), below)
	if ask == "" || err != nil {
		return err
	}
	left, err := s.real(ctx, r, call{in: strings.NewReader(ask)}, "rev-list", "--stdin", "--not", "--exclude="+ours+"*", "--all")
	var update strings.Builder
	for hash := range strings.Lines(string(left)) {
		if hash = strings.TrimSpace(hash); strings.Contains(ask, hash+"\n") {
			r.kept = append(r.kept, "commit-"+hash[:12])
			update.WriteString("update " + below + "commit-" + hash[:12] + " " + hash + "\n")
		}
	}
	if update.Len() > 0 && err == nil {
		_, err = s.real(ctx, r, call{in: strings.NewReader(update.String())}, "update-ref", "--stdin")
	}
	return err
}

// replaces lists, by line, what was fetched before under names that go to other commits now.
// A branch whose name is a folder of a fetched one's, or the other way round, is named by its
// commit.
func (r *repository) replaces(fetched, below string) (ask string) {
	for line := range strings.Lines(fetched) {
		hash, ref, _ := strings.Cut(strings.TrimSpace(line), " ")
		name := strings.TrimPrefix(ref, below)
		r.apart(name)
		named := slices.ContainsFunc(r.tips, func(t tip) bool { return t.name == name })
		if named && !slices.ContainsFunc(r.commits, func(c commit) bool { return c.hash == hash }) {
			ask += hash + "\n"
		}
	}
	known := make(map[string]bool)
	r.tips = slices.DeleteFunc(r.tips, func(t tip) bool { // of two branches at one commit the second has no commits
		defer func() { known[t.name] = true }()
		return known[t.name]
	})
	return ask
}

// apart has no tip's name be a folder of a reference's, nor the other way round.
func (r *repository) apart(name string) {
	for i := range r.tips {
		if t := &r.tips[i]; strings.HasPrefix(t.name, name+"/") || strings.HasPrefix(name, t.name+"/") {
			t.name = "branch-" + t.hash[:12]
		}
	}
}

// before lists the commits that the new ones are made on top of: those that a branch
// of the real repository leads to, so that nothing comes along that wasn't listed but what
// the host had when the session began, and has let go of.
func (s *Scratch) before(ctx context.Context, r *repository) (out []string, err error) {
	out = r.onTopOf()
	with := func() call { return call{in: strings.NewReader(strings.Join(out, "\n")), env: []string{s.stores(r)}} }
	kinds, err := s.real(ctx, r, with(), "cat-file", "--batch-check=%(objecttype)")
	if err == nil && string(kinds) != strings.Repeat("commit\n", len(out)) {
		err = errors.New("its commits are made on top of others that the project's repository doesn't have")
	}
	if len(out) == 0 || err != nil {
		return nil, err
	}
	since, err := s.real(ctx, r, with(), "rev-list", "--boundary", "--stdin", "--not", "--all")
	for line := range strings.Lines(string(since)) {
		hash, reached := strings.CutPrefix(strings.TrimSpace(line), "-")
		if out = slices.DeleteFunc(out, func(h string) bool { return h == hash }); reached {
			out = append(out, hash)
		}
	}
	return out, err
}

// onTopOf are the parents of new commits that aren't new.
func (r *repository) onTopOf() (out []string) {
	known := make(map[string]bool, len(r.commits))
	for i := range r.commits {
		known[r.commits[i].hash] = true
	}
	for i := range r.commits {
		for _, p := range r.commits[i].parents {
			if !known[p] {
				known[p] = true
				out = append(out, p)
			}
		}
	}
	return out
}

// fetch copies a bundle out of a folder where the sandbox can write, and fetches
// what it has if that is what was listed.
func (s *Scratch) fetch(ctx context.Context, r *repository, session, bundle, from string) error {
	if _, err := copyRegular(from, bundle, maxBundle); err != nil {
		return fmt.Errorf("cannot take over the bundle that git made of them: %w", err)
	}
	var want strings.Builder
	args := []string{
		"fetch", "--quiet", "--atomic", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules", "--no-auto-maintenance", "--no-show-forced-updates", bundle,
	}
	for i, t := range r.tips {
		fmt.Fprintf(&want, "%s %s%d\n", t.hash, inside, i)
		args = append(args, fmt.Sprintf("+%s%d:%s%s/%s", inside, i, ours, session, t.name))
	}
	heads, err := s.real(ctx, r, call{}, "bundle", "list-heads", bundle)
	if err == nil && string(heads) != want.String() {
		err = errors.New("its bundle has other commits than were listed")
	}
	if err == nil {
		_, err = s.real(ctx, r, call{}, args...)
	}
	return err
}

// quoted is a word for a shell.
func quoted(s string) string {
	if strings.Trim(s, plainLetters) == "" && s[0] != '-' {
		return s
	}
	return "'" + strings.ReplaceAll(api.Escape(s), "'", `'\''`) + "'"
}
