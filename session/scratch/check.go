package scratch

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"stepbox/runner"
	"stepbox/runner/overlay/manifest"
	"stepbox/session/api"
)

// limits bound checks.
type limits struct {
	wall   time.Duration // of one
	output int           // bytes that are kept of what it printed, the last ones
}

// most is what a check may take. Tests have less.
var most = limits{wall: time.Hour, output: 16 << 10}

// toldEvery is how often who waits hears of what a check prints.
const toldEvery = 100 * time.Millisecond

// Check runs a shell command in the project's folder, on a state of the project;
// nil is the folder as it is. It has no input, and its output is a terminal of
// 120 columns. Told hears of its last line now and then, escaped; nil for nobody.
//
// What keeps the command from being run to its end is the result's Failure. The
// error is the context's.
func (s *Scratch) Check(ctx context.Context, state *manifest.Manifest, command string, told func(line string)) (api.CheckResult, error) {
	out := tail{most: most.output}
	var last time.Time
	ran, err := s.run(ctx, job{
		state: state, wall: most.wall, builds: true,
		argv: []string{"/bin/sh", "-c", `exec /bin/sh -c "$1" </dev/null`, "check", command},
		told: func(p []byte) {
			out.add(p)
			if told != nil && time.Since(last) >= toldEvery {
				last = time.Now()
				if line := out.line(); line != "" {
					told(line)
				}
			}
		},
	})
	r := api.CheckResult{Command: api.Escape(command), Duration: ran.took, Output: out.text()}
	switch {
	case ctx.Err() != nil:
		return r, context.Cause(ctx)
	case err != nil:
		r.Failure = api.Escape(api.Trim(err.Error(), 500))
	case ran.overtime:
		r.Failure = fmt.Sprintf("it was ended after %s, which is as long as a check may take", most.wall)
	case !ran.exit.Known:
		r.Failure = "how it ended isn't known: its sandbox was killed"
	default:
		r.Exit = exit(ran.exit)
	}
	return r, nil
}

func exit(e runner.Exit) *api.Exit { return &api.Exit{Code: e.Code, Signal: e.Signal} }

// tail keeps the end of what was printed. One goroutine uses it at a time.
type tail struct {
	most int
	end  []byte
	cut  bool
}

func (t *tail) add(p []byte) {
	if len(p) > t.most {
		p, t.cut = p[len(p)-t.most:], true
	}
	t.end = append(t.end, p...)
	if len(t.end) > 4*t.most { // not for each few bytes
		t.trim()
	}
}

func (t *tail) trim() {
	if over := len(t.end) - t.most; over > 0 {
		t.end, t.cut = append(t.end[:0], t.end[over:]...), true
	}
}

// text is all that was kept, line by line. A line that was cut off isn't in it.
func (t *tail) text() string {
	t.trim()
	end := t.end
	if t.cut {
		if _, rest, ok := bytes.Cut(end, []byte("\n")); ok {
			end = rest
		}
	}
	var b strings.Builder
	for line := range strings.Lines(string(end)) {
		b.WriteString(shown(line))
		if strings.HasSuffix(line, "\n") {
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// line is the last one that says something.
func (t *tail) line() string {
	end := t.end[max(len(t.end)-4096, 0):]
	lines := strings.Split(string(end), "\n")
	for i := len(lines) - 1; i >= 0; i-- {
		if line := strings.TrimSpace(shown(lines[i])); line != "" {
			return api.Trim(line, 200)
		}
	}
	return ""
}

// shown is a line as a terminal would show it, about: without colours, and as it
// was written over last. Tabs are kept.
func shown(line string) string {
	line = strings.TrimRight(ansi.Strip(line), "\r\n")
	if i := strings.LastIndexByte(line, '\r'); i >= 0 {
		line = line[i+1:]
	}
	parts := strings.Split(line, "\t")
	for i := range parts {
		parts[i] = api.Escape(parts[i])
	}
	return strings.Join(parts, "\t")
}
