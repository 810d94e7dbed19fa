package intercept

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// Credential is what requests to one host get. Exactly one of Header, Bearer, User and
// Query says how.
type Credential struct {
	Name string
	Host string // in lower case, without a dot at its end
	Port uint16

	Header string
	Bearer bool   // Authorization: Bearer
	User   string // Authorization: Basic
	Query  string

	Placeholder string // what requests may have in its place; "": nothing
	Value       string

	Methods   []string // that requests may have; none: DefaultMethods
	Paths     []string // globs; none: all
	WebSocket bool
}

// DefaultMethods are those that APIs use.
var DefaultMethods = []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions}

// Bounds on a value. Shorter ones would be found in answers by chance, longer ones don't
// fit the window in which they are looked for.
const (
	minValue    = 8
	maxValue    = 2000
	maxSpelling = 4000 // well below window
)

// CheckValue says what is wrong with a credential's value, without saying it.
func CheckValue(v string) error {
	switch {
	case v == "":
		return errors.New("it is empty")
	case len(v) < minValue || len(v) > maxValue:
		return fmt.Errorf("it has %d bytes: a credential has from %d to %d", len(v), minValue, maxValue)
	case !httpguts.ValidHeaderFieldValue(v) || strings.ContainsFunc(v, func(r rune) bool { return r <= ' ' || r > '~' }):
		return errors.New("it has spaces, line breaks or letters that no key has")
	}
	return nil
}

// authority is how the host is named in requests.
func (c *Credential) authority() string {
	if c.Port == 443 {
		return c.Host
	}
	return net.JoinHostPort(c.Host, strconv.Itoa(int(c.Port)))
}

// is says whether a request is for the host.
func (c *Credential) is(authority string) bool {
	host, port, err := net.SplitHostPort(authority)
	if err != nil {
		host, port = authority, "443"
	}
	return strings.EqualFold(host, c.Host) && port == strconv.Itoa(int(c.Port))
}

// put puts the real one on a request.
func (c *Credential) put(r *http.Request) {
	switch {
	case c.Query != "":
		r.URL.RawQuery = strings.TrimPrefix(r.URL.RawQuery+"&"+url.QueryEscape(c.Query)+"="+url.QueryEscape(c.Value), "&")
	case c.Header != "":
		r.Header.Set(c.Header, c.Value)
	case c.Bearer:
		r.Header.Set("Authorization", "Bearer "+c.Value)
	default:
		r.Header.Set("Authorization", "Basic "+c.basic())
	}
}

func (c *Credential) basic() string {
	return base64.StdEncoding.EncodeToString([]byte(c.User + ":" + c.Value))
}

// Spellings are what the real one looks like in texts.
func (c *Credential) Spellings() (out []string) {
	all := append(encoded(c.Value), c.Value, url.QueryEscape(c.Value), url.PathEscape(c.Value), strings.ReplaceAll(c.Value, "/", `\/`), base64.StdEncoding.EncodeToString([]byte(c.Value)))
	if quoted, err := json.Marshal(c.Value); err == nil {
		all = append(all, strings.Trim(string(quoted), `"`))
	}
	if c.User != "" {
		all = append(all, c.basic())
	}
	for _, s := range all {
		if len(s) <= maxSpelling && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	slices.SortFunc(out, func(a, b string) int { return len(b) - len(a) })
	return out
}

// encoded are what a value looks like in the base64 of any text that has it: how that
// begins and ends depends on what stands around it, and is left out.
func encoded(value string) (out []string) {
	for before := range 3 {
		text := append(make([]byte, before), value...)
		for _, e := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			begins, ends := (before*8+5)/6, len(text)*8/6
			out = append(out, e.EncodeToString(text)[begins:ends])
		}
	}
	return out
}

// stands says whether what a request carries is the placeholder, or nothing.
func (c *Credential) stands(v string) bool {
	is := func(s string) bool { return c.Placeholder != "" && s == c.Placeholder }
	scheme, rest, _ := strings.Cut(strings.TrimSpace(v), " ")
	rest = strings.TrimSpace(rest)
	switch {
	case rest == "":
		return scheme == "" || is(scheme) || slices.Contains([]string{"bearer", "basic", "token"}, strings.ToLower(scheme))
	case is(rest):
		return true
	case !strings.EqualFold(scheme, "basic"):
		return false
	}
	pair, err := base64.StdEncoding.DecodeString(rest)
	user, password, ok := strings.Cut(string(pair), ":")
	if err != nil || !ok {
		return false
	}
	// Some give the key as the user, without a password or with one that only says so.
	return is(password) || password == "" && (user == "" || user == c.User) || is(user) && (password == "" || password == "x-oauth-basic")
}
