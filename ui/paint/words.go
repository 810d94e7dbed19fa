package paint

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/session/api"
)

// Failed says why a request failed; "" when it didn't.
func Failed(err error) string {
	if err == nil {
		return ""
	}
	if p := (*api.Problem)(nil); errors.As(err, &p) {
		switch p.Code {
		case api.CodeDecided:
			return "someone else answered first"
		case api.CodeStale:
			return "what is held isn't what you saw any more: look again"
		case api.CodeGone:
			return "nothing is held any more: what asked went away"
		case api.CodeNotLive:
			return "the session has ended"
		}
		return Clean(p.Message)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return "no answer in time"
	}
	return Clean(err.Error())
}

// Clock writes a span of time as MM:SS, or H:MM:SS from an hour on.
func Clock(d time.Duration) string {
	s := max(0, int64(d/time.Second))
	if s < 3600 {
		return fmt.Sprintf("%02d:%02d", s/60, s%60)
	}
	return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
}

// Long writes a span of time as HH:MM:SS.
func Long(d time.Duration) string {
	s := max(0, int64(d/time.Second))
	return fmt.Sprintf("%02d:%02d:%02d", s/3600, s/60%60, s%60)
}

// Took writes how long something took, short.
func Took(d time.Duration) string {
	switch {
	case d < 0:
		return "0s"
	case d < time.Second:
		return strconv.Itoa(int(d/time.Millisecond)) + "ms"
	case d < 10*time.Second:
		return strconv.FormatFloat(float64(d/(100*time.Millisecond))/10, 'f', 1, 64) + "s"
	case d < time.Minute:
		return strconv.Itoa(int(d/time.Second)) + "s"
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d/time.Minute), int(d/time.Second)%60)
	}
	return fmt.Sprintf("%dh%02dm", int(d/time.Hour), int(d/time.Minute)%60)
}

// Ago writes when something was, for lists.
func Ago(d time.Duration) string {
	switch {
	case d < time.Minute:
		return "just now"
	case d < time.Hour:
		return strconv.Itoa(int(d/time.Minute)) + " min ago"
	case d < 24*time.Hour:
		return strconv.Itoa(int(d/time.Hour)) + " h ago"
	case d < 48*time.Hour:
		return "yesterday"
	}
	return strconv.Itoa(int(d/(24*time.Hour))) + " days ago"
}

// Bytes writes a size in at most four characters and a unit.
func Bytes(n int64) string { return short(n, 1024) }

// Thousands writes a number in at most four characters, as 12k.
func Thousands(n int64) string { return short(n, 1000) }

// Spend writes what was spent at a host.
func Spend(s api.Spend) string {
	words := fmt.Sprintf("%s: %d requests", s.Host, s.Requests)
	if s.Input+s.Output > 0 {
		words += fmt.Sprintf(", %d tokens in (%d of them cached), %d out", s.Input, s.Cached, s.Output)
	}
	return words
}

// short writes a number in at most three digits and, from unit on, a letter.
func short(n, unit int64) string {
	if n < unit {
		return strconv.FormatInt(max(0, n), 10)
	}
	f, units := float64(n), "kMGTPE"
	for i := 0; ; i++ {
		f /= float64(unit)
		if f < 999.5 || i == len(units)-1 {
			if f < 9.95 && f != float64(int64(f)) {
				return strconv.FormatFloat(f, 'f', 1, 64) + units[i:i+1]
			}
			return strconv.FormatFloat(f, 'f', 0, 64) + units[i:i+1]
		}
	}
}

// Count writes a number with the noun that goes with it.
func Count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}

// Files is a number of files in words.
func Files[N int | int64](n N) string { return Count(int(n), "file", "files") }

// Limits says which bounds are in force; "": none.
func Limits(l api.Limits) string {
	var parts []string
	if l.Memory > 0 {
		parts = append(parts, "memory "+Bytes(l.Memory))
	}
	if l.CPUs > 0 {
		parts = append(parts, fmt.Sprintf("cpus %g", l.CPUs))
	}
	if l.Pids > 0 {
		parts = append(parts, fmt.Sprintf("pids %d", l.Pids))
	}
	if l.Terminals > 0 {
		parts = append(parts, fmt.Sprintf("terminals %d", l.Terminals))
	}
	if l.Disk > 0 {
		parts = append(parts, "disk "+Bytes(l.Disk))
	}
	if l.WallTime > 0 {
		parts = append(parts, "wall time "+l.WallTime.String())
	}
	return strings.Join(parts, ", ")
}

// Reach is where a connection that is asked about leads, as a person would write it.
func Reach(c *api.Connection) string {
	if c.Host == "" {
		return "many destinations"
	}
	out := Clean(c.Host)
	if c.Port != 0 {
		out = net.JoinHostPort(out, strconv.Itoa(c.Port))
	}
	if c.Protocol != "" && c.Protocol != "tcp" {
		out += " " + Clean(c.Protocol)
	}
	return out
}

// why is what a rule's text says in plain words, and where it stands; all of the text where
// it says nothing so.
func why(rule string) string {
	if _, why, ok := strings.Cut(rule, ": "); ok && strings.TrimSpace(why) != "" {
		return why
	}
	return rule
}

// Reason is a rule's text in so many columns: what it says in plain words where there
// isn't room for all.
func Reason(dst uv.Screen, rule string, room int) string {
	if Width(dst, rule) <= room {
		return rule
	}
	return why(rule)
}

// who is the name of the program that makes a connection.
func who(program string) string {
	program = Clean(program)
	if program = program[strings.LastIndexByte(program, '/')+1:]; program == "" {
		return "?"
	}
	return program
}

// WhoTo is both: what a row says of a connection that is asked about.
func WhoTo(c *api.Connection) string {
	if c.Host == "" && c.Program == "" {
		return Reach(c)
	}
	return who(c.Program) + " → " + Reach(c)
}

// Wants is what a row says of a question that is about something beside the actions.
func Wants(q api.Question) string {
	if q.Connection != nil {
		return WhoTo(q.Connection)
	}
	return q.Title
}
