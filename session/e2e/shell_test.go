package e2e

import (
	"crypto/md5"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"unicode/utf8"
)

// shell starts a shell as the agent and waits for its prompt.
func (p *person) shell(cols, rows int, flags ...string) *terminal {
	p.t.Helper()
	args := append([]string{"run", "--name", "shell", "--mode", "watch"}, flags...)
	tm := p.open(cols, rows, append(args, "--", "bash", "--norc", "--noprofile")...)
	tm.agentShows("bash-")
	return tm
}

// line types a command and waits for what it prints. The words that are waited
// for must not be in the command as it is typed.
func (tm *terminal) line(command, prints string) {
	tm.t.Helper()
	tm.press(command + enter)
	tm.agentShows(prints)
}

// Every key reaches the agent, in the order in which it was pressed, however
// fast they come.
func TestKeysArriveInOrder(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	tm := p.shell(120, 35)
	var words strings.Builder
	for i := range 120 {
		fmt.Fprintf(&words, "%d-ünïcode ", i)
	}
	text := words.String()
	tm.line("x='"+text+"'; echo length=${#x} sum=$(printf %s \"$x\" | md5sum)", fmt.Sprintf("length=%d", utf8.RuneCountInString(text)))
	tm.agentShows(fmt.Sprintf("sum=%x", md5.Sum([]byte(text))))

	// Key by key, each a write of its own.
	text = strings.Repeat("the quick brown fox jumps over the lazy dog;", 8)
	for _, c := range "y='" + text + "'; echo again=$(printf %s \"$y\" | md5sum)\r" {
		tm.press(string(c))
	}
	tm.agentShows(fmt.Sprintf("again=%x", md5.Sum([]byte(text))))

	// Pasted text is bracketed only if the agent asked for it, and comes whole.
	// What is typed is seen before it runs, so the command says when it does.
	tm.line("echo re''ads; read -r pasted; echo \"p=[$pasted]\"", "reads")
	tm.press("\x1b[200~from the clipboard\x1b[201~" + enter)
	tm.agentShows("p=[from the clipboard]")

	// The leader reaches the agent too, when it is pressed twice.
	tm.line("echo wa''its; read -rn1 k; printf 'key=%02x.\\n' \"'$k\"", "waits")
	tm.press(leader + leader)
	tm.agentShows("key=1d.")

	tm.press("exit 3" + enter)
	tm.until("the title says that it ended", func() bool { return strings.Contains(tm.first(), "ENDED: exit 3") })
	tm.press(leader + "h") // by way of the list of sessions, which says it too
	tm.shows("ended: exit 3")
	tm.press("q")
	if code, words := tm.ended(); code != 3 || !strings.Contains(words, "ended: exit 3") {
		t.Errorf("exit %d, last words %q; want the agent's exit code", code, words)
	}
}

// The agent's terminal has the size of its pane, whatever the window does.
func TestResizeReachesTheAgent(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	tm := p.shell(120, 35)
	// The list of actions takes room from the terminal until it is full.
	tm.line("for i in 1 2 3 4 5 6 7 8 9; do /bin/true; done; echo fil''led", "filled")
	tm.until("the list of actions is full", func() bool { return strings.Contains(strings.Join(tm.box("4 Actions"), "\n"), "#9 ") })
	for _, size := range [][2]int{{120, 35}, {200, 50}, {80, 24}, {60, 20}} {
		tm.resize(size[0], size[1])
		tm.until("all is drawn anew", func() bool {
			rows := tm.rows()
			return len(rows) == size[1] && strings.Contains(rows[size[1]-1], "help") && len(tm.box("1 Terminal")) > 0
		})
		// It may still be drawing the size before: look until the agent agrees.
		want := ""
		tm.until("the pane keeps its size", func() bool {
			in := tm.box("1 Terminal")
			if len(in) == 0 {
				return false
			}
			want = fmt.Sprintf("%d %d", len(in), utf8.RuneCountInString(in[0]))
			return true
		})
		tm.line("clear; until [ \"$(stty size)\" = '"+want+"' ]; do sleep 0.02; done; echo size \"is $(stty size)\"", "size is "+want)
	}
	tm.press("exit" + enter)
	tm.until("the title says that it ended", func() bool { return strings.Contains(tm.first(), "ENDED") })
	tm.press("qq") // home, out
	if code, _ := tm.ended(); code != 0 {
		t.Errorf("exit %d", code)
	}
}

// Lines that were printed are wrapped anew when the window changes: none of their text is
// lost.
func TestLinesAreWrappedAnew(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	tm := p.shell(120, 35)
	const whole = "1-2-3-4-5-6-7-8-9-10-11-12-13-14-15-16-17-18-19-20-21-22-23-24-end"
	tm.line("clear; echo $(seq -s- 1 24)-end", whole)
	for _, size := range [][2]int{{80, 24}, {120, 35}, {60, 20}, {120, 35}} {
		tm.resize(size[0], size[1])
		tm.until("the line is whole", func() bool {
			rows := tm.box("1 Terminal")
			return len(rows) > 0 && strings.Contains(strings.Join(rows, ""), whole) &&
				strings.Contains(strings.Join(rows, "\n"), whole) == (utf8.RuneCountInString(rows[0]) >= len(whole))
		})
	}
}

// A program that takes the whole screen draws, takes keys, and leaves the
// screen as it was.
func TestFullScreenPrograms(t *testing.T) {
	t.Parallel()
	vim, noVim := exec.LookPath("vim")
	less, noLess := exec.LookPath("less")
	if noVim != nil && noLess != nil {
		t.Skip("there is neither vim nor less here")
	}
	p := newPerson(t)
	tm := p.shell(120, 35)
	tm.line("echo be''fore", "before")
	if noVim == nil {
		tm.press(vim + " -u NONE -N -i NONE new.txt" + enter)
		tm.until("vim draws its empty lines down to the last", func() bool {
			in := tm.box("1 Terminal")
			return len(in) > 5 && strings.HasPrefix(in[len(in)-2], "~") && strings.Contains(in[len(in)-1], "new.txt")
		})
		tm.press("i")
		tm.agentShows("-- INSERT --")
		tm.press("written in vim" + escape)
		tm.until("vim left its insert mode", func() bool { return !strings.Contains(tm.agent(), "-- INSERT --") })
		tm.agentShows("written in vim")
		tm.press(":wq" + enter)
		tm.until("the shell's screen is back", func() bool { return strings.Contains(tm.agent(), "before") && !strings.Contains(tm.agent(), "\n~") })
		tm.line("sed s/written/found/ new.txt", "found in vim")
		tm.until("Changes lists the file", func() bool { return strings.Contains(strings.Join(tm.box("2 Changes"), "\n"), "A new.txt") })
	}
	if noLess == nil {
		tm.press("seq 1000 | " + less + enter)
		tm.until("less fills the screen", func() bool {
			return strings.HasPrefix(tm.agent(), "1 \n") || strings.HasPrefix(tm.agent(), "1\n2\n3\n")
		})
		tm.press("G")
		tm.agentShows("\n1000\n")
		tm.press("q")
		tm.until("the shell's screen is back", func() bool {
			return strings.Contains(tm.agent(), "before") && !strings.Contains(tm.agent(), "\n1000\n")
		})
	}
}

// Interrupting, stopping and going on work as in any terminal.
func TestJobControl(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	tm := p.shell(120, 35)
	running := func(titles ...string) {
		t.Helper()
		tm.until("one of these runs: "+strings.Join(titles, ", "), func() bool {
			for _, r := range tm.box("4 Actions") {
				for _, title := range titles {
					if strings.Contains(r, "  "+title) && strings.Contains(r, "running") {
						return true
					}
				}
			}
			return false
		})
	}
	tm.press("sleep 1001" + enter)
	running("sleep 1001")
	tm.press(ctrlC)
	tm.prompt()
	tm.line("echo in''terrupted=$?", "interrupted=130")

	tm.press("sleep 1002" + enter)
	running("sleep 1002")
	tm.press(ctrlZ)
	tm.agentShows("Stopped")
	tm.prompt()
	tm.line("bg; jobs", "Running")
	tm.line("kill %1; wait %1; echo wa''ited=$?", "waited=143")
	tm.press("cat | tr a-z A-Z" + enter)
	running("cat", "tr a-z") // either of the two names the job
	tm.press("end of file" + enter)
	tm.agentShows("end of file")
	tm.press("\x04")
	tm.agentShows("END OF FILE")
}
