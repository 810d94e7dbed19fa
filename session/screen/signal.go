package screen

import (
	"encoding/base64"
	"strings"
	"unicode/utf8"
)

// maxNotice bounds the texts of a notification, in characters each.
const maxNotice = 256

// signals are who is told what the guest wants told beyond the screen; nil: nobody.
type signals struct {
	bell   func()
	notify func(title, text string)
	copied func(text string)
}

// OnSignal sets who is told of bells, notifications and what the guest copies: all of it is
// text, bounded, and the guest's word. A Screen without it tells nobody. That the guest asks
// for the clipboard is told to nobody ever.
func (s *Screen) OnSignal(bell func(), notify func(title, text string), copied func(text string)) {
	s.signals = &signals{bell, notify, copied}
}

// notify is OSC 9, and OSC 777 after its first word.
func (s *Screen) notify(title, text string) {
	if title, text = sanitizeTo(title, maxNotice), sanitizeTo(text, maxNotice); s.signals != nil && title+text != "" {
		s.signals.notify(title, text)
	}
}

// progress says whether an OSC 9 isn't a notification but one of ConEmu's commands, which
// begin with a small number; its progress bar is the one in use.
func progress(rest string) bool {
	n, _, _ := strings.Cut(rest, ";")
	return len(n) > 0 && len(n) <= 2 && strings.Trim(n, "0123456789") == ""
}

// clipboard is OSC 52. Only texts are copied: what isn't one is nothing that a person
// would paste, and a question for the clipboard gets no answer.
func (s *Screen) clipboard(rest string) {
	_, data, ok := strings.Cut(rest, ";")
	if !ok || data == "?" || s.signals == nil {
		return
	}
	text, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(data, "="))
	if err == nil && len(text) > 0 && utf8.Valid(text) {
		s.signals.copied(string(text))
	}
}
