package egress

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"golang.org/x/net/dns/dnsmessage"
)

const (
	dnsPort    = 53
	maxDNS     = 4096 // bytes of a question, over either transport
	answerTTL  = 300  // seconds; a name's address never changes
	ednsSize   = 1232 // bytes; what dnsflagday.net/2020 recommends
	headerSize = 12
)

// Types without a constant in dnsmessage.
const (
	typeSVCB  = dnsmessage.Type(64)
	typeHTTPS = dnsmessage.Type(65)
	typeIXFR  = dnsmessage.Type(251)
)

// lookup is what the gateway made of one question.
type lookup struct {
	name string // canonical; empty when it isn't a host name
	odd  string // why it wasn't answered, empty for usual questions
}

// answerDNS answers one DNS message, nil for what deserves none. It asks
// nobody: an A question gets the name's synthetic address, other types say
// that there is nothing. The message is hostile.
func (t *nameTable) answerDNS(msg []byte) ([]byte, lookup) {
	if len(msg) < headerSize || len(msg) > maxDNS {
		return nil, lookup{}
	}
	var p dnsmessage.Parser
	h, err := p.Start(msg)
	if err != nil || h.Response {
		return nil, lookup{}
	}
	reply := dnsmessage.Header{
		ID: h.ID, Response: true, OpCode: h.OpCode,
		RecursionDesired: h.RecursionDesired, RecursionAvailable: true,
	}
	if h.OpCode != 0 {
		reply.RCode = dnsmessage.RCodeNotImplemented
		return pack(reply, nil, nil, false), lookup{odd: "an operation other than a query"}
	}
	q, err := p.Question()
	if err != nil {
		reply.RCode = dnsmessage.RCodeFormatError
		return pack(reply, nil, nil, false), lookup{odd: "a question that can't be read"}
	}
	if _, err := p.Question(); !errors.Is(err, dnsmessage.ErrSectionDone) {
		reply.RCode = dnsmessage.RCodeFormatError
		return pack(reply, nil, nil, false), lookup{odd: "more than one question"}
	}
	edns := hasEDNS(&p)
	code, body, l := t.answer(q)
	reply.RCode = code
	return pack(reply, &q, body, edns), l
}

// hasEDNS says whether the question came with an OPT record (RFC 6891).
func hasEDNS(p *dnsmessage.Parser) bool {
	if p.SkipAllAnswers() != nil || p.SkipAllAuthorities() != nil {
		return false
	}
	for {
		h, err := p.AdditionalHeader()
		if err != nil {
			return false
		}
		if h.Type == dnsmessage.TypeOPT {
			return true
		}
		if p.SkipAdditional() != nil {
			return false
		}
	}
}

// answer finds what to say to one question.
func (t *nameTable) answer(q dnsmessage.Question) (dnsmessage.RCode, dnsmessage.ResourceBody, lookup) {
	if q.Class != dnsmessage.ClassINET {
		return dnsmessage.RCodeRefused, nil, lookup{odd: "a class other than IN"}
	}
	asked := q.Name.String()
	if q.Type == dnsmessage.TypePTR {
		return t.reverse(asked)
	}
	name, err := hostName(asked)
	if err != nil {
		return dnsmessage.RCodeNameError, nil, lookup{odd: fmt.Sprintf("%.80q is %v", asked, err)}
	}
	l := lookup{name: name}
	local := name == "localhost" || strings.HasSuffix(name, ".localhost")
	switch q.Type {
	case dnsmessage.TypeA:
		if local { // RFC 6761 section 6.3; it is the sandbox's own
			return dnsmessage.RCodeSuccess, &dnsmessage.AResource{A: [4]byte{127, 0, 0, 1}}, l
		}
		addr, err := t.address(name)
		if err != nil {
			l.odd = err.Error()
			return dnsmessage.RCodeServerFailure, nil, l
		}
		return dnsmessage.RCodeSuccess, &dnsmessage.AResource{A: addr.As4()}, l
	case dnsmessage.TypeAAAA:
		if local {
			return dnsmessage.RCodeSuccess, &dnsmessage.AAAAResource{AAAA: netip.IPv6Loopback().As16()}, l
		}
		return dnsmessage.RCodeSuccess, nil, l
	case typeHTTPS, typeSVCB:
		return dnsmessage.RCodeSuccess, nil, l
	case dnsmessage.TypeALL, dnsmessage.TypeAXFR, typeIXFR:
		l.odd = typeName(q.Type) + " questions aren't answered here"
		return dnsmessage.RCodeNotImplemented, nil, l
	}
	l.odd = typeName(q.Type) + " records aren't looked up"
	return dnsmessage.RCodeSuccess, nil, l
}

// reverse answers for the synthetic addresses; there are no other names.
func (t *nameTable) reverse(asked string) (dnsmessage.RCode, dnsmessage.ResourceBody, lookup) {
	if addr, ok := reverseAddr(asked); ok {
		if name, ok := t.name(addr); ok {
			if target, err := dnsmessage.NewName(name + "."); err == nil {
				return dnsmessage.RCodeSuccess, &dnsmessage.PTRResource{PTR: target}, lookup{}
			}
		}
	}
	return dnsmessage.RCodeNameError, nil, lookup{}
}

// reverseAddr reads 4.3.2.1.in-addr.arpa as 1.2.3.4.
func reverseAddr(s string) (netip.Addr, bool) {
	s, ok := strings.CutSuffix(strings.ToLower(strings.TrimSuffix(s, ".")), ".in-addr.arpa")
	parts := strings.Split(s, ".")
	if !ok || len(parts) != 4 {
		return netip.Addr{}, false
	}
	parts[0], parts[1], parts[2], parts[3] = parts[3], parts[2], parts[1], parts[0]
	addr, err := netip.ParseAddr(strings.Join(parts, "."))
	return addr, err == nil && addr.Is4()
}

func typeName(t dnsmessage.Type) string {
	return strings.TrimPrefix(t.String(), "Type")
}

// nothing goes with answers that say that there is nothing: resolvers keep only those
// for a while (RFC 2308 section 5), and would ask again.
var (
	rootName = dnsmessage.MustNewName(".")
	nothing  = dnsmessage.SOAResource{
		NS: dnsmessage.MustNewName("stepbox.internal."), MBox: dnsmessage.MustNewName("nobody.stepbox.internal."),
		Serial: 1, Refresh: answerTTL, Retry: answerTTL, Expire: answerTTL, MinTTL: answerTTL,
	}
)

// pack builds the answer. The question is repeated as it was asked, letter
// case included.
func pack(h dnsmessage.Header, q *dnsmessage.Question, body dnsmessage.ResourceBody, edns bool) []byte {
	b := dnsmessage.NewBuilder(make([]byte, 0, 512), h)
	b.EnableCompression()
	var err error
	add := func(step error) { err = cmp.Or(err, step) }
	if q != nil {
		add(b.StartQuestions())
		add(b.Question(*q))
	}
	if body != nil {
		add(b.StartAnswers())
		rh := dnsmessage.ResourceHeader{Name: q.Name, Class: dnsmessage.ClassINET, TTL: answerTTL}
		switch r := body.(type) {
		case *dnsmessage.AResource:
			add(b.AResource(rh, *r))
		case *dnsmessage.AAAAResource:
			add(b.AAAAResource(rh, *r))
		case *dnsmessage.PTRResource:
			add(b.PTRResource(rh, *r))
		}
	}
	if q != nil && body == nil && (h.RCode == dnsmessage.RCodeSuccess || h.RCode == dnsmessage.RCodeNameError) {
		add(b.StartAuthorities())
		add(b.SOAResource(dnsmessage.ResourceHeader{Name: rootName, Class: dnsmessage.ClassINET, TTL: answerTTL}, nothing))
	}
	if edns {
		add(b.StartAdditionals())
		var rh dnsmessage.ResourceHeader
		add(rh.SetEDNS0(ednsSize, h.RCode, false))
		add(b.OPTResource(rh, dnsmessage.OPTResource{}))
	}
	msg, last := b.Finish()
	if err != nil || last != nil {
		return nil
	}
	return msg
}
