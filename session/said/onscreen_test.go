package said

import (
	"strings"
	"testing"
)

func TestOnScreen(t *testing.T) {
	const long = `printf 'a long line that is wrapped by the agent' >> tests/expected.txt`
	for name, c := range map[string]struct{ screen, want string }{
		"a message":         {"● Before.\n\n● Bash(ls)\n  ⎿  a.txt\n\n● I list them.\n\n● Bash(ls -la)\n  ⎿  Running…\n\n* Thinking\n❯\n", "I list them."},
		"wrapped":           {"● I list all of the\n  files.\n\n● Bash(printf 'a long line that\n      is wrapped", "I list all of the files."},
		"paragraphs":        {"● I know now.\n\n  I list them.\n\n● Bash(ls -la)", "I list them."},
		"no message":        {"● Before.\n\n● Bash(ls)\n  ⎿  a.txt\n\n● Bash(ls -la)", ""},
		"a person's":        {"● Before.\n\n❯ go on\n\n● Bash(ls -la)", ""},
		"another command":   {"● I list them.\n\n● Bash(ls)", ""},
		"another's begin":   {"● I list them.\n\n● Bash(ls -la /etc)", ""},
		"another since":     {"● I list them.\n\n● Bash(ls -la)\n  ⎿  a.txt\n\n● I am done.", ""},
		"another tool":      {"● I list them.\n\n● Read(ls -la)", ""},
		"above the screen":  {"  list them.\n\n● Bash(ls -la)", ""},
		"nothing":           {"\n\n", ""},
		"a call that waits": {"● I list them.\n\n● Bash(ls)\n\n● Bash(ls -la)", ""},
	} {
		if got := OnScreen(strings.Split(c.screen, "\n"), []string{"ls -la", long}); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
