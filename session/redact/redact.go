// Package redact finds secrets by their shape in text that enters the record (Recording)
// or leaves it (New), and puts words in their place: tokens of well-known services, private keys, passwords
// in addresses and headers, values of settings whose names say that they are secret.
//
// It is a help for people who share a recording, not a guarantee: a secret without
// a known shape, or one that a program draws on the screen in pieces, isn't found.
//
// A Redactor is used by one goroutine, one of Recording's by several.
package redact

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"stepbox/session/api"
)

// maxPlaces bounds the places that are told apart; what is found in others is
// counted as elsewhere.
const maxPlaces = 200

// Redactor replaces secrets and counts them.
type Redactor struct {
	known []literal
	found map[api.Secret]int // by kind and place, without a count
	off   bool
	// recording says that this is for a record: see Recording.
	recording bool
}

// literal is a value that is known to be secret, in small letters: a host's name, for
// one, is written so whatever its letters were.
type literal struct {
	value []byte
	kind  string
	exact []byte // as it is written
}

// minLiteral is how long a known value must be, in bytes: replacing every "yes" hides nothing.
const minLiteral = 8

// New makes a Redactor. Besides what is known by its shape it replaces the values of
// those variables, as NAME=value, whose names say that they are secret.
func New(environ []string) *Redactor {
	r := &Redactor{found: make(map[api.Secret]int)}
	for _, kv := range environ {
		if name, value, _ := strings.Cut(kv, "="); api.SecretName(name) {
			r.know(value, "value of $"+name)
		}
	}
	return r
}

// know has a value replaced wherever it is, if that hides anything.
func (r *Redactor) know(value, kind string) {
	if len(value) < minLiteral {
		return
	}
	r.known = append(r.known, literal{lower([]byte(value)), kind, []byte(value)})
	slices.SortStableFunc(r.known, func(a, b literal) int { return cmp.Compare(len(b.value), len(a.value)) })
}

// Off makes a Redactor that leaves all as it is.
func Off() *Redactor { return &Redactor{off: true} }

// Found lists what was replaced, by place.
func (r *Redactor) Found() []api.Secret {
	out := []api.Secret{}
	for s, n := range r.found {
		s.Count = n
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b api.Secret) int {
		return cmp.Or(strings.Compare(a.Where, b.Where), strings.Compare(a.Kind, b.Kind))
	})
	return out
}

func (r *Redactor) count(kind, where string) {
	if r.recording {
		return // nobody asks, and many goroutines may use it
	}
	s := api.Secret{Kind: kind, Where: where}
	if _, ok := r.found[s]; !ok && len(r.found) >= maxPlaces {
		s.Where = "elsewhere"
	}
	r.found[s]++
}

// span is a secret's place in a text.
type span struct {
	from, to int
	kind     string
}

// find lists the secrets of a text, in order and apart from each other.
func (r *Redactor) find(text []byte) []span {
	if r == nil || r.off {
		return nil
	}
	var out []span
	small := lower(text)
	for _, l := range r.known {
		for at := 0; ; {
			i := bytes.Index(small[at:], l.value)
			if i < 0 {
				break
			}
			out = append(out, span{at + i, at + i + len(l.value), l.kind})
			at += i + len(l.value)
		}
	}
	whole := small // as known values are written
	if r.recording {
		if lines := broken(text); lines != nil {
			text, small = lines, lower(lines)
		}
	}
	may := pairsIn(small)
	shapes := rules().shapes
	for i := range shapes {
		for b, begin := range shapes[i].begins {
			if !may.has(shapes[i].pairs[b]) {
				continue
			}
			for at := 0; ; at++ {
				next := bytes.Index(small[at:], []byte(begin))
				if next < 0 {
					break
				}
				at += next
				if s, ok := shapes[i].at(text, at); ok {
					out, at = append(out, s), s.to-1
				}
			}
		}
	}
	if r.recording {
		out = r.forRecord(text, whole, out)
	}
	slices.SortStableFunc(out, func(a, b span) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(b.to, a.to)) })
	apart := out[:0]
	for _, s := range out {
		if n := len(apart); n == 0 || s.from >= apart[n-1].to {
			apart = append(apart, s)
		} else if s.to > apart[n-1].to {
			apart[n-1].to = s.to
		}
	}
	return apart
}

// pairs says which of the first two letters of shapes are somewhere in a text, by their
// numbers in the table: most texts have few of them, and a search is begun for few shapes.
type pairs [2]uint64

func (p *pairs) add(n uint8)     { p[n/64] |= 1 << (n % 64) }
func (p pairs) has(n uint8) bool { return p[n/64]&(1<<(n%64)) != 0 }

func pairsIn(small []byte) (found pairs) {
	numbers := rules().pairs
	for i := 1; i < len(small); i++ {
		found.add(numbers[small[i-1]][small[i]])
	}
	return found
}

// lower is a text with its ASCII letters small, byte for byte.
func lower(text []byte) []byte {
	out := bytes.Clone(text)
	for i, b := range out {
		if 'A' <= b && b <= 'Z' {
			out[i] = b + 'a' - 'A'
		}
	}
	return out
}

// lead is how much of the text before a name is looked at, in bytes.
const lead = 400

// further is what stands before the argument that comes after another: of many the first,
// which is the program, and the last.
func further(before []byte, arg string) []byte {
	const program = 100
	if before = append(append(before, arg...), ' '); len(before) > lead {
		before = slices.Concat(before[:program], before[len(before)-lead+program:])
	}
	return before
}

// at finds a secret of a shape that begins at a place.
func (s *shape) at(text []byte, at int) (span, bool) {
	if near := text[max(0, at-6):at]; s.word && rules().inWord().Match(near) && !rules().escaped().Match(near) {
		return span{}, false
	}
	m := s.re().FindSubmatchIndex(text[at:min(at+reach, len(text))])
	if m == nil {
		return span{}, false
	}
	from, to := m[0], m[1]
	for i := 2; i < len(m); i += 2 {
		if m[i] >= 0 { // the group is the secret, what is around it says so
			from, to = m[i], m[i+1]
		}
	}
	from, to = at+from, at+to
	if s.back != nil {
		begin := max(0, at-reach/4)
		from = begin + s.back().FindIndex(text[begin:at])[0] // it matches nothing, too
	}
	if from == to || bytes.HasPrefix(text[from:], []byte(Mark)) || s.is != nil && !s.is(text[max(0, at-10*lead):at], text[at:from], text[from:to], text[to:]) {
		return span{}, false
	}
	return span{from, to, s.kind}, true
}

// Mark begins the words that stand for a secret.
const Mark = "[redacted: "

// words stand for a secret of a kind.
func (r *Redactor) words(kind string) string {
	if r.recording {
		return api.Hidden
	}
	return Mark + kind + "]"
}

// Text replaces the secrets of one text. Where says in words what the text is.
func (r *Redactor) Text(text, where string) string { return r.behind(nil, text, where) }

// behind replaces the secrets of a text that stands behind another, which may say that
// it is one.
func (r *Redactor) behind(before []byte, text, where string) string {
	spans := r.find(append(slices.Clip(before), text...))
	var b strings.Builder
	at := 0
	for _, s := range spans {
		if s.to -= len(before); s.to > 0 {
			r.count(s.kind, where)
			b.WriteString(text[at:max(s.from-len(before), 0)] + r.words(s.kind))
			at = s.to
		}
	}
	return b.String() + text[at:]
}

// Lines replaces the secrets of lines, also of those that stretch over some; their
// number stays.
func (r *Redactor) Lines(lines []string, where string) []string {
	text := []byte(strings.Join(lines, "\n"))
	spans := r.find(text)
	if len(spans) == 0 {
		return lines
	}
	for _, s := range spans {
		r.count(s.kind, where)
	}
	return strings.Split(string(r.replace(text, 0, spans)), "\n")
}
