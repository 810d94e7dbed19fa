package e2e

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// BenchmarkOpen measures from a command's start until its screen can be read: the home
// screen, a session that is joined, one that is started (its first frame, and the agent's
// first word), and tmux's two beside them in the same rounds.
//
//	go test -run '^$' -bench Open -benchtime 1x ./session/e2e
func BenchmarkOpen(b *testing.B) {
	p := newPerson(b)
	const agent = `echo ready$((1+1)); while read -r x; do :; done`
	if out, err := p.command(b.Context(), "run", "-d", "--name", "there", "--mode", "watch", "--", "bash", "-c", agent).CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	b.Cleanup(func() { p.command(b.Context(), "kill", "there").Run() })
	type way struct {
		name, shows string
		args        []string
	}
	ways := []way{
		{"home", "there", nil},
		{"attach", "ready2", []string{"attach", "there"}},
		{"run-frame", "stepbox", []string{"run", "--mode", "watch", "--", "bash", "-c", agent}},
		{"run-agent", "ready2", []string{"run", "--mode", "watch", "--", "bash", "-c", agent}},
	}
	if _, err := exec.LookPath("tmux"); err == nil {
		ways = append(ways, way{"tmux-new", "ready2", []string{"new-session", agent}}, way{"tmux-attach", "ready2", []string{"attach"}})
	}
	socket := filepath.Join(p.dir, "tmux")
	b.Cleanup(func() { exec.Command("tmux", "-S", socket, "kill-server").Run() })
	all := map[string][]time.Duration{}
	for range 10 * b.N {
		for _, w := range ways {
			cmd := p.command(b.Context(), w.args...)
			if strings.HasPrefix(w.name, "tmux") {
				env, dir := cmd.Env, cmd.Dir
				cmd = exec.Command("tmux", append([]string{"-S", socket, "-f", "/dev/null"}, w.args...)...)
				cmd.Env, cmd.Dir = env, dir
			}
			began := time.Now()
			on := watch(b, w.name, cmd)
			at, ok := on.until(30*time.Second, func() bool { return on.shows(w.shows) })
			if !ok {
				b.Fatalf("%s never shows %s", w.name, w.shows)
			}
			all[w.name] = append(all[w.name], at.Sub(began))
			if strings.HasPrefix(w.name, "run") { // ends with its agent, so that the next finds as much to do
				on.must("the agent is there", func() bool { return on.shows("ready2") })
				on.press("\x04")
				on.must("it ended", func() bool { return on.shows("ENDED") })
			}
			cmd.Process.Kill()
			cmd.Wait()
		}
	}
	for _, w := range ways {
		d := all[w.name]
		slices.Sort(d)
		for _, q := range []int{50, 90} {
			b.ReportMetric(float64(d[(len(d)-1)*q/100].Microseconds())/1000, fmt.Sprintf("%s-p%d-ms", w.name, q))
		}
	}
	b.ReportMetric(0, "ns/op")
}

// painting repaints its whole screen sixty times a second, with a number that counts up.
const painting = `perl -e '$| = 1;
	$line .= sprintf "\e[3%dm%s", $_ / 8 % 8, chr(65 + $_ % 26) x 4 for 0 .. 61;
	for ($n = 1;; $n++) {
		$out = "\e[H\e[mframe $n.";
		$out .= "\e[$_;1H$line" for 2 .. 70;
		print $out;
		$line = substr($line, 9) . substr($line, 0, 9);
		select undef, undef, undef, 1 / 60;
	}'`

// BenchmarkFrames counts the pictures that are seen in a second, and the bytes that each
// takes, of an agent that repaints a terminal of 250×80 sixty times a second; beside tmux.
//
//	go test -run '^$' -bench Frames -benchtime 1x ./session/e2e
func BenchmarkFrames(b *testing.B) {
	p := newPerson(b)
	box := watchAt(b, "stepbox", p.command(b.Context(), "run", "--mode", "watch", "--", "sh", "-c", painting), 250, 80)
	ways := []*watched{box}
	if _, err := exec.LookPath("tmux"); err == nil {
		p.write("paint", painting)
		socket := filepath.Join(p.dir, "tmux")
		cmd := exec.Command("tmux", "-S", socket, "-f", "/dev/null", "new-session", "sh paint")
		cmd.Dir, cmd.Env = p.project, box.cmd.Env
		b.Cleanup(func() { exec.Command("tmux", "-S", socket, "kill-server").Run() })
		ways = append(ways, watchAt(b, "tmux", cmd, 250, 80))
	}
	box.must("it paints", func() bool { return box.shows("frame ") })
	box.press(leader + "z")
	for _, w := range ways {
		w.must("it paints", func() bool { return w.shows("frame ") })
		w.rest(time.Second)
	}
	frames, read, took := map[string]int{}, map[string]int{}, map[string]time.Duration{}
	for range 3 * b.N {
		for _, w := range ways {
			began, before, last := time.Now(), w.read, ""
			w.until(3*time.Second, func() bool {
				for _, line := range w.screen.Text()[:3] {
					if at := strings.Index(line, "frame "); at >= 0 && line[at:] != last {
						last = line[at:]
						frames[w.name]++
						break
					}
				}
				return false
			})
			took[w.name] += time.Since(began)
			read[w.name] += w.read - before
		}
	}
	for _, w := range ways {
		b.ReportMetric(float64(frames[w.name])/took[w.name].Seconds(), w.name+"-frames/s")
		b.ReportMetric(float64(read[w.name])/float64(frames[w.name])/1000, w.name+"-kB/frame")
	}
	b.ReportMetric(0, "ns/op")
}
