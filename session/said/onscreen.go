package said

import (
	"regexp"
	"slices"
	"strings"
)

// What Claude Code draws before what it says and each call, and below its results.
const (
	bullet = "● "
	called = bullet + "Bash("
	result = "⎿"
)

var aCall = regexp.MustCompile("^" + bullet + `\w+\(`)

// OnScreen finds what an agent said before its call of a command on its screen: one that
// waits for its command's start can't write its transcript. The call must be the last
// that is drawn, and what is above it a message; else it is "". Lines are escaped.
func OnScreen(rows, lines []string) string {
	at := lastIndex(rows, func(r string) bool { return strings.HasPrefix(r, bullet) })
	if at < 0 {
		return ""
	}
	line, isCall := strings.CutPrefix(rows[at], called)
	whole := strings.TrimSuffix(line, ")")
	if !isCall || len(line) == 0 || !slices.ContainsFunc(lines, func(l string) bool { return l == whole || len(line) > 8 && strings.HasPrefix(l, line) }) {
		return ""
	}
	from := lastIndex(rows[:at], func(r string) bool { return r != "" && !strings.HasPrefix(r, "  ") })
	if from < 0 || !strings.HasPrefix(rows[from], bullet) || aCall.MatchString(rows[from]) || slices.ContainsFunc(rows[from:at], func(r string) bool { return strings.Contains(r, result) }) {
		return ""
	}
	message := strings.TrimSpace(strings.Join(rows[from:at], "\n"))
	if i := strings.LastIndex(message, "\n\n"); i >= 0 { // its last paragraph, as of a transcript
		message = message[i:]
	}
	return strings.Join(strings.Fields(strings.TrimPrefix(message, bullet)), " ")
}

func lastIndex(rows []string, is func(string) bool) int {
	for i, r := range slices.Backward(rows) {
		if is(r) {
			return i
		}
	}
	return -1
}
