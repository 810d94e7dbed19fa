package session

import (
	"context"
	"time"

	"stepbox/session/loop"
	"stepbox/session/seal"
)

// How often a session's record is sealed: after so long if anything happened, or so
// many events; how often that is looked at, and how long the last seal may take.
const (
	sealEvery  = 5 * time.Minute
	sealEvents = 2000
	sealLook   = 10 * time.Second
	sealLast   = 5 * time.Second
)

// keepSealed seals the record while the session lives, beside all else. That it can't
// be is said once, and tried again.
func (s *Session) keepSealed() {
	defer close(s.unsealed)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	stopping := s.loop.In(loop.Stopping)
	go func() {
		select {
		case <-stopping:
		case <-ctx.Done():
			return
		}
		select {
		case <-time.After(sealLast): // also a short session has one seal, or is told why not
			cancel()
		case <-ctx.Done():
		}
	}()
	tick := time.NewTicker(sealLook)
	defer tick.Stop()
	var sealed uint64
	var at time.Time
	said := false
	for {
		last, err := s.store.LastEvent(ctx, s.cfg.ID)
		if more := last - sealed; err == nil && more > 0 && (more >= sealEvents || time.Since(at) >= sealEvery) {
			at = time.Now()
			if sealed, err = s.cfg.Seal(ctx, seal.Going); err != nil {
				sealed = last // until there is as much again
			}
		}
		if err != nil && !said && ctx.Err() == nil {
			said = true
			s.loop.Post(func() { s.note(true, "the record isn't sealed: %v", err) }) // the end waits for it
		}
		select {
		case <-tick.C:
		case <-stopping:
			return
		}
	}
}

// sealEnd seals the whole record, in what is left of sealLast when waited was waited for
// the seal before. One that can't be stays as it is, which whoever
// verifies it is told.
func (s *Session) sealEnd(waited time.Duration) {
	if s.cfg.Seal == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), sealLast-waited)
	defer cancel()
	if _, err := s.cfg.Seal(ctx, seal.Final); err != nil {
		s.log.Error("the session's end isn't sealed", "error", err)
	}
}
