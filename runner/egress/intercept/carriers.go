package intercept

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
	"golang.org/x/net/http/httpguts"
)

// headers are those that are known to carry credentials, in small letters.
var headers = []string{
	"authorization", "proxy-authorization", "cookie", "cookie2", "x-authorization",
	"x-api-key", "api-key", "apikey", "x-apikey", "x-goog-api-key", "ocp-apim-subscription-key", "anthropic-api-key", "openai-api-key",
	"x-auth-token", "x-access-token", "x-github-token", "x-goog-iam-authorization-token", "x-amz-security-token", "private-token", "job-token", "deploy-token", "npm-otp",
}

// endings are those of the names of further ones, which are many; what keeps forms from
// being forged isn't one.
var (
	endings = []string{"-token", "-api-key", "-apikey", "-authorization", "-secret", "-password"}
	forms   = []string{"csrf", "xsrf"}
)

// parameters are the same of queries.
var parameters = []string{"key", "api_key", "api-key", "apikey", "x-api-key", "access_token", "access-token", "auth_token", "oauth_token", "bearer_token", "private_token", "job_token", "client_secret",
	"token", "api_token", "auth", "password", "subscription-key", "sig", "x-amz-signature", "x-amz-security-token", "x-goog-signature",
	"httpheaders"} // the last is Google's, which has a request's headers in it

// overrides are headers that have some servers take a request for one of another method,
// and others those for another path.
var (
	overrides = []string{"x-http-method-override", "x-method-override", "x-http-method", "$httpmethod", "-method"} // the last two are Google's and Rails' parameters
	rewrites  = []string{"x-original-url", "x-rewrite-url", "x-forwarded-host", "x-host", "x-original-host", "forwarded"}
)

// protocols are WebSocket subprotocols that carry a credential behind a dot.
var protocols = []string{"openai-insecure-api-key.", "base64url.bearer.authorization.k8s.io."}

// plain is a header's name as the most lenient servers read it.
func plain(name string) string { return strings.ReplaceAll(strings.ToLower(name), "_", "-") }

// refusal is why a request isn't passed on.
type refusal struct {
	status int
	why    string
}

func refuse(status int, format string, a ...any) *refusal {
	return &refusal{status, fmt.Sprintf(format, a...)}
}

// check says why a request isn't passed on; nil when it is. What it says has nothing that
// the request had, but for names.
func (c *Credential) check(r *http.Request) *refusal {
	methods := c.methods()
	switch {
	case !c.is(r.Host) || len(r.Header.Values("Host")) > 0:
		return refuse(http.StatusMisdirectedRequest, "it is for another host than %s", c.authority())
	case !slices.Contains(methods, r.Method):
		return refuse(http.StatusMethodNotAllowed, "its method isn't one of %s", strings.Join(methods, ", "))
	case r.URL.Opaque != "" || !strings.HasPrefix(r.URL.Path, "/") && r.URL.Path != "*":
		// It would be written as it stands, and a server may take it for another authority.
		return refuse(http.StatusBadRequest, "its address is no path")
	case r.URL.User != nil:
		return refuse(http.StatusForbidden, "its address has a user in it")
	case !c.passes(r.URL):
		return refuse(http.StatusForbidden, "its path isn't one of those that the credential %s is for", c.Name)
	}
	for name, values := range r.Header {
		if slices.Contains(overrides, plain(name)) && slices.ContainsFunc(values, func(v string) bool { return !slices.Contains(methods, v) }) {
			return refuse(http.StatusMethodNotAllowed, "%s asks for another method", name)
		}
	}
	if why := c.upgrade(r); why != nil {
		return why
	}
	return c.foreign(r)
}

// methods are those that requests may have.
func (c *Credential) methods() []string {
	if len(c.Methods) == 0 {
		return DefaultMethods
	}
	return c.Methods
}

// passes says whether a path may be asked for. Where some may and some not, one that servers
// might read in two ways isn't let through.
func (c *Credential) passes(u *url.URL) bool {
	if len(c.Paths) == 0 {
		return true
	}
	escaped, segments := strings.ToLower(u.EscapedPath()), strings.Split(u.Path, "/")
	if strings.Contains(escaped, "%2f") || strings.Contains(escaped, "%5c") || strings.ContainsAny(u.Path, "\\;%") || strings.Contains(u.Path, "//") ||
		slices.Contains(segments, "..") || slices.Contains(segments, ".") {
		return false
	}
	return slices.ContainsFunc(c.Paths, func(p string) bool { return doublestar.MatchUnvalidated(p, u.Path) })
}

// upgrade says why a request to switch protocols isn't passed on.
func (c *Credential) upgrade(r *http.Request) *refusal {
	asked := r.Header.Values("Upgrade")
	switch {
	case len(asked) == 0 && !httpguts.HeaderValuesContainsToken(r.Header["Connection"], "upgrade"):
		return nil
	case len(asked) != 1 || !strings.EqualFold(asked[0], "websocket") || r.Method != http.MethodGet:
		return refuse(http.StatusForbidden, "it asks for another protocol")
	case !c.WebSocket:
		return refuse(http.StatusUpgradeRequired, "it asks for a WebSocket, which the credential %s isn't for", c.Name)
	}
	return nil
}

// foreign says that a request carries somebody else's credential.
func (c *Credential) foreign(r *http.Request) *refusal {
	for name, values := range r.Header {
		if c.carries(name) && slices.ContainsFunc(values, func(v string) bool { return !c.stands(v) }) {
			return refuse(http.StatusForbidden, "it carries a credential of its own in %s: only %s passes to %s", name, c.Name, c.Host)
		}
	}
	if names := strings.Join(r.Header.Values("Sec-Websocket-Protocol"), ","); slices.ContainsFunc(protocols, func(p string) bool { return strings.Contains(names, p) }) {
		return refuse(http.StatusForbidden, "it carries a credential of its own in Sec-Websocket-Protocol: leave it out there, it is put on")
	}
	if strings.Contains(r.URL.RawQuery, ";") {
		return refuse(http.StatusBadRequest, "its query can be read in two ways")
	}
	for pair := range strings.SplitSeq(r.URL.RawQuery, "&") {
		name, value, err := parameter(pair)
		switch {
		case err != nil:
			return refuse(http.StatusBadRequest, "its query can't be read")
		case slices.Contains(overrides, plain(name)) && !slices.Contains(c.methods(), value):
			return refuse(http.StatusMethodNotAllowed, "its parameter %s asks for another method", name)
		case c.asks(name) && !c.stands(value):
			return refuse(http.StatusForbidden, "it carries a credential of its own in its parameter %s: only %s passes to %s", name, c.Name, c.Host)
		}
	}
	return nil
}

func (c *Credential) carries(header string) bool {
	name := plain(header)
	in := func(s string) bool { return strings.Contains(name, s) }
	ends := func(s string) bool { return strings.HasSuffix("-"+name, s) }
	return slices.Contains(headers, name) || c.Header != "" && name == plain(c.Header) || slices.ContainsFunc(endings, ends) && !slices.ContainsFunc(forms, in)
}

func (c *Credential) asks(parameter string) bool {
	bare := strings.TrimPrefix(strings.ToLower(strings.TrimSpace(parameter)), "$") // Google's may have one
	bare, _, _ = strings.Cut(bare, "[")                                            // PHP's and Rails' lists
	return slices.Contains(parameters, bare) || c.Query != "" && strings.EqualFold(parameter, c.Query)
}

func parameter(pair string) (name, value string, err error) {
	name, value, _ = strings.Cut(pair, "=")
	if name, err = url.QueryUnescape(name); err == nil {
		value, err = url.QueryUnescape(value)
	}
	return name, value, err
}

// strip takes off a request whatever is known to carry a credential, or has it taken for
// another one.
func (c *Credential) strip(r *http.Request) {
	for name := range r.Header {
		if c.carries(name) || slices.Contains(rewrites, plain(name)) {
			delete(r.Header, name)
		}
	}
	r.Header.Del("Sec-Websocket-Extensions") // compressed, nothing would be found in it
	pairs := strings.Split(r.URL.RawQuery, "&")
	r.URL.RawQuery = strings.Join(slices.DeleteFunc(pairs, func(pair string) bool {
		name, _, _ := parameter(pair) // what can't be read was refused
		return c.asks(name)
	}), "&")
}
