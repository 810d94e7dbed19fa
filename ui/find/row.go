package find

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"stepbox/session/api"
)

// Is is how a row stands, and what it is: any of these.
type Is uint16

// What a row can be.
const (
	Denied Is = 1 << iota
	Held
	Failed
	Running
	Kept
	Unreviewed
	RolledBack
	Edit
	Command
	Connection
)

// states are the words for what a row can be.
var states = map[string]Is{
	"denied": Denied, "held": Held, "failed": Failed, "running": Running, "kept": Kept, "unreviewed": Unreviewed,
	"rolled back": RolledBack, "rolled-back": RolledBack, "edit": Edit, "command": Command, "connection": Connection,
}

// Row is what can be asked of a row of a list.
type Row struct {
	Can     Is       // what rows of its kind can be: words for all else are text
	Is      Is       // what it is
	N       int      // the action that it is, or is of; 0: of none
	Said    []string // what it says
	File    string
	Wrote   func(path string) bool // whether files with that in their paths were changed; nil: see File
	Hosts   []string
	Program string
	Port    int    // 0: it went to none
	Exit    *int   // nil: it hasn't ended, or isn't a command
	Letter  string // of a changed file
}

// OfAction is an action's row: whether it is held, where it tried to connect, and whether
// it changed files with a text in their paths.
func OfAction(a *api.Action, held bool, hosts []string, wrote func(path string) bool) Row {
	r := Row{Can: 1<<16 - 1, N: a.N, Said: []string{a.Title, a.Rule, a.Reason}, Hosts: hosts, Wrote: wrote}
	if a.Effects != nil {
		r.Said = append(r.Said, a.Effects.Words...)
	}
	r.Said = append(r.Said, a.Said())
	set := func(is Is, on bool) {
		if on {
			r.Is |= is
		}
	}
	if a.Exit != nil && a.Exit.Signal == "" {
		r.Exit = &a.Exit.Code
	}
	set(Held, held || a.State == api.ActionHeld)
	set(Denied, a.State == api.ActionDenied)
	set(Running, a.State == api.ActionRunning)
	set(Failed, a.Exit != nil && (a.Exit.Code != 0 || a.Exit.Signal != ""))
	set(Kept, a.Review == api.ReviewKept)
	set(Unreviewed, a.Review == api.ReviewOpen)
	set(RolledBack, a.Review == api.ReviewRolledBack)
	set(Edit, a.Kind == api.KindEdit)
	set(Command, a.Kind == api.KindCommand)
	set(Connection, len(hosts) > 0)
	return r
}

// OfAttempt is the row of an attempt.
func OfAttempt(a *api.Attempt) Row {
	r := Row{
		Can: Denied | Held | Failed | Running | Connection, Is: Connection, N: a.Action, Program: a.Program, Port: a.Port,
		Said: []string{a.Program, a.Protocol, a.Rule, a.Failure}, Hosts: []string{a.Host(), a.Resolved},
	}
	switch {
	case a.GaveUp():
	case a.Verdict == api.Deny:
		r.Is |= Denied
	case a.Verdict == api.Ask:
		r.Is |= Held
	case a.Failure != "":
		r.Is |= Failed
	}
	if a.Open {
		r.Is |= Running
	}
	return r
}

// OfChange is the row of a changed file.
func OfChange(c *api.Change) Row {
	return Row{File: c.Path, Letter: c.Status, Said: []string{c.From, c.Words, c.Type}}
}

// Has says whether a row has all that is asked for.
func (f Filter) Has(r *Row) bool {
	for i := range f.terms {
		if f.terms[i].has(r) == f.terms[i].not {
			return false
		}
	}
	return true
}

func (t *term) has(r *Row) bool {
	switch {
	case t.exit != "" && r.Can&Command != 0:
		return r.Exit != nil && (*r.Exit == t.n) == (t.exit == "=")
	case t.is&r.Can != 0:
		return t.is&r.Is != 0
	case t.kind != "" && r.Letter != "":
		return t.kind == r.Letter
	case t.n >= 0 && t.exit == "" && (r.Can != 0 || r.N != 0):
		return r.N == t.n && t.text[0] == '#' || r.Port == t.n && t.text[0] == ':' || r.Can&Connection == 0 && r.N == t.n || r.Can&Command != 0 && r.N == t.n
	}
	switch t.field {
	case "file":
		return t.in(r.File) || r.Wrote != nil && r.Wrote(t.text)
	case "host":
		return t.inAny(r.Hosts)
	case "program":
		return t.in(r.Program)
	case "port":
		return r.Port != 0 && t.text == strconv.Itoa(r.Port)
	}
	return t.in(r.File) || t.inAny(r.Said) || t.inAny(r.Hosts) || r.Wrote != nil && t.file() && r.Wrote(t.text)
}

// in says whether a text has it, in either case.
func (t *term) in(s string) bool { return s != "" && strings.Contains(strings.ToLower(s), t.text) }

func (t *term) inAny(all []string) bool {
	for _, s := range all {
		if t.in(s) {
			return true
		}
	}
	return false
}

// Hosts are where actions tried to connect.
func Hosts(attempts []api.Attempt) map[int][]string {
	out := map[int][]string{}
	for i := range attempts {
		if t := &attempts[i]; t.Action != 0 && !slices.Contains(out[t.Action], t.Host()) {
			out[t.Action] = append(out[t.Action], t.Host())
		}
	}
	return out
}

// Wrote is, for each text in paths that was asked for, which actions wrote such files.
type Wrote map[string][]int

// By says of an action's writing what a Row asks.
func (w Wrote) By(action int) func(path string) bool {
	return func(path string) bool {
		_, ok := slices.BinarySearch(w[path], action)
		return ok
	}
}

// mostHits is how many places are looked at for a path.
const mostHits = 1000

// Writers asks the record which actions of a session wrote files with texts in their
// paths. What it found out before it failed is told, too.
func Writers(ctx context.Context, find func(context.Context, api.Query) (api.FoundPage, error), session string, paths []string) (Wrote, error) {
	out := Wrote{}
	var failed error
	for _, p := range paths {
		out[p] = nil
		page, err := api.Searched(ctx, find, api.Query{Text: p, Session: session, Hits: mostHits})
		if err != nil {
			failed = err
			continue
		}
		for _, f := range page.Found {
			for _, h := range f.Hits { // of a long path only a part is told
				if h.Kind == api.HitPath && (strings.Contains(strings.ToLower(h.Text), p) || strings.Contains(h.Text, "…")) {
					out[p] = append(out[p], h.Action)
				}
			}
		}
		slices.Sort(out[p])
	}
	return out, failed
}
