package cli

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"

	"stepbox/session/api"
)

// isMoment says whether a word is a moment of a session's course; "" isn't.
func isMoment(word string) bool {
	_, err := api.Moment(word).Parse()
	return err == nil && word != ""
}

// isRange says whether a word is two moments, A..B, of which either may be left out.
func isRange(word string) bool {
	from, to := api.CutRange(word)
	return word != ".." && isMoment(string(from)) && (to == "" || isMoment(string(to)))
}

// cutMoment splits WORD@MOMENT, or WORD@A..B where ranges may be meant. What comes
// after the last @ and is neither belongs to the word.
func cutMoment(word string, ranges bool) (before, at string) {
	if i := strings.LastIndexByte(word, '@'); i >= 0 && (isMoment(word[i+1:]) || ranges && isRange(word[i+1:])) {
		return word[:i], word[i+1:]
	}
	return word, ""
}

// sessionAt is what SESSION[@MOMENT] names, or with ranges SESSION[@A..B]. A session
// that is named like all of the word goes first.
func (c command) sessionAt(word string, ranges bool) (api.Session, string, error) {
	return findAt(word, ranges, c.toRead)
}

// fileAt is what SESSION:PATH[@MOMENT] names; without a session before the colon it
// is the one that a command without any means. At is the moment that was given apart,
// and then all after the colon is the path.
func (c command) fileAt(word, at string) (s api.Session, file string, m api.Moment, err error) {
	if !strings.Contains(word, ":") {
		return s, "", "", usage("%q names no file of a session: use SESSION:PATH, or SESSION:PATH@12 for what it was after action 12", api.Escape(word))
	}
	var first error
	for i := range len(word) {
		if word[i] != ':' {
			continue
		}
		if s, err = c.toRead(word[:i]); err == nil {
			file, first = word[i+1:], nil
			break
		}
		first = cmp.Or(first, err)
	}
	if first != nil {
		return s, "", "", first
	}
	if at == "" {
		file, at = cutMoment(file, false)
	}
	file, err = inProject(file)
	return s, file, api.Moment(at), err
}

// inProject is a path below the project, as it is asked for.
func inProject(name string) (string, error) {
	clean := path.Clean(name)
	if name == "" || clean == "." || clean == ".." || strings.HasPrefix(clean, "/") || strings.HasPrefix(clean, "../") {
		return "", usage("%q is no file below the project: name it from there, as src/main.go", api.Escape(name))
	}
	return clean, nil
}

// scope reads [SESSION[@MOMENT|@A..B]] [ACTION|A..B] [PATH...].
func (c command) scope(args []string) (s api.Session, in api.Scope, paths []string, err error) {
	between := func(word string) { in.From, in.To = api.CutRange(word) }
	if len(args) > 0 && isRange(args[0]) {
		between(args[0])
		s, err = c.toRead("")
		return s, in, args[1:], err
	}
	if len(args) > 1 {
		n, bad := strconv.Atoi(args[1])
		switch {
		case isRange(args[1]):
			between(args[1])
		case bad == nil && n > 0:
			in.Action = n
		case bad == nil:
			return s, in, nil, usage("%q is no action number; stepbox show lists the actions", api.Escape(args[1]))
		}
	}
	s, at, err := c.sessionAt(optional(args), true)
	if err != nil {
		return s, in, nil, err
	}
	if at != "" {
		if in != (api.Scope{}) {
			return s, in, nil, errors.Join(ErrUsage, fmt.Errorf("name moments once: %s@%s or %s", s.Name, at, args[1]))
		}
		between(at)
	}
	if len(args) > 0 {
		paths = args[1:]
	}
	if len(paths) > 0 && at == "" && in != (api.Scope{}) {
		paths = paths[1:]
	}
	return s, in, paths, nil
}
