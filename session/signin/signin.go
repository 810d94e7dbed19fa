// Package signin finds, on an agent's screen, the address of a page for signing in that
// leads back to a port of its own, as OAuth's native applications have it (RFC 8252). The
// text is hostile: what is found is only ever offered to a person.
package signin

import (
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

// Page is where a person signs in.
type Page struct {
	URL  string // https, of at most maxURL bytes, printable ASCII
	Host string
	Port int // that it leads back to
}

const (
	maxURL  = 4096
	maxHost = 80 // a longer name begins as any site's, and where it ends isn't seen
	maxSeen = 8  // addresses that are looked at
)

// Find looks for the last one on a screen, given by its rows; the zero Page is none. An
// address goes on in the next row where it fills the one that it is in.
func Find(rows []string) (found Page) {
	wide := 0
	for _, r := range rows {
		wide = max(wide, len(r))
	}
	for i, seen := 0, 0; i < len(rows) && seen < maxSeen; i++ {
		_, rest, ok := strings.Cut(rows[i], "https://")
		if !ok {
			continue
		}
		seen++
		for n := i; n+1 < len(rows) && len(rows[n]) == wide && len(rest) < maxURL; n++ {
			rest += rows[n+1]
		}
		if end := strings.IndexFunc(rest, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune("\"<>\\^`{|}", r) }); end >= 0 {
			rest = rest[:end]
		}
		if p := page("https://" + rest); p.Port != 0 {
			found = p
		}
	}
	return found
}

// page is what an address leads to; the zero Page is nothing of that kind.
func page(text string) Page {
	u, err := url.Parse(text)
	if err != nil || len(text) > maxURL || u.User != nil || u.Hostname() == "" || len(u.Hostname()) > maxHost {
		return Page{}
	}
	back, err := url.Parse(u.Query().Get("redirect_uri"))
	if err != nil || back.Scheme != "http" {
		return Page{}
	}
	if addr, err := netip.ParseAddr(back.Hostname()); back.Hostname() != "localhost" && (err != nil || !addr.IsLoopback()) {
		return Page{}
	}
	port, err := strconv.ParseUint(back.Port(), 10, 16)
	if err != nil || port == 0 {
		return Page{}
	}
	return Page{URL: text, Host: u.Hostname(), Port: int(port)}
}
