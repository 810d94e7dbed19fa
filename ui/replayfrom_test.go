package ui

import (
	"testing"
	"time"

	"stepbox/session/api"
)

// A session's replay is what is shown first when it is asked for so: at a moment, or
// playing from the beginning. That is where it began to print, not its first event: all
// of an import's are from when it was made.
func TestBeginsWithTheReplay(t *testing.T) { alone(t, testBeginsWithTheReplay) }

func testBeginsWithTheReplay(t *testing.T) {
	for _, c := range []struct {
		at    api.Moment
		first time.Duration
		want  string
	}{{"+10m", 0, "‖ 00:10:00"}, {"", 0, "▶ 00:0"}, {"", 14 * time.Minute, "▶ 00:0"}} {
		at, first, want := c.at, c.first, c.want
		s := newScene()
		ses := s.Sessions[0]
		c := newFake(s.Sessions...)
		ended := ses
		ended.State = api.SessionEnded
		c.Put(api.Event{At: ses.StartedAt.Add(first), Session: &ses}, api.Event{At: ses.StartedAt.Add(14 * time.Minute), Session: &ended})
		c.SetRecord(func(r *record) {
			r.course = api.Timeline{Length: 14 * time.Minute, Last: 2}
			r.printed = []piece{{off: time.Second, data: "what was then"}, {off: 13 * time.Minute, data: "what came later"}}
		})
		c.End()
		d := drive(t, c, 120, 35, Options{Session: ses.ID, Replay: &Replay{At: at, Speed: 4}})
		d.until("the session is shown", func() bool { return d.m.bench != nil && d.m.bench.Arrived() })
		d.shows(want)
		d.shows("×4")
	}
}

// Where no action ran the steps go to where printing went on.
func TestStepsWithoutActions(t *testing.T) { alone(t, testStepsWithoutActions) }

func testStepsWithoutActions(t *testing.T) {
	s := newScene()
	ses := s.Sessions[0]
	c := newFake(s.Sessions...)
	ended := ses
	ended.State = api.SessionEnded
	c.Put(api.Event{At: ses.StartedAt, Session: &ses}, api.Event{At: ses.StartedAt.Add(14 * time.Minute), Session: &ended})
	c.SetRecord(func(r *record) {
		r.course = api.Timeline{Length: 14 * time.Minute, Last: 2, Printed: []api.Stretch{{From: time.Second, To: time.Minute}, {From: 8 * time.Minute, To: 9 * time.Minute}}}
		r.printed = []piece{{off: time.Second, data: "what was then"}, {off: 8 * time.Minute, data: "what came later"}}
	})
	c.End()
	d := drive(t, c, 120, 35, Options{Session: ses.ID, Replay: &Replay{At: "+10m"}})
	for _, step := range []struct{ key, at string }{{"", "00:10:00"}, {"[", "00:08:00"}, {"[", "00:00:01"}, {"[", "00:00:00"}, {"]", "00:00:01"}, {"]", "00:08:00"}} {
		if step.key != "" {
			d.press(step.key)
		}
		d.at(step.at)
	}
	d.press("]")
	d.shows("no action began after this")
}
