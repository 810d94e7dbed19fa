package egress

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync"
)

const (
	// MaxNames is how many host names one session may ask for. An address
	// is never given to a second name, so there is nothing to evict; names
	// beyond get SERVFAIL, as those do for which the range has no room. At 253 bytes a name the table stays below 16 MiB.
	MaxNames = 32768

	// HostName reaches a port of this host's own 127.0.0.1, for verdicts
	// that are Private.
	HostName = "host.stepbox.internal"

	maxNameLength  = 253 // RFC 1035, as text without the final dot
	maxLabelLength = 63
)

// DefaultRange is where synthetic addresses come from unless Options say otherwise:
// the benchmarking block of RFC 2544, which nothing on the internet uses. Go and
// Node take it for public; Python's ipaddress, and filters made of the IANA's list of
// special addresses, don't.
var DefaultRange = netip.MustParsePrefix("198.18.0.0/15")

// checkRange says why addresses can't be from a range.
func checkRange(p netip.Prefix, l Link) error {
	switch class := Class(p.Addr()); {
	case !p.Addr().Is4(), p != p.Masked(), p.Bits() < 8, p.Bits() > 24:
		return fmt.Errorf("cannot give names addresses of %s: it takes an IPv4 network of 8 to 24 bits", p)
	case class == ClassLoopback, class == ClassUnspecified, class == ClassMulticast, class == ClassLinkLocal:
		return fmt.Errorf("cannot give names addresses of %s: they are %s", p, class)
	case p.Contains(l.Gateway4), p.Contains(l.Sandbox4):
		return fmt.Errorf("cannot give names addresses of %s: the sandbox's own are in it", p)
	}
	return nil
}

var errTooManyNames = errors.New("too many names in this session")

// nameTable maps names to synthetic addresses, one to one, for good.
type nameTable struct {
	span netip.Prefix // never changes

	mu     sync.RWMutex
	byName map[string]netip.Addr // guarded by mu; at most MaxNames
	byAddr map[netip.Addr]string // guarded by mu
	next   netip.Addr            // guarded by mu; not given out yet
}

// newNameTable makes a table in which some names have their addresses already.
// What isn't a name, or no address of ours, is left out.
func newNameTable(span netip.Prefix, known map[string]netip.Addr) *nameTable {
	if !span.IsValid() {
		span = DefaultRange
	}
	t := &nameTable{
		span: span, byName: make(map[string]netip.Addr), byAddr: make(map[netip.Addr]string), next: span.Addr().Next(),
	}
	for name, addr := range known {
		plain, err := hostName(name)
		if err != nil || plain != name || !span.Contains(addr) || t.byAddr[addr] != "" || len(t.byName) >= MaxNames {
			continue
		}
		t.byName[name], t.byAddr[addr] = addr, name
		if !addr.Less(t.next) {
			t.next = addr.Next()
		}
	}
	return t
}

// address is the name's own, given out at its first call.
func (t *nameTable) address(name string) (netip.Addr, error) {
	t.mu.RLock()
	addr, ok := t.byName[name]
	t.mu.RUnlock()
	if ok {
		return addr, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if addr, ok := t.byName[name]; ok {
		return addr, nil
	}
	// Some programs take a final 0 or 255 for a network or a broadcast.
	for t.next.Is4() && (t.next.As4()[3] == 0 || t.next.As4()[3] == 255) {
		t.next = t.next.Next()
	}
	if len(t.byName) >= MaxNames || !t.span.Contains(t.next) {
		return netip.Addr{}, errTooManyNames
	}
	addr = t.next
	t.next = addr.Next()
	t.byName[name], t.byAddr[addr] = addr, name
	return addr, nil
}

// name is whose synthetic address addr is.
func (t *nameTable) name(addr netip.Addr) (string, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	name, ok := t.byAddr[addr]
	return name, ok
}

// hostName makes the canonical form of a host name: lower case, no final dot.
// It takes letters, digits, hyphens and underscores (which real names hold),
// and no name whose last label could be read as part of an IPv4 address
// (RFC 3696 section 2; the URL standard's "ends in a number").
func hostName(s string) (string, error) {
	s = strings.TrimSuffix(s, ".")
	if s == "" || len(s) > maxNameLength {
		return "", errors.New("not a host name: its length")
	}
	label, upper := 0, false
	for i := range len(s) {
		c := s[i]
		switch {
		case c == '.':
			if label == 0 {
				return "", errors.New("not a host name: an empty label")
			}
			label = 0
			continue
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9', c == '-', c == '_':
		case 'A' <= c && c <= 'Z':
			upper = true
		default:
			return "", fmt.Errorf("not a host name: byte %#02x", c)
		}
		if label++; label > maxLabelLength {
			return "", errors.New("not a host name: a label's length")
		}
	}
	if label == 0 {
		return "", errors.New("not a host name: an empty label")
	}
	if upper {
		s = strings.ToLower(s)
	}
	if endsInNumber(s) {
		return "", errors.New("not a host name: it ends in a number")
	}
	return s, nil
}

func endsInNumber(s string) bool {
	last := s[strings.LastIndexByte(s, '.')+1:]
	if rest, ok := strings.CutPrefix(last, "0x"); ok {
		return strings.Trim(rest, "0123456789abcdef") == ""
	}
	return strings.Trim(last, "0123456789") == ""
}
