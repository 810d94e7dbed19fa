package session

import (
	"context"
	"time"

	"stepbox/session/loop"
	"stepbox/session/seal"
)

// How often a session's record is sealed: after so long if anything happened, or so
// many events; and how often that is looked at.
const (
	sealEvery  = 5 * time.Minute
	sealEvents = 2000
	sealLook   = 10 * time.Second
)

// keepSealed seals the record while the session lives, beside all else. That it can't
// be is said once, and tried again.
func (s *Session) keepSealed() {
	defer close(s.unsealed)
	ctx, stopping := context.Background(), s.loop.In(loop.Stopping)
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
		if err != nil && !said {
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

// sealEnd seals the whole record. One that can't be stays as it is, which whoever verifies
// it is told.
func (s *Session) sealEnd() {
	if s.cfg.Seal == nil {
		return
	}
	if _, err := s.cfg.Seal(context.Background(), seal.Final); err != nil {
		s.log.Error("the session's end isn't sealed", "error", err)
	}
}
