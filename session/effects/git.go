package effects

import (
	"bytes"
	"maps"
	"path"
	"slices"
	"strings"

	"stepbox/policy/git"
	"stepbox/runner/overlay/diff"
	"stepbox/runner/overlay/manifest"
	"stepbox/session/api"
)

// repository says what happened in a repository's own folder. Its files aren't
// told of one by one: what git notes in small text files (its log, references,
// settings) tells more.
func (s *summary) repository(folder string, changed []diff.Change) {
	r := &gitFolder{summary: s, changes: map[string]diff.Change{}}
	at := path.Join(folder, ".git")
	for _, c := range changed {
		r.changes[strings.TrimPrefix(c.Path, at+"/")] = c
	}
	head := r.changes["HEAD"].Status
	if head == diff.Deleted {
		s.out.Grave = true
		s.add(loses, "deletes the repository %s", short(at, 28))
		return
	}
	before := len(s.phrases)
	if head == diff.Added {
		s.add(minor, "makes a git repository")
	}
	if message := r.log(); message != "" {
		s.out.Committed = api.Escape(api.Trim(message, maxMessage))
	}
	r.references()
	r.stash()
	r.settings(head == diff.Added)
	r.files()
	if len(s.phrases) > before {
	} else if c, ok := r.changes["index"]; ok && c.New != nil {
		s.add(plain, "changes what git has staged")
	} else {
		s.add(plain, "changes git's own files")
	}
}

// gitFolder is one repository's own folder.
type gitFolder struct {
	*summary
	changes map[string]diff.Change // by path below it
}

// sides reads both sides of a changed file.
func (r *gitFolder) sides(name string) (old, now []byte) {
	c := r.changes[name]
	old, _ = r.read(c.Old, maxCompare)
	now, _ = r.read(c.New, maxCompare)
	return old, now
}

// news are the messages that were added to a log, as git writes them.
func (r *gitFolder) news(name string) (out []string) {
	old, now := r.sides("logs/" + name)
	added, _ := bytes.CutPrefix(now, old)
	for line := range strings.Lines(string(added)) {
		if _, message, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "\t"); ok && len(added) < len(now) || len(old) == 0 && ok {
			out = append(out, message)
		}
	}
	return out
}

// log says what HEAD went through, and what the last commit's message begins with.
func (r *gitFolder) log() (message string) {
	commits, to := 0, ""
	for _, m := range r.news("HEAD") {
		switch verb, rest, _ := strings.Cut(m, ": "); verb {
		case "commit", "commit (initial)", "commit (merge)", "commit (amend)":
			if message = rest; verb != "commit (amend)" {
				commits++
			}
		case "checkout":
			_, to, _ = strings.Cut(rest, " to ")
		}
	}
	if commits == 1 {
		r.add(minor, "commits")
	} else if commits > 1 {
		r.add(minor, "commits %d times", commits)
	}
	if to != "" {
		r.add(minor, "switches to %s", short(to, 28))
	}
	return message
}

// references says which branches and tags were deleted, made or rewritten.
func (r *gitFolder) references() {
	old, now := r.sides("packed-refs")
	was, is := packed(old), packed(now)
	for name, c := range r.changes {
		if strings.HasPrefix(name, "refs/") && c.Kind() == manifest.KindFile {
			old, now := r.sides(name)
			if c.Old != nil {
				was[name] = strings.TrimSpace(string(old))
			}
			if c.New != nil {
				is[name] = strings.TrimSpace(string(now))
			}
		}
	}
	there := slices.Collect(maps.Values(is))
	all := maps.Clone(was)
	maps.Copy(all, is)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		branch, isBranch := strings.CutPrefix(name, "refs/heads/")
		tag, isTag := strings.CutPrefix(name, "refs/tags/")
		label := "the branch " + short(branch, 28)
		if isTag {
			label = "the tag " + short(tag, 28)
		}
		switch {
		case !isBranch && !isTag || was[name] == is[name]:
		case is[name] == "":
			r.out.Grave = r.out.Grave || !slices.Contains(there, was[name])
			r.add(history, "deletes %s", label)
		case isTag && was[name] != "":
			r.add(history, "moves %s", label)
		case isBranch && was[name] != "":
			if by := rewrite(r.news(name)); by != "" {
				r.add(history, "rewrites %s%s", label, by)
			}
		case len(r.news("HEAD")) == 0:
			r.add(minor, "makes %s", label)
		}
	}
}

// packed reads a file of references.
func packed(b []byte) map[string]string {
	out := map[string]string{}
	for line := range strings.Lines(string(b)) {
		if hash, name, ok := strings.Cut(strings.TrimSpace(line), " "); ok && strings.HasPrefix(name, "refs/") {
			out[name] = hash
		}
	}
	return out
}

// rewrite says how a branch was moved to what doesn't go on from where it was,
// by what its log got; "" when it only went on.
func rewrite(news []string) string {
	by := " in a way that git didn't note"
	for _, m := range news {
		switch verb, _, _ := strings.Cut(m, ":"); {
		case verb == "commit (amend)":
			return ": an amended commit"
		case strings.HasPrefix(verb, "reset"):
			return " by a reset"
		case strings.HasPrefix(verb, "rebase"), strings.HasPrefix(verb, "filter"), strings.HasPrefix(m, "branch: Reset"):
			return " by a rebase or the like"
		}
		by = ""
	}
	return by
}

// stash says what was put aside or dropped.
func (r *gitFolder) stash() {
	c, ok := r.changes["refs/stash"]
	old, now := r.sides("logs/refs/stash")
	switch n := bytes.Count(now, []byte("\n")) - bytes.Count(old, []byte("\n")); {
	case ok && c.New != nil && n > 0:
		if r.stashed = true; r.groups["reverted"] == nil {
			r.add(minor, "stashes changes")
		}
	case n >= 0 && !(ok && c.New == nil):
	case r.out.Modified+r.out.Created > 0:
		r.add(minor, "puts changes back from the stash")
	default:
		r.out.Grave = true
		if n < -1 {
			r.add(history, "drops %d stashes", -n)
		} else {
			r.add(history, "drops a stash")
		}
	}
}

// reach are settings that make git run programs, or read and talk to what it
// didn't before; one that ends in a dot is all below it.
const reach = "core.hookspath core.fsmonitor core.sshcommand core.editor core.pager core.worktree core.gitproxy sequence.editor gpg.program " +
	"diff.external init.templatedir alias. filter. include. includeif. url. credential. difftool. mergetool. "

func reaches(name string) bool {
	section, _, _ := strings.Cut(name, ".")
	return strings.Contains(" "+reach, " "+name+" ") || strings.Contains(" "+reach, " "+section+". ") ||
		strings.HasSuffix(name, ".textconv") || strings.HasSuffix(name, ".driver") || strings.HasSuffix(name, ".command")
}

// settings says what of git's configuration changed. Of a fresh one, what git
// init writes is passed over.
func (r *gitFolder) settings(fresh bool) {
	old, now := r.sides("config")
	was, is := git.Settings(old), git.Settings(now)
	var names []string
	first := 0 // so many of them reach
	maps.DeleteFunc(is, func(name, value string) bool { return was[name] == value })
	for _, name := range slices.Sorted(maps.Keys(is)) {
		if reaches(name) {
			names = slices.Insert(names, first, name)
			first++
		} else if !fresh {
			names = append(names, name)
		}
	}
	switch c, ok := r.changes["config"]; {
	case first > 0:
		r.out.Grave = true
		r.add(runs, "sets git's %s, which makes git run or read more", short(names[0], 16))
	case len(names) > 0:
		r.add(touches, "changes git's config: %s", short(strings.Join(names, ", "), 28))
	case ok && !fresh && c.Content:
		r.add(touches, "takes settings out of git's config")
	}
}

// files is about the rest: hooks, and objects that are gone.
func (r *gitFolder) files() {
	objects, packs := 0, 0
	for _, name := range slices.Sorted(maps.Keys(r.changes)) {
		c := r.changes[name]
		hook, isHook := strings.CutPrefix(name, "hooks/")
		switch {
		case isHook && !strings.HasSuffix(hook, ".sample") && c.Kind() != manifest.KindDir:
			r.out.Grave = true
			verb := map[bool]string{true: "deletes", false: "writes"}[c.New == nil]
			r.add(runs, "%s the git hook %s", verb, short(hook, 28))
		case name == "objects/info/alternates" && c.New != nil:
			r.add(runs, "makes git read another repository's objects")
		case strings.HasPrefix(name, "objects/pack/") && c.Status == diff.Added:
			packs++
		case strings.HasPrefix(name, "objects/") && c.Status == diff.Deleted && c.Kind() == manifest.KindFile:
			objects++
		case name == "index.lock" && c.Status == diff.Added:
			r.add(touches, "leaves git locked: .git/index.lock")
		}
	}
	if objects > 0 && packs == 0 {
		r.out.Grave = true
		r.add(loses, "deletes %d of git's objects", objects)
	}
}
