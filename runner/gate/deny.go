package gate

import (
	"crypto/sha256"
	"path"
	"time"

	"golang.org/x/sys/unix"
)

// deny carries out a refusal by the gate's owner.
func (g *Gate) deny(e *Exec, reason string) {
	if !g.turnAway(e, reason) {
		e.close()
	}
}

// refuse carries out an approval that can't be.
func (g *Gate) refuse(e *Exec, reason string) {
	kept := false
	if g.waits(e.ID) {
		kept = g.turnAway(e, reason)
	} else {
		g.answered(e.ID)
		reason = whyGone
	}
	g.o.Failed(e.shownAs(), reason)
	if !kept {
		e.close()
	}
}

// reject tells a caller why not and makes its call fail.
func (g *Gate) reject(e *Exec) {
	if !g.begin() {
		return
	}
	defer g.finish()
	g.tell(e)
	g.answered(e.ID)
	_ = g.l.fail(e.ID, unix.EACCES)
}

// tell gives a caller whose call fails the reason, and remembers that it has it.
func (g *Gate) tell(e *Exec) {
	if err := e.say(e.reason); err != nil {
		g.o.Log(err.Error())
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.denied.add(e, time.Now())
}

// repeats says whether an exec only carries on with one that was denied: a
// search along PATH tries the same arguments with the next folder's file, and
// a call that a signal interrupted while it was answered comes again.
func (g *Gate) repeats(e *Exec) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.denied.covers(e, time.Now())
}

const (
	searchTime = 2 * time.Second        // for the rest of a search along PATH
	repeatTime = 100 * time.Millisecond // for the very same call
	maxDenied  = 512                    // searches remembered at once; the oldest goes
)

// denials remembers searches that were denied. The zero value is ready.
type denials struct {
	byKey map[denialKey]*denial
	order []denialKey
}

type denialKey struct {
	pid         int
	start       uint64
	first, rest [sha256.Size]byte // of argv
	name        string            // what is searched for
}

type denial struct {
	at    time.Time
	paths map[string]time.Time
}

func keyOf(e *Exec) denialKey {
	return denialKey{pid: e.PID, start: e.Start, first: e.argv.first, rest: e.argv.rest, name: path.Base(e.Path)}
}

func (d *denials) add(e *Exec, now time.Time) {
	if d.byKey == nil {
		d.byKey = map[denialKey]*denial{}
	}
	key := keyOf(e)
	if old := d.byKey[key]; old == nil || now.Sub(old.at) > searchTime {
		if old == nil {
			d.order = append(d.order, key)
			if len(d.order) > maxDenied {
				delete(d.byKey, d.order[0])
				d.order = d.order[1:]
			}
		}
		d.byKey[key] = &denial{at: now, paths: map[string]time.Time{}}
	}
	d.byKey[key].paths[e.Path] = now
}

// covers says whether an exec is part of what was denied before. The same
// path a second time is a new attempt, and asked about.
func (d *denials) covers(e *Exec, now time.Time) bool {
	known := d.byKey[keyOf(e)]
	if known == nil || now.Sub(known.at) > searchTime {
		return false
	}
	if at, tried := known.paths[e.Path]; tried {
		return now.Sub(at) <= repeatTime
	}
	known.paths[e.Path] = now
	return true
}
