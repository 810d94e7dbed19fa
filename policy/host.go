package policy

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

// HostService is the name under which a session reaches services on the host's
// own loopback, each port by a rule of its own.
const HostService = "host.stepbox.internal"

// HostRule names hosts that may be reached.
type HostRule struct {
	// Name is a name in lower case and punycode without a trailing dot, such a
	// name after "*." (every name below it, not itself), or an IP address in
	// its shortest form without brackets.
	Name string
	Port int // 0: any
}

// ParseHost reads NAME[:PORT]. NAME is a host name, "*." and a host name, or an
// IP address; an IPv6 address with a port needs brackets. Names may be
// international. HostService needs a port.
func ParseHost(s string) (HostRule, error) {
	name, port, err := splitPort(s)
	if err == nil {
		name, err = ruleName(name, port)
	}
	if err != nil {
		return HostRule{}, fmt.Errorf("cannot use host %q: %w", s, err)
	}
	return HostRule{Name: name, Port: port}, nil
}

// ruleName is what a rule says of hosts in the form that HostRule has it.
func ruleName(name string, port int) (string, error) {
	if addr, err := netip.ParseAddr(name); err == nil {
		if addr.Zone() != "" {
			return "", errors.New("an address can't have a zone")
		}
		return addr.Unmap().String(), nil
	}
	if strings.ContainsAny(name, "[]") {
		return "", errors.New("brackets are for IPv6 addresses")
	}
	rest, wild := strings.CutPrefix(name, "*.")
	if strings.Contains(rest, "*") {
		return "", errors.New(`"*" can only be the whole first label, as in *.example.com`)
	}
	rest, err := normalName(rest)
	switch {
	case err != nil:
		return "", err
	case rest == HostService && (wild || port == 0):
		return "", errors.New("it stands for this machine: name the port, as in " + HostService + ":8080")
	case !wild:
		return rest, nil
	case strings.HasSuffix(HostService, "."+rest) || !strings.Contains(rest, "."):
		return "", errors.New("a wildcard needs at least two labels after it")
	}
	return "*." + rest, nil
}

// splitPort takes a port off the end of s, and brackets off an address.
func splitPort(s string) (name string, port int, err error) {
	name = s
	rest := ""
	if strings.HasPrefix(s, "[") {
		inner, after, ok := strings.Cut(s[1:], "]")
		if !ok {
			return "", 0, errors.New("a bracket isn't closed")
		}
		if !strings.Contains(inner, ":") {
			return "", 0, errors.New("brackets are for IPv6 addresses")
		}
		if _, err := netip.ParseAddr(inner); err != nil {
			return "", 0, errors.New("what is in brackets isn't an IPv6 address")
		}
		name, rest = inner, after
		if rest == "" {
			return name, 0, nil
		}
		if rest[0] != ':' {
			return "", 0, errors.New("only a port can follow the brackets")
		}
		rest = rest[1:]
	} else {
		if strings.Count(s, ":") > 1 {
			if _, err := netip.ParseAddr(s); err == nil {
				return s, 0, nil
			}
			return "", 0, errors.New("an IPv6 address with a port needs brackets")
		}
		before, after, ok := strings.Cut(s, ":")
		if !ok {
			return s, 0, nil
		}
		name, rest = before, after
	}
	if port = parsePort(rest); port == 0 {
		return "", 0, errors.New("a port is a number from 1 to 65535")
	}
	return name, port, nil
}

// parsePort is 0 for what isn't plainly a port.
func parsePort(s string) int {
	n, err := strconv.ParseUint(s, 10, 16)
	if err != nil || s[0] == '0' {
		return 0
	}
	return int(n)
}

// normalName is a host name as rules hold it, or why it is none (RFC 1035 for
// lengths; underscores are allowed, as names of services have them).
func normalName(s string) (string, error) {
	if len(s) > 1024 { // well above 253 in any spelling; longer ones take long
		return "", errors.New("a name has at most 253 characters")
	}
	s = strings.TrimSuffix(s, ".")
	for _, r := range s {
		if r == utf8.RuneError || !seen(r) || r == ' ' {
			return "", errors.New("a host name can't have spaces or invisible characters")
		}
	}
	a, err := idna.Lookup.ToASCII(s)
	if err != nil {
		// The profile refuses underscores, which are in use; nothing else
		// may pass that isn't a letter, digit or hyphen.
		if strings.ContainsFunc(s, func(r rune) bool { return r >= utf8.RuneSelf }) || strings.HasPrefix(strings.ToLower(s), "xn--") || strings.Contains(strings.ToLower(s), ".xn--") {
			return "", errors.New("not a valid international name")
		}
		a = strings.ToLower(s)
	}
	if a == "" {
		return "", errors.New("a name is missing")
	}
	if len(a) > 253 {
		return "", errors.New("a name has at most 253 characters")
	}
	labels := strings.Split(a, ".")
	for _, l := range labels {
		switch {
		case l == "":
			return "", errors.New("a label is empty")
		case len(l) > 63:
			return "", errors.New("a label has at most 63 characters")
		case l[0] == '-' || l[len(l)-1] == '-':
			return "", errors.New("a label can't begin or end with a hyphen")
		case strings.Trim(l, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "":
			return "", errors.New("a name has letters, digits, hyphens and dots")
		}
	}
	// "1.2.3" or "0x7f.1" are addresses to many resolvers, though not to ours.
	if last := labels[len(labels)-1]; strings.Trim(last, "0123456789") == "" || strings.HasPrefix(last, "0x") {
		return "", errors.New("an address is written in full, as in 192.0.2.1")
	}
	return a, nil
}

// Match says whether the rule covers a name or address and a port. Whatever
// isn't a proper name or address matches nothing: a NUL, a space or an empty
// label can't slip a name past a suffix.
func (r HostRule) Match(name string, port int) bool {
	if r.Name == "" || port < 1 || port > 65535 || r.Port != 0 && r.Port != port {
		return false
	}
	if addr, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(name, "["), "]")); err == nil {
		return addr.Zone() == "" && addr.Unmap().String() == r.Name
	}
	name, err := normalName(name)
	if err != nil {
		return false
	}
	if below, wild := strings.CutPrefix(r.Name, "*"); wild {
		return len(name) > len(below) && strings.HasSuffix(name, below) && name != HostService
	}
	return name == r.Name
}

// String is the rule as ParseHost reads it.
func (r HostRule) String() string {
	if r.Port == 0 {
		return r.Name
	}
	return net.JoinHostPort(r.Name, strconv.Itoa(r.Port))
}
