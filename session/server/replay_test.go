package server

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"net/http"
	"testing"
	"time"

	"stepbox/session/api"
	"stepbox/session/e2e/must"
)

// fakeReplayer is the record of one session, "one".
type fakeReplayer struct{ left chan struct{} }

func (fakeReplayer) of(id string) error {
	if id != "one" {
		return api.Problemf(api.CodeNotFound, "there is no session %q", id)
	}
	return nil
}

func (f fakeReplayer) Timeline(_ context.Context, id string, most int, since uint64) (api.Timeline, error) {
	return api.Timeline{Last: 9, Length: time.Hour, More: most, Since: since}, f.of(id)
}

func (f fakeReplayer) FirstChange(_ context.Context, id, path string) (api.At, error) {
	return api.At{}, api.Problemf(api.CodeNotFound, "%s of %s never changed", path, id)
}

func (f fakeReplayer) At(_ context.Context, id string, m api.Moment) (api.At, error) {
	parts, err := m.Parse()
	return api.At{Seq: parts.Event}, errors.Join(err, f.of(id))
}

func (f fakeReplayer) TailAt(_ context.Context, id string, seq uint64, last int) ([]json.RawMessage, error) {
	if seq != 5 || last != 3 {
		return nil, errFake
	}
	return []json.RawMessage{json.RawMessage(`{"kind":"session.now","session":{"id":"one"}}`)}, f.of(id)
}

func (f fakeReplayer) TerminalAt(ctx context.Context, id string, offset time.Duration) iter.Seq2[api.Frame, error] {
	return func(yield func(api.Frame, error) bool) {
		if err := f.of(id); err != nil {
			yield(api.Frame{}, err)
			return
		}
		defer close(f.left)
		for yield(api.TimeFrame(offset), nil) && yield(api.Frame{Kind: api.FrameKeyframe, Cols: 80, Rows: 24}, nil) && ctx.Err() == nil {
			offset += time.Second
		}
	}
}

// A hub answers how a session was from the record, also while it is live, and lets go
// of it with who asked.
func TestHubReplays(t *testing.T) {
	f := fakeReplayer{left: make(chan struct{})}
	c := serve(t, Services{Reader: recordOnly{}, Keeper: fakeKeeper{}, Replayer: f}, Supervisor{Socket: supervisor(t, http.NewServeMux())}, time.Minute)
	ctx := t.Context()
	if line, err := c.Timeline(ctx, "one", 7, 8); err != nil || line.Since != 8 || line.Last != 9 || line.More != 7 || line.Length != time.Hour {
		t.Errorf("Timeline = %+v, %v", line, err)
	}
	if at, err := c.At(ctx, "one", "=7"); err != nil || at.Seq != 7 {
		t.Errorf("At = %+v, %v", at, err)
	}
	n := 0
	for e, err := range c.EventsAt(ctx, "one", 5, 3) {
		if n++; err != nil || e.Session == nil || e.Session.ID != "one" {
			t.Errorf("EventsAt = %+v, %v", e, err)
		}
	}
	if n != 1 {
		t.Errorf("EventsAt gave %d events", n)
	}
	conn, err := c.TerminalAt(ctx, "one", 90*time.Second)
	must.OK(t, err)
	time1, err1 := conn.Read()
	key, err2 := conn.Read()
	if at, err := time1.Offset(); errors.Join(err, err1, err2) != nil || at != 90*time.Second || key.Kind != api.FrameKeyframe || key.Cols != 80 {
		t.Errorf("the terminal begins with %+v and %+v, %v", time1, key, errors.Join(err, err1, err2))
	}
	conn.Close()
	select {
	case <-f.left:
	case <-time.After(time.Minute):
		t.Error("the record is read for nobody")
	}
	for what, err := range map[string]error{
		"a timeline of nobody": second(c.Timeline(ctx, "two", 0, 0)),
		"a moment of nobody":   second(c.At(ctx, "two", "")),
		"no moment":            second(c.At(ctx, "one", "yesterday")),
		"a terminal of nobody": second(c.TerminalAt(ctx, "two", 0)),
		"a time before":        second(c.TerminalAt(ctx, "one", -time.Second)),
	} {
		if p := (*api.Problem)(nil); !errors.As(err, &p) || p.Code != api.CodeNotFound && p.Code != api.CodeInvalid && p.Code != api.CodeUsage {
			t.Errorf("%s: %v", what, err)
		}
	}
}
