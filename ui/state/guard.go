package state

import "time"

// Quiet is how long a question must have been in view unchanged, and the
// keyboard silent, before a key can answer it.
const Quiet = 400 * time.Millisecond

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
	key    time.Time // the last key of any kind
}

// Shown tells what keys would decide now. It says whether that changed.
func (g *Guard) Shown(t Target, now time.Time) bool {
	if t == g.target {
		return false
	}
	g.target, g.since = t, now
	return true
}

// Target is what was last shown.
func (g *Guard) Target() Target { return g.target }

// Key notes that a key was pressed. It is called after the key was judged.
func (g *Guard) Key(now time.Time) { g.key = now }

// Restart begins the quiet time anew: the window came back to the front, or
// the program was stopped for a while, and what is on the screen is new to the eye.
func (g *Guard) Restart(now time.Time) { g.since = now }

// Ready says whether a key pressed now may decide t. It may not when t isn't
// what was last shown.
func (g *Guard) Ready(t Target, now time.Time) bool {
	return t != Target{} && t == g.target && g.Wait(now) <= 0
}

// Wait is how long it takes, without keys or changes, until the target can be decided.
func (g *Guard) Wait(now time.Time) time.Duration {
	return max(Quiet-now.Sub(g.since), Quiet-now.Sub(g.key))
}

// Settled says whether t has been in view long enough, whatever the keyboard
// did: for a line that is typed and then sent.
func (g *Guard) Settled(t Target, now time.Time) bool {
	return t != Target{} && t == g.target && now.Sub(g.since) >= Quiet
}
