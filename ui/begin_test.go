package ui

import (
	"context"
	"errors"
	"strings"
	"testing"
)

// The screen is there while the session is still being made, and what is typed meanwhile
// is for nobody.
func TestBegin(t *testing.T) {
	open := func(t *testing.T, c *fakeClient) (*driver, chan<- error) {
		made := make(chan error)
		begin := func(ctx context.Context) (string, error) {
			select {
			case err := <-made:
				return sceneSession().ID, err
			case <-ctx.Done():
				return "", ctx.Err()
			}
		}
		d := drive(t, c, 80, 24, Options{Begin: begin, Config: themed("plain")})
		d.shows("making the sandbox")
		return d, made
	}
	t.Run("is joined", inBubble(func(t *testing.T) {
		c := sceneWorkbench()
		d, made := open(t, c)
		d.press("n", "D", "enter", "x")
		made <- nil
		d.until("the session is shown", func() bool { return d.m.bench != nil && d.m.bench.Arrived() && c.LastTerminal() != nil })
		d.shows("fix-tests")
		if typed := c.LastTerminal().Got(); typed != "" {
			t.Errorf("the agent was sent %q", typed)
		}
	}))
	t.Run("fails", inBubble(func(t *testing.T) {
		d, made := open(t, newFake())
		why := errors.New("no such program")
		made <- why
		d.until("it is left", func() bool { return d.quit })
		if d.m.err != why {
			t.Errorf("the error is %v", d.m.err)
		}
	}))
	t.Run("is left", inBubble(func(t *testing.T) {
		d, _ := open(t, newFake())
		d.press("ctrl+c")
		d.until("it is left", func() bool { return d.quit })
		d.m.Close() // waits for what makes it, which ends with its context
	}))
}

// Until a session that is asked for is found, nothing else is shown, nor takes keys.
func TestOpening(t *testing.T) { alone(t, testOpening) }

func testOpening(t *testing.T) {
	d := bench(t, sceneWorkbench(), 80, 24, "plain")
	if seen := d.seen.String(); !strings.Contains(seen, "opening the session") || strings.Contains(seen, " Past ") {
		t.Errorf("before the session something else was shown:\n%s", seen[:min(len(seen), 4000)])
	}
}
