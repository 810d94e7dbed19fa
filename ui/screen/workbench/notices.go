package workbench

import (
	"fmt"
	"slices"
	"time"

	"stepbox/themes"
	"stepbox/ui/paint"
)

// noticeTime is how long a notice stands.
const noticeTime = 6 * time.Second

// notice is one thing that is told.
type notice struct {
	text  string
	token themes.Token
	until time.Time
	more  func() string // what is said behind it, as the keys are now; nil: nothing
	holds func() bool   // whether it is still so; nil: it was about what happened
	ofKey bool          // it answers a key: it stands on the last line, wherever the keys are
}

// notices are what is told to the person, one after the other.
type notices struct {
	clock  func() time.Time
	notice notice   // that stands now
	next   []notice // what is told after it, what warns first; at most maxNext
}

// tell tells something at once, in the place of what is told.
func (n *notices) tell(token themes.Token, format string, args ...any) {
	n.notice = notice{text: paint.Clean(fmt.Sprintf(format, args...)), token: token, until: n.clock().Add(noticeTime)}
}

// info tells something in the usual look, warn what is to be cared about, and fail why something failed.
func (n *notices) info(format string, args ...any) { n.tell(themes.Info, format, args...) }
func (n *notices) warn(format string, args ...any) { n.tell(themes.Warn, format, args...) }
func (n *notices) fail(err error)                  { n.warn("%s", paint.Failed(err)) }

// answerKey says why a key did nothing, and which does.
func (n *notices) answerKey(token themes.Token, words string) {
	n.tell(token, "%s", words)
	n.notice.ofKey = true
}

// maxNext bounds what waits to be told.
const maxNext = 8

// tellToo tells something beside what stands already: one is shown after the other, what
// warns before what doesn't.
func (n *notices) tellToo(token themes.Token, words string) {
	was := n.notice
	if was.text != "" && (token != themes.Warn || was.token == themes.Warn) {
		i := len(n.next)
		if token == themes.Warn {
			if i = slices.IndexFunc(n.next, func(o notice) bool { return o.token != themes.Warn }); i < 0 {
				i = len(n.next)
			}
		}
		n.next = slices.Insert(n.next, i, notice{text: words, token: token})
	} else {
		n.tell(token, "%s", words)
		if was.text != "" {
			n.next = append(n.next, was)
		}
	}
	n.next = n.next[:min(len(n.next), maxNext)]
}

// pass goes on to what is to be told next when a notice has stood for its time.
func (n *notices) pass() {
	if n.notice.text == "" || !n.clock().After(n.notice.until) {
		return
	}
	n.notice = notice{}
	if len(n.next) > 0 {
		n.tell(n.next[0].token, "%s", n.next[0].text)
		n.next = n.next[1:]
	}
}

// fresh says whether the person has hardly had the time to read the notice.
func (n *notices) fresh() bool {
	return n.notice.text != "" && n.notice.until.Sub(n.clock()) > noticeTime-2*time.Second
}
