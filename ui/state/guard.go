package state

import "time"

// QuietTime is how long a question must have been in view unchanged, and the
// keyboard silent, before a key can answer it.
const QuietTime = 400 * time.Millisecond

// Target names what keys would decide: a question as it is shown. The zero
// Target is nothing.
type Target struct {
	Question int64
	Hash     string // of what a decision covers
	Place    string // dialog, strip, confirmation: a key for one isn't a key for the other
}

// Guard keeps keys that were meant for something else from answering a
// question. It is told what is on the screen after every frame's worth of
// change, and of every key; its clock is the caller's.
type Guard struct {
	target Target
	since  time.Time // when the target came into view or changed
	seen   bool      // it was in view long enough, on a terminal that kept up
	hasty  bool      // it came with a key that wasn't pressed in quiet
	key    time.Time // the last key of any kind,
	haste  bool      // which came soon after the one before
}

// Shown tells what keys would decide now.
func (g *Guard) Shown(t Target, now time.Time) {
	if t != g.target {
		g.target, g.since, g.seen, g.hasty = t, now, false, g.haste
	}
}

// Key notes that a key was pressed. It is called after the key was judged.
func (g *Guard) Key(now time.Time) { g.haste, g.key = now.Sub(g.key) < QuietTime, now }

// A key that is held down comes again after a while, and then often. Most terminals don't
// tell that from one that is pressed again.
const (
	FirstRepeat = time.Second            // after it, no keyboard begins to repeat
	Repeat      = 100 * time.Millisecond // within it, a key that is held down comes again
)

// Presses tells a key that may be held down still, and one that wasn't carried out. It is told of
// every key before that is carried out.
type Presses struct {
	key   string
	at    time.Time
	since time.Duration // the key before
	again bool          // that was the same
	wait  *Wait
	lost  string // this key before didn't do what it was for
	fails bool   // so did this one
}

// Told is for how long it must have been seen that a key did nothing, or something else, before
// the next one decides: whoever presses that may think to see what the first was for.
const Told = time.Second

// Lost notes that the key that was noted last didn't do what it was for, which is seen.
func (p *Presses) Lost() { p.fails = true }

// After is the key just before the one that was noted last, if that may be for what it didn't
// open; "": it isn't. The same key again is for the same.
func (p *Presses) After() string {
	if p.again || p.since >= Told {
		return ""
	}
	return p.lost
}

// HeldDown is said of what such a key would have done.
const HeldDown = "once only: the key is held down"

// Wait is until it is known whether a key was held down.
type Wait struct{ Held bool }

// Key notes that a key was pressed.
func (p *Presses) Key(key string, now time.Time) {
	p.again = key == p.key
	if p.again && p.wait != nil {
		p.wait.Held = true
	}
	if p.lost = ""; p.fails {
		p.lost = p.key
	}
	p.since, p.wait, p.fails = now.Sub(p.at), nil, false
	p.key, p.at = key, now
}

// Soon says whether the key that was noted last came when a repeat does.
func (p *Presses) Soon() bool { return p.again && p.since < FirstRepeat }

// Wait is what to look at once Repeat has passed, before the key that was noted last answers
// anything; nil: it is another key than the one before. How long ago that was doesn't count,
// as the machine may have stalled.
func (p *Presses) Wait() *Wait {
	if p.again {
		p.wait = &Wait{Held: p.since < Repeat}
	}
	return p.wait
}

// Restart begins the quiet time anew: the window came back to the front, or
// the program was stopped for a while, and what is on the screen is new to the eye.
func (g *Guard) Restart(now time.Time) { g.since, g.seen = now, false }

// Drawn tells, before each message, whether the terminal lags behind, or may. That begins the
// quiet time anew, unless the target was seen before: what lags then is something else, and on
// a slow machine or line something always does.
func (g *Guard) Drawn(late, unsure bool, now time.Time) (anew bool) {
	if !late {
		g.seen = g.seen || !unsure && now.Sub(g.since) >= QuietTime
		return false
	}
	if g.seen {
		return false
	}
	g.since = now
	return true
}

// Care is how long what a key decides must have been in view before it counts.
type Care int

// The cares.
const (
	AtOnce Care = iota // the key decides nothing
	InView             // whatever the keyboard did since: for a line that is typed and then sent
	Quiet              // and the keyboard was silent for as long
)

// Deaf tells how long the program just heard no key. That is no silence of the keyboard: what
// is pressed meanwhile, however fast, is heard after it.
func (g *Guard) Deaf(d time.Duration) { g.key = g.key.Add(d) }

// Takes says whether a key pressed now counts for t.
func (g *Guard) Takes(t Target, c Care, now time.Time) bool {
	switch {
	case c == AtOnce:
		return true
	case t == Target{} || t != g.target:
		return false // nothing, or not what was last shown
	case c == InView && !g.hasty:
		return now.Sub(g.since) >= QuietTime
	}
	return g.Wait(now) <= 0
}

// Wait is how long it takes, without keys or changes, until the target can be decided.
func (g *Guard) Wait(now time.Time) time.Duration {
	return max(QuietTime-now.Sub(g.since), QuietTime-now.Sub(g.key))
}
