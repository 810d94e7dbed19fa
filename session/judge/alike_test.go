package judge

import (
	"slices"
	"strings"
	"testing"
)

// What the agent sets for all of its commands isn't shown with each, unless it can have
// something run, differs between them, or can't be read.
func TestAlike(t *testing.T) {
	long := "LC_ALL=" + strings.Repeat("x", maxAlike)
	var a alike
	step := func(name string, wrapped bool, env, shown, same string) {
		t.Helper()
		gotShown, gotSame := a.split(strings.Fields(env), wrapped)
		if !slices.Equal(gotShown, strings.Fields(shown)) || !slices.Equal(gotSame, strings.Fields(same)) {
			t.Errorf("%s: shown %q, alike %q", name, gotShown, gotSame)
		}
	}
	step("before any", false, "NO_COLOR=1 A=1", "NO_COLOR=1 A=1", "")
	step("the first", true, "NO_COLOR=1 PAGER=cat CODEX_X=1 LD_PRELOAD=x PATH=/x PAGER=less PWD=/a "+long, "LD_PRELOAD=x PATH=/x PAGER=less "+long, "NO_COLOR=1 PAGER=cat CODEX_X=1")
	step("what it starts", false, "NO_COLOR=1 PAGER=cat A=1", "A=1", "NO_COLOR=1 PAGER=cat")
	step("one that another lacks", true, "NO_COLOR=1 CODEX_X=2", "CODEX_X=2", "NO_COLOR=1")
	step("is shown from then on", true, "NO_COLOR=1 CODEX_X=1 PAGER=cat", "CODEX_X=1 PAGER=cat", "NO_COLOR=1")
	step("no value is another's", false, "NO_COLOR=0", "NO_COLOR=0", "")
	step("none", true, "", "", "")
	step("and none alike any more", true, "NO_COLOR=1", "NO_COLOR=1", "")
	a = alike{}
	if shown, same := a.split([]string{"LC_ALL=a\x1bb"}, true); len(shown) != 1 || len(same) != 0 {
		t.Error("what can't be read isn't shown")
	}
}
