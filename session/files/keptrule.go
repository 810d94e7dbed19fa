package files

import (
	"cmp"
	"context"
	"path"
	"slices"
	"strings"

	"stepbox/policy"
	"stepbox/runner/overlay/diff"
	"stepbox/runner/overlay/manifest"
	"stepbox/session/api"
	"stepbox/session/effects"
)

// Trust is what an action's changes touch, for whoever decides whether a person
// has to review them.
type Trust struct {
	Plain bool // nothing that the person's own programs trust
	Idle  bool // nothing but what git notes as it looks, and objects that it hadn't: nothing is another by that
}

// TrustIn looks at an action's changes.
func (f *Files) TrustIn(ctx context.Context, changed []diff.Change) Trust {
	if len(changed) == 0 || len(changed) >= mostJudged { // what is beyond isn't listed
		return Trust{}
	}
	return Trust{Plain: !slices.ContainsFunc(changed, alwaysAsked), Idle: f.idle(ctx, changed)}
}

// KeptByRule says in words why an action's changes don't wait for a person to
// keep them; "" when they do. Its command was approved already; asking again is
// worth a person's time only for what they may want to read. Ahead says that its
// changes were approved with it, lingers that it left something running.
func KeptByRule(a *api.Action, ahead, lingers bool, t Trust) string {
	switch {
	case a.Kind != api.KindCommand || a.Verdict != api.Allow || lingers || a.Shared:
		return ""
	case ahead && t.Plain:
		return "approved together with what it changes"
	case t.Idle:
		return "only what git notes as it looks"
	}
	return ""
}

// mostJudged is how many changes a difference lists at most: see diff.Options.
const mostJudged = 20_000

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

// alwaysAsked says whether a change is to something that the person's own
// programs trust: secrets, what they run by themselves, and of a repository all that isn't
// commits, as its hooks and its configuration.
func alwaysAsked(c diff.Change) bool {
	return slices.ContainsFunc(sides(c), func(s side) bool {
		if commits(s.path, s.kind) {
			return false
		}
		parts := strings.Split(s.path, "/")
		runs := effects.Runs(s.path) + effects.Runs(s.path+"/") // as a folder or a link to one, too
		return runs != "" || slices.Contains(parts, ".git") || slices.ContainsFunc(parts, policy.SecretFolder) ||
			s.kind != manifest.KindDir && (policy.SecretFile(path.Base(s.path)) || repositorys(s.path))
	})
}

// repositorys says whether a path may be one by which git takes a folder of any name for a repository, or that it
// obeys in one, gitrepository-layout(5).
func repositorys(file string) bool {
	name := path.Base(file)
	return name == "HEAD" || name == "config" || name == "commondir" || path.Base(path.Dir(file)) == "hooks" && !strings.Contains(name, ".")
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
