package terminal

import (
	"bytes"
	"strings"
	"testing"

	"stepbox/session/e2e/must"
	"stepbox/session/redact"
	"stepbox/store"
)

// secret is what an agent has, and dots what is shown of it.
const (
	secret = "sk-ant-0123456789"
	dots   = "•••••••••••••••••"
)

func masked(c *Config) { c.Mask = redact.Recording([]string{"A_KEY=" + secret}, nil).Mask() }

// A secret that the agent prints is nowhere: not with those who watch, not on the screen,
// not in the record, wherever it is cut. What only begins as one comes soon all the same.
func TestMask(t *testing.T) {
	p := newPipeTerminal(t, masked)
	watcher := p.follow()
	p.say("a sk-ant-")
	p.say("0123456789 b\r\n$ sk")
	var got strings.Builder
	for !strings.HasSuffix(got.String(), "sk") { // its agent prints nothing more
		frames, err := watcher.next(t.Context().Done())
		if err != nil {
			t.Fatalf("after %q: %v", got.String(), err)
		}
		for _, f := range frames {
			got.Write(f.Data)
		}
	}
	p.say("\r\nsk-ant-01")
	p.agent.Close()
	got.WriteString(all(t, watcher))
	last, text := p.Last(), p.Text()
	p.close()
	want := "a " + dots + " b\r\n$ sk\r\nsk-ant-01"
	if got.String() != want {
		t.Errorf("shown is %q, want %q", got.String(), want)
	}
	if text[0] != "a "+dots+" b" || bytes.Contains(last.Data, []byte(secret)) {
		t.Errorf("the screen has %q", text[0])
	}
	var recorded []byte
	for f, err := range p.Store.ReadJournal(p.Session) {
		must.OK(t, err)
		if f.Kind == store.FrameOutput {
			recorded = append(recorded, f.Data...)
		}
	}
	if string(recorded) != want {
		t.Errorf("recorded is %q, want %q", recorded, want)
	}
}

// BenchmarkFlood is what an agent prints until all of it is recorded and on the screen,
// with and without secrets that are looked for.
func BenchmarkFlood(b *testing.B) {
	lines := bytes.Repeat([]byte("2026-11-26T21:06:31Z \x1b[32minfo\x1b[0m request served path=/api/v1/items/4711 task=sk\r\n"), 40)
	for name, how := range map[string]func(*Config){"masked": masked, "bare": func(*Config) {}} {
		b.Run(name, func(b *testing.B) {
			p := newPipeTerminal(b, how)
			b.SetBytes(int64(len(lines)))
			for b.Loop() {
				if _, err := p.agent.Write(lines); err != nil {
					b.Fatal(err)
				}
			}
			p.agent.Close()
			<-p.eof
		})
	}
}
