package actions

import (
	"cmp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"stepbox/session/api"
	"stepbox/themes"
	"stepbox/ui/paint"
)

// fitting is Status, or the part of it that says most in so many columns.
func fitting(a api.Action, width int) string {
	s := Status(a)
	if i := strings.Index(s, " · "); i >= 0 && utf8.RuneCountInString(s) > width {
		if failed(a) {
			return s[:i]
		}
		return s[i+len(" · "):]
	}
	return s
}

// Glyph is the mark of an action's state, never without words beside it.
func Glyph(a api.Action) (string, themes.Token) {
	switch {
	case a.State == api.ActionHeld:
		return "◆", themes.Held
	case a.State == api.ActionDenied:
		return "✗", themes.Denied
	case a.State == api.ActionAbandoned:
		return "∅", themes.Muted
	case a.Review == api.ReviewRolledBack:
		return "↶", themes.Undone
	case a.State == api.ActionRunning:
		return "▸", themes.Running
	case failed(a):
		return "✗", themes.Fail
	}
	return "✓", themes.OK
}

func failed(a api.Action) bool { return a.Exit.Failed() }

// Status says an action's state in words.
func Status(a api.Action) string {
	switch a.State {
	case api.ActionHeld:
		return "HELD"
	case api.ActionDenied:
		return "denied"
	case api.ActionAbandoned:
		return "gone"
	case api.ActionRunning:
		return "running"
	}
	if a.Review == api.ReviewRolledBack {
		return string(a.Review)
	}
	words := cmp.Or(paint.Clean(a.Exit.Words()), "ended")
	switch a.Kind {
	case api.KindEdit:
		words = "edited"
	case api.KindCall:
		words = "yes"
	}
	switch {
	case a.LeftRunning > 0:
		return words + " · left " + strconv.Itoa(a.LeftRunning)
	case a.Review == api.ReviewOpen:
		return words + " · unreviewed"
	case a.Review == api.ReviewKept:
		return words + " · kept"
	}
	return words
}

// StatusToken is the look of an action's state in words.
func StatusToken(a api.Action) themes.Token {
	switch {
	case a.State == api.ActionDenied:
		return themes.Denied
	case a.State == api.ActionRunning:
		return themes.Running
	case a.State == api.ActionAbandoned:
		return themes.Muted
	case a.Review == api.ReviewRolledBack:
		return themes.Undone
	case failed(a):
		return themes.Fail
	case a.Review == api.ReviewOpen:
		return themes.Info
	}
	return themes.Muted
}

// took is how long the action ran, or has been running.
func took(a api.Action, now time.Time) string {
	start := a.ReleasedAt
	if start.IsZero() {
		start = a.StartedAt
	}
	switch {
	case a.State == api.ActionDenied || a.State == api.ActionAbandoned || start.IsZero():
		return ""
	case a.State == api.ActionRunning:
		return paint.Took(now.Sub(start).Truncate(time.Second))
	case a.EndedAt.IsZero() || a.Kind == api.KindEdit || a.Kind == api.KindCall:
		return ""
	}
	return paint.Took(a.EndedAt.Sub(start))
}
