package workbench

import (
	"fmt"

	tea "charm.land/bubbletea/v2"

	"stepbox/session/api"
	"stepbox/ui/dialog"
	"stepbox/ui/intent"
	"stepbox/ui/paint"
	"stepbox/ui/pane/network"
	"stepbox/ui/state"
)

// reaching is what the agent wants to reach: rows of what is asked about, whose keys
// answer, and of what was tried, whose keys make rules for the next try.
type reaching struct {
	*core
	pane  network.Pane
	rules *ruling
}

// question is the open question of the selected row.
func (r *reaching) question() (api.Question, bool) { return r.st.Question(r.pane.Question()) }

// tried is the selected row, where it isn't asked about.
func (r *reaching) tried() (network.Fold, bool) {
	f, ok := r.pane.Selected()
	return f, ok && f.Question == nil
}

// target is what keys in the list would decide now.
func (r *reaching) target() state.Target {
	if q, ok := r.question(); ok {
		return state.Target{Question: q.ID, Hash: r.st.Print(q.ID), Place: "network"}
	}
	if f, ok := r.tried(); ok {
		return attemptTarget(f, "attempt")
	}
	return state.Target{}
}

// attemptTarget names a row of what was tried. Its number is never a question's.
func attemptTarget(f network.Fold, place string) state.Target {
	return state.Target{Question: -f.IDs[0], Hash: f.Last.Pattern() + " " + string(f.Last.Verdict), Place: place}
}

// why says why keys make no rule of the selected row, or "".
func (r *reaching) why(i intent.Intent) string {
	f, ok := r.tried()
	if !ok {
		return "nothing was tried yet"
	}
	_, deny := i.(intent.Deny)
	_, always := i.(intent.Always)
	switch a := f.Last; {
	case !ofRules(i):
		return "it isn't held: a allows its next try, d denies it"
	case a.Verdict == api.Ask:
		return "nobody waits for this one any more"
	case a.Pattern() == "":
		return fmt.Sprintf("no rule can be made on %s", network.Destination(a))
	case !deny && dialog.DeniedForGood(a):
		return fmt.Sprintf("no rule outranks a denial: change it where it stands: %s", paint.Clean(a.Rule))
	case a.AllowedWithoutRule() && !deny:
		if always {
			return ""
		}
		return "let through without a rule: A makes one, d denies it from its next try on"
	case a.Verdict == api.Allow && !deny:
		return "it is allowed already: d denies it from its next try on"
	case a.Verdict == api.Deny && deny:
		return "it is denied already: a allows it from its next try on"
	}
	return ""
}

func ofRules(i intent.Intent) bool {
	switch i := i.(type) {
	case intent.Approve:
		return !i.Keep
	case intent.Always, intent.Deny:
		return true
	}
	return false
}

// rule makes a rule for the next try of the selected row: to allow it at once, for this
// session, or else one that is chosen.
func (r *reaching) rule(i intent.Intent) tea.Cmd {
	f, _ := r.tried()
	verdict := api.Allow
	switch i.(type) {
	case intent.Approve:
		return r.rules.make(api.Rule{Verdict: api.Allow, Host: f.Last.Pattern(), For: api.ExtentSession}, nil)
	case intent.Deny:
		verdict = api.Deny
	}
	r.rules.dialogs.Open(dialog.NewRule(network.Destination(f.Last), attemptTarget(f, "rule of an attempt"), verdict, wider(f.Last)))
	return nil
}

// wider are the rules that can be made of what was tried.
func wider(a api.Attempt) []api.Proposal {
	out := []api.Proposal{{Pattern: a.Pattern(), Means: "exactly this destination"}}
	if a.Name != "" && a.Name != dialog.ThisMachine && a.Protocol == "tcp" { // of this machine each port is named
		out = append(out, api.Proposal{Pattern: a.Name, Means: "every port of it, TCP"})
	}
	return out
}
