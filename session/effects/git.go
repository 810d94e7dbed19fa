package effects

import (
	"bytes"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"stepbox/policy/git"
	"stepbox/runner/overlay/diff"
	"stepbox/runner/overlay/manifest"
)

// repository says what happened in a repository's own folder. Its files aren't
// told of one by one: what git notes in small text files (its log, references,
// settings) tells more.
func (s *summary) repository(folder string, changed []diff.Change) {
	r := &gitFolder{summary: s, at: path.Join(folder, ".git") + "/", changes: map[string]diff.Change{}}
	for _, c := range changed {
		r.changes[strings.TrimPrefix(c.Path, r.at)] = c
	}
	switch head := r.changes["HEAD"]; {
	case head.Status == diff.Deleted:
		s.out.Grave = true
		s.add(loses, "deletes the repository %s", short(path.Join(folder, ".git"), maxName))
		return
	case head.Status == diff.Renamed:
		s.add(moves, "moves a repository to %s", short(folder+"/", maxName))
		return
	case head.Status == diff.Added:
		s.add(minor, "makes a git repository")
	}
	before := len(s.phrases)
	r.log()
	r.references()
	r.stash()
	r.settings(r.changes["HEAD"].Status == diff.Added)
	r.files()
	if len(s.phrases) == before && r.changes["HEAD"].Status != diff.Added {
		if c, ok := r.changes["index"]; ok && c.New != nil {
			s.add(plain, "changes what git has staged")
		} else {
			s.add(plain, "changes git's own files")
		}
	}
}

// gitFolder is one repository's own folder.
type gitFolder struct {
	*summary
	at      string                 // its path, with a slash
	changes map[string]diff.Change // by path below it
}

// sides reads both sides of a changed file.
func (r *gitFolder) sides(name string) (old, now []byte) {
	c, ok := r.changes[name]
	if !ok {
		return nil, nil
	}
	old, _ = r.in.read(c.Old, maxCompare)
	now, _ = r.in.read(c.New, maxCompare)
	return old, now
}

// news are the messages that were added to a log, as git writes them.
func (r *gitFolder) news(name string) []string {
	old, now := r.sides("logs/" + name)
	added, ok := bytes.CutPrefix(now, old)
	if !ok {
		return nil
	}
	var out []string
	for line := range strings.Lines(string(added)) {
		if _, message, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "\t"); ok {
			out = append(out, message)
		}
	}
	return out
}

// log says what HEAD went through.
func (r *gitFolder) log() {
	counts := map[string]int{}
	to := ""
	for _, m := range r.news("HEAD") {
		verb, rest, _ := strings.Cut(m, ":")
		if verb = strings.TrimSpace(verb); verb == "checkout" {
			_, to, _ = strings.Cut(rest, " to ")
		}
		counts[verb]++
	}
	if n := counts["commit"] + counts["commit (initial)"] + counts["commit (merge)"]; n == 1 {
		r.add(minor, "commits")
	} else if n > 1 {
		r.add(minor, "commits %d times", n)
	}
	for _, verb := range slices.Sorted(maps.Keys(counts)) {
		switch verb, _, _ := strings.Cut(verb, " "); verb {
		case "merge", "cherry-pick", "revert", "pull":
			r.add(minor, "%s", map[string]string{"merge": "merges", "cherry-pick": "cherry-picks", "revert": "reverts a commit", "pull": "pulls"}[verb])
		}
	}
	if counts["checkout"] > 0 && to != "" {
		r.add(minor, "switches to %s", short(to, maxName))
	}
}

// references says which branches and tags were deleted, made or rewritten.
func (r *gitFolder) references() {
	old, now := r.sides("packed-refs")
	was, is := packed(old), packed(now)
	names := map[string]bool{}
	for name := range was {
		names[name] = names[name] || was[name] != is[name]
	}
	for name := range is {
		names[name] = names[name] || was[name] != is[name]
	}
	for name, c := range r.changes {
		if !strings.HasPrefix(name, "refs/") || c.Kind() == manifest.KindDir {
			continue
		}
		names[name] = true
		old, now := r.sides(name)
		if c.Old != nil {
			was[name] = strings.TrimSpace(string(old))
		}
		if c.New != nil {
			is[name] = strings.TrimSpace(string(now))
		}
	}
	there := map[string]bool{}
	for _, hash := range is {
		there[hash] = true
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if !names[name] || was[name] == is[name] && was[name] != "" {
			continue
		}
		kind, label, _ := strings.Cut(strings.TrimPrefix(name, "refs/"), "/")
		what := map[string]string{"heads": "branch", "tags": "tag"}[kind]
		switch label = short(label, maxName); {
		case what == "":
		case is[name] == "" && was[name] != "":
			r.out.Grave = r.out.Grave || !there[was[name]]
			r.add(history, "deletes the %s %s", what, label)
		case was[name] == "":
			if kind != "heads" || r.changes["HEAD"].Status != diff.Added && len(r.news("HEAD")) == 0 {
				r.add(minor, "makes the %s %s", what, label)
			}
		case what == "tag":
			r.add(history, "moves the tag %s", label)
		default:
			if by := rewrite(r.news(name)); by != "" {
				r.add(history, "rewrites the branch %s%s", label, by)
			}
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
	n := bytes.Count(now, []byte("\n")) - bytes.Count(old, []byte("\n"))
	switch {
	case ok && c.New != nil && n > 0:
		r.stashed = true
		if len(r.reverted.names) == 0 {
			r.add(minor, "stashes changes")
		}
	case n < 0 || ok && c.New == nil:
		if len(r.changed.names)+len(r.created.names)+len(r.overwritten.names)+len(r.tests.names) > 0 {
			r.add(minor, "takes changes back from the stash")
			return
		}
		r.out.Grave = true
		if n < -1 {
			r.add(history, "drops %d stashes", -n)
		} else {
			r.add(history, "drops a stash")
		}
	}
}

// reach are settings that make git run programs, or read and talk to what it
// didn't before.
var reach = []string{
	"core.hookspath", "core.fsmonitor", "core.sshcommand", "core.editor", "core.pager", "core.worktree", "core.gitproxy", "sequence.editor",
	"gpg.program", "credential.helper", "diff.external", "init.templatedir", "include.path",
}

// settings says what of git's configuration changed.
func (r *gitFolder) settings(fresh bool) {
	old, now := r.sides("config")
	if fresh {
		old, now = nil, nil // as git init writes it
		if c, ok := r.changes["config"]; ok {
			now, _ = r.in.read(c.New, maxCompare)
		}
	}
	was, is := git.Settings(old), git.Settings(now)
	var names []string
	for name := range is {
		if is[name] != was[name] && !(fresh && !dangerous(name)) {
			names = append(names, name)
		}
	}
	for name := range was {
		if _, still := is[name]; !still {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b string) int {
		if dangerous(a) != dangerous(b) {
			return map[bool]int{true: -1, false: 1}[dangerous(a)]
		}
		return strings.Compare(a, b)
	})
	switch {
	case len(names) == 0:
	case dangerous(names[0]):
		r.out.Grave = true
		r.add(runs, "sets git's %s, which makes git run or read more", short(names[0], 16))
	default:
		r.add(touches, "changes git's config: %s", short(strings.Join(names, ", "), maxName))
	}
}

func dangerous(name string) bool {
	first, _, _ := strings.Cut(name, ".")
	return slices.Contains(reach, name) || first == "alias" || first == "filter" || first == "includeif" || first == "url" ||
		(first == "diff" || first == "merge") && (strings.HasSuffix(name, ".command") || strings.HasSuffix(name, ".textconv") || strings.HasSuffix(name, ".driver")) ||
		first == "credential"
}

// files is about the rest: hooks, objects that are gone, what is left unfinished.
func (r *gitFolder) files() {
	var objects, packs int
	for _, name := range slices.Sorted(maps.Keys(r.changes)) {
		c := r.changes[name]
		dir, file := path.Split(name)
		switch {
		case dir == "hooks/" && !strings.HasSuffix(file, ".sample"):
			r.out.Grave = true
			verb := "adds"
			if c.New == nil {
				verb = "deletes"
			} else if c.Old != nil {
				verb = "changes"
			}
			r.add(runs, "%s the git hook %s", verb, short(file, maxName))
		case strings.HasPrefix(name, "objects/pack/") && c.Status == diff.Added:
			packs++
		case strings.HasPrefix(name, "objects/") && c.Status == diff.Deleted && c.Kind() == manifest.KindFile:
			objects++
		case name == "objects/info/alternates" && c.New != nil:
			r.add(runs, "makes git read another repository's objects")
		case c.Status == diff.Added && dir == "" && (file == "MERGE_HEAD" || file == "CHERRY_PICK_HEAD" || file == "REVERT_HEAD"):
			r.add(touches, "leaves a %s unfinished", map[string]string{"MERGE_HEAD": "merge", "CHERRY_PICK_HEAD": "cherry-pick", "REVERT_HEAD": "revert"}[file])
		case c.Status == diff.Added && (name == "rebase-merge/git-rebase-todo" || name == "rebase-apply/next"):
			r.add(touches, "leaves a rebase unfinished")
		case c.Status == diff.Added && name == "index.lock":
			r.add(touches, "leaves git locked: %sindex.lock", short(r.at, 16))
		}
	}
	if objects > 0 && packs == 0 {
		r.out.Grave = true
		r.add(loses, "%s", fmt.Sprintf("deletes %s of git's", count(objects, "object")))
	}
}
