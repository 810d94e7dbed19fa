package apply

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"stepbox/runner/overlay/diff"
	"stepbox/runner/overlay/manifest"
	"stepbox/session/api"
	"stepbox/session/e2e/must"
)

// What is said of files by their names.
const (
	byHook   = "git runs hooks here by itself, at each commit or the like"
	byCI     = "runs by itself on a server that may hold secrets (CI)"
	byEditor = "an editor may run what this says when the folder is opened"
	byShell  = "the shell runs it, or changes by it, when the folder is entered"
	byBuild  = "runs at the next build or test"
	byTool   = "tells a package manager where from it installs, and what it runs"
	byGit    = "tells git what to run, or where to fetch from"
	byAgent  = "tells agents what to do and what they may do"
	byEnv    = "programs read their settings and secrets from it"
	byBox    = "Stepbox's own rules, by which agents are judged"
	byLock   = "says what is installed, and where from"
	byOther  = "another version control's own folder, whose hooks and settings it obeys"
)

// Each danger is said in words, and what only looks like one isn't.
func TestDangers(t *testing.T) {
	scripts := func(body string) string { return fmt.Sprintf(`{"name":"x","scripts":%s}`, body) }
	for name, c := range map[string]struct {
		has  map[string]string
		path string
		text string
		want string // part of what is said; "" for nothing
	}{
		"husky":                         {path: ".husky/pre-commit", text: "!x", want: byHook},
		"husky in a folder":             {path: "web/.husky/_/husky.sh", text: "x", want: byHook},
		"githooks":                      {path: ".githooks/pre-push", text: "x", want: byHook},
		"pre-commit":                    {path: ".pre-commit-config.yaml", text: "x", want: byHook},
		"a workflow":                    {path: ".github/workflows/ci.yml", text: "x", want: byCI},
		"a workflow in capitals":        {path: ".GitHub/Workflows/ci.yml", text: "x", want: byCI},
		"an issue template":             {path: ".github/ISSUE_TEMPLATE.md", text: "x"},
		"gitlab":                        {path: ".gitlab-ci.yml", text: "x", want: byCI},
		"circle":                        {path: ".circleci/config.yml", text: "x", want: byCI},
		"jenkins":                       {path: "Jenkinsfile", text: "x", want: byCI},
		"azure":                         {path: "azure-pipelines.yml", text: "x", want: byCI},
		"drone":                         {path: ".drone.yml", text: "x", want: byCI},
		"bitbucket":                     {path: "bitbucket-pipelines.yml", text: "x", want: byCI},
		"travis":                        {path: ".travis.yml", text: "x", want: byCI},
		"tasks":                         {path: ".vscode/tasks.json", text: "{}", want: byEditor},
		"launch":                        {path: ".vscode/launch.json", text: "{}", want: byEditor},
		"settings":                      {path: "sub/.vscode/settings.json", text: "{}", want: byEditor},
		"idea":                          {path: ".idea/runConfigurations/x.xml", text: "x", want: byEditor},
		"devcontainer":                  {path: ".devcontainer/devcontainer.json", text: "{}", want: byEditor},
		"workspace":                     {path: "x.code-workspace", text: "{}", want: byEditor},
		"exrc":                          {path: ".exrc", text: "x", want: byEditor},
		"nvim":                          {path: ".nvim.lua", text: "x", want: byEditor},
		"emacs":                         {path: "src/.dir-locals.el", text: "x", want: byEditor},
		"envrc":                         {path: ".envrc", text: "x", want: byShell},
		"mise":                          {path: "mise.toml", text: "x", want: byShell},
		"asdf":                          {path: ".tool-versions", text: "x", want: byShell},
		"env":                           {path: ".env", text: "x", want: byEnv},
		"env of tests":                  {path: ".env.test", text: "x", want: byEnv},
		"environment":                   {path: "environment.md", text: "x"},
		"make":                          {path: "Makefile", text: "x", want: byBuild},
		"make of a folder":              {path: "x/GNUmakefile", text: "x", want: byBuild},
		"included by make":              {path: "x/rules.mk", text: "x", want: byBuild},
		"just":                          {path: "justfile", text: "x", want: byBuild},
		"task":                          {path: "Taskfile.yml", text: "x", want: byBuild},
		"rake":                          {path: "Rakefile", text: "x", want: byBuild},
		"cargo's build":                 {path: "crate/build.rs", text: "x", want: byBuild},
		"setup":                         {path: "setup.py", text: "x", want: byBuild},
		"conftest":                      {path: "tests/conftest.py", text: "x", want: byBuild},
		"pyproject":                     {path: "pyproject.toml", text: "x", want: byBuild},
		"gradle":                        {path: "app/build.gradle.kts", text: "x", want: byBuild},
		"cmake":                         {path: "CMakeLists.txt", text: "x", want: byBuild},
		"npmrc":                         {path: ".npmrc", text: "x", want: byTool},
		"yarnrc":                        {path: ".yarnrc.yml", text: "x", want: byTool},
		"pip":                           {path: "pip.conf", text: "x", want: byTool},
		"cargo's config":                {path: "x/.cargo/config.toml", text: "x", want: byTool},
		"attributes":                    {path: "x/.gitattributes", text: "x", want: byGit},
		"modules":                       {path: ".gitmodules", text: "x", want: byGit},
		"ignore":                        {path: ".gitignore", text: "x"},
		"claude":                        {path: ".claude/settings.json", text: "{}", want: byAgent},
		"claude's words":                {path: "CLAUDE.md", text: "x", want: byAgent},
		"mcp":                           {path: ".mcp.json", text: "{}", want: byAgent},
		"agents":                        {path: "sub/AGENTS.md", text: "x", want: byAgent},
		"cursor":                        {path: ".cursor/rules/x.mdc", text: "x", want: byAgent},
		"codex":                         {path: ".codex/config.toml", text: "x", want: byAgent},
		"stepbox":                       {path: ".stepbox.yaml", text: "x", want: byBox},
		"an ordinary file":              {path: "src/main.go", text: "x"},
		"a makefile's text":             {path: "docs/makefile.md", text: "x"},
		"executable":                    {path: "run", text: "!x", want: "becomes executable"},
		"executable already":            {has: map[string]string{"run": "!x"}, path: "run", text: "!y"},
		"made executable":               {has: map[string]string{"run": "x"}, path: "run", text: "!x", want: "becomes executable"},
		"a script":                      {has: map[string]string{"package.json": scripts(`{"test":"t"}`)}, path: "package.json", text: scripts(`{"test":"curl"}`), want: "parts that run by name or by themselves, or are installed: test"},
		"a script more":                 {has: map[string]string{"package.json": scripts(`{"test":"t"}`)}, path: "package.json", text: scripts(`{"test":"t","postinstall":"curl"}`), want: "postinstall"},
		"no script":                     {has: map[string]string{"package.json": scripts(`{"test":"t"}`)}, path: "package.json", text: `{"scripts":{"test":"t"},"name":"y"}`},
		"a new one without":             {path: "package.json", text: `{"name":"y"}`},
		"scripts of nothing":            {path: "a/package.json", text: scripts(`{"prepare":"x"}`), want: "prepare"},
		"what can't be read":            {path: "package.json", text: `{"scripts":`, want: "may run anything"},
		"scripts that are none":         {path: "package.json", text: scripts(`["x"]`), want: "may run anything"},
		"too much":                      {path: "package.json", text: strings.Repeat(" ", mostScripts) + "{}", want: "may run anything"},
		"scripts of null":               {path: "package.json", text: `{"scripts":null,"x":{}}`, want: "may run anything"},
		"nothing at all":                {path: "package.json", text: `null`},
		"a dependency":                  {has: map[string]string{"package.json": `{"dependencies":{"a":"1"}}`}, path: "package.json", text: `{"dependencies":{"a":"https://x/a.tgz"}}`, want: "are installed: dependencies {…}"},
		"a manager of packages":         {path: "package.json", text: `{"packageManager":"yarn@https://x/y.js"}`, want: "packageManager"},
		"hooks in package.json":         {path: "package.json", text: `{"husky":{"hooks":{"pre-commit":"x"}}}`, want: "husky"},
		"only written otherwise":        {has: map[string]string{"package.json": `{"dependencies":{"a":"1"}}`}, path: "package.json", text: `{"dependencies": {"a": "1"}, "version": "2"}`},
		"a script called version":       {path: "package.json", text: scripts(`{"version":"curl"}`), want: "are installed: version"},
		"a script like a member":        {has: map[string]string{"package.json": scripts(`{"dependencies":"x"}`)}, path: "package.json", text: `{"scripts":{"dependencies":"x"},"dependencies":{"a":"1"}}`, want: "dependencies {…}"},
		"one among many":                {path: "package.json", text: scripts(`{"a":"","b":"","c":"","d":"","e":"","f":"","postinstall":"curl"}`), want: "changes 7 parts that run by name or by themselves, or are installed: postinstall, a, b"},
		"a lock file":                   {path: "package-lock.json", text: "{}", want: byLock},
		"a lock file of Rust":           {path: "x/Cargo.lock", text: "x", want: byLock},
		"a module of Go":                {path: "go.mod", text: "x", want: byLock},
		"requirements":                  {path: "requirements-dev.txt", text: "x", want: byLock},
		"node-gyp's":                    {path: "binding.gyp", text: "x", want: byBuild},
		"a linter's plugins":            {path: ".pylintrc", text: "x", want: byBuild},
		"any tool's":                    {path: "web/tailwind.config.mjs", text: "x", want: byBuild},
		"containers":                    {path: "docker-compose.override.yml", text: "x", want: byBuild},
		"a virtual environment":         {path: "env/bin/activate", text: "x", want: byShell},
		"mercurial":                     {path: "sub/.hg/hgrc", text: "x", want: byOther},
		"jujutsu":                       {path: ".jj/repo/config.toml", text: "x", want: byOther},
		"a name with zero width":        {path: "a\u200bb.go", text: "x", want: "can't be seen"},
		"a name that turns round":       {path: "a\u202egpj.go", text: "x", want: "can't be seen"},
		"a name with another space":     {path: "a\u00a0b.go", text: "x", want: "can't be seen"},
		"a name in another script":      {path: "дом/नमस्ते é.go", text: "x"},
		"composer":                      {path: "composer.json", text: scripts(`{"post-install-cmd":"x"}`), want: "post-install-cmd"},
		"deno":                          {path: "deno.json", text: `{"tasks":{"dev":"x"}}`, want: "dev"},
		"a link inside":                 {has: map[string]string{"a/b": "x"}, path: "link", text: "→a/b"},
		"a link inside, upwards":        {has: map[string]string{"a/b": "x"}, path: "c/link", text: "→../a/./b"},
		"a link to nothing yet":         {path: "c/link", text: "→missing"},
		"an absolute link":              {path: "link", text: "→/etc/passwd", want: "leads out of the project: /etc/passwd"},
		"a link out":                    {path: "a/link", text: "→../../x", want: "may lead out"},
		"a link out through another":    {has: map[string]string{"out": "→/etc"}, path: "link", text: "→out/passwd", want: "may lead out"},
		"a link out by another's home":  {has: map[string]string{"deep": "→a/b/c", "a/b/c/x": "x"}, path: "link", text: "→deep/../../../../x", want: "may lead out"},
		"a link that is upwards of one": {has: map[string]string{"deep": "→a/b/c", "a/b/c/x": "x"}, path: "link", text: "→deep/../x"},
		"links in a circle":             {has: map[string]string{"one": "→two", "two": "→one"}, path: "link", text: "→one/x", want: "may lead out"},
		"a link into git":               {path: "link", text: "→.git/hooks", want: "git's own folder"},
		"over what had no secrets":      {has: map[string]string{"conf/redacted": "x"}, path: "conf/redacted", text: "y", want: "without its secrets"},
		"a bare repository":             {has: map[string]string{}, path: "repo/HEAD", text: "ref: x"},
		"case alone":                    {path: "readme", text: "x"},
		"a link as husky":               {path: ".husky", text: "→hooks", want: byHook},
		"a link to workflows":           {path: "x/.github", text: "→gh", want: byCI},
		"a link as editor's":            {path: ".vscode", text: "→cfg", want: byEditor},
		"a link of another name":        {path: "vscode", text: "→cfg"},
		"a bare repository's settings":  {has: map[string]string{"r.git/HEAD": "ref: x", "r.git/refs/heads/x": "1", "r.git/config": "a"}, path: "r.git/config", text: "b", want: "whose hooks and configuration git obeys"},
		"a separate repository's hook":  {has: map[string]string{"git/HEAD": "ref: x", "git/objects/x": "1"}, path: "git/hooks/pre-commit", text: "b", want: "whose hooks and configuration git obeys"},
		"a file that is called HEAD":    {has: map[string]string{"r/HEAD": "ref: x"}, path: "r/config", text: "b"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, c.has)
			r.agent(c.path, c.text)
			r.oneDanger(c.want)
		})
	}
}

// oneDanger checks what is said of the one file that the agent wrote, "" for nothing.
func (r *rig) oneDanger(want string) {
	r.Helper()
	r.action(api.ReviewKept)
	p := r.plan(api.ApplyRequest{})
	if len(p.Files) != 1 {
		r.Fatalf("%q", words(p))
	}
	got := strings.Join(p.Files[0].Dangers, "; ")
	if (want == "") != (got == "") || !strings.Contains(got, want) || (p.Dangerous == 1) != (got != "") {
		r.Errorf("it says %q, and should %q", got, want)
	}
}

// What several changes come to together is a danger too.
func TestDangersTogether(t *testing.T) {
	r := newRig(t, map[string]string{"b/in": "x"})
	for _, name := range []string{"repo/HEAD", "repo/objects/x", "repo/config", "other/HEAD", "Readme", "README", "b/IN"} {
		r.agent(name, "x")
	}
	r.agent("first", "→second")
	r.agent("second", "→..")
	r.agent("third", "→second/x")
	r.action(api.ReviewKept)
	dangers := map[string]string{}
	for _, f := range r.plan(api.ApplyRequest{}).Files {
		dangers[f.Path] = strings.Join(f.Dangers, "; ")
	}
	for path, want := range map[string]string{
		"repo/config": "without a .git", "repo/objects/x": "without a .git", "other/HEAD": "",
		"Readme": "differs from README in case alone", "b/IN": "differs from b/in in case alone", "first": "may lead out", "second": "may lead out", "third": "may lead out",
	} {
		if got := dangers[path]; !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("of %s it says %q, and should %q", path, got, want)
		}
	}
}

// What others on the computer can write to is told, unless they could before.
func TestDangersOfPermissions(t *testing.T) {
	r := newRig(t, map[string]string{"was": "x", "becomes": "x", "stays": "x"})
	r.must(os.Chmod(filepath.Join(r.project, "was"), 0o666))
	for name, mode := range map[string]os.FileMode{"was": 0o666, "becomes": 0o646, "stays": 0o664, "new": 0o602} {
		r.agent(name, "y")
		r.must(os.Chmod(filepath.Join(r.upper, name), mode))
	}
	r.agent("link", "→was")
	r.action(api.ReviewKept)
	for _, f := range r.plan(api.ApplyRequest{}).Files {
		want := f.Path == "becomes" || f.Path == "new"
		if got := strings.Contains(strings.Join(f.Dangers, ""), "everyone"); got != want {
			t.Errorf("%s: %q", f.Path, f.Dangers)
		}
	}
}

// Hooks are where the repository says they are, as git itself reads that.
func TestConfiguredHooks(t *testing.T) {
	r := newRig(t, nil)
	git := func(args ...string) string {
		cmd := exec.CommandContext(t.Context(), "git", append([]string{"-C", r.project}, args...)...)
		cmd.Env = []string{"HOME=" + filepath.Dir(r.project), "PATH=/usr/bin:/bin", "GIT_CONFIG_NOSYSTEM=1"}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	git("init", "-q")
	git("config", "core.hooksPath", "tools/hooks")
	r.agent("tools/hooks/pre-commit", "x")
	r.agent("tools/other", "x")
	r.action(api.ReviewKept)
	for _, f := range r.plan(api.ApplyRequest{}).Files {
		want := strings.HasPrefix(f.Path, git("rev-parse", "--git-path", "hooks"))
		if got := strings.Contains(strings.Join(f.Dangers, ""), byHook); got != want {
			t.Errorf("%s: %q", f.Path, f.Dangers)
		}
	}
}

// A folder that is made since something comes into it isn't listed, so it lets
// nobody in that nothing is said of.
func TestFoldersInBetween(t *testing.T) {
	r := newRig(t, nil)
	r.agent("open/in", "x")
	r.must(os.Chmod(filepath.Join(r.upper, "open"), 0o777))
	r.action(api.ReviewKept)
	_, err := r.apply(api.ApplyRequest{})
	r.must(err)
	if st, err := os.Stat(filepath.Join(r.project, "open")); err != nil || st.Mode().Perm() != 0o775 {
		t.Errorf("it is %v, %v", st.Mode(), err)
	}
}

// However long links and paths are, the project is looked at a bounded number of times
// for each, and a link that can't be followed to its end is said to lead out.
func TestDangersAreBounded(t *testing.T) {
	looks := 0
	long := strings.Repeat("b/", 2000) + "link"
	d := &dangers{git: map[string]bool{}, obeyed: &obeyed{},
		there: func(string) bool { looks++; return false },
		target: func(at string) string {
			looks++
			if strings.HasSuffix(at, "link") {
				return long
			}
			return ""
		},
	}
	if got := d.ofLink("x", long); got != "a link that may lead out of the project: "+long || looks > 1000 {
		t.Errorf("%.100q after %d looks", got, looks)
	}
	looks = 0
	for i := range 1000 {
		d.of(&diff.Change{Path: strings.Repeat("d/", 1000) + fmt.Sprint(i), Status: diff.Added, New: &diff.File{Entry: manifest.Entry{Kind: manifest.KindFile}}})
	}
	if looks > 5000 {
		t.Errorf("%d looks for 1000 files of one deep folder", looks)
	}
	hook := filepath.Join(t.TempDir(), "hook")
	must.OK(t, os.WriteFile(hook, []byte(strings.Repeat("x/", maxHook/2-10)+"tools/run.sh"), 0o600))
	o := &obeyed{project: "/nowhere", named: map[string]string{}}
	if o.read(hook); o.named["tools/run.sh"] == "" || len(o.named) > maxPath {
		t.Errorf("%d names of one hook, with %q for the last", len(o.named), o.named["tools/run.sh"])
	}
}
