package api

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

// Server is one of the agent's that isn't published.
type Server struct {
	Port    int    `json:"port"`              // of the sandbox's localhost
	Program string `json:"program,omitempty"` // its file's name, where that is known
}

// WebPage is what something in the sandbox wants opened in the person's browser. It may be
// any page: a person looks at its host first.
type WebPage struct {
	URL  string `json:"url"`            // https, or http of localhost; printable ASCII
	Host string `json:"host"`           // as it is looked up, in Punycode
	Port int    `json:"port,omitempty"` // of the sandbox's localhost, that it is at or leads back to (RFC 8252)
}

// errKind is said of what would run something, or be read on its way.
var errKind = errors.New("only https pages can be opened, and http ones of localhost")

// maxURL bounds a page's address, in bytes; maxHost its name: a longer one begins as any
// site's, and where it ends isn't seen.
const (
	maxURL  = 4096
	maxHost = 80
)

// ParseWebPage reads an address that a hostile program gave. What two programs might read
// as different addresses is refused, and so is each that runs something.
func ParseWebPage(text string) (WebPage, error) {
	if len(text) > maxURL {
		return WebPage{}, fmt.Errorf("the address has more than %d bytes", maxURL)
	}
	if !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r == 0x7f || r == '\\' || Escape(string(r)) != string(r) }) {
		return WebPage{}, errors.New("the address has characters that none may have")
	}
	u, err := url.Parse(text)
	switch {
	case err == nil && u.Scheme != "https" && u.Scheme != "http":
		return WebPage{}, errKind
	case err != nil || u.Hostname() == "" || u.User != nil:
		return WebPage{}, errors.New("it isn't the address of a page, without a user's name")
	}
	addr, err := netip.ParseAddr(u.Hostname())
	host, local := u.Host, addr.IsLoopback()
	if err != nil {
		name, err := idna.Lookup.ToASCII(u.Hostname())
		if err != nil {
			return WebPage{}, errors.New("its host's name can't be looked up")
		}
		host, local = strings.TrimSuffix(name+":"+u.Port(), ":"), name == "localhost"
		if twofold(name) {
			return WebPage{}, errors.New("its host's name is read as this machine's, or a number, by some programs alone")
		}
	} else if addr.Zone() != "" { // it can be any words, and browsers have none
		return WebPage{}, errors.New("its host's address has a zone")
	}
	if len(host) > maxHost {
		return WebPage{}, errors.New("its host's name is too long to be read")
	}
	port := 0
	if local {
		port = portOf(cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme]))
	} else if back, err := url.Parse(u.Query().Get("redirect_uri")); err == nil && back.Scheme == "http" {
		if a, err := netip.ParseAddr(back.Hostname()); back.Hostname() == "localhost" || err == nil && a.IsLoopback() {
			port = portOf(back.Port())
		}
	}
	if u.Scheme != "https" && (u.Scheme != "http" || !local || port == 0) {
		return WebPage{}, errKind
	}
	u.Host = host
	return WebPage{URL: plainURL(u.String()), Host: host, Port: port}, nil
}

// twofold says whether a name isn't one to every program: browsers take one that ends in a
// number for an address, such as 127.1, and all below localhost for that (RFC 6761, 6.3).
func twofold(name string) bool {
	trimmed := strings.TrimSuffix(name, ".")
	last := trimmed[strings.LastIndexByte(trimmed, '.')+1:]
	_, err := strconv.ParseUint(last, 0, 64)
	return name != "localhost" && last == "localhost" || err == nil || errors.Is(err, strconv.ErrRange) || last == "0x" || last != "" && strings.Trim(last, "0123456789") == ""
}

// portOf is a port by its number; 0: there is none such.
func portOf(text string) int {
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return 0
	}
	return int(n)
}

// plainURL writes what an address can't have as it is.
func plainURL(text string) string {
	var b strings.Builder
	for _, c := range []byte(text) {
		if c <= ' ' || c > '~' || strings.IndexByte("\"'<>\\^`{|}", c) >= 0 {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}
