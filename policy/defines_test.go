package policy

import (
	_ "embed"
	"strings"
	"testing"
)

// snapshot is what Claude Code 2.1.332 has its commands read first.
//
//go:embed testdata/snapshot.sh
var snapshot string

// What is read before a command leaves it what it shows, or is named.
func TestLeaves(t *testing.T) {
	const program = "/usr/lib/node_modules/@anthropic-ai/claude-code/bin/claude.exe"
	p := BuiltinProfiles().Named("claude")
	made := func(file string) bool { return strings.HasPrefix(file, "/p/") }
	loose := func(folder string) bool { return strings.HasPrefix(folder, "/tmp") }
	if !p.Leaves(snapshot, made, loose) {
		t.Error("the agent's own isn't known")
	}
	if strings.Count(snapshot, program) < 6 || BuiltinProfiles().Named("codex").Leaves(snapshot, made, loose) {
		t.Error("another agent's program is taken for its own")
	}
	for script, want := range map[string]bool{
		"": true, "# a word": true, "unalias -a 2>/dev/null || true": true, "shopt -s expand_aliases": true, "export PATH=/a:/b": true, "export PATH=/a:/tmp/b:/tmp/c": true, "export PATH=/a:/tmp/b:/c": false, "export PATH=./a:/c": false, "PATH+=:/a": false,
		`ls() { command ls "$@"; }`: true, `ls() { command ls ${1+"$@"}; }`: true, `ls() { return 1; }`: true,
		`grep() { (exec -a ugrep ` + program + ` -G --hidden "$@"); }`: true, `grep() { ARGV0=ugrep ` + program + ` "$@"; }`: true,

		"./x": false, "ls": false, "alias ls=rm": false, "trap ./x EXIT": false, "trap ./x DEBUG": false, "X=1": false, "set -x": false,
		"shopt -s extdebug": false, "hash -p /p/x ls": false, "hash '-p' /p/x ls": false, "enable -f x y": false, "export LD_PRELOAD=x": false,
		"export PATH=$(./x)": false, "export PATH=/a BASH_ENV=x": false, "PROMPT_COMMAND=./x": false, "source /p/x": false, "eval ./x": false, "true >x": false,
		"unalias $(./x)": false, "typeset -x LD_PRELOAD=x": false, "(": false,
		`ls() { rm "$@"; }`: false, `ls() { command rm "$@"; }`: false, `ls() { command ls -R "$@"; }`: false, `ls() { command ls; }`: false,
		`rm() { command rm -rf / "$@"; }`: false, `ls() { command ls "$@" "$@"; }`: false, `ls() { command ls "$@" >x; }`: false, `ls() { command ls "${@:1}"; }`: false,
		`ls() { command ls "$@"; ./x; }`: false, `ls() { command ls "$@" $(./x); }`: false, `ls() { PATH=/p command ls "$@"; }`: false,
		`ls() { local PATH=/p; command ls "$@"; }`: false, `ls() { local -n x=PATH; x=/p; command ls "$@"; }`: false, `ls() { PATH=/p; command ls "$@"; }`: false,
		`ls() { for PATH in /p; do command ls "$@"; done; }`: false, `ls() { : ${PATH:=/p}; }`: false, `ls() { printf -v PATH /p; }`: false, `ls() { printf '-v' PATH /p; }`: false,
		`ls() { printf "$x" PATH /p; }`: false, `ls() { [ -v 'a[$(./x)]' ]; }`: false, `ls() { [[ -v 'a[$(./x)]' ]]; }`: false, `ls() { [ -n x -a -v 'a[$(./x)]' ]; }`: false, `ls() { [[ $1 -eq 0 ]]; }`: false, `ls() { [ ${x@P} ]; }`: false,
		`ls() { [ -n ${x@P} ]; }`: false, `ls() { [ -n ${!x} ]; }`: false, `ls() { [ -n ${a[x]} ]; }`: false, `ls() { true >&x; }`: false, `ls() { ./x() { true; }; }`: false,
		`ls() { BASH_CMDS[wc]=/p/x; command ls "$@"; }`: false, `ls() { a[x]=1; command ls "$@"; }`: false, `eval() { true; }`: false, `command() { true; }`: false, `pwd() { command pwd "$@"; }`: false, `source() { command source "$@"; }`: false,
		`find() { (exec -a bfs ` + program + ` -exec ./x ';' "$@"); }`: false, `rg() { (exec -a rg ` + program + ` --pre=./x "$@"); }`: false,
		`rg() { (exec -a sh /bin/sh "$@"); }`: false, `rg() { (exec -a claude ` + program + ` "$@"); }`: false, `rg() { (exec -a rg /p/x "$@"); }`: false,
		`rg() { (exec -a rg "$HOME"` + program + ` "$@"); }`: false, `rg() { (exec -a rg ` + program + ` -f "$@"); }`: false,
		`rg() { (exec -a rg /p/claude "$@"); }`: false,
		strings.Repeat("{ ", 2000):              false,
	} {
		if got := p.Leaves(script, made, loose); got != want {
			t.Errorf("%s: %v", script, got)
		}
	}
}
