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
	build func(dst uv.Screen, width int, now time.Time) []row
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

func (d *Details) Draw(dst uv.Screen, area uv.Rectangle, f paint.Frame) *tea.Cursor {
	width := d.measure(area, 116)
	d.plain = f.P.Plain()
	rows := append([]row{{}}, d.build(dst, width, f.Now)...)
	rows = append(rows, row{})
	title := []text{{d.Title, themes.Strong}}
	if d.Glyph != "" {
		title = append([]text{{d.Glyph + " ", d.Token}}, title...)
	}
	hints := Foot(keys.Reading, nil)
	if d.facts {
		hints = slices.DeleteFunc(hints, func(h paint.Hint) bool { return h.Key == keys.First(intent.TakeOut{}, keys.Reading) })
	}
	if len(rows)+d.chrome(1, false) <= area.Dy() {
		hints = slices.DeleteFunc(hints, func(h paint.Hint) bool { return h.Key == keys.First(intent.Page{By: 1}, keys.Reading) })
	}
	d.draw(dst, area, f, title, rows, hints, text{})
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

// adder adds facts to rows, but for those without a value.
func adder(dst uv.Screen, rows *[]row, width int) func(name, value string, k themes.Token) {
	return func(name, value string, k themes.Token) {
		if value != "" {
			*rows = append(*rows, pair(dst, name, value, width, k)...)
		}
	}
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
func (d *Details) changes(dst uv.Screen, width int) (out []row) {
	if d.unread != "" {
		return append(out, row{}, muted(d.unread))
	}
	for i, f := range d.diffs {
		if out = append(out, differences(dst, []api.FileDiff{f}, false, width, mostDiff)...); len(out) > mostDiff || i+1 == maxDiffs && d.now.files > maxDiffs {
			return append(out[:min(len(out), mostDiff)], muted("⋯ it goes on; "+keys.First(intent.Read{}, keys.Reading)+" opens all of it in your pager"))
		}
	}
	return out
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
	d.build = func(dst uv.Screen, width int, now time.Time) []row {
		a, ok := get()
		if !ok {
			return []row{muted("it is no longer known")}
		}
		st := describe(a)
		d.Title = fmt.Sprintf("%s #%d", a.Kind.Title(), n)
		d.Glyph, d.Token = st.Glyph, st.Mark
		out := append(command(dst, a.Title, width), row{})
		add := adder(dst, &out, width)
		add("state", st.Words, st.Token)
		if a.Judged() {
			add("verdict", strings.TrimSuffix(string(a.Verdict)+" by "+a.By, " by "), themes.Surface)
		}
		add("rule", a.Rule, themes.Surface)
		add("reason", a.Reason, themes.Surface)
		add("started", a.StartedAt.Local().Format("15:04:05"), themes.Surface)
		if !a.EndedAt.IsZero() {
			add("ended", a.EndedAt.Local().Format("15:04:05"), themes.Surface)
		}
		d.is(a)
		if d.changed = a.Files > 0; d.changed {
			words := paint.Count(a.Files, "file", "files")
			if a.Added+a.Removed > 0 {
				words += fmt.Sprintf(", +%d −%d lines", a.Added, a.Removed)
			}
			add("changes", words+"; "+keys.First(intent.Read{}, keys.Reading)+" opens the diff in your pager", themes.Surface)
		}
		if e := a.Effects; e != nil {
			k, name := themes.Surface, "did"
			if e.Grave {
				k = themes.Warn
			}
			for _, w := range e.Words {
				add(name, w, k)
				name, k = "", themes.Surface
			}
		}
		if c := a.Claim; c != nil {
			add("agent says", c.Words(), themes.Surface)
		}
		if e := a.Effects; e != nil && e.Committed != "" {
			add("committed", "“"+e.Committed+"”", themes.Surface)
		}
		for _, x := range applies() {
			if len(x.Selection.Actions) > 0 && !slices.Contains(x.Selection.Actions, n) || slices.Contains(x.Selection.Without, n) {
				continue
			}
			add("apply "+strconv.FormatInt(x.ID, 10), applyWords(x), themes.Surface)
			for _, c := range x.Checks {
				words, k := checkWords(c)
				add("", words+c.Command, k)
			}
		}
		if a.Shared {
			words := "others ran meanwhile, so some of these changes may be theirs"
			if len(a.SharedWith) > 0 {
				words += ": " + api.Numbered(a.SharedWith)
			}
			add("", words, themes.Warn)
		}
		if a.LeftRunning > 0 {
			add("left", paint.Count(a.LeftRunning, "process goes on", "processes go on"), themes.Warn)
		}
		if a.Before != 0 {
			add("roll back", "checkpoint "+strconv.FormatInt(a.Before, 10)+" is from just before it", themes.SurfaceMuted)
		}
		if d.changed {
			out = append(out, d.changes(dst, width)...)
		}
		out = append(out, row{})
		return append(out, d.execRows(dst, width, now)...)
	}
	return d
}

// execRows are the programs as they stood at a moment.
func (d *Details) execRows(dst uv.Screen, width int, now time.Time) []row {
	by := slices.IndexFunc(d.execs, func(e api.Exec) bool { return e.At.After(now) })
	if by < 0 {
		by = len(d.execs)
	}
	switch {
	case d.problem != "":
		return wrapped(dst, "! "+d.problem, width, themes.Warn)
	case !d.loaded:
		return []row{muted("reading the programs it started…")}
	case len(d.execs) == 0:
		return []row{muted("it started no programs")}
	case by == 0:
		return []row{muted("it hasn't started a program yet")}
	}
	out := []row{muted(paint.Count(by, "program", "programs") + " started")}
	const most = 2000
	for i, e := range d.execs[:by] {
		if i == most {
			out = append(out, muted(fmt.Sprintf("⋯ and %d more", by-most)))
			break
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
		room := width - 12 - paint.Width(dst, right)
		line = paint.Shorten(dst, line, max(10, room))
		out = append(out, row{spans: []text{
			{glyph + " ", k}, {fmt.Sprintf("%7d  ", e.Pid), themes.SurfaceMuted}, {line, themes.Surface}, {"  " + right, themes.SurfaceMuted},
		}})
	}
	return out
}

// AttemptDetails tells of attempts at one destination.
func AttemptDetails(title string, attempts []api.Attempt) *Details {
	d := &Details{Title: title}
	d.build = func(dst uv.Screen, width int, _ time.Time) []row {
		var out []row
		for i := len(attempts) - 1; i >= 0; i-- {
			a := attempts[i]
			add := adder(dst, &out, width)
			k, word := themes.OK, "✓ allowed"
			switch {
			case a.GaveUp():
				k, word = themes.Muted, "∅ gave up before an answer"
			case a.Verdict == api.Deny:
				k, word = themes.Denied, "✗ denied"
			case a.Verdict == api.Ask:
				k, word = themes.Held, "◆ held"
			}
			out = append(out, row{spans: []text{
				{word, k}, {"  " + a.At.Local().Format("15:04:05.000"), themes.Surface},
			}})
			add("  rule", a.Rule, themes.Surface)
			if i == len(attempts)-1 {
				add("  change", howToChange(a), themes.Surface)
			}
			add("  failure", a.Failure, themes.Warn)
			add("  program", program(a), themes.Surface)
			add("  address", a.Address, themes.Surface)
			add("  resolved", a.Resolved, themes.Surface)
			words := fmt.Sprintf("%s out, %s in, %s", paint.Bytes(a.Sent), paint.Bytes(a.Received), paint.Took(a.Duration))
			if a.Open {
				words += ", still open"
			}
			add("  traffic", words, themes.Surface)
			if a.Credential != "" {
				add("  looked into", fmt.Sprintf("for the credential %s: %s passed on, %d refused", a.Credential, paint.Count(a.Requests, "request", "requests"), a.Refused), themes.Surface)
			}
			for _, r := range a.Refusals {
				add("  refused", fmt.Sprintf("%s %s: %s", r.Method, r.Path, r.Why), themes.Warn)
			}
			if a.Action != 0 {
				add("  action", "#"+strconv.Itoa(a.Action), themes.Surface)
			}
			out = append(out, row{})
		}
		return out
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
	d.build = func(dst uv.Screen, width int, _ time.Time) []row {
		s := get()
		d.Title = "Session " + paint.Clean(s.Name)
		var out []row
		add := adder(dst, &out, width)
		for _, w := range s.Warnings {
			out = append(out, wrapped(dst, "⚠ "+w, width, themes.Warn)...)
		}
		if s.Git != "" {
			out = append(out, wrapped(dst, "⚠ "+s.Git, width, themes.Warn)...)
		}
		if len(out) > 0 {
			out = append(out, row{})
		}
		add("command", s.Command, themes.Surface)
		add("agent", s.Agent, themes.Surface)
		add("folder", s.Workspace, themes.Surface)
		add("id", s.ID, themes.Surface)
		add("started", s.StartedAt.Local().Format("2006-01-02 15:04:05"), themes.Surface)
		if s.Live() {
			out = append(out, usage(dst, s, used, width, d.plain)...)
		}
		add("mode", string(s.Mode)+": "+ModeWords(s.Mode), themes.Surface)
		if words := s.Asking.Words(); words != "" {
			add("questions", words, themes.Surface)
		}
		add("limits", cmp.Or(paint.Limits(s.Limits), "none"), themes.Surface)
		add("enforced by", cmp.Or(s.Limits.Source, "—"), themes.Surface)
		add("hosts", hosts(s), themes.Surface)
		for _, c := range s.Credentials {
			add("credential", c.Words(), themes.Surface)
		}
		for _, p := range s.Spend {
			add("spent", paint.Spend(p), themes.Surface)
		}
		add("hidden", cmp.Or(strings.Join(s.Hidden, ", "), "nothing"), themes.Surface)
		for _, d := range s.Dirs {
			add("folder", api.Escape(d.Path)+map[bool]string{true: ": what is written there stays in the session, without review"}[d.Write], themes.Surface)
		}
		for _, p := range s.Ports {
			add("published", fmt.Sprintf("port %d at %s", p.Port, p.URL()), themes.Surface)
		}
		return out
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
		return "hold every action that isn't housekeeping"
	case api.ModePolicy:
		return "rules decide: allow, ask or deny"
	case api.ModeWatch:
		return "let all pass, record all"
	}
	return "unknown"
}
