package dialog

import (
	tea "charm.land/bubbletea/v2"
	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/session/api"
	"stepbox/themes"
	"stepbox/ui/intent"
	"stepbox/ui/keys"
	"stepbox/ui/paint"
	"stepbox/ui/state"
)

// Rules lists the rules that were made in a session, the newest first, so that each can
// be taken back.
type Rules struct {
	board
	Off    string // why none can be taken back, or ""
	list   []api.Rule
	failed string
}

func (d *Rules) Scope() keys.Scope { return keys.Rules }
func (d *Rules) Fail(words string) { d.failed = words }

// Target is the selected rule.
func (d *Rules) Target() state.Target {
	return state.Target{Hash: d.selected().id, Place: "rules"}
}

// Care: what is taken back must have been what is selected.
func (d *Rules) Care(i intent.Intent) state.Care {
	if _, drop := i.(intent.Deny); drop {
		return state.Quiet
	}
	return state.AtOnce
}

// Sync takes the rules as they are now.
func (d *Rules) Sync(n News) {
	d.list = n.State.Session.Rules
	var items []item
	for _, r := range d.list {
		mark, k := "✓ ", themes.OK
		switch r.Verdict {
		case api.Deny:
			mark, k = "✗ ", themes.Denied
		case api.Ask:
			mark, k = "◆ ", themes.Held
		}
		words := RuleWords(r)
		by := "by " + paint.Clean(r.By)
		if !r.At.IsZero() {
			by += ", " + r.At.Local().Format("01-02 15:04")
		}
		items = append(items, item{id: words, rows: func(b *body) {
			for i, s := range paint.Wrap(b.dst, words, b.width-2) {
				if i == 0 {
					b.line(text{mark, k}, text{s, themes.Surface})
				} else {
					b.add(row{indent: 2, spans: []text{{s, themes.Surface}}})
				}
			}
			b.add(row{indent: 2, spans: []text{{by, themes.SurfaceMuted}}})
		}})
	}
	d.put(items)
}

func (d *Rules) Why(i intent.Intent) string {
	if _, drop := i.(intent.Deny); !drop {
		return ""
	}
	if len(d.list) == 0 {
		return "no rule was made in this session"
	}
	return d.Off
}

// Handle moves, and takes the selected rule back.
func (d *Rules) Handle(i intent.Intent) intent.Intent {
	if _, drop := i.(intent.Deny); drop {
		if d.Why(i) != "" {
			return nil
		}
		d.failed = ""
		return intent.DropRule{Rule: d.list[d.at]}
	}
	return d.board.Handle(i)
}

func (d *Rules) Draw(area uv.Rectangle, f paint.Frame) *tea.Cursor {
	note := waiting(f)
	switch {
	case d.failed != "":
		note = text{"! " + d.failed, themes.Warn}
	case len(d.list) == 0:
		note = text{"no rule was made in this session: A answers with one", themes.SurfaceMuted}
	}
	hints := Foot(keys.Rules, func(i intent.Intent) bool { return i != intent.Intent(intent.Back{}) && (d.Why(i) != "" || f.Wait > 0) })
	d.show(d.begin(f, area, 100), area, f, titled("Rules made in this session"), hints, note)
	return nil
}
