package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// A supervisor that hasn't answered after askTime is asked whether it lives, and
// may take answerTime to say so, on a busy machine too: all it does for that is
// one turn of its loop. Answers themselves may take as long as they need: a large
// roll back takes minutes.
const (
	askTime    = 2 * time.Second
	answerTime = 8 * time.Second
)

// errStuck says that a supervisor holds its socket open and does nothing.
var errStuck = errors.New("the supervisor doesn't answer")

// patient waits for an answer as long as the supervisor lives: while one is
// overdue it is asked for a sign of life.
type patient struct {
	http.RoundTripper
	asks time.Duration // the time before the first sign and between all
	wait time.Duration // for each of them
}

// RoundTrip sends a request. A body isn't waited for here: it may be a stream.
func (p patient) RoundTrip(q *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(q.Context())
	unanswered, answered := context.WithCancel(ctx)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		if err := p.watch(unanswered, q.URL.Host); err != nil {
			cancel(err)
		}
	}()
	resp, err := p.RoundTripper.RoundTrip(q.WithContext(ctx))
	answered()
	<-watched
	if err != nil && errors.Is(context.Cause(ctx), errStuck) {
		err = context.Cause(ctx)
	}
	return resp, err
}

// watch returns an error when a session's supervisor shows no sign of life before
// ctx is done.
func (p patient) watch(ctx context.Context, id string) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(p.asks):
		}
		if err := p.alive(ctx, id); err != nil {
			return err
		}
	}
}

// alive asks for a sign of life.
func (p patient) alive(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, p.wait)
	defer cancel()
	sign, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+id+"/v1/sessions/"+id+"/alive", nil)
	if err != nil {
		return err
	}
	resp, err := p.RoundTripper.RoundTrip(sign)
	if err == nil {
		return resp.Body.Close()
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("%w: %w", errStuck, err)
	}
	return nil // it has ended, or has answered meanwhile: the request will hear of that itself
}
