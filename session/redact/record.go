package redact

import (
	"bytes"
	"encoding/json"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"stepbox/session/api"
)

// Recording makes a Redactor for what a session records: of the agent's environment
// (environ, each NAME=value) it hides the values of variables whose names say that they
// are secret, or that are named, and of its command line (argv) what looks so, wherever
// they are. Several goroutines may use it.
//
// What else looks like a secret is hidden only if it is made of characters that mean
// nothing to a shell: an agent could otherwise hide a part of a command from the person
// who is asked about it.
func Recording(environ, argv []string, named ...string) *Redactor {
	r := &Redactor{recording: true}
	for _, kv := range environ {
		if name, value, _ := strings.Cut(kv, "="); api.SecretName(name) || slices.Contains(named, name) {
			r.knowAll(value)
		}
	}
	for _, value := range r.given(argv) {
		r.knowAll(value)
	}
	return r
}

// Know hides further values. It is called before anything is recorded.
func (r *Redactor) Know(values ...string) {
	for _, v := range values {
		r.knowAll(v)
	}
}

// knowAll hides a value, in each way in which it may be written. A file's path is no
// secret, although the file may hold one.
func (r *Redactor) knowAll(value string) {
	if filepath.IsAbs(value) {
		if _, err := os.Lstat(value); err == nil {
			return
		}
	}
	forms := []string{value, api.Escape(value), api.EscapeScript(value), url.QueryEscape(value), url.PathEscape(value), strings.ReplaceAll(value, "'", `'\''`)}
	for _, form := range append(forms, inJSON(value)...) {
		if !slices.ContainsFunc(r.known, func(l literal) bool { return bytes.EqualFold(l.value, []byte(form)) }) {
			r.know(form, "")
		}
	}
}

// inJSON is how a value stands in JSON, as in what an agent hands to a tool: encoders have
// their own ways with what HTML knows. A shell's double quotes are alike.
func inJSON(value string) (out []string) {
	for _, html := range []bool{false, true} {
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(html)
		if e.Encode(value) == nil {
			out = append(out, strings.TrimSuffix(strings.TrimPrefix(b.String(), `"`), "\"\n"))
		}
	}
	return out
}

// variable are the characters of the names of variables, as they are usually written.
const variable = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"

// given are the values on a command line that look secret.
func (r *Redactor) given(argv []string) (out []string) {
	for i, arg := range argv {
		if i > 0 && option().MatchString(argv[i-1]) && !strings.HasPrefix(arg, "-") {
			out = append(out, arg)
		}
		if name, value, ok := strings.Cut(arg, "="); ok && (option().MatchString(name) || strings.Trim(name, variable) == "" && api.SecretName(name)) {
			out = append(out, value)
		}
		for _, s := range r.find([]byte(arg)) {
			out = append(out, arg[s.from:s.to])
		}
	}
	return out
}

// Args is an argument list, in which what stands before an argument counts, too.
func (r *Redactor) Args(argv []string) []string {
	out := slices.Clone(argv)
	var before []byte
	for i, arg := range argv {
		if i > 0 && takesFiles([]byte(argv[i-1])) {
			for j := i; j < len(argv); j++ {
				out[j] = r.Text(argv[j], "")
			}
			break
		}
		out[i] = r.behind(before, arg, "")
		if before = further(before, arg); i > 0 && out[i] == arg && option().MatchString(argv[i-1]) && plain(arg) {
			out[i] = api.Hidden
		}
	}
	return out
}

// fileTools are programs to which words that look like options are files, behind --, or whose
// --password has no value, and databases follow. None has a secret of its own behind an
// option: what it does to which has to be seen.
var fileTools = []string{
	"rm", "rmdir", "unlink", "shred", "truncate", "mv", "cp", "ln", "install", "chmod", "chown", "chgrp", "dd", "tee", "touch",
	"psql", "pg_dump", "pg_dumpall", "pg_restore", "createdb", "dropdb", "createuser", "dropuser", "reindexdb", "vacuumdb",
}

func takesFiles(word []byte) bool { return slices.Contains(fileTools, path.Base(string(word))) }

// otherTools are further programs to which -p, -w and the like are no password, while a
// word that names one to which they are, such as a host or a variable, may stand anywhere.
var otherTools = []string{"scp", "sftp", "rsync", "tar", "zip", "git", "hg", "svn", "gh", "npm", "pnpm", "yarn", "cargo", "mkdir", "patch", "kill", "pkill"}

// isShown says whether what was found in a text, behind an option or the name of a setting,
// is something else to a program of this simple command, which has to be seen.
func isShown(kind string, before []byte) bool {
	simple := before[bytes.LastIndexAny(before, ";|&\n")+1:]
	return kind == settingKind && slices.ContainsFunc(bytes.Fields(simple), takesFiles) ||
		kind == passwordKind && slices.ContainsFunc(bytes.Fields(simple), func(word []byte) bool {
			return takesFiles(word) || slices.Contains(otherTools, path.Base(string(word)))
		})
}

// Hides says whether there is something to hide in a command line.
func (r *Redactor) Hides(argv []string) bool { return !slices.Equal(argv, r.Args(argv)) }

// Of is a resource without its secrets; what can't be made JSON is nothing.
func Of[T any](r *Redactor, of T) (out T) {
	if r == nil {
		return of
	}
	doc, err := json.Marshal(of)
	if err != nil {
		return out
	}
	doc, same := r.JSON(doc, "")
	if same {
		return of
	}
	_ = json.Unmarshal(doc, &out) // which is what it was made from
	return out
}

// exactly are members whose texts a session that goes on needs as they are, or that name
// what is recorded: none of them comes from a command. A "credential" is one's name.
var exactly = []string{"id", "hash", "same", "folder", "hidden_paths", "started_at", "at", "kind", "state", "number", "credential"}

// exact says whether the texts of a member are recorded as they are.
func (r *Redactor) exact(member string) bool { return r.recording && slices.Contains(exactly, member) }

// variables are members that list variables, each NAME=value.
var variables = []string{"env", "env_usual", "variables"}

// member replaces the secrets of a text that is, or is listed, in a member of a JSON object.
func (r *Redactor) member(name string, before []byte, text, where string) string {
	switch {
	case !r.recording:
	case r.exact(name):
		return text
	case slices.Contains(variables, name):
		if of, value, ok := strings.Cut(text, "="); ok && value != "" && api.SecretName(of) && plain(value) && !inPath([]byte(value), 0, len(value)) {
			return of + "=" + api.Hidden
		}
	}
	return r.behind(before, text, where)
}

// broken is a text, byte for byte, in which the marks of line breaks are some: a value
// ends there, and what comes is another command. Nil: it has none.
func broken(text []byte) (lines []byte) {
	for _, mark := range []string{api.Break, `\n`} {
		if bytes.Contains(text, []byte(mark)) {
			lines = bytes.ReplaceAll(text, []byte(mark), bytes.Repeat([]byte("\n"), len(mark)))
			text = lines
		}
	}
	return lines
}

// forRecord leaves out of what was found in a text what is shown in records all the same,
// and adds assignments, and known values that were cut off.
func (r *Redactor) forRecord(text, small []byte, found []span) []span {
	out := slices.DeleteFunc(found, func(s span) bool {
		program := bytes.HasSuffix(bytes.TrimRight(small[:s.from], `"'\`), []byte("askpass=")) // it names one that is run
		return s.kind != "" && (program || inPath(text, s.from, s.to) || isShown(s.kind, text[:s.from]) || apart(text[:s.from]) || !plain(string(text[s.from:s.to])))
	})
	if bytes.IndexByte(text, '=') >= 0 {
		for _, m := range rules().assignment().FindAllSubmatchIndex(text, -1) {
			name, value := string(text[m[2]:m[3]]), string(text[m[6]:m[7]])
			secret := option().MatchString(name) || name == strings.ToUpper(name) && api.SecretName(name)
			if program := strings.HasSuffix(strings.ToLower(name), "askpass"); secret && !program && plain(value) && !inPath(text, m[6], m[7]) {
				out = append(out, span{m[6], m[7], "value"})
			}
		}
	}
	if end := rules().cut().FindIndex(text); end != nil {
		for _, l := range r.known {
			for n := min(len(l.value)-1, end[0]); n >= minLiteral; n-- {
				if bytes.HasSuffix(small[:end[0]], l.value[:n]) {
					out = append(out, span{end[0] - n, end[0], ""})
					break
				}
			}
		}
	}
	return out
}

// inPath says whether a part of a text stands in a word with a slash: that may be a path, and so a program's. An address
// of a usual kind is none.
func inPath(text []byte, from, to int) bool {
	const ends = " \t\r\n\"'`"
	from = bytes.LastIndexAny(text[:from], ends) + 1
	if end := bytes.IndexAny(text[to:], ends); end >= 0 {
		to += end
	} else {
		to = len(text)
	}
	word := text[from:to]
	return bytes.IndexByte(word, '/') >= 0 && !rules().address().Match(word)
}

// apart says whether what comes is a word of its own to a shell, behind one that isn't an
// option or a header's name: such a word may be a program, whatever stands before it. So
// may the first of a line be, in any case.
func apart(lead []byte) bool {
	at := bytes.TrimRight(lead, `"'\`)
	if bytes.HasSuffix(bytes.TrimRight(at, "\"'\\ \t\r"), []byte("\n")) {
		return true
	}
	return len(at) > 0 && strings.ContainsRune(" \t\r\n", rune(at[len(at)-1])) && !rules().header().Match(lead[max(0, len(lead)-120):])
}

// plain says whether a shell takes a text for one word that is only what it says.
func plain(s string) bool {
	return s != "" && s[0] != '-' && !strings.ContainsFunc(s, func(c rune) bool {
		return c != '•' && (c <= ' ' || c > '~' || strings.ContainsRune("$`\"'\\;|&<>(){}*?[]#!", c))
	})
}
