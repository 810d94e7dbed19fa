package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"sync"
	"time"

	"stepbox/session/api"
)

// lineMost bounds what of a command stands on one line, in characters.
const lineMost = 200

// row prints what belongs to a label, whole, on as many lines as it takes.
func row(w io.Writer, label, format string, a ...any) {
	text := []rune(fmt.Sprintf(format, a...))
	for {
		n := min(len(text), lineMost)
		fmt.Fprintf(w, "%s\t%s\n", label, string(text[:n]))
		if text, label = text[n:], ""; len(text) == 0 {
			return
		}
	}
}

// fact is a row of a value, unless there is none.
func fact(w io.Writer, label, value string) {
	if value != "" {
		row(w, label, "%s", value)
	}
}

// facts are rows of values, the first of which has the label.
func facts(w io.Writer, label string, values []string) {
	for _, v := range values {
		row(w, label, "%s", v)
		label = ""
	}
}

// each makes values into words.
func each[T any](all []T, words func(T) string) (out []string) {
	for _, v := range all {
		out = append(out, words(v))
	}
	return out
}

// cut shortens a line for a list; the whole of it is one command away.
func cut(s string, n int) string {
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	return string(r[:n-1]) + "…"
}

func since(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	d := time.Since(t).Round(time.Second)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds ago", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm ago", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh ago", int(d.Hours()))
	}
	return t.Local().Format("2006-01-02")
}

// reddening writes what failed in red: after the columns were made, whose width it
// isn't part of.
type reddening struct{ io.Writer }

var failure = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`✗ (exit \d+|SIG[A-Z0-9]+)`) })

func (r reddening) Write(p []byte) (int, error) {
	_, err := r.Writer.Write(failure().ReplaceAll(p, []byte("\x1b["+red+"m$0\x1b[m")))
	return len(p), err
}

// values writes JSON, a value a line. Everything of ours that is JSON for a person or a
// program is written by it: what an agent named or said may end on a terminal.
func values(out io.Writer) *json.Encoder { return json.NewEncoder(inert{out}) }

// inert writes JSON so that a terminal does nothing that it says. A Write has whole runes,
// as an encoder's has.
type inert struct{ io.Writer }

func (w inert) Write(p []byte) (int, error) {
	if _, err := w.Writer.Write(api.EscapeJSON(p)); err != nil {
		return 0, err
	}
	return len(p), nil
}
