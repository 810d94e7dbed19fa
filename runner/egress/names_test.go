package egress

import (
	"net/netip"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"golang.org/x/net/dns/dnsmessage"

	"stepbox/session/e2e/must"
)

func TestHostName(t *testing.T) {
	long := strings.Repeat("a", 63)
	whole := long + "." + long + "." + long + "." + strings.Repeat("b", 61)
	for in, want := range map[string]string{
		"example.com": "example.com", "example.com.": "example.com", "ExAmPlE.COM": "example.com", "a": "a",
		"_dmarc.example.com": "_dmarc.example.com", "xn--bcher-kva.example": "xn--bcher-kva.example",
		"1.example": "1.example", "3com.com": "3com.com", whole: whole, long + ".x": long + ".x",
		"": "", ".": "", "..": "", "a..b": "", ".a": "", "a b": "", "a\x00b": "", "a\nb": "", "ü.example": "",
		"a/b": "", "a:80": "", "a%b": "", "a@b": "", "[::1]": "", "127.0.0.1": "", "127.0.0.1.": "", "1": "", "0x7f.1": "",
		"x.0x7f000001": "", "example.0x": "", "example.123": "", whole + "c": "", long + "a.x": "", "*.example.com": "",
	} {
		if got, err := hostName(in); got != want || (err == nil) != (want != "") {
			t.Errorf("hostName(%q) = %q, %v; want %q", in, got, err, want)
		}
	}
}

// Names and addresses are one to one, for good.
func TestNameTableProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table := newNameTable(netip.Prefix{}, nil)
		want := make(map[string]netip.Addr)
		for _, name := range rapid.SliceOfN(rapid.StringMatching(`[a-z]{1,3}\.example`), 0, 60).Draw(t, "names") {
			addr, err := table.address(name)
			must.OK(t, err)
			if old, ok := want[name]; ok && old != addr {
				t.Fatalf("%s moved from %s to %s", name, old, addr)
			}
			if got, ok := table.name(addr); !ok || got != name || !DefaultRange.Contains(addr) {
				t.Fatalf("%s: %s is %q", name, addr, got)
			}
			if last := addr.As4()[3]; last == 0 || last == 255 {
				t.Fatalf("%s got %s", name, addr)
			}
			want[name] = addr
		}
		seen := make(map[netip.Addr]bool)
		for name, addr := range want {
			if seen[addr] {
				t.Fatalf("%s is given out twice", addr)
			}
			seen[addr] = true
			if got, _ := table.address(name); got != addr {
				t.Fatalf("%s moved from %s to %s", name, addr, got)
			}
		}
	})
}

// However many names are asked for, the table stays bounded and those it has
// keep their addresses.
func TestNameTableIsBounded(t *testing.T) {
	table := newNameTable(netip.Prefix{}, nil)
	first, err := table.address("first.example")
	must.OK(t, err)
	refused := 0
	for i := range MaxNames + 100 {
		if _, err := table.address("n" + strings.Repeat("x", i%40) + "." + itoa(i) + ".example"); err != nil {
			refused++
		}
	}
	if n := len(table.byName); n != MaxNames || refused != 101 {
		t.Errorf("%d names, %d refused", n, refused)
	}
	if again, err := table.address("first.example"); err != nil || again != first {
		t.Errorf("first moved: %s, %v", again, err)
	}
}

func itoa(i int) string {
	const digits = "0123456789"
	if i < 10 {
		return digits[i : i+1]
	}
	return itoa(i/10) + digits[i%10:i%10+1]
}

// Names that had addresses have them again, nobody else gets these, and what
// isn't a name or no address of ours is left out.
func TestNamesOfBefore(t *testing.T) {
	first := newNameTable(netip.Prefix{}, nil)
	known := map[string]netip.Addr{"Upper.example": netip.MustParseAddr("198.18.0.77"), "far.example": netip.MustParseAddr("10.0.0.1"), "1.2.3.4": netip.MustParseAddr("198.18.0.78")}
	for _, name := range []string{"a.example", "b.example", "c.example"} {
		addr, err := first.address(name)
		must.OK(t, err)
		if name != "a.example" {
			known[name] = addr
		}
	}
	again := newNameTable(netip.Prefix{}, known)
	for name, want := range map[string]bool{"b.example": true, "c.example": true, "a.example": false, "far.example": false} {
		addr, err := again.address(name)
		if err != nil || (addr == known[name]) != want {
			t.Errorf("%s has %s, and had %s: %v", name, addr, known[name], err)
		}
		if got, ok := again.name(addr); !ok || got != name {
			t.Errorf("%s is %q's", addr, got)
		}
	}
	if len(again.byName) != 4 || len(again.byAddr) != 4 {
		t.Errorf("it has %v", again.byName)
	}
}

// Names get addresses of the range that was chosen, and none when it is full: no
// address becomes another name's.
func TestRangeIsExhausted(t *testing.T) {
	span := netip.MustParsePrefix("203.0.113.0/24")
	table := newNameTable(span, nil)
	seen := make(map[netip.Addr]string)
	refused := 0
	for i := range 300 {
		name := "n" + itoa(i) + ".example"
		addr, err := table.address(name)
		if err != nil {
			refused++
			continue
		}
		if !span.Contains(addr) || seen[addr] != "" {
			t.Errorf("%s has %s, which is %q's", name, addr, seen[addr])
		}
		seen[addr] = name
	}
	if len(seen) != 254 || refused != 46 {
		t.Errorf("%d have addresses, %d don't", len(seen), refused)
	}
	for addr, name := range seen {
		if again, err := table.address(name); err != nil || again != addr {
			t.Errorf("%s moved from %s to %s: %v", name, addr, again, err)
		}
	}
	if _, l := table.answerDNS(question("one-more.example.", dnsmessage.TypeA)); l.odd == "" {
		t.Error("nothing is said of a name without an address")
	}
}

func TestRanges(t *testing.T) {
	for span, ok := range map[string]bool{
		"198.18.0.0/15": true, "240.0.0.0/8": true, "255.255.255.0/24": true, "100.64.0.0/10": true,
		"198.18.0.1/15": false, "198.18.0.0/25": false, "0.0.0.0/0": false, "127.0.0.0/8": false, "224.0.0.0/8": false,
		"169.254.0.0/16": false, "2001:db8::/32": false, "192.0.0.0/24": false, "0.0.0.0/8": false,
	} {
		if err := checkRange(netip.MustParsePrefix(span), Link{Gateway4: gateway4, Sandbox4: sandbox4}); (err == nil) != ok {
			t.Errorf("%s: %v", span, err)
		}
	}
}
