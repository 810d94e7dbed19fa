package dialog

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/session/api"
	"stepbox/themes"
	"stepbox/ui/intent"
	"stepbox/ui/keys"
	"stepbox/ui/paint"
	"stepbox/ui/state"
)

// Details tells all that is known of one thing.
type Details struct {
	sheet
	Title string
	Glyph string
	Token themes.Token
	build func(b *paper, now time.Time)
	plain bool // graphs are of ordinary characters
	facts bool // of the session: nothing of it is copied

	// Of an action:
	Action  int
	changed bool // files
	diffs   []api.FileDiff
	unread  string // why they aren't here, or aren't yet
	now     deed   // as it is,
	asked   deed   // and was when the differences were asked for
	reading bool   // they are on their way
	execs   []api.Exec
	loaded  bool
	problem string
}

func (d *Details) Draw(area uv.Rectangle, f paint.Frame) *tea.Cursor {
	b := d.begin(f, area, 116)
	d.plain = f.P.Plain()
	b.gap()
	d.build(b, f.Now)
	b.gap()
	title := titled(d.Title)
	if d.Glyph != "" {
		title = append([]text{{d.Glyph + " ", d.Token}}, title...)
	}
	hints := Foot(keys.Reading, nil)
	if d.facts {
		hints = slices.DeleteFunc(hints, func(h paint.Hint) bool { return h.Key == keys.First(intent.TakeOut{}, keys.Reading) })
	}
	if len(b.rows)+d.chrome(1, false) <= area.Dy() {
		hints = slices.DeleteFunc(hints, func(h paint.Hint) bool { return h.Key == keys.First(intent.Page{By: 1}, keys.Reading) })
	}
	d.draw(b, area, f, title, hints, text{})
	return nil
}

// Handle passes on that an action's diff is to be opened, too.
func (d *Details) Handle(i intent.Intent) intent.Intent {
	if _, diff := i.(intent.Read); diff {
		return i
	}
	return d.sheet.Handle(i)
}

// Why says what has no diff.
func (d *Details) Why(i intent.Intent) string {
	if _, diff := i.(intent.Read); diff && !d.changed {
		return "no file was changed: there is no diff"
	}
	return ""
}

// SetExecs takes the programs that the action started.
func (d *Details) SetExecs(execs []api.Exec, problem string) {
	d.execs, d.loaded, d.problem = execs, true, problem
}

// SetDiffs takes what the action changed, or why that can't be had.
func (d *Details) SetDiffs(diffs []api.FileDiff, problem string) {
	d.reading = false
	if d.diffs, d.unread = diffs, ""; problem != "" {
		d.unread = "the differences can't be read: " + problem
	}
}

// deed is what tells that an action changed something: as much may be another thing.
type deed struct {
	files, added, removed int
	after                 int64
}

// Lacks says whether the action has changed what isn't asked for yet, once.
func (d *Details) Lacks() bool {
	if d.reading || d.now.files == 0 || d.asked == d.now {
		return false
	}
	d.reading, d.asked = true, d.now
	return true
}

// is takes what the action is now.
func (d *Details) is(a api.Action) { d.now = deed{a.Files, a.Added, a.Removed, a.After} }

// mostDiff bounds the rows of differences in details.
const mostDiff = 200

// changes are the differences of an action, or the first of them.
func (d *Details) changes(b *paper) {
	if d.unread != "" {
		b.gap()
		b.muted(d.unread)
		return
	}
	first := len(b.rows)
	for i, f := range d.diffs {
		b.differences([]api.FileDiff{f}, false, mostDiff)
		if n := len(b.rows) - first; n > mostDiff || i+1 == maxDiffs && d.now.files > maxDiffs {
			b.rows = b.rows[:first+min(n, mostDiff)]
			b.muted("⋯ it goes on; " + keys.First(intent.Read{}, keys.Reading) + " opens all of it in your pager")
			return
		}
	}
}

// State is an action's state: a mark and words, each with its look.
type State struct {
	Glyph string
	Mark  themes.Token
	Words string
	Token themes.Token
}

// ActionDetails tells of an action. The function says what it is now, so that
// the dialog stays right while the action goes on.
func ActionDetails(n int, get func() (api.Action, bool), applies func() []api.Apply, describe func(api.Action) State) *Details {
	d := &Details{Title: fmt.Sprintf("Action #%d", n), Action: n, unread: "reading the differences…"}
	if a, ok := get(); ok {
		d.is(a)
	}
	d.build = func(b *paper, now time.Time) {
		a, ok := get()
		if !ok {
			b.muted("it is no longer known")
			return
		}
		st := describe(a)
		d.Title = fmt.Sprintf("%s #%d", a.Kind.Title(), n)
		d.Glyph, d.Token = st.Glyph, st.Mark
		b.command(a.Title)
		b.gap()
		b.factIn("state", st.Words, st.Token)
		if a.Judged() {
			b.fact("verdict", strings.TrimSuffix(string(a.Verdict)+" by "+a.By, " by "))
		}
		b.fact("rule", a.Rule)
		b.fact("reason", a.Reason)
		b.fact("started", a.StartedAt.Local().Format("15:04:05"))
		if !a.EndedAt.IsZero() {
			b.fact("ended", a.EndedAt.Local().Format("15:04:05"))
		}
		d.is(a)
		if d.changed = a.Files > 0; d.changed {
			words := paint.Files(a.Files)
			if a.Added+a.Removed > 0 {
				words += fmt.Sprintf(", +%d −%d lines", a.Added, a.Removed)
			}
			b.fact("changes", words+"; "+keys.First(intent.Read{}, keys.Reading)+" opens the diff in your pager")
		}
		if e := a.Effects; e != nil {
			k, name := themes.Surface, "did"
			if e.Grave {
				k = themes.Warn
			}
			for _, w := range e.Words {
				b.factIn(name, w, k)
				name, k = "", themes.Surface
			}
		}
		if c := a.Claim; c != nil {
			b.fact("agent says", c.Words())
		}
		if e := a.Effects; e != nil && e.Committed != "" {
			b.fact("committed", "“"+e.Committed+"”")
		}
		for _, x := range applies() {
			if len(x.Selection.Actions) > 0 && !slices.Contains(x.Selection.Actions, n) || slices.Contains(x.Selection.Without, n) {
				continue
			}
			b.fact("apply "+strconv.FormatInt(x.ID, 10), applyWords(x))
			for _, c := range x.Checks {
				words, k := checkWords(c)
				b.factIn("", words+c.Command, k)
			}
		}
		if a.Shared {
			words := "others ran meanwhile, so some of these changes may be theirs"
			if len(a.SharedWith) > 0 {
				words += ": " + api.Numbered(a.SharedWith)
			}
			b.factIn("", words, themes.Warn)
		}
		if a.LeftRunning > 0 {
			b.factIn("left", paint.Count(a.LeftRunning, "process goes on", "processes go on"), themes.Warn)
		}
		if a.Before != 0 {
			b.factIn("roll back", "checkpoint "+strconv.FormatInt(a.Before, 10)+" is from just before it", themes.SurfaceMuted)
		}
		if d.changed {
			d.changes(b)
		}
		b.gap()
		d.programs(b, now)
	}
	return d
}

// programs adds those that it started, as they stood at a moment.
func (d *Details) programs(b *paper, now time.Time) {
	by := slices.IndexFunc(d.execs, func(e api.Exec) bool { return e.At.After(now) })
	if by < 0 {
		by = len(d.execs)
	}
	switch {
	case d.problem != "":
		b.say("! "+d.problem, themes.Warn)
		return
	case !d.loaded:
		b.muted("reading the programs it started…")
		return
	case len(d.execs) == 0:
		b.muted("it started no programs")
		return
	case by == 0:
		b.muted("it hasn't started a program yet")
		return
	}
	b.muted(paint.Count(by, "program", "programs") + " started")
	const most = 2000
	for i, e := range d.execs[:by] {
		if i == most {
			b.muted(fmt.Sprintf("⋯ and %d more", by-most))
			return
		}
		if e.EndedAt.After(now) {
			e.Exit = nil
		}
		glyph, k, right := "✓", themes.OK, e.Exit.Words()
		switch {
		case e.Failure != "":
			glyph, k, right = "!", themes.Warn, e.Failure
		case e.Verdict == api.Deny:
			glyph, k, right = "✗", themes.Denied, "denied"
		case e.Exit == nil:
			glyph, k = "▸", themes.Running
		case e.Exit.Failed():
			glyph, k = "✗", themes.Fail
		}
		line := paint.Clean(strings.Join(e.Argv, " "))
		line = b.short(line, max(10, b.width-12-paint.Width(b.dst, right)))
		b.line(text{glyph + " ", k}, text{fmt.Sprintf("%7d  ", e.Pid), themes.SurfaceMuted}, text{line, themes.Surface}, text{"  " + right, themes.SurfaceMuted})
	}
}

// AttemptDetails tells of attempts at one destination.
func AttemptDetails(title string, attempts []api.Attempt) *Details {
	d := &Details{Title: title}
	d.build = func(b *paper, _ time.Time) {
		for i, a := range slices.Backward(attempts) {
			k, word := themes.OK, "✓ allowed"
			switch {
			case a.GaveUp():
				k, word = themes.Muted, "∅ gave up before an answer"
			case a.Verdict == api.Deny:
				k, word = themes.Denied, "✗ denied"
			case a.Verdict == api.Ask:
				k, word = themes.Held, "◆ held"
			}
			b.line(text{word, k}, text{"  " + a.At.Local().Format("15:04:05.000"), themes.Surface})
			b.fact("  rule", a.Rule)
			if i == len(attempts)-1 {
				b.fact("  change", howToChange(a))
			}
			b.factIn("  failure", a.Failure, themes.Warn)
			b.fact("  program", program(a))
			b.fact("  address", a.Address)
			b.fact("  resolved", a.Resolved)
			words := fmt.Sprintf("%s out, %s in, %s", paint.Bytes(a.Sent), paint.Bytes(a.Received), paint.Took(a.Duration))
			if a.Open {
				words += ", still open"
			}
			b.fact("  traffic", words)
			if a.Credential != "" {
				b.fact("  looked into", fmt.Sprintf("for the credential %s: %s passed on, %d refused", a.Credential, paint.Count(a.Requests, "request", "requests"), a.Refused))
			}
			for _, r := range a.Refusals {
				b.factIn("  refused", fmt.Sprintf("%s %s: %s", r.Method, r.Path, r.Why), themes.Warn)
			}
			if a.Action != 0 {
				b.fact("  action", "#"+strconv.Itoa(a.Action))
			}
			b.gap()
		}
	}
	return d
}

// DeniedForGood says whether a rule denies it that no rule of the session outranks, as
// its own newest one does.
func DeniedForGood(a api.Attempt) bool {
	return a.Verdict == api.Deny && strings.HasPrefix(a.Rule, "deny ") && !strings.HasSuffix(a.Rule, "(this session)")
}

// howToChange says how what was denied, or was let through by no rule and failed, as a
// port of this machine does without one, can be let through the next time; else "".
func howToChange(a api.Attempt) string {
	switch {
	case a.AllowedWithoutRule() && a.Failure != "" && a.Pattern() != "":
		return "press A in Network: a rule for it"
	case a.Verdict != api.Deny:
		return ""
	case DeniedForGood(a):
		return "what one rule denies no other allows: change it where it stands"
	case a.Protocol != "tcp" && a.Protocol != "udp" && a.Protocol != "icmp":
		return ""
	}
	return "press a in Network: allowed from its next try on, in this session; A makes it a rule; stepbox allow does, too"
}

func program(a api.Attempt) string {
	if a.Program == "" && a.Pid == 0 {
		return ""
	}
	return fmt.Sprintf("%s (process %d)", cmp.Or(a.Program, "—"), a.Pid)
}

// SessionFacts tells what holds for a session.
func SessionFacts(get func() api.Session, used *state.History) *Details {
	d := &Details{facts: true}
	d.build = func(b *paper, _ time.Time) {
		s, blank := get(), len(b.rows)
		d.Title = "Session " + paint.Clean(s.Name)
		for _, w := range s.Warnings {
			b.say("⚠ "+w, themes.Warn)
		}
		if s.Git != "" {
			b.say("⚠ "+s.Git, themes.Warn)
		}
		if len(b.rows) > blank {
			b.gap()
		}
		b.fact("command", s.Command)
		b.fact("agent", s.Agent)
		b.fact("folder", s.Workspace)
		b.fact("id", s.ID)
		b.fact("started", s.StartedAt.Local().Format("2006-01-02 15:04:05"))
		if s.Live() {
			b.usage(s, used, d.plain)
		}
		b.fact("mode", string(s.Mode)+": "+ModeWords(s.Mode))
		b.fact("questions", s.Asking.Words())
		b.fact("limits", cmp.Or(paint.Limits(s.Limits), "none"))
		b.fact("enforced by", cmp.Or(s.Limits.Source, "—"))
		b.fact("hosts", hosts(s))
		for _, c := range s.Credentials {
			b.fact("credential", c.Words())
		}
		for _, p := range s.Spend {
			b.fact("spent", paint.Spend(p))
		}
		b.fact("hidden", cmp.Or(strings.Join(s.Hidden, ", "), "nothing"))
		for _, d := range s.Dirs {
			b.fact("folder", api.Escape(d.Path)+map[bool]string{true: ": what is written there stays in the session, without review"}[d.Write])
		}
		for _, p := range s.Ports {
			b.fact("published", fmt.Sprintf("port %d at %s", p.Port, p.URL()))
		}
	}
	return d
}

// hosts says which destinations are let through without a question.
func hosts(s api.Session) string {
	switch {
	case s.Mode == api.ModeWatch:
		return "all: watch mode lets through what it records"
	case len(s.Hosts) > 0:
		return strings.Join(s.Hosts, ", ")
	case s.Asking.On == api.OnAskDeny:
		return "none named: what no rule allows is denied, as nobody is asked"
	}
	return "none named: what no rule decides is asked about"
}

// ModeWords says what a mode does.
func ModeWords(m api.Mode) string {
	switch m {
	case api.ModeStep:
		return "hold every action, but what you let the agent start itself"
	case api.ModePolicy:
		return "rules decide: allow, ask or deny"
	case api.ModeWatch:
		return "let all pass, record all"
	}
	return "unknown"
}
