package export

import (
	"cmp"
	"crypto/sha256"
	_ "embed" // what the report is made of
	"encoding/base64"
	"fmt"
	"html"
	"strings"
	"time"

	"stepbox/session/api"
	"stepbox/store"
)

//go:embed report/report.css
var reportStyle string

//go:embed report/report.js
var reportScript string

// markup is what a page has as it stands here. Whatever else it is made of is text.
type markup string

// class is an element's, if it has one.
func class(name string) markup {
	if name == "" {
		return ""
	}
	return markup(` class="` + html.EscapeString(name) + `"`)
}

// Bounds of a report, so that a browser can show it. What is left out is said.
const (
	reportRows  = 5000
	reportFiles = 500
	reportLines = 20000
)

type (
	reportFact    struct{ Name, Text, Class string }
	reportSection struct {
		ID, Title string
		Heads     []string
	}
	reportCell struct {
		Text, Class string
		More        []string
		Head        string // of its column
	}
	reportRow struct {
		Ms     int64
		Offset string
		Cells  []reportCell
	}
	reportFile struct {
		Path, Words    string
		Open, Counted  bool
		Added, Removed int
		Lines          []reportCell
	}
)

// html writes a report that needs nothing but itself: the page may run its own script
// and style alone, by their hashes, and reach nothing. All text of the session goes
// through put's escaping, or as JSON that the script shows as text.
func (r *run) html() error {
	hash := func(s string) string {
		sum := sha256.Sum256([]byte(s))
		return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	}
	policy := "default-src 'none'; base-uri 'none'; form-action 'none'; script-src " + hash(reportScript) + "; style-src " + hash(reportStyle)
	r.head(policy)
	for _, section := range []func() error{r.player, r.actionRows, r.decisionRows, r.attemptRows, r.diffs, r.foot} {
		if err := section(); err != nil {
			return err
		}
	}
	_, err := r.out.WriteString("<script>" + reportScript + "</script>\n</body>\n</html>\n")
	return err
}

// put writes a piece of the page with texts in it, as fmt does. html/template would do so
// as well, but has the linker keep every method of every type: a seventh of the program,
// which each session's start copies. The writer keeps an error, for later.
func (r *run) put(piece markup, texts ...any) {
	for i, t := range texts {
		if _, ok := t.(markup); !ok {
			texts[i] = html.EscapeString(fmt.Sprint(t))
		}
	}
	fmt.Fprintf(r.out, string(piece), texts...)
}

func (r *run) head(policy string) {
	name := api.Escape(r.s.Name)
	r.put(`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="%s">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>%s – Stepbox session</title>
<style>%s</style>
</head>
<body>
<header>
<h1>%s</h1>
<p class="cmd">%s</p>
<nav><a href="#terminal">Terminal</a><a href="#actions">Actions</a><a href="#decisions">Decisions</a><a href="#network">Network</a><a href="#changes">Changes</a></nav>
<dl>
`, policy, name, markup(reportStyle), name, api.Escape(r.s.Command))
	for _, f := range r.facts() {
		r.put("<dt>%s</dt><dd%s>%s</dd>\n", f.Name, class(f.Class), api.Escape(f.Text))
	}
	r.put(`</dl>
</header>
<main>
<h2 id="terminal">Terminal</h2>
<figure id="player">
<pre id="screen" tabindex="0" aria-label="The terminal"></pre>
<div id="controls"><button id="play" type="button">Play</button><input id="bar" type="range" min="0" max="0" value="0" aria-label="Moment"><span id="clock"></span>
<select id="speed" aria-label="Speed"><option value="0.5">½×</option><option value="1" selected>1×</option><option value="2">2×</option><option value="4">4×</option><option value="16">16×</option></select></div>
</figure>
`)
}

// section begins one, with a table if that has a head.
func (r *run) section(s reportSection) {
	r.put("<h2 id=\"%s\">%s</h2>\n", s.ID, s.Title)
	if len(s.Heads) == 0 {
		return
	}
	r.put("<table><thead><tr>")
	for _, h := range s.Heads {
		r.put(`<th scope="col">%s</th>`, h)
	}
	r.put("</tr></thead><tbody>\n")
}

func (r *run) row(row *reportRow) error {
	r.put(`<tr><td class="n"><button class="at" type="button" data-at="%s">%s</button></td>`, row.Ms, row.Offset)
	for _, c := range row.Cells {
		head := markup("")
		if c.Text != "" {
			head = markup(` data-head="` + html.EscapeString(c.Head) + `"`)
		}
		r.put("<td%s%s>%s", class(c.Class), head, api.Escape(c.Text))
		for _, more := range c.More {
			r.put("<small>%s</small>", api.Escape(more))
		}
		r.put("</td>")
	}
	_, err := r.out.WriteString("</tr>\n")
	return err
}

func (r *run) note(text string) { r.put("<p class=\"dim\">%s</p>\n", text) }

func (r *run) file(f reportFile) error {
	open := markup("")
	if f.Open {
		open = " open"
	}
	r.put(`<details%s><summary><span class="cmd">%s</span> <span class="dim">%s</span>`, open, api.Escape(f.Path), api.Escape(f.Words))
	if f.Counted {
		r.put(` <span class="good">+%s</span> <span class="bad">−%s</span>`, f.Added, f.Removed)
	}
	r.put("</summary>\n<div class=\"diff cmd\">")
	for _, line := range f.Lines {
		r.put("<div%s>%s</div>", class(line.Class), line.Text)
	}
	_, err := r.out.WriteString("</div></details>\n")
	return err
}

func (r *run) facts() []reportFact {
	s := r.s
	outcome, class := string(s.State), ""
	switch {
	case s.Exit != nil && s.Exit.Code == 0 && s.Exit.Signal == "":
		outcome, class = "ended well", "good"
	case s.Exit != nil:
		outcome, class = "ended: "+s.Exit.Words(), "bad"
	case s.State == api.SessionInterrupted:
		class = "bad"
	}
	if s.Reason != "" {
		outcome += " (" + s.Reason + ")"
	}
	facts := []reportFact{
		{"Session", s.ID, ""}, {"Agent", s.Agent, ""}, {"Project", s.Workspace, ""},
		{"Started", s.StartedAt.UTC().Format("2006-01-02 15:04:05 MST"), ""},
	}
	if !s.EndedAt.IsZero() {
		facts = append(facts, reportFact{"Took", s.EndedAt.Sub(s.StartedAt).Round(time.Second / 10).String(), ""})
	}
	facts = append(facts, reportFact{"Outcome", outcome, class}, reportFact{"Rules", "mode " + string(s.Mode), ""})
	if s.Unapplied > 0 {
		facts = append(facts, reportFact{"Not applied", fmt.Sprintf("changed files that aren't in the project folder: %d", s.Unapplied), "warn"})
	}
	if s.Unreviewed > 0 {
		facts = append(facts, reportFact{"Not reviewed", fmt.Sprintf("actions whose changes were neither kept nor rolled back: %d", s.Unreviewed), "warn"})
	}
	if s.Commit != "" {
		facts = append(facts, reportFact{"Commit", s.Commit + " " + s.Branch, ""})
	}
	for _, w := range s.Warnings {
		facts = append(facts, reportFact{"Warning", w, "warn"})
	}
	return facts
}

// rowOf is a line of a table, which begins with a moment.
func (r *run) rowOf(at time.Time, cells ...reportCell) *reportRow {
	offset := max(0, at.Sub(r.s.StartedAt))
	return &reportRow{Ms: offset.Milliseconds(), Offset: clock(offset), Cells: cells}
}

func clock(d time.Duration) string {
	s := int(d.Seconds())
	return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
}

// rows writes a table of all resources of a kind, as far as they fit; row is nil for
// the agent's housekeeping.
func rows[T any](r *run, section reportSection, kind store.Kind, number func(T) int64, row func(T) *reportRow) error {
	r.section(section)
	n, more, upkeep := 0, 0, 0
	err := each(r, kind, number, func(v T) error {
		line := row(v)
		switch {
		case line == nil:
			upkeep++
			return nil
		case n == reportRows:
			more++
			return nil
		}
		n++
		for i := range line.Cells {
			line.Cells[i].Head = section.Heads[i+1]
		}
		return r.row(line)
	})
	if err == nil {
		_, err = r.out.WriteString("</tbody></table>\n")
	}
	var notes []string
	if n == 0 {
		notes = append(notes, "None.")
	}
	if more > 0 {
		notes = append(notes, fmt.Sprintf("%d more aren't listed; --format jsonl has all.", more))
	}
	if upkeep > 0 {
		notes = append(notes, fmt.Sprintf("The agent's housekeeping isn't listed (%d); --format jsonl has it.", upkeep))
	}
	if len(notes) > 0 {
		r.note(strings.Join(notes, " "))
	}
	return err
}

func (r *run) actionRows() error {
	section := reportSection{"actions", "Actions", []string{"When", "", "What", "Verdict", "Outcome", "Files"}}
	return rows(r, section, store.KindAction, func(a api.Action) int64 { return int64(a.N) }, func(a api.Action) *reportRow {
		if a.Housekeeping {
			return nil
		}
		what := reportCell{Text: a.Title, Class: "cmd"}
		if said := a.Said(); said != "" {
			what.More = append(what.More, "“"+said+"”")
		}
		if a.Effects != nil {
			what.More = append(what.More, a.Effects.Words...)
		}
		verdict := reportCell{Text: string(a.Verdict), More: []string{verdictWords(a)}}
		outcome := reportCell{Text: cmp.Or(a.Exit.Words(), string(a.State)), Class: "w"}
		if a.State == api.ActionDenied {
			verdict.Class = "bad"
		}
		if a.Exit != nil && (a.Exit.Code != 0 || a.Exit.Signal != "") {
			outcome.Class += " bad"
		}
		if w := string(a.Review); w != "" {
			outcome.More = append(outcome.More, w)
		}
		files := reportCell{Class: "w"}
		if a.Files > 0 {
			files.Text = fmt.Sprintf("%d (+%d −%d)", a.Files, a.Added, a.Removed)
		}
		return r.rowOf(a.StartedAt, reportCell{Text: fmt.Sprint(a.N), Class: "n"}, what, verdict, outcome, files)
	})
}

// verdictWords say what or who gave an action's verdict, and why.
func verdictWords(a api.Action) string {
	words := a.Rule
	if a.By != "" && a.By != "rule" {
		words = "by " + a.By
	}
	if a.Reason != "" {
		words += ": " + a.Reason
	}
	return words
}

func (r *run) decisionRows() error {
	section := reportSection{"decisions", "Decisions", []string{"When", "Action", "Answer", "By", "Reason"}}
	return rows(r, section, store.KindDecision, func(d api.Decision) int64 { return d.Question }, func(d api.Decision) *reportRow {
		class := ""
		if d.Answer == api.AnswerDeny || d.Answer == api.AnswerRollback {
			class = "bad"
		}
		return r.rowOf(d.At, reportCell{Text: fmt.Sprint(d.Action), Class: "n"}, reportCell{Text: string(d.Answer), Class: class},
			reportCell{Text: d.By}, reportCell{Text: d.Reason})
	})
}

func (r *run) attemptRows() error {
	section := reportSection{"network", "Network attempts", []string{"When", "Action", "Where to", "Program", "Verdict", "Out", "In"}}
	return rows(r, section, store.KindAttempt, func(a api.Attempt) int64 { return a.ID }, func(a api.Attempt) *reportRow {
		where := fmt.Sprintf("%s %s", a.Protocol, a.Host())
		if a.Port > 0 {
			where += fmt.Sprintf(":%d", a.Port)
		}
		verdict := reportCell{Text: string(a.Verdict), More: []string{strings.TrimSpace(a.Rule + " " + a.Failure)}}
		if a.Verdict == api.Deny {
			verdict.Class = "bad"
		}
		return r.rowOf(a.At, reportCell{Text: fmt.Sprint(a.Action), Class: "n"}, reportCell{Text: where, Class: "cmd"},
			reportCell{Text: a.Program, Class: "cmd"}, verdict, reportCell{Text: fmt.Sprint(a.Sent), Class: "n"}, reportCell{Text: fmt.Sprint(a.Received), Class: "n"})
	})
}

// diffs writes what the session changed, as far as it fits.
func (r *run) diffs() error {
	r.section(reportSection{ID: "changes", Title: "Changes"})
	files, lines, more := 0, 0, 0
	for d, err := range r.History.Diffs(r.ctx, r.s.ID, api.Scope{}) {
		switch {
		case err != nil:
			return err
		case d.Change.Group == "git":
			continue // git's own files
		case files == reportFiles || lines > reportLines:
			more++
			continue
		}
		files++
		f := r.fileOf(d, reportLines-lines)
		lines += len(f.Lines)
		f.Open = files <= 20
		if err := r.file(f); err != nil {
			return err
		}
	}
	switch {
	case files == 0:
		r.note("None.")
	case more > 0:
		r.note(fmt.Sprintf("%d more changed files aren't shown; --format patch has all.", more))
	}
	return nil
}

func (r *run) fileOf(d api.FileDiff, most int) reportFile {
	c := d.Change
	f := reportFile{Path: r.text(c.Path, "names of files"), Counted: c.Counted, Added: c.Added, Removed: c.Removed}
	words := []string{map[string]string{"A": "new", "D": "deleted", "R": "renamed from " + r.text(c.From, "names of files"), "T": "another kind of file"}[c.Status], r.text(c.Words, "names of files"), r.text(d.Note, "names of files")}
	f.Words = strings.Join(strings.Fields(strings.Join(words, " ")), " ")
	where := "changes of " + f.Path
	for _, h := range d.Hunks {
		if len(f.Lines) > most {
			f.Lines = append(f.Lines, reportCell{Text: "… the rest isn't shown", Class: "at"})
			break
		}
		f.Lines = append(f.Lines, reportCell{Text: fmt.Sprintf("@@ -%d,%d +%d,%d @@ %s", h.OldLine, h.OldCount, h.NewLine, h.NewCount, api.Escape(r.text(h.Section, where))), Class: "at"})
		texts := make([]string, len(h.Lines))
		for i, l := range h.Lines {
			texts[i] = l.Text
		}
		for i, text := range r.red.Lines(texts, where) {
			op := h.Lines[i].Op
			f.Lines = append(f.Lines, reportCell{Text: op + api.EscapeLine(text), Class: map[string]string{"+": "add", "-": "del"}[op]})
		}
	}
	return f
}

func (r *run) foot() error {
	last, err := r.last()
	if err != nil {
		return err
	}
	by := "Written by Stepbox " + cmp.Or(api.Build(), "of an unknown version") + "; recorded by " + cmp.Or(r.s.Stepbox, "an unknown version") + "."
	about := []string{by, fmt.Sprintf("Up to event %d of its record, whose hash is %s.", last.Seq, last.Hash)}
	for _, s := range r.red.Found() {
		about = append(about, fmt.Sprintf("Redacted: %d × %s in %s.", s.Count, s.Kind, s.Where))
	}
	r.put("</main>\n<footer><h2>About this report</h2>\n")
	for _, line := range about {
		r.put("<p class=\"dim cmd\">%s</p>\n", api.Escape(line))
	}
	r.put("</footer>\n")
	return nil
}
