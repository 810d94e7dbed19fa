package policy

import (
	"path"
	"slices"
	"strings"
	"sync"
)

// builtinLayer is the name of the layer of built-in rules.
const builtinLayer = "built-in"

// push is what a command is that pushes.
var push = sync.OnceValue(func() *Rule {
	r, err := ParseRule(Ask, "git push")
	if err != nil {
		panic(err) // it is part of the program, and tested
	}
	return &r
})

// allowsPush says whether a rule that somebody made lets an invocation push.
func (f *finding) allowsPush(v *invocation) bool {
	return f.verdict == Allow && f.Layer != builtinLayer && push().about(v, false)
}

// Packs says whether a command is what a push by HTTP has git do about what it sends, and
// no rule but a built-in one asks about it. A rule that allows a push allows this too, or
// each push would be asked about though it was answered for good. It connects to nothing
// by itself: what starts it does, and that is judged.
func (j *Judgement) Packs(argv []string, program string) bool {
	return j.Verdict == Ask && j.Layer == builtinLayer && path.Base(program) == "git" && strings.HasPrefix(program, "/usr/") &&
		len(argv) > 2 && slices.Equal(argv[1:3], []string{"send-pack", "--stateless-rpc"}) && !slices.ContainsFunc(argv[3:], unpacks)
}

// packing are the options that git's own push by HTTP gives what packs.
var packing = []string{
	"--helper-status", "--thin", "--dry-run", "--atomic", "--quiet", "--verbose", "--progress", "--no-progress", "--stdin",
	"--force-if-includes", "--force-with-lease", "--signed", "--push-option",
}

// unpacks says whether an argument is another option. One, also cut short, would have it
// connect after all: --no-stateless-rpc.
func unpacks(arg string) bool {
	name, _, _ := strings.Cut(arg, "=")
	return strings.HasPrefix(arg, "-") && !slices.Contains(packing, name)
}
