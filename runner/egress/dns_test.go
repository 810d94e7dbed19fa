package egress

import (
	"bytes"
	"net/netip"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"stepbox/session/e2e/must"
)

// rawQuestion is a question with labels of any bytes.
func rawQuestion(kind dnsmessage.Type, labels ...string) []byte {
	b := []byte{0, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0}
	for _, l := range labels {
		b = append(append(b, byte(len(l))), l...)
	}
	return append(b, 0, byte(kind>>8), byte(kind), 0, 1)
}

func TestDNSAnswers(t *testing.T) {
	table := newNameTable(netip.Prefix{}, nil)
	long := strings.Repeat("x", 63)
	for what, c := range map[string]struct {
		msg   []byte
		code  dnsmessage.RCode
		body  string // of the only answer
		odd   string
		table int // names afterwards
	}{
		"a name":               {msg: rawQuestion(1, "example", "com"), body: "198.18.0.1"},
		"in another case":      {msg: rawQuestion(1, "eXample", "COM"), body: "198.18.0.1"},
		"a single label":       {msg: rawQuestion(1, "printer"), body: "198.18."},
		"AAAA":                 {msg: rawQuestion(28, "example", "com")},
		"HTTPS":                {msg: rawQuestion(65, "example", "com")},
		"SVCB":                 {msg: rawQuestion(64, "example", "com")},
		"MX":                   {msg: rawQuestion(15, "example", "com"), odd: "MX"},
		"TXT":                  {msg: rawQuestion(16, "example", "com"), odd: "TXT"},
		"a type from nowhere":  {msg: rawQuestion(4242, "example", "com"), odd: "4242"},
		"ANY":                  {msg: rawQuestion(255, "example", "com"), code: dnsmessage.RCodeNotImplemented, odd: "ALL"},
		"AXFR":                 {msg: rawQuestion(252, "example", "com"), code: dnsmessage.RCodeNotImplemented, odd: "AXFR"},
		"IXFR":                 {msg: rawQuestion(251, "example", "com"), code: dnsmessage.RCodeNotImplemented, odd: "251"},
		"localhost":            {msg: rawQuestion(1, "localhost"), body: "127.0.0.1"},
		"under localhost":      {msg: rawQuestion(28, "app", "localhost"), body: "::1"},
		"NUL in a name":        {msg: rawQuestion(1, "exa\x00mple", "com"), code: dnsmessage.RCodeNameError, odd: "not a host name"},
		"a newline in a name":  {msg: rawQuestion(1, "exa\nmple", "com"), code: dnsmessage.RCodeNameError, odd: "not a host name"},
		"an escape in a name":  {msg: rawQuestion(1, "\x1b[2J", "com"), code: dnsmessage.RCodeNameError, odd: "not a host name"},
		"UTF-8 in a name":      {msg: rawQuestion(1, "bücher", "example"), code: dnsmessage.RCodeNameError, odd: "not a host name"},
		"an address":           {msg: rawQuestion(1, "127", "0", "0", "1"), code: dnsmessage.RCodeNameError, odd: "ends in a number"},
		"a hex address":        {msg: rawQuestion(1, "x", "0x7f000001"), code: dnsmessage.RCodeNameError, odd: "ends in a number"},
		"the root":             {msg: rawQuestion(1), code: dnsmessage.RCodeNameError, odd: "length"},
		"dots in a label":      {msg: rawQuestion(1, "a.b", "com"), code: dnsmessage.RCodeFormatError, odd: "can't be read"},
		"255 bytes of name":    {msg: rawQuestion(1, long, long, long, long), code: dnsmessage.RCodeFormatError, odd: "can't be read"},
		"an unfinished name":   {msg: rawQuestion(1, "example", "com")[:16], code: dnsmessage.RCodeFormatError, odd: "can't be read"},
		"a name in a loop":     {msg: append([]byte{0, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0}, 0xc0, 12, 0, 1, 0, 1), code: dnsmessage.RCodeFormatError, odd: "can't be read"},
		"two questions":        {msg: append(twoQuestions(), 1, 'b', 0, 0, 1, 0, 1), code: dnsmessage.RCodeFormatError, odd: "more than one"},
		"no question":          {msg: []byte{0, 7, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0}, code: dnsmessage.RCodeFormatError, odd: "can't be read"},
		"another class":        {msg: append(rawQuestion(1, "version", "bind")[:len(rawQuestion(1, "version", "bind"))-1], 3), code: dnsmessage.RCodeRefused, odd: "class"},
		"an update":            {msg: append([]byte{0, 7, 0x28}, rawQuestion(1, "example", "com")[3:]...), code: dnsmessage.RCodeNotImplemented, odd: "operation"},
		"reverse of a name":    {msg: rawQuestion(12, "1", "0", "18", "198", "in-addr", "arpa"), body: "example.com."},
		"reverse of no name":   {msg: rawQuestion(12, "1", "1", "1", "1", "in-addr", "arpa"), code: dnsmessage.RCodeNameError},
		"reverse of nonsense":  {msg: rawQuestion(12, "x", "y", "in-addr", "arpa"), code: dnsmessage.RCodeNameError},
		"a broken OPT record":  {msg: append(append([]byte{0, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 1}, rawQuestion(1, "example", "com")[12:]...), 0, 0, 41, 9), body: "198.18.0.1"},
		"a good OPT record":    {msg: append(append([]byte{0, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 1}, rawQuestion(1, "example", "com")[12:]...), 0, 0, 41, 16, 0, 0, 0, 0, 0, 0, 0), body: "198.18.0.1"},
		"questions of nothing": {msg: rawQuestion(1, "", ""), code: dnsmessage.RCodeNameError, odd: "length"},
	} {
		t.Run(what, func(t *testing.T) {
			table.address("example.com")
			answer, l := table.answerDNS(c.msg)
			var m dnsmessage.Message
			if err := m.Unpack(answer); err != nil {
				t.Fatalf("the answer %x can't be read: %v", answer, err)
			}
			if m.ID != 7 || !m.Response || m.RCode != c.code {
				t.Errorf("answered %+v, want code %s", m.Header, c.code)
			}
			var body string
			if len(m.Answers) == 1 {
				switch r := m.Answers[0].Body.(type) {
				case *dnsmessage.AResource:
					body = netip.AddrFrom4(r.A).String()
				case *dnsmessage.AAAAResource:
					body = netip.AddrFrom16(r.AAAA).String()
				case *dnsmessage.PTRResource:
					body = r.PTR.String()
				}
			}
			if !strings.HasPrefix(body, c.body) || (body == "") != (c.body == "") {
				t.Errorf("answered %q, want %q", body, c.body)
			}
			if !strings.Contains(l.odd, c.odd) || (l.odd == "") != (c.odd == "") {
				t.Errorf("noted %q, want %q", l.odd, c.odd)
			}
			if len(m.Questions) == 1 && !bytes.Contains(bytes.ToLower(c.msg), []byte(strings.ToLower(strings.SplitN(m.Questions[0].Name.String(), ".", 2)[0]))) {
				t.Errorf("repeats the question as %s", m.Questions[0].Name)
			}
		})
	}
	for what, msg := range map[string][]byte{
		"nothing": nil, "half a header": make([]byte, 11), "an answer": append([]byte{0, 7, 0x81}, rawQuestion(1, "a")[3:]...), "too much": make([]byte, maxDNS+1),
	} {
		if answer, l := table.answerDNS(msg); answer != nil || l.odd != "" {
			t.Errorf("%s is answered with %x", what, answer)
		}
	}
}

func twoQuestions() []byte {
	b := rawQuestion(1, "a")
	b[5] = 2
	return b
}

// An answer is never larger than what anybody must take, whatever is asked.
func FuzzDNS(f *testing.F) {
	for _, q := range [][]byte{
		rawQuestion(1, "example", "com"), rawQuestion(28, "example", "com"), rawQuestion(255, "\x00\xff"), rawQuestion(12, "1", "0", "18", "198", "in-addr", "arpa"),
		twoQuestions(), rawQuestion(1, strings.Repeat("x", 63), strings.Repeat("y", 63), strings.Repeat("z", 63), strings.Repeat("w", 60)),
	} {
		f.Add(q)
	}
	f.Fuzz(func(t *testing.T, msg []byte) {
		table := newNameTable(netip.Prefix{}, nil)
		answer, l := table.answerDNS(msg)
		if len(answer) > 600 {
			t.Errorf("an answer of %d bytes", len(answer))
		}
		if answer != nil {
			if !bytes.Equal(answer[:2], msg[:2]) || answer[2]&0x80 == 0 {
				t.Errorf("not an answer to it: %x", answer[:4])
			}
			var m dnsmessage.Message
			if err := m.Unpack(answer); err != nil {
				t.Errorf("an answer that can't be read: %v", err)
			}
		}
		if len(l.odd) > 500 {
			t.Errorf("a note of %d bytes", len(l.odd))
		}
		for name := range table.byName {
			if clean, err := hostName(name); err != nil || clean != name {
				t.Errorf("took in the name %q", name)
			}
		}
		if n := len(table.byName); n > 1 {
			t.Errorf("%d names from one question", n)
		}
	})
}

func FuzzHostName(f *testing.F) {
	f.Add("example.com.")
	f.Add("0x7f.1")
	f.Fuzz(func(t *testing.T, s string) {
		name, err := hostName(s)
		if err != nil {
			return
		}
		if again, err := hostName(name); err != nil || again != name {
			t.Errorf("%q becomes %q becomes %q, %v", s, name, again, err)
		}
		if _, err := netip.ParseAddr(name); err == nil {
			t.Errorf("%q is an address", name)
		}
		if _, err := dnsmessage.NewName(name + "."); err != nil {
			t.Errorf("%q doesn't fit a message: %v", name, err)
		}
	})
}

// Hostile names through the whole stack: each is refused, what is odd is
// logged once, and the next honest question is answered.
func TestDNSHostileOverTheLink(t *testing.T) {
	s := newSandbox(t, Options{})
	for range 3 {
		for _, network := range []string{"udp", "tcp"} {
			m, err := s.query(network, "8.8.8.8:53", rawQuestion(1, "exa\x00mple", "com"))
			if err != nil || m.RCode != dnsmessage.RCodeNameError {
				t.Fatalf("%s: %s, %v", network, m.RCode, err)
			}
			m, err = s.query(network, "8.8.8.8:53", rawQuestion(16, "data.exfil"[:4], "example"))
			if err != nil || m.RCode != dnsmessage.RCodeSuccess || len(m.Answers) != 0 {
				t.Fatalf("%s: %s, %v", network, m.RCode, err)
			}
		}
	}
	s.resolve("honest.example")
	a := s.wait("the odd name", func(a Attempt) bool { return strings.Contains(a.Failure, `exa\x00mple`) })
	if a.Protocol != "dns" || a.Verdict != "deny" || a.Name != "" || a.Open {
		t.Errorf("logged %+v", a)
	}
	s.wait("the TXT question", func(a Attempt) bool { return a.Name == "data.example" && strings.Contains(a.Failure, "TXT") })
	if n := len(s.logged()); n != 2 {
		t.Errorf("%d entries, want 2: %+v", n, s.logged())
	}
	s.gw.names.mu.RLock()
	_, ok := s.gw.names.byName["data.example"]
	s.gw.names.mu.RUnlock()
	if ok {
		t.Error("a question for TXT took an address")
	}
	// Rubbish on the connection ends it.
	c, err := s.dial("tcp", "8.8.8.8:53", patience)
	must.OK(t, err)
	defer c.Close()
	c.Write([]byte("\xff\xffGET / HTTP/1.1\r\n\r\n"))
	c.SetDeadline(time.Now().Add(patience))
	if n, err := c.Read(make([]byte, 1)); err == nil {
		t.Errorf("read %d bytes", n)
	}
}

// Answers that there is nothing say for how long, so that resolvers don't ask again at
// once; one with an address doesn't.
func TestDNSNothingIsKept(t *testing.T) {
	table := newNameTable(netip.Prefix{}, nil)
	for _, c := range []struct {
		name string
		kind dnsmessage.Type
		soa  bool
	}{
		{"example.com.", dnsmessage.TypeA, false}, {"example.com.", dnsmessage.TypeAAAA, true}, {"example.com.", typeHTTPS, true},
		{"example.com.", typeSVCB, true}, {"example.com.", dnsmessage.TypeMX, true}, {"1.2.3.4.", dnsmessage.TypeA, true},
		{strings.Repeat("a.", 120) + "com.", dnsmessage.TypeAAAA, true}, {"example.com.", dnsmessage.TypeALL, false},
	} {
		var m dnsmessage.Message
		b, _ := table.answerDNS(question(c.name, c.kind))
		if err := m.Unpack(b); err != nil || len(b) > 512 {
			t.Fatalf("%s %s: %d bytes, %v", c.name, c.kind, len(b), err)
		}
		soa := len(m.Authorities) == 1 && m.Authorities[0].Header.TTL == answerTTL && m.Authorities[0].Header.Type == dnsmessage.TypeSOA
		if soa != c.soa {
			t.Errorf("%s %s: %+v", c.name, c.kind, m)
		}
	}
}
