package dialog

import (
	"testing"

	"stepbox/session/api"
)

// A mode in which less is held is asked about; one that holds as much or more isn't.
func TestConfirmMode(t *testing.T) {
	for _, c := range []struct {
		from, to api.Mode
		asks     bool
	}{
		{api.ModeStep, api.ModePolicy, true},
		{api.ModeStep, api.ModeWatch, true},
		{api.ModePolicy, api.ModeWatch, true},
		{api.ModeStep, api.ModeStep, false},
		{api.ModePolicy, api.ModeStep, false},
		{api.ModeWatch, api.ModePolicy, false},
	} {
		if got := ConfirmMode(c.from, c.to) != nil; got != c.asks {
			t.Errorf("%s to %s asks: %v", c.from, c.to, got)
		}
	}
}
