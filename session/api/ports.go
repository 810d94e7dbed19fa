package api

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Port is a server of the sandbox that this machine reaches.
type Port struct {
	Port        int       `json:"port"` // in the sandbox
	At          int       `json:"at"`   // of this machine's 127.0.0.1
	By          string    `json:"by,omitempty"`
	Until       time.Time `json:"until,omitzero"`        // when that ends, if before the session
	Connections int       `json:"connections,omitempty"` // so far, as of the last event
}

// URL is where a browser finds it.
func (p Port) URL() string { return fmt.Sprintf("http://localhost:%d", p.At) }

// Publishing asks for a port to be published.
type Publishing struct {
	Port    int           `json:"port"`
	At      int           `json:"at,omitempty"`      // of this machine; 0: the same
	Exactly bool          `json:"exactly,omitempty"` // not the next free one, where that is taken
	For     time.Duration `json:"for,omitempty"`     // in nanoseconds; 0: until the session ends
	By      string        `json:"by,omitempty"`
}

// ParsePort reads [AT:]PORT, or PORT[:AT] where AT comes after.
func ParsePort(text string, after bool) (p Publishing, err error) {
	form, first, second := "HOSTPORT:PORT", &p.At, &p.Port
	if after {
		form, first, second = "PORT:HOSTPORT", &p.Port, &p.At
	}
	a, b, both := strings.Cut(text, ":")
	if !both {
		b = a
	}
	for port, word := range map[*int]string{first: a, second: b} {
		n, bad := strconv.ParseUint(word, 10, 16)
		if *port = int(n); bad != nil || n == 0 {
			err = fmt.Errorf("%q isn't a port: use PORT or %s, from 1 to 65535", Escape(text), form)
		}
	}
	return p, err
}

// Publish has this machine reach a server of the sandbox.
func (c *Client) Publish(ctx context.Context, id string, p Publishing) (Port, error) {
	return fetch[Port](ctx, c, http.MethodPost, path(id, "ports"), p)
}

// Unpublish ends that.
func (c *Client) Unpublish(ctx context.Context, id string, port int) (Session, error) {
	return fetch[Session](ctx, c, http.MethodDelete, path(id, "ports"), Publishing{Port: port})
}
