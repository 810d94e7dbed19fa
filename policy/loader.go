package policy

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// code are variables, or with a star the beginnings of their names, by which a shell, or a
// program in one of the common languages, runs what isn't its own.
var code = []string{"LD_*", "ENV", "BASH_ENV", "NODE_OPTIONS", "PYTHON*", "PERL5*", "RUBYOPT", "RUBYLIB", "LUA_*", "PHPRC", "PHP_INI_SCAN_DIR", "DOTNET_STARTUP_HOOKS",
	"GCONV_PATH", "BASH_FUNC_*", "SHELLOPTS", "BASHOPTS", "PS4", "ZDOTDIR", "COLUMNS", "LINES", "SHLVL"}

// loaders are variables, or with a star the beginnings of their names, by which a
// program runs another, loads what isn't its own, or reads whom it works for: with
// one of them a command does more than its words show. Letters are as one writes
// them, or all upper case. PATH is one only where a command shows it: agents put
// folders of theirs into it for everything that they start.
var loaders = slices.Concat(code, []string{
	"HOME", "PWD", "SHELL", "XDG_CONFIG_*", "PATH", "PROMPT_COMMAND", "IFS",
	"GIT_*", "SSH_*", "EDITOR", "VISUAL", "BROWSER", "PAGER", "MANPAGER", "GH_PAGER", "GH_HOST", "GH_REPO", "GH_CONFIG_DIR", "LESS", "LESSOPEN", "LESSCLOSE",
	"NODE_PATH", "NODE_REPL_EXTERNAL_MODULE", "NPM_CONFIG_REGISTRY", "NPM_CONFIG_SCRIPT_SHELL", "NPM_CONFIG_SHELL", "NPM_CONFIG_GIT", "NPM_CONFIG_NODE_OPTIONS", "NPM_CONFIG_EDITOR", "NPM_CONFIG_@*", "YARN_*", "BUN_OPTIONS",
	"PERLLIB", "GEM_*", "BUNDLE_*", "PIP_*", "UV_*", "TWINE_*", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS", "JAVA_HOME", "MAVEN_*", "GRADLE_*",
	"GOFLAGS", "GOENV", "GOROOT", "GOTOOLCHAIN", "CARGO_*", "RUSTC*", "RUSTFLAGS", "RUSTUP_*", "MAKEFLAGS", "GNUMAKEFLAGS", "MAKEFILES", "CC", "CXX", "DOCKER_*", "KUBECONFIG", "AWS_*", "OPENSSL_CONF", "RSYNC_*",
	"SUDO_ASKPASS", "GNUPGHOME", "SVN_SSH", "CVS_RSH", "HGRCPATH", "RIPGREP_CONFIG_PATH", "PSQL_*", "PSQLRC", "VIMINIT", "EXINIT", "AWKPATH", "AWKLIBPATH", "GCC_EXEC_PREFIX", "COMPILER_PATH",
	"CURL_HOME", "WGETRC", "SYSTEM_WGETRC", "TAR_OPTIONS", "TF_CLI_*", "TF_DATA_DIR", "TF_VAR_*", "TF_WORKSPACE", "PULUMI_*", "HELM_*", "ANSIBLE_*", "CLOUDSDK_*", "AZURE_*",
})

// inert are those among them that only name people or say how to talk.
var inert = []string{"GIT_AUTHOR_*", "GIT_COMMITTER_*", "GIT_PREFIX", "GIT_PROTOCOL", "GIT_REFLOG_ACTION", "GIT_MERGE_AUTOEDIT", "SSH_AUTH_SOCK", "SSH_AGENT_PID", "SSH_CLIENT", "SSH_CONNECTION", "SSH_TTY", "PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE", "PYTHONIOENCODING", "PYTHONUTF8"}

// usualValues are what git gives its own programs without being told to: no rule could
// allow anything that git starts, or else.
var usualValues = []string{"GIT_EXEC_PATH=/usr/lib/git-core", "GIT_EXEC_PATH=/usr/libexec/git-core", "GIT_DIR=.git"}

// numbers are variables that a shell takes for arithmetic, in which other words than a number run commands.
var numbers = []string{"COLUMNS", "LINES", "SHLVL"}

// IsNumber says whether a variable is one of those, and a number and nothing else.
func IsNumber(variable string) bool {
	name, value, _ := strings.Cut(variable, "=")
	return slices.Contains(numbers, name) && value != "" && len(value) <= 5 && strings.Trim(value, "0123456789") == ""
}

func isLoader(name string) bool { return listed(loaders, name) && !listed(inert, name) }

// listed says whether a list has a variable.
func listed(list []string, name string) bool {
	return slices.ContainsFunc(list, func(l string) bool {
		stem, any := strings.CutSuffix(l, "*")
		for _, n := range [2]string{name, strings.ToUpper(name)} {
			if n == l || any && strings.HasPrefix(n, stem) {
				return true
			}
		}
		return false
	})
}

// LoadsCode says whether a variable that a program is given, as NAME=VALUE, makes it run
// what isn't its own.
func LoadsCode(variable string) bool {
	name, _, _ := strings.Cut(variable, "=")
	return listed(code, name) && !listed(inert, name) && !IsNumber(variable)
}

// Loads says whether a variable that a program is given, as NAME=VALUE, may make it do
// what its arguments don't show: LoadsCode, or else.
func Loads(variable string) bool {
	name, _, _ := strings.Cut(variable, "=")
	return name != "PATH" && isLoader(name) && !IsNumber(variable) && !slices.Contains(usualValues, variable)
}

// sets says whether one of some words sets such a variable, as env, export and the
// like take them; with may, what isn't known is taken for one.
func sets(ws []word, may bool) bool {
	var given []string
	for _, w := range ws {
		name, _, ok := strings.Cut(w.text, "=")
		switch {
		case strings.Contains(name, unknown):
			if may {
				return true
			}
		case ok:
			given = append(given, w.text)
		}
	}
	return doMore(given)
}

// doMore says whether one of some variables, which are set together, is such a one and more
// than a curb.
func doMore(variables []string) bool {
	curbs := Curbs(variables)
	return slices.ContainsFunc(variables, func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return isLoader(name) && !IsNumber(v) && !curbs[v]
	})
}

// setsMore says that a command line sets such a variable itself.
const setsMore = "it sets a variable that may have a command do more than it shows"

// exports says whether a script may set such a variable for a command in it. Which
// command that would be isn't looked at.
func exports(f *syntax.File, r *reader) (found bool) {
	var given []string
	syntax.Walk(f, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Assign:
			switch {
			case n.Name == nil && n.Value != nil: // export "NAME=VALUE", or an option of export
				found = found || sets(r.fields(n.Value), true)
			case n.Name != nil && isLoader(n.Name.Value):
				value := word{text: unknown}
				switch {
				case n.Append, n.Naked, n.Array != nil:
				case n.Value == nil:
					value.text = ""
				default:
					value = r.word(n.Value)
				}
				found = found || !value.known()
				given = append(given, n.Name.Value+"="+value.text)
			}
		case *syntax.ParamExp: // ${NAME:=VALUE}
			assigns := n.Exp != nil && (n.Exp.Op == syntax.AssignUnset || n.Exp.Op == syntax.AssignUnsetOrNull)
			found = found || assigns && n.Param != nil && isLoader(n.Param.Value)
		case *syntax.WordIter:
			found = found || isLoader(n.Name.Value)
		case *syntax.CallExpr:
			if len(n.Args) > 1 && slices.Contains([]string{"read", "printf", "mapfile", "readarray", "getopts", "set"}, n.Args[0].Lit()) {
				found = found || slices.ContainsFunc(n.Args[1:], func(w *syntax.Word) bool { return isLoader(w.Lit()) })
			}
		}
		return true
	})
	return found || doMore(given)
}
