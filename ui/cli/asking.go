package cli

import (
	"cmp"
	"time"

	"github.com/spf13/cobra"

	"stepbox/session/api"
)

// AskFlags say what becomes of a session's questions.
type AskFlags struct {
	On      string
	Timeout time.Duration
	Said    bool   // one of them was given, or the settings have one
	By      string // where the settings say what counts of it; "": a flag does, or nothing
}

func (f *AskFlags) Add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.On, "on-ask", string(api.OnAskWait), "what asks: wait for an answer, or deny it at once, whoever is attached")
	cmd.Flags().DurationVar(&f.Timeout, "ask-timeout", 0, "deny what nobody answered for this long; 0: never")
}

// Given notes whether a command was given one of them.
func (f *AskFlags) Given(cmd *cobra.Command) {
	f.Said = cmd.Flags().Changed("on-ask") || cmd.Flags().Changed("ask-timeout")
}

// Asking is what they say; the zero value where none was given.
func (f AskFlags) Asking() (api.Asking, error) {
	if !f.Said {
		return api.Asking{}, nil
	}
	a := api.Asking{On: api.OnAsk(f.On), Timeout: f.Timeout, By: f.By}
	switch {
	case a.Timeout < 0:
		return a, usage("--ask-timeout: %s", a.Fault())
	case f.On == "" || a.Fault() != "":
		return a, usage("--on-ask: %s", cmp.Or(a.Fault(), "use wait or deny"))
	}
	return a, nil
}
