package policy

import (
	_ "embed"
	"slices"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/syntax"
)

//go:embed curbs.yaml
var curbsYAML []byte

// curb are names, and the values with which these do no more than without.
type curb struct {
	Names  []glob `yaml:"names"`
	Values []glob `yaml:"values"`
	Looks  bool   `yaml:"looks"` // or a script that only looks
}

type curbFile struct {
	Settings  []curb `yaml:"settings"`
	Variables []curb `yaml:"variables"`
}

var curbs = sync.OnceValue(func() (f curbFile) {
	if err := Decode("curbs.yaml", curbsYAML, &f); err != nil {
		panic(err) // the file is part of the program, and tested
	}
	return f
})

// curbed says whether a name does no more with this value than without.
func curbed(list []curb, name, value string) bool {
	is := func(s string) func(glob) bool { return func(g glob) bool { return g.match(s) } }
	for _, c := range list {
		if slices.ContainsFunc(c.Names, is(name)) {
			return slices.ContainsFunc(c.Values, is(value)) || c.Looks && onlyLooks(value)
		}
	}
	return false
}

// settingCurbs says whether a setting of git's, as NAME=VALUE, has git do no more than
// without it. Without a value git takes it for true.
func settingCurbs(setting string) bool {
	name, value, has := strings.Cut(setting, "=")
	return has && curbed(curbs().Settings, strings.ToLower(name), value)
}

// looking are git's commands that write nothing and run nothing, whatever their arguments.
var looking = []string{"for-each-ref", "rev-parse", "show-ref", "version"}

// maxHelper bounds the script that is looked into, in bytes.
const maxHelper = 4 << 10

// onlyLooks says whether all that a script runs are such commands of git's, by functions of
// its own or not.
func onlyLooks(script string) bool {
	file, err := syntax.NewParser().Parse(strings.NewReader(script[:min(len(script), maxHelper)]), "")
	if err != nil || len(script) > maxHelper {
		return false
	}
	own, looks := map[string]bool{}, true
	syntax.Walk(file, func(n syntax.Node) bool {
		looks = looks && lookingNode(n, own)
		return looks
	})
	return looks
}

// lookingNode says it of one node of the script. Functions are noted as they are seen.
func lookingNode(n syntax.Node, own map[string]bool) bool {
	switch n := n.(type) {
	case *syntax.Stmt:
		return len(n.Redirs) == 0
	case *syntax.FuncDecl:
		own[n.Name.Value] = true
		return n.Name.Value != "git"
	case *syntax.CallExpr:
		return len(n.Assigns) == 0 && (own[n.Args[0].Lit()] || gitLooks(n.Args))
	case nil, *syntax.File, *syntax.Block, *syntax.Word, *syntax.Lit, *syntax.SglQuoted, *syntax.DblQuoted, *syntax.ParamExp:
		return true
	}
	return false
}

// gitLooks says whether a command is git's own of that kind. Before that is at most which
// repository it is about.
func gitLooks(args []*syntax.Word) bool {
	if args[0].Lit() != "git" {
		return false
	}
	for _, a := range args[1:] {
		if lit, ok := a.Parts[0].(*syntax.Lit); !ok || !strings.HasPrefix(lit.Value, "--git-dir=") {
			return slices.Contains(looking, a.Lit())
		}
	}
	return false
}

// parametersCurb says it of settings as git hands them to its own programs: words in
// single quotes, 'NAME=VALUE' or 'NAME'='VALUE'.
func parametersCurb(value string) bool {
	for s := strings.TrimSpace(value); s != ""; s = strings.TrimSpace(s) {
		text, rest, ok := shellWord(s)
		if !ok || s[0] != '\'' || !settingCurbs(text) {
			return false
		}
		s = rest
	}
	return true
}

// Curbs are those of a program's variables that only take from it what it could run or
// whom it could ask. Settings that git gets in GIT_CONFIG_COUNT are among them if all of
// them are of that kind: a name says nothing without its value.
func Curbs(env []string) map[string]bool {
	out := make(map[string]bool)
	var counted []string
	for _, v := range env {
		name, set, _ := strings.Cut(v, "=")
		if name == "GIT_CONFIG_PARAMETERS" && parametersCurb(set) || curbed(curbs().Variables, name, set) {
			out[v] = true
		}
		if name == "GIT_CONFIG_COUNT" || strings.HasPrefix(v, gitKey) || strings.HasPrefix(v, gitValue) {
			counted = append(counted, v)
		}
	}
	if countedCurb(counted) {
		for _, v := range counted {
			out[v] = true
		}
	}
	return out
}

const gitKey, gitValue = "GIT_CONFIG_KEY_", "GIT_CONFIG_VALUE_"

// countedCurb says it of the settings in GIT_CONFIG_COUNT: each is there once, with its value.
func countedCurb(env []string) bool {
	set := make(map[string]string)
	for _, v := range env {
		name, value, _ := strings.Cut(v, "=")
		set[name] = value
	}
	pairs := 0
	for name, setting := range set {
		if n, ok := strings.CutPrefix(name, gitKey); ok {
			value, has := set[gitValue+n]
			if !has || !settingCurbs(setting+"="+value) {
				return false
			}
			pairs++
		}
	}
	return pairs > 0 && len(set) == 2*pairs+1 && len(env) == len(set)
}
