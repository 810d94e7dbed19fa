package paint

import (
	"net"
	"strconv"
	"strings"

	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/session/api"
)

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
