package e2e

import (
	"bytes"
	"context"
	"os/exec"
	"testing"

	"stepbox/session/screen"
)

// A terminal that isn't in UTF-8 takes parts of letters for control characters: what
// commands print there, of whatever an agent named so, is ASCII.
func TestWordsWithoutUTF8(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	p.do("run", "--name", "odd", "--mode", "watch", "--", "bash", "-c", "printf 'é丛31m ✓\\n' >丛31m.txt; sleep 0; touch 丛31m.txt 丛8m")
	for _, args := range [][]string{
		{"ls"}, {"show", "odd"}, {"log", "odd"}, {"diff", "odd"}, {"export", "odd", "--help"}, {"grep", "丛"}, {"show", "丛31m"},
		{"run", "--name", "丛8m", "--detach", "--", "true"}, {"help", "keys"}, {"config"},
	} {
		tm := p.start(100, 30, func(ctx context.Context) *exec.Cmd {
			cmd := p.command(ctx, args...)
			cmd.Env = append(cmd.Env, "LC_ALL=C", "STEPBOX_PAGER=cat", "PAGER=cat")
			return cmd
		})
		<-tm.done
		tm.look(func(*screen.Screen) {
			raw := tm.raw.Bytes()
			if len(raw) == 0 || bytes.ContainsFunc(raw, func(r rune) bool { return r >= 0x80 }) {
				t.Errorf("stepbox %q printed %q", args, raw)
			}
		})
	}
}
