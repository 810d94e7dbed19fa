package ui

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"
	uv "github.com/charmbracelet/ultraviolet"
	"pgregory.net/rapid"

	"stepbox/session/api"
	"stepbox/themes"
	"stepbox/ui/keys"
)

// person uses a screen in every way that there is, and judges it by what they see alone:
// by the frames, and by when they pressed which key. They know nothing of how it works.
type person struct {
	*driver
	rt      rapid.TB
	began   time.Time   // by the bubble's clock
	turns   []time.Time // when all that had come was taken
	seen    []glimpse
	pressed []stroke
	key     stroke            // the last that was a key
	led     bool              // the leader was pressed, and nothing since
	ledBy   stroke            // that press
	read    map[string]string // what was in view of each question that is opened, by its action
	words   marks             // what each question's content says
	judged  int               // decisions that were judged
	called  int               // what else was asked of the session,
	made    int               // and how much of that was a decision
	decided time.Time         // when the last one was seen, or something like it
	got     string            // what the agent got so far
	ended   bool              // the session is over
	acts    bool              // what happens follows at once from a key
	docked  bool              // the last frame had a dialog beside the panes that had the keys
	front   bool              // the window is in front
	turned  time.Time         // since when it is or isn't
	drags   bool              // the mouse selects: the next key is about that
	did     []string
}

// marks are the words of each question's contents, by hash: no other content has them.
type marks map[string]string

// glimpse is what of a frame an answer may be for, from a moment on.
type glimpse struct {
	at  time.Time
	aim map[string]bool // words of the contents that keys would be for
}

// stroke is a key, or a paste, and what was in view before it.
type stroke struct {
	at    time.Time
	name  string
	again bool    // after the same key: it may be one that is held down
	waits bool    // an answer that it gave waits until that is known
	led   *stroke // the leader before it
	last  time.Time
}

func (p *person) clock() time.Time { return time.Unix(0, p.now.Load()).UTC() }

// fail ends the test with what was done last, and the frame.
func (p *person) fail(format string, args ...any) {
	p.rt.Fatalf("%s\nafter %s", fmt.Sprintf(format, args...), strings.Join(p.did[max(0, len(p.did)-25):], "; "))
}

// look remembers what is in view, and checks what holds of every frame.
func (p *person) look() {
	p.seen = append(p.seen, glimpse{p.clock(), p.aim()})
	docked := p.docked
	if !p.led { // or it is the leader's panel
		p.docked = p.m.bench != nil && p.rooms() && len(p.focused()) > 0 && p.pane() == ""
	}
	if docked && !p.docked && !p.acts {
		p.decided = p.clock() // what had the keys went by itself
	}
	if w := p.cells.Width(); p.rooms() {
		for _, l := range strings.Split(p.text(), "\n") {
			if n := p.m.method.StringWidth(l); n > w {
				p.fail("%d columns of %d: %q", n, w, l)
			}
		}
	}
	if !p.rooms() || p.led {
		return
	}
	if n := len(p.focused()); n > 1 || n == 0 && p.m.bench != nil { // a list of nothing has none
		p.fail("%d places have the keys\n%s", n, p.text())
	}
}

func (p *person) rooms() bool { return p.cells.Width() >= 40 && p.cells.Height() >= 12 }

// focused are the corners of the boxes that have the keys.
func (p *person) focused() (out []uv.Position) {
	for y := range p.cells.Height() {
		for x := range p.cells.Width() {
			if c := p.cells.CellAt(x, y); c != nil && c.Content == "┏" && c.Style.Attrs&uv.AttrBold != 0 {
				out = append(out, uv.Pos(x, y))
			}
		}
	}
	return out
}

// row is a row's text from a column on.
func (p *person) row(x, y int) string {
	var out strings.Builder
	for ; x < p.cells.Width(); x++ {
		if c := p.cells.CellAt(x, y); c != nil {
			out.WriteString(c.Content)
		}
	}
	return out.String()
}

// pane is the number of the pane that has the keys, or 0 where a dialog has.
func (p *person) pane() string {
	for _, at := range p.focused() {
		if title := p.row(at.X, at.Y); strings.HasPrefix(title, "┏ ") && strings.IndexAny(title[len("┏ "):], "1234") == 0 {
			return title[len("┏ "):][:1]
		}
	}
	return ""
}

// typing says whether the keys are the agent's, as the screen looks.
func (p *person) typing() bool {
	return p.m.bench != nil && !p.ended && p.rooms() && !p.led && p.pane() == "1" && !strings.Contains(p.text(), "copy mode ") && !strings.Contains(p.row(0, 0), "REPLAY")
}

var mark, numbered = regexp.MustCompile(`q\d+v\d+`), regexp.MustCompile(`#(\d+) [^━]* held`)

// aim has the words of what keys would decide: those in the dialog that has the keys,
// or else those of the selected rows.
func (p *person) aim() map[string]bool {
	aim := map[string]bool{}
	add := func(s string) {
		for _, w := range mark.FindAllString(s, -1) {
			aim[w] = true
		}
	}
	if all := p.focused(); len(all) > 0 && (p.m.bench == nil || p.pane() == "") {
		at := all[0]
		list := strings.Contains(p.row(at.X, at.Y), "━ Held in all")
		for y := at.Y; y < p.cells.Height(); y++ {
			if c := p.cells.CellAt(at.X+1, y); !list || c.Style.Bg != nil && c.Style.Bg == p.m.palette.S(themes.Selected).Bg {
				add(p.row(at.X, y))
			}
			if c := p.cells.CellAt(at.X, y); c != nil && c.Content == "┗" {
				break
			}
		}
		// What doesn't fit was in view before: a question takes no approval until it was.
		if m := numbered.FindStringSubmatch(p.row(at.X, at.Y)); m != nil && !list {
			for w := range aim {
				p.read[m[1]] = w
			}
			if w, ok := p.read[m[1]]; ok {
				aim[w] = true
			}
		}
		return aim
	}
	on := []any{p.m.palette.S(themes.Selected).Bg, p.m.palette.S(themes.SelectedIdle).Bg}
	for y := range p.cells.Height() {
		for x := range p.cells.Width() {
			if c := p.cells.CellAt(x, y); c != nil && c.Style.Bg != nil && (c.Style.Bg == on[0] || c.Style.Bg == on[1]) {
				add(p.row(x, y))
				break
			}
		}
	}
	return aim
}

// does has something happen, takes what follows from it, and judges all of it.
func (p *person) does(msg tea.Msg) {
	before := p.got
	p.did = append(p.did, fmt.Sprintf("%d %T %v", p.clock().Sub(sceneNow).Milliseconds(), msg, msg))
	agents, k, led, drags := p.typing(), "", p.led, p.drags
	late := p.ended && strings.Contains(p.text(), "DISCONNECTED")
	soon := p.clock().Sub(p.decided) < 400*time.Millisecond
	perhaps := soon || slices.ContainsFunc(p.pressed, func(s stroke) bool { return s.waits && p.clock().Sub(s.at) < 500*time.Millisecond })
	asked := !agents && len(p.seen[len(p.seen)-1].aim) > 0
	switch m := msg.(type) {
	case tea.KeyPressMsg:
		k, p.drags = p.stroke(m, asked), false
	case tea.MouseMotionMsg:
		p.drags = true
	case tea.MouseReleaseMsg:
		p.drags = false
	case tea.MouseClickMsg:
		if p.front && p.clock().Sub(p.turned) >= 400*time.Millisecond { // else it may be what brings the window to the front
			p.led, p.drags = false, false
		}
	case tea.PasteMsg:
		p.pressed = append(p.pressed, stroke{at: p.clock(), name: "paste", last: p.last()})
		p.led = false
	case tea.FocusMsg, tea.BlurMsg:
		_, p.front = msg.(tea.FocusMsg)
		p.led, p.turned = false, p.clock()
	}
	_, p.acts = msg.(tea.KeyPressMsg)
	p.send(msg)
	if p.over() {
		return
	}
	p.look()
	p.acts = false
	p.settle()
	p.judge()
	p.got = p.agentGot()
	switch sent := p.got[min(len(before), len(p.got)):]; {
	case k == "" || p.over():
	case !p.rooms(), late: // who sees nothing, or not yet the end, may mean anything
	case led && keys.IsLeader(key(k)): // twice: it is the agent's if the keys are
	case sent != "" && (!agents || soon):
		p.fail("the agent got %q of %s, which was ours\n%s", sent, k, p.text())
	case sent == "" && agents && !perhaps && !drags && !keys.IsLeader(key(k)) && len(k) == 1 && !strings.Contains(p.text(), "not sent"):
		p.fail("%s was the agent's and got nowhere, without a word\n%s", k, p.text())
	}
}

// stroke notes a key, and names it.
func (p *person) stroke(k tea.KeyPressMsg, asked bool) string {
	s := stroke{at: p.clock(), name: k.String(), last: p.last()}
	s.again = s.name == p.key.name
	s.waits = s.again && asked
	p.key = s
	if p.led {
		led := p.ledBy
		s.led = &led
	}
	if p.led = p.m.bench != nil && keys.IsLeader(k) && !p.led; p.led {
		p.ledBy = s
	}
	p.pressed = append(p.pressed, s)
	return s.name
}

func (p *person) last() time.Time {
	if n := len(p.pressed); n > 0 {
		return p.pressed[n-1].at
	}
	return time.Time{}
}

// over says whether the screen was left.
func (p *person) over() bool { return p.quit }

// settle takes what follows at once.
func (p *person) settle() {
	for {
		synctest.Wait()
		select {
		case m := <-p.msgs:
			p.send(m)
			p.look()
		default:
			p.turns = append(p.turns, p.clock())
			return
		}
	}
}

// waits lets time pass, in which what comes is taken when it comes.
func (p *person) waits(d time.Duration) {
	for end := time.After(d); ; {
		select {
		case m := <-p.msgs:
			p.tells()
			p.send(m)
			p.look()
			p.settle()
			p.judge()
		case <-end:
			p.tells()
			return
		}
	}
}

// tells has the screen know what time it is.
func (p *person) tells() { p.now.Store(sceneNow.Add(time.Since(p.began)).UnixNano()) }

func (p *person) agentGot() string {
	var all strings.Builder
	defer p.c.lock()()
	for _, t := range p.c.terms {
		all.WriteString(t.Got())
	}
	return all.String()
}

// judge judges each decision that was sent: there must have been a key that could be
// meant for what was decided.
func (p *person) judge() {
	all := p.c.Decisions()
	for ; p.judged < len(all); p.judged++ {
		d := all[p.judged]
		if why := p.why(d); why != "" {
			p.fail("%s of %s (%s) was sent at %d: %s\n%s", d.Answer, p.words[d.Hash], d.Hash, p.clock().Sub(sceneNow).Milliseconds(), why, p.text())
		}
		p.decided = p.clock()
	}
	for calls := p.c.Calls(); p.called < len(calls); p.called++ {
		if decides.MatchString(calls[p.called]) {
			p.decided, p.made = p.clock(), p.made+1
		}
	}
}

// decides matches what a session is asked that isn't an answer, and a decision all the same.
var decides = regexp.MustCompile(`^(allow|deny|ask|keep|kill|rollback|apply|undo|mode)\b`)

// due is when a key is carried out: at once, but for one that may be held down. That is
// known a little later, when the machine doesn't stall.
func (p *person) due(s stroke) time.Time {
	const known = 100 * time.Millisecond
	if !s.again {
		return s.at
	}
	due := s.at.Add(known)
	for _, t := range p.turns {
		if t.Sub(due) >= known/4 {
			due = t.Add(known)
		} else if !t.Before(due) {
			break
		}
	}
	return due
}

// why says why no key can have been meant for a decision; "" where one can.
func (p *person) why(d api.Decision) string {
	why, before := "no key is carried out now", time.Time{}
	if n := len(p.turns); n > 1 {
		before = p.turns[n-2]
	}
	for _, s := range slices.Backward(p.pressed) {
		if due := p.due(s); due.After(p.clock()) || !due.After(before) && due != p.clock() {
			continue
		}
		at := s
		if s.led != nil {
			at = *s.led
		}
		switch {
		case s.name == "n":
			why = "n, which is no and next, never answers"
		case at.at.Sub(at.last) < 400*time.Millisecond && !(s.name == "enter" && (d.Answer == api.AnswerDeny || d.Answer == api.AnswerRollback || d.For != "")): // of a line that was typed
			why = "the keyboard wasn't quiet before " + s.name
		case !p.inView(p.words[d.Hash], at.at):
			why = "what it decides wasn't in view before " + s.name
		default:
			return ""
		}
	}
	return why
}

// inView says whether words were what keys were for, for as long as it takes before a moment.
func (p *person) inView(words string, until time.Time) bool {
	from := until.Add(-400 * time.Millisecond)
	for i := len(p.seen) - 1; i >= 0; i-- {
		g := p.seen[i]
		if !g.at.Before(until) {
			continue
		}
		if !g.aim[words] {
			return false
		}
		if !g.at.After(from) {
			return true
		}
	}
	return false
}
