package session

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"stepbox/runner/overlay/content"
	"stepbox/session/api"
	"stepbox/session/base"
	"stepbox/session/files"
	"stepbox/session/loop"
	"stepbox/session/outfit"
)

// baseGrace is how long an end waits for the base: that of a small project is
// known as soon, and a record without it can't be replayed.
const baseGrace = 250 * time.Millisecond

// maxBases is how many of the bases of resumes a session names.
const maxBases = 100

// takeBase finds out what the project was, while the agent runs already: what
// it does goes to the upper, and the project is only read here. The session
// doesn't end before it is recorded, and soon after it wants to this gives up.
// Without a base the session goes on: it is there for later.
func (s *Session) takeBase() {
	options, first := s.baseOptions(), s.info.Base
	s.loop.Aside(func() func() {
		ctx, cancel := context.WithCancel(context.Background())
		var patience sync.WaitGroup
		patience.Go(func() {
			select {
			case <-ctx.Done():
				return
			case <-s.loop.In(loop.Stopping):
			}
			select {
			case <-ctx.Done():
			case <-time.After(baseGrace):
				cancel()
			}
		})
		stepBack()
		found, warnings, err := findBase(ctx, options, first)
		cancel()
		patience.Wait()
		return func() {
			if err != nil {
				s.log.Warn("what the project was isn't recorded", "error", err)
				return
			}
			if found.Resumed = s.info.Resumed; found.Resumed == 0 {
				s.info.Base = found
			} else {
				s.info.Bases = append(slices.Clone(s.info.Bases[max(0, len(s.info.Bases)+1-maxBases):]), *found)
			}
			s.info.Warnings = append(slices.Clip(s.info.Warnings), warnings...)
			s.record(nil, s.changed("based"))
			for _, a := range s.actions.all { // of those that ended before nothing could be said to be lost
				if a.State == api.ActionEnded && a.Effects != nil && a.StartedAt.After(s.info.ResumedAt) {
					s.told(a, func(t files.Told) {
						if t.Err == nil && t.To >= a.toldTo {
							a.Effects = t.Effects
							s.record(nil, s.actionEvent(a, "counted"))
						}
					})
				}
			}
		}
	})
}

func (s *Session) baseOptions() base.Options {
	return base.Options{
		Folder: s.cfg.Workspace, Lower: s.files.Lower(), Bodies: files.Bodies{Store: s.store},
		Person: outfit.Person(s.cfg.Home, s.cfg.Env), Moved: s.outfit.Git.Of,
	}
}

// findBase takes the base and keeps it, packed over the first. It warns of what of the
// project the agent can't change, since the kernel doesn't copy a file to the upper whose owner or group the sandbox hasn't got
// (EOVERFLOW).
func findBase(ctx context.Context, o base.Options, first *api.Base) (found *api.Base, warnings []string, err error) {
	rec, err := base.Take(ctx, o)
	if err != nil {
		return nil, nil, err
	}
	var earlier content.Hash
	if first != nil {
		earlier, _ = files.ParseHash(first.Hash) // else it is kept by itself
	}
	h, err := rec.Save(context.WithoutCancel(ctx), o.Bodies, earlier)
	if err != nil {
		return nil, nil, err
	}
	if n := rec.Foreign; n > 0 {
		warnings = append(warnings, fmt.Sprintf("the agent can't change what has another owner or group than you, and is told \"Value too large for defined data type\": %d of the project's files and folders, as %s; chgrp %d mends it where only the group is another",
			n, api.Escape(api.Trim(rec.Foreigner, maxReason)), os.Getegid()))
	}
	return &api.Base{
		Kind: rec.Kind(), Hash: h.String(), Files: len(rec.Entries),
		Complete: rec.Missing == "", Reason: api.Escape(api.Trim(rec.Missing, maxReason)),
	}, warnings, nil
}

// stepBack lets all else go before the calling goroutine, for the rest of its
// life: its thread ends with it.
func stepBack() {
	runtime.LockOSThread()
	_ = unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), 5) // without it, it is as important as the rest
}
