package dialog

import (
	"strings"

	"stepbox/session/api"
	"stepbox/themes"
	"stepbox/ui/intent"
	"stepbox/ui/paint"
)

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
		build: func(b *body) {
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
