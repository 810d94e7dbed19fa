package ui

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"stepbox/session/api"
	"stepbox/session/e2e/must"
)

// hands press keys as a person does who waits until they count, and count them. Text that
// is typed isn't counted.
type hands struct {
	*driver
	keys []string
}

func (h *hands) key(keys ...string) {
	h.t.Helper()
	for _, k := range keys {
		h.idle()
		if h.keys = append(h.keys, k); k != leader { // leader sequences are pressed in one go
			if n := len(h.keys); n < 2 || h.keys[n-2] != leader {
				h.advance(500 * time.Millisecond)
			}
		}
		h.press(k)
	}
}

func (h *hands) text(s string) {
	h.keys = append(h.keys, "…")
	h.types(s)
}

// count is how many keys were pressed, and which, as people read them.
func (h *hands) count() (n int, shown string) {
	var words []string
	for at := 0; at < len(h.keys); {
		k, again := h.keys[at], 1
		if at++; k == leader {
			k += " " + h.keys[at]
			n++
			at++
		}
		for ; at < len(h.keys) && h.keys[at] == k; at++ {
			again++
		}
		if k != "…" {
			n += again
		}
		if again > 1 {
			k += fmt.Sprint(" ×", again)
		}
		words = append(words, k)
	}
	return n, strings.Join(words, " ")
}

// next has the fake agent ask its next question once the last was answered.
func (h *hands) next(n int) {
	h.until("it was answered", func() bool { return h.m.bench.Held() == 0 })
	h.advance(time.Second)
	put(h.driver, ask(int64(20+n), 20+n, fmt.Sprintf("make step-%d", n)))
}

// How many keys the common tasks take, pressed one by one; docs/deciding.md has the same
// numbers.
func TestKeysOfTasks(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("../docs/deciding.md")
	must.OK(t, err)
	calm := func(c *fakeClient) {
		c.SetApply(func(r api.ApplyRequest) api.ApplyPlan {
			p := scenePlan(r, 1)
			p.Blocked, p.Unreviewed, p.Conflicts = "", nil, nil
			for i := range p.Files {
				p.Files[i].Dangers = nil
			}
			return p
		})
	}
	for _, tt := range []struct {
		task string
		qs   []api.Question
		do   func(h *hands)
	}{
		{"approve a command", []api.Question{sceneQuestion()}, func(h *hands) {
			h.key(leader, "y")
			h.decided(api.AnswerApprove)
		}},
		{"answer ten, each asked a second after the last was answered", nil, func(h *hands) {
			put(h.driver, ask(20, 20, "make step-0"))
			h.key(leader, "a")
			for n := range 10 {
				if n > 0 {
					h.next(n)
				}
				h.key("a")
			}
			h.until("all are answered", func() bool { return len(h.c.Decisions()) == 10 })
		}},
		{"the same, from the list of actions", nil, func(h *hands) {
			put(h.driver, ask(20, 20, "make step-0"))
			h.key(leader, "4")
			for n := range 10 {
				if n > 0 {
					h.next(n)
				}
				h.key("a")
			}
			h.until("all are answered", func() bool { return len(h.c.Decisions()) == 10 })
		}},
		{"deny a command, with a reason", []api.Question{sceneQuestion()}, func(h *hands) {
			h.key(leader, "a", "d")
			h.text("use make")
			h.key("enter")
			h.decided(api.AnswerDeny)
		}},
		{"approve, and make a rule of it", []api.Question{sceneQuestion()}, func(h *hands) {
			h.key(leader, "a", "A", "enter")
			h.decided(api.AnswerApprove)
		}},
		{"keep an edit, having seen its difference", []api.Question{sceneEdit()}, func(h *hands) {
			h.key(leader, "y", "y")
			h.decided(api.AnswerKeep)
		}},
		{"roll an edit back, having seen the plan", []api.Question{sceneEdit()}, func(h *hands) {
			h.key(leader, "x", "y")
			h.shows("↶ rolled back")
		}},
		{"roll back to before the last action but one", nil, func(h *hands) {
			h.key(leader, "4", "k", "k", "U", "y")
			h.shows("↶ rolled back")
		}},
		{"apply all to the project", nil, func(h *hands) {
			h.key(leader, "2", "w", "y")
			h.shows("applied")
		}},
		{"replay the last action but one", nil, func(h *hands) {
			h.key(leader, "4", "k", "k", "@")
			h.shows("REPLAY")
		}},
	} {
		t.Run(tt.task, inBubble(func(t *testing.T) {
			c := sceneWorkbench(tt.qs...)
			calm(c)
			h := &hands{driver: bench(t, c, 80, 24, "plain")}
			tt.do(h)
			inDocs(t, string(doc), tt.task, h)
			if got := h.c.LastTerminal().Got(); got != "" {
				t.Errorf("the agent had %q", got)
			}
		}))
	}
	t.Run("find an old action", inBubble(func(t *testing.T) {
		c := many(20)
		c.SetRecord(func(r *record) {
			r.found = []api.Hit{{Kind: api.HitAction, Key: 3, Action: 3, Offset: time.Minute, Seq: 7, Text: "sh lint-19 one"}}
		})
		h := &hands{driver: drive(t, c, 80, 24, Options{Config: themed("plain")})}
		h.shows("bump-deps-0 ")
		h.key("/")
		h.text("lint-19")
		h.shows("sh lint-19 one")
		h.key("enter", "enter")
		h.until("it is opened there", func() bool { return h.m.bench != nil })
		inDocs(t, string(doc), "find an old action, from the list of sessions, and open it there", h)
	}))
}

func inDocs(t *testing.T, doc, task string, h *hands) {
	t.Helper()
	n, shown := h.count()
	if row := fmt.Sprintf("| %s | `%s` | %d |\n", task, shown, n); !strings.Contains(doc, row) {
		t.Errorf("docs/deciding.md lacks\n%s", row)
	}
}
