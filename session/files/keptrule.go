package files

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"stepbox/policy"
	"stepbox/policy/git"
	"stepbox/runner/overlay/diff"
	"stepbox/runner/overlay/manifest"
	"stepbox/session/api"
)

// Trust is what an action's changes touch, for whoever decides whether a person
// has to review them.
type Trust struct {
	Plain  bool // nothing that the person's own programs trust
	Output bool // nothing but build output that git ignores, or git's own objects and references
	Idle   bool // nothing but what git notes as it looks, and objects that it hadn't: nothing is another by that
}

// TrustIn looks at an action's changes. It reads what git ignores, so it isn't
// for the session's loop.
func TrustIn(changed []diff.Change, commands []api.Command, ignores *git.Repository) Trust {
	if len(changed) == 0 || len(changed) >= mostJudged { // what is beyond isn't listed
		return Trust{}
	}
	plain := !slices.ContainsFunc(changed, alwaysAsked)
	return Trust{Plain: plain, Output: plain && !needsReview(changed, ignores, onlyGit(commands))}
}

// KeptByRule says in words why an action's changes don't wait for a person to
// keep them; "" when they do. Its command was approved already; asking again is
// worth a person's time only for what they may want to read. Ahead says that its
// changes were approved with it, lingers that it left something running, mixed that the agent may have made some of them.
func KeptByRule(a *api.Action, ahead, lingers, mixed bool, t Trust) string {
	switch {
	case a.Kind != api.KindCommand || a.Verdict != api.Allow || lingers || a.Shared:
		return ""
	case ahead && t.Plain:
		return "approved together with what it changes"
	case t.Output && (!mixed || t.Idle):
		return "only build output that git ignores, or git's own objects and references"
	}
	return ""
}

// mostJudged is how many changes a difference lists at most: see diff.Options.
const mostJudged = 20_000

// needsReview says whether some change is neither to a path that the project's
// own rules ignore nor, when the command was git, to what git keeps its commits in.
func needsReview(changed []diff.Change, ignores *git.Repository, byGit bool) bool {
	return slices.ContainsFunc(changed, func(c diff.Change) bool {
		if alwaysAsked(c) {
			return true
		}
		for _, side := range sides(c) {
			output := ignores.Ignored(side.path, side.kind == manifest.KindDir)
			if !output && !(byGit && commits(side.path, side.kind)) {
				return true
			}
		}
		return false
	})
}

// side is a path that a change touches, as what it was or as what it became.
type side struct {
	path string
	kind manifest.Kind
}

func sides(c diff.Change) []side {
	var out []side
	if c.Old != nil {
		out = append(out, side{cmp.Or(c.From, c.Path), c.Old.Kind})
	}
	if c.New != nil {
		out = append(out, side{c.Path, c.New.Kind})
	}
	return out
}

// started names what other programs run, or take settings from, by itself:
// nobody ignores a change to it, whatever git ignores.
var started = map[string]bool{".vscode": true, ".idea": true, ".husky": true, ".direnv": true, ".devcontainer": true}

// alwaysAsked says whether a change is to something that the person's own
// programs trust: secrets and settings, and of a repository all that isn't
// commits, as its hooks and its configuration.
func alwaysAsked(c diff.Change) bool {
	for _, side := range sides(c) {
		parts := strings.Split(side.path, "/")
		for i, name := range parts {
			if started[name] || i == len(parts)-1 && policy.SecretFile(name) {
				return true
			}
			if name == ".git" && !(i == 0 && commits(side.path, side.kind)) {
				return true
			}
		}
	}
	return false
}

// gitFiles are the files in .git that a commit, a fetch or a change of branch
// writes; gitFolders are the folders of such files.
var (
	gitFiles   = []string{"index", "HEAD", "ORIG_HEAD", "FETCH_HEAD", "COMMIT_EDITMSG", "packed-refs"}
	gitFolders = []string{"objects", "refs", "logs"}
)

// commits says whether a path is one where the project's repository keeps its
// commits and what they are called.
func commits(name string, kind manifest.Kind) bool {
	name, ok := strings.CutPrefix(name, ".git/")
	if !ok {
		return false
	}
	top, below, deep := strings.Cut(name, "/")
	switch {
	case slices.Contains(gitFiles, name):
		return kind == manifest.KindFile
	case !slices.Contains(gitFolders, top) || kind != manifest.KindFile && kind != manifest.KindDir:
		return false
	case top == "objects" && (below == "info/alternates" || below == "info/http-alternates"):
		return false // they make git read other folders
	}
	return deep || kind == manifest.KindDir
}

// onlyGit says whether an action's commands run git and nothing else, apart from
// changing the folder.
func onlyGit(commands []api.Command) bool {
	found := false
	for _, c := range commands {
		if c.Written || c.Truncated || len(c.Sources) > 0 || len(c.Parts) == 0 {
			return false
		}
		for _, p := range c.Parts {
			word, _, _ := strings.Cut(p.Text, " ")
			switch {
			case path.Base(word) == "git":
				found = true
			case word != "cd":
				return false
			}
		}
	}
	return found
}
