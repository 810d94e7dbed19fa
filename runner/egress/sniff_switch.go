package egress

import "bytes"

// What becomes of a request to switch protocols. The way in moves it on from what the
// way out asked for.
const (
	changeNone    = iota // nothing was asked for, or it was refused
	changeUpgrade        // the next answer may be 101
	changeTunnel         // the next answer may be 2xx: it was CONNECT
	changeAgreed
)

// answered is told of what came from the server, before the program gets it; it may be
// called beside feed. Programs wait for the answer before they switch, so it begins what
// came: where an earlier answer hides it the connection stays HTTP.
func (s *sniffer) answered(b []byte) {
	asked := s.change.Load()
	if asked != changeUpgrade && asked != changeTunnel {
		return
	}
	if len(b) < len("HTTP/1.1 101") || !bytes.HasPrefix(b, []byte("HTTP/1.")) || b[8] != ' ' {
		s.change.CompareAndSwap(asked, changeNone)
		return
	}
	to := int32(changeNone)
	switch code := string(b[9:12]); {
	case code == "101" && asked == changeUpgrade, code[0] == '2' && asked == changeTunnel:
		to = changeAgreed
	case code[0] == '1':
		return // the answer is still to come
	}
	s.change.CompareAndSwap(asked, to)
}
