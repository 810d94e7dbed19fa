package dialog

import (
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/session/api"
	"stepbox/themes"
	"stepbox/ui/intent"
	"stepbox/ui/keys"
	"stepbox/ui/paint"
	"stepbox/ui/state"
)

// Confirm asks once before what is hard to undo. Enter says no.
type Confirm struct {
	sheet
	Title  string
	Do     intent.Intent // what yes means; nil once it was said
	YesFor string        // the word beside the key for yes
	Off    string        // why yes does nothing, or ""
	Shown  state.Target  // names what is shown, so that a key for one text isn't a key for another

	build passage
	sync  func(n News) // takes what it says as it is now; nil: that stays
}

func (c *Confirm) Scope() keys.Scope { return keys.Confirm }

func (c *Confirm) Target() state.Target { return c.Shown }

// Care: a yes has to wait for a quiet keyboard.
func (c *Confirm) Care(i intent.Intent) state.Care {
	if _, yes := i.(intent.Yes); yes && c.Do != nil {
		return state.Quiet
	}
	return state.AtOnce
}

func (c *Confirm) Sync(n News) {
	if c.sync != nil {
		c.sync(n)
	}
}

func (c *Confirm) Fail(words string) { c.Off, c.Do = words, nil }

// Handle turns a yes into what was asked.
func (c *Confirm) Handle(i intent.Intent) intent.Intent {
	if _, yes := i.(intent.Yes); !yes {
		return c.sheet.Handle(i)
	}
	if c.Off != "" {
		return nil
	}
	do := c.Do
	c.Do = nil
	return do
}

func (c *Confirm) Draw(area uv.Rectangle, f paint.Frame) *tea.Cursor {
	b := c.begin(f, area, 92)
	b.gap()
	if c.build != nil {
		c.build(b)
	}
	b.gap()
	note := waiting(f)
	if c.Off != "" {
		note = warning(c.Off)
	}
	hints := []paint.Hint{
		hint(intent.Yes{}, keys.Confirm, c.YesFor, c.Off != "" || c.Do == nil || f.Wait > 0),
		{Key: strings.TrimPrefix(keys.First(intent.Back{}, keys.Confirm)+" esc", "esc "), Words: "no, leave everything as it is"},
	}
	c.draw(b, area, f, titled(c.Title), hints, note)
	return nil
}

// ConfirmKill asks before an action's processes, or with n 0 the whole sandbox,
// are killed.
func ConfirmKill(n int, title string) *Confirm {
	c := &Confirm{Title: fmt.Sprintf("Kill #%d?", n), Do: intent.DoKill{Action: n}, YesFor: "kill its processes", Shown: confirms(fmt.Sprintf("kill %d", n))}
	words := "Its processes end at once. Its changes stay and can be rolled back."
	if n == 0 {
		c.Title, c.YesFor = "Kill the whole sandbox?", "kill everything in it"
		words = "The agent and all it started end at once, and the session is over. Its record, and the changes in it, stay."
	}
	c.build = func(b *paper) {
		if title != "" {
			b.command(title)
			b.gap()
		}
		b.say(words, themes.Surface)
	}
	return c
}

// ConfirmMode asks before a mode in which less is held than in the one there is; nil
// where there is nothing to ask.
func ConfirmMode(from, to api.Mode) *Confirm {
	modes := []api.Mode{api.ModeWatch, api.ModePolicy, api.ModeStep}
	if slices.Index(modes, to) >= slices.Index(modes, from) {
		return nil
	}
	c, held := &Confirm{Do: intent.DoMode{Mode: to}, YesFor: "mode " + string(to)}, 0
	c.sync = func(n News) { // both go on while it asks
		from, held = n.State.Session.Mode, len(n.State.Questions)
		c.Title = fmt.Sprintf("Leave %s mode for %s mode?", from, to)
		c.Shown = confirms(fmt.Sprintf("%s with %d held", c.Title, held))
	}
	c.build = func(b *paper) {
		for _, m := range []api.Mode{from, to} {
			b.pair(string(m), ModeWords(m), themes.Surface)
		}
		if held > 0 {
			b.gap()
			b.say("Held now: "+paint.Count(held, "thing", "things")+". Commands and edits stay held; connections that pass there go on at once.", themes.Warn)
		}
	}
	return c
}

// confirms names a text that a yes is for.
func confirms(text string) state.Target { return state.Target{Hash: text, Place: "confirm"} }

// ConfirmPage shows the whole address of a page that the agent wants opened, before it is
// opened in the person's browser, or copied.
func ConfirmPage(p api.WebPage, open bool) *Confirm {
	c := &Confirm{Title: "Copy the address of a page?", YesFor: "copy it"}
	if open {
		c.Title, c.YesFor = "Open a page in your browser?", "open it"
	}
	c.Do = intent.DoPage{WebPage: intent.WebPage{Page: p, Open: open}}
	c.Shown = confirms(fmt.Sprint(open, p.URL))
	c.build = func(b *paper) {
		b.pair("host", p.Host, themes.Strong)
		b.pair("address", p.URL, themes.Surface)
		b.gap()
		words := "Something in the sandbox wants it opened. It may be any page, also one that looks like another: go by the host's name. Don't sign in where you didn't mean to."
		if strings.Contains(p.Host, "xn--") {
			words += " This one has letters that aren't Latin, and is written as it is looked up."
		}
		b.say(words, themes.Warn)
		if p.Port != 0 {
			b.say(fmt.Sprintf("It is at or leads back to port %d of the sandbox, which this machine's localhost then has for ten minutes.", p.Port), themes.Surface)
		}
	}
	return c
}

// How much is shown of what an agent wants to copy.
const (
	copyShown = 2000 // bytes
	copyRows  = 12
)

// ConfirmCopies asks whether the agent may copy to the person's clipboard, from now on and
// first the text that it wants to; "" is none yet.
func ConfirmCopies(copied string) *Confirm {
	return &Confirm{
		Title:  "May the agent copy to your clipboard?",
		Do:     intent.DoCopies{Text: copied},
		YesFor: "yes, in this session",
		Shown:  confirms("copies " + copied),
		build: func(b *paper) {
			if copied != "" {
				var lines []row
				for line := range strings.SplitSeq(strings.ReplaceAll(api.Trim(copied, copyShown), "\t", "    "), "\n") {
					for _, r := range paint.Wrap(b.dst, line, b.width-2) {
						lines = append(lines, row{spans: []text{{r, themes.Inset}}, inset: true, indent: 1})
					}
				}
				which := "is:"
				if len(copied) > copyShown || len(lines) > copyRows {
					which, lines = "begins so:", lines[:min(len(lines), copyRows)]
				}
				b.pair("it copies", size(copied)+", which "+which, themes.Strong)
				b.gap()
				b.add(lines...)
				b.gap()
			}
			b.say("It can replace what you copied at any time: look at what you paste, above all into a shell. It never reads your clipboard.", themes.Warn)
		},
	}
}

func size(text string) string {
	if len(text) < 1<<10 {
		return paint.Count(len(text), "byte", "bytes")
	}
	return paint.Bytes(int64(len(text)))
}
