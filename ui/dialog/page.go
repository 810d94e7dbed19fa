package dialog

import (
	"fmt"
	"strings"

	"stepbox/session/api"
	"stepbox/themes"
	"stepbox/ui/intent"
)

// ConfirmPage shows the whole address of a page that the agent wants opened, before it is
// opened in the person's browser, or copied.
func ConfirmPage(p api.WebPage, open bool) *Confirm {
	c := &Confirm{Title: "Copy the address of a page?", YesFor: "copy it"}
	if open {
		c.Title, c.YesFor = "Open a page in your browser?", "open it"
	}
	c.Do = intent.DoPage{WebPage: intent.WebPage{Page: p, Open: open}}
	c.Shown = confirms(fmt.Sprint(open, p.URL))
	c.build = func(b *body) {
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
