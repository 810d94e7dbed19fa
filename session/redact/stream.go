package redact

import "slices"

// reach is the longest secret that a stream finds, in bytes; each piece waits until
// so much of the text behind it is known.
const reach = 24 << 10

// Piece is a part of a stream. Of what isn't Text, such as a colour's sequence
// between letters, nothing is looked at and nothing replaced.
type Piece[T any] struct {
	Data []byte
	Text bool
	Tag  T // whatever belongs to it; of a piece that is split, both parts have it
}

// Stream replaces the secrets in a text that comes in pieces, wherever they are cut.
// A secret's newlines stay. Emit is given each piece in order, once all of the text
// that may belong together with it is known; it may keep them.
type Stream[T any] struct {
	R     *Redactor
	Where string
	Emit  func(Piece[T]) error

	pieces []Piece[T]
	text   []byte // of the pieces that are Text
	before []byte // the last of what was emitted, which may say what comes
}

// Add takes the next piece, which is the stream's from then on.
func (s *Stream[T]) Add(p Piece[T]) error {
	if s.R.off {
		return s.Emit(p)
	}
	s.pieces = append(s.pieces, p)
	if p.Text {
		s.text = append(s.text, p.Data...)
	}
	if len(s.text) > 4*reach || len(s.pieces) > 1<<16 {
		return s.settle(max(len(s.text)-reach, len(s.text)/2))
	}
	return nil
}

// Close emits what is left.
func (s *Stream[T]) Close() error { return s.settle(len(s.text)) }

// settle emits the text up to about a place. Secrets that reach over it move it.
func (s *Stream[T]) settle(upTo int) error {
	var spans []span
	for _, f := range s.R.find(append(slices.Clip(s.before), s.text...)) {
		f.from, f.to = max(0, f.from-len(s.before)), f.to-len(s.before)
		if f.to <= 0 {
			continue
		}
		if f.from >= upTo {
			break
		}
		upTo = max(upTo, f.to)
		spans = append(spans, f)
		s.R.count(f.kind, s.Where)
	}
	at, n := 0, 0
	for _, p := range s.pieces {
		if p.Text && at+len(p.Data) > upTo {
			rest := p
			p.Data, rest.Data = p.Data[:upTo-at], p.Data[upTo-at:]
			s.pieces[n] = rest
		} else {
			n++
		}
		if p.Text {
			begin := at
			at += len(p.Data)
			p.Data = s.R.replace(p.Data, begin, spans)
			for len(spans) > 0 && spans[0].to <= at {
				spans = spans[1:]
			}
		}
		if len(p.Data) > 0 || !p.Text {
			if err := s.Emit(p); err != nil {
				return err
			}
		}
		if at == upTo && (n == len(s.pieces) || s.pieces[n].Text) {
			break
		}
	}
	s.pieces = slices.Delete(s.pieces, 0, n) // which keeps its room: there may be 1<<16
	s.before = slices.Clone(s.text[max(0, upTo-lead):upTo])
	s.text = slices.Delete(s.text, 0, upTo)
	return nil
}

// replace puts words in the place of the secrets in a part of the text that begins
// at begin. The words stand where a secret begins.
func (r *Redactor) replace(part []byte, begin int, spans []span) []byte {
	if len(spans) == 0 || spans[0].from >= begin+len(part) {
		return part
	}
	var out []byte
	at := 0
	for _, s := range spans {
		from, to := s.from-begin, min(s.to-begin, len(part))
		if from >= len(part) {
			break
		}
		out = append(out, part[at:max(from, at)]...)
		if from >= 0 {
			out = append(out, r.words(s.kind)...)
		}
		for _, b := range part[max(from, at):to] {
			if b == '\n' || b == '\r' {
				out = append(out, b)
			}
		}
		at = to
	}
	return append(out, part[at:]...)
}
