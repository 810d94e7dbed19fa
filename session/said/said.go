// Package said finds what an agent announced of an action before it did it: in
// the transcript that the agent keeps in its home folder, in a comment that its
// command begins with, in the message of its commit. It compares that with what
// the action did, by rules on words that anyone can read; see rules.go.
//
// An announcement is the agent's own and may be anything: it is read bounded and
// escaped, decides nothing, and what it doesn't mention is no fault. All of this
// may be called from any goroutine.
package said

import (
	"cmp"
	"strings"

	"stepbox/session/api"
)

// maxText bounds an announcement, in bytes.
const maxText = 200

// Announcement is what an agent said, and what was done that it must cover.
type Announcement struct {
	Text, Source string
	Deeds        []Deed
}

// Of puts announcements beside what was done. Of several, the first that doesn't
// cover that is told, else the first; nil: nothing was announced.
func Of(announced []Announcement) (out *api.Said) {
	for _, a := range announced {
		said := api.Said{Text: api.Escape(api.Trim(strings.TrimSpace(a.Text), maxText)), Source: a.Source}
		if said.Text == "" {
			continue
		}
		if does := Mismatch(a.Text, a.Source == FromCommit, a.Deeds); does != "" {
			said.Mismatch = "said: " + api.Trim(said.Text, 80) + "; " + does
			return &said
		}
		out = cmp.Or(out, &said)
	}
	return out
}

// Where an announcement stood.
const (
	FromCall    = "tool call"
	FromMessage = "message" // what the agent wrote before the call
	FromScreen  = "screen"  // the same, as long as it isn't in a transcript
	FromCommit  = "commit message"
	FromComment = "comment"
)

// InTranscripts says whether a source is an agent's transcript.
func InTranscripts(source string) bool { return source == FromCall || source == FromMessage }

// Comment is the comment that a command begins with, "" for none.
func Comment(line string) string {
	line, _, _ = strings.Cut(strings.TrimSpace(strings.ReplaceAll(line, `\n`, "\n")), "\n")
	if text, ok := strings.CutPrefix(line, "#"); ok && !strings.HasPrefix(text, "!") {
		return strings.TrimSpace(text)
	}
	return ""
}
