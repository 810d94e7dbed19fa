package apply

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// What a person's hooks and settings name, and what a link of theirs leads to, is
// dangerous whatever it is called.
func TestObeyed(t *testing.T) {
	for name, c := range map[string]struct {
		host string // what the person made, in a repository
		path string
		want string // part of what is said; "" for nothing
	}{
		"a hook that is a link":          {host: "ln -s ../../scripts/check .git/hooks/pre-commit", path: "scripts/check", want: ".git/hooks/pre-commit names this"},
		"a hook that names a file":       {host: `echo 'exec "$(git rev-parse --show-toplevel)/scripts/check" "$@"' >.git/hooks/pre-push`, path: "scripts/check", want: ".git/hooks/pre-push names this"},
		"a hook that names another":      {host: "echo ./scripts/check.sh >.git/hooks/pre-push", path: "scripts/check"},
		"a hook that names a word":       {host: "echo make test >.git/hooks/pre-push", path: "test"},
		"a hook that runs a word":        {host: "echo ./test >.git/hooks/pre-push", path: "test", want: ".git/hooks/pre-push names this"},
		"an example of a hook":           {host: "echo ./test >.git/hooks/pre-push.sample", path: "test"},
		"hooks that are a link":          {host: "rm -rf .git/hooks; mkdir -p tools/hooks; ln -s ../tools/hooks .git/hooks", path: "tools/hooks/pre-commit", want: byHook},
		"hooks by an include":            {host: "printf '[core]\nhooksPath = tools/hooks\n' >../more; git config include.path " + `"$PWD/../more"`, path: "tools/hooks/pre-commit", want: byHook},
		"hooks by a condition":           {host: "printf '[core]\nhooksPath = tools/hooks\n' >../more; git config includeIf.onbranch:other.path ../../more", path: "tools/hooks/pre-commit", want: byHook},
		"hooks by settings behind links": {host: "printf '[core]\nhooksPath = tools/hooks\n' >../dotfile; ln -s dotfile ../.gitconfig", path: "tools/hooks/pre-commit", want: byHook},
		"settings in the project":        {host: "git config include.path ../tools/git.conf", path: "tools/git.conf", want: ".git/config names this"},
		"an alias":                       {host: "git config alias.x '!tools/x.sh'", path: "tools/x.sh", want: ".git/config names this"},
		"a filter":                       {host: "git config filter.x.clean tools/x.sh", path: "tools/x.sh", want: ".git/config names this"},
		"a branch":                       {host: "git config branch.main.merge refs/heads/main", path: "main"},
		"a module's settings":            {host: "mkdir -p .git/modules/sub; printf '[core]\nfsmonitor = ../../tools/x.sh\n' >.git/modules/sub/config", path: "tools/x.sh", want: ".git/modules/sub/config names this"},
		"husky by a link to nothing yet": {host: "ln -s tools/hooks .husky", path: "tools/hooks/x", want: byHook},
		"husky by a link":                {host: "mkdir -p tools/hooks; ln -s tools/hooks .husky", path: "tools/hooks/x", want: byHook},
		"what husky names":               {host: "mkdir .husky; echo node tools/x.js >.husky/pre-commit", path: "tools/x.js", want: ".husky/pre-commit names this"},
		"workflows by a link":            {host: "mkdir -p ci .github; ln -s ../ci .github/workflows", path: "ci/x.yml", want: byCI},
		"an editor's by a link":          {host: "mkdir cfg; ln -s cfg .vscode", path: "cfg/tasks.json", want: byEditor},
		"a makefile by a link":           {host: "mkdir build; touch build/main; ln -s build/main Makefile", path: "build/main", want: byBuild},
		"a link to nothing dangerous":    {host: "mkdir cfg; ln -s cfg conf", path: "cfg/tasks.json"},
		"what direnv reads":              {host: "echo source_env ./tools/env.sh >.envrc", path: "tools/env.sh", want: ".envrc names this"},
		"what an agent's hook runs":      {host: `mkdir .claude; echo '{"hooks":{"x":"$CLAUDE_PROJECT_DIR/tools/x.sh"}}' >.claude/settings.json`, path: "tools/x.sh", want: ".claude/settings.json names this"},
		"what a person's rules include":  {host: "mkdir -p ../.config/stepbox; printf 'include: [%s/rules/team.yaml]\n' $PWD >../.config/stepbox/policy.yaml; chmod -R go-w ../.config", path: "rules/team.yaml", want: "Stepbox's own rules"},
		"what a project's rules include": {host: "echo 'include: [rules/team.yaml]' >.stepbox.yaml; mkdir rules; echo 'version: 1' >rules/team.yaml", path: "rules/team.yaml", want: "Stepbox's own rules"},
		"links in circles":               {host: "ln -s b a; ln -s a b; ln -s a .git/hooks/pre-commit; ln -s .. up; ln -s / root; ln -s .envrc .envrc", path: "x"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, nil)
			cmd := exec.CommandContext(t.Context(), "/bin/sh", "-ec", "git init -q .; "+c.host)
			cmd.Dir = r.project
			cmd.Env = []string{"HOME=" + filepath.Dir(r.project), "PATH=" + os.Getenv("PATH"), "GIT_CONFIG_NOSYSTEM=1"}
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			r.agent(c.path, "new")
			r.oneDanger(c.want)
		})
	}
}

// A person's own policy and settings are in their home folder, which may be the project,
// or one that is a part of it.
func TestStepboxsOwnFilesAreObeyed(t *testing.T) {
	for name, c := range map[string]struct {
		home, config string // below the project; "": not there
		path         string
		want         string
	}{
		"the policy at home":             {home: ".", path: ".config/stepbox/policy.yaml", want: byBox},
		"the settings at home":           {home: ".", path: ".config/stepbox/config.yaml", want: byBox},
		"what a policy includes":         {home: ".", path: ".config/stepbox/team/rules.yaml", want: byBox},
		"the policy in .config":          {home: "..", path: "stepbox/policy.yaml", want: byBox},
		"the settings in .config":        {home: "..", path: "stepbox/config.yaml", want: byBox},
		"the policy in another":          {home: "..", config: "conf", path: "conf/stepbox/policy.yaml", want: byBox},
		"another's name":                 {home: "../other", path: "stepbox/policy.yaml"},
		"beside them":                    {home: "..", path: "other/policy.yaml"},
		"a link in their folder's place": {home: "..", path: "stepbox", want: byBox},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, nil)
			r.Person.Home = filepath.Join(r.project, c.home)
			switch {
			case c.config != "":
				r.Person.Config = filepath.Join(r.project, c.config)
			case c.home == "..": // the project is the person's .config
				r.Person.Config = r.project
			}
			text := "new"
			if c.path == "stepbox" {
				text = "→other"
			}
			r.agent(c.path, text)
			r.oneDanger(c.want)
		})
	}
}
