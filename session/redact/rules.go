package redact

import (
	"bytes"
	"regexp"
	"strings"
	"sync"
)

// shape is how a kind of secret looks. Hints are texts in small letters, of which one
// must be there before the expression is tried.
type shape struct {
	kind  string
	hints []string
	re    *regexp.Regexp
	is    func(before, value, after []byte) bool // looks closer at what was matched; may be nil
}

func (s shape) maybe(lower []byte) bool {
	for _, h := range s.hints {
		if bytes.Contains(lower, []byte(h)) {
			return true
		}
	}
	return false
}

// setting says whether what stands behind a secret setting's name is a value, and
// not a type, a variable or a call in some program's text.
func setting(before, value, after []byte) bool {
	quoted := len(before) > 0 && strings.ContainsAny(string(before[len(before)-1:]), `"'`)
	shell := bytes.HasSuffix(before, []byte("=")) && bytes.Equal(before, bytes.ToUpper(before))
	return !bytes.HasPrefix(after, []byte("(")) && (quoted || shell || bytes.ContainsAny(value, "0123456789"))
}

type table struct {
	shapes     []shape
	secretName *regexp.Regexp // of a variable or setting
}

// names are words that a secret setting's name ends with, after - _ . or none.
const names = `(?:pass(?:word|wd|phrase)?|secret|token|api[-_]?key|access[-_]?key|secret[-_]?key|private[-_]?key|auth[-_]?key|credentials?)`

// rules is the table of shapes, after what the services document of their tokens
// and what the rules of gitleaks and GitHub's secret scanning have in common. It is
// made on first use: every re-execution of the binary would pay for it otherwise.
var rules = sync.OnceValue(func() table {
	var t table
	add := func(kind, expr string, hints ...string) {
		t.shapes = append(t.shapes, shape{kind: kind, hints: hints, re: regexp.MustCompile(expr)})
	}
	// Cut off, all that looks like its lines goes. Between the lines of a JSON text stand \n.
	add("private key", `-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----(?:[A-Za-z0-9+/=:,. \t\r\n\\-]*?-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|[A-Za-z0-9+/=\r\n\\]*)`, "private key")
	add("GitHub token", `\b(?:gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{22,})`, "gh", "github_pat_")
	add("GitLab token", `\bgl(?:pat|dt|rt|cbt|ptt|ft|soat|agent)-[A-Za-z0-9_.=-]{16,}`, "gl")
	add("AWS access key", `\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}\b`, "akia", "asia", "abia", "acca")
	add("Anthropic key", `\bsk-ant-[A-Za-z0-9_-]{16,}`, "sk-ant-")
	add("OpenAI key", `\bsk-(?:proj-|svcacct-|admin-)?[A-Za-z0-9_-]{20,}`, "sk-")
	add("Slack token", `\bxox[abeoprs]-[A-Za-z0-9-]{10,}`, "xox")
	add("Slack webhook", `hooks\.slack\.com/(?:services|workflows|triggers)/([A-Za-z0-9+/]{20,})`, "hooks.slack.com")
	add("Stripe key", `\b(?:[rs]k_(?:live|test)|whsec)_[A-Za-z0-9]{16,}`, "k_live_", "k_test_", "whsec_")
	add("Google key", `\bAIza[0-9A-Za-z_-]{35}|\bya29\.[0-9A-Za-z_-]{20,}|\bGOCSPX-[0-9A-Za-z_-]{20,60}`, "aiza", "ya29.", "gocspx-")
	add("npm token", `\bnpm_[A-Za-z0-9]{36}`, "npm_")
	add("PyPI token", `\bpypi-[A-Za-z0-9_-]{32,}`, "pypi-")
	add("crates.io token", `\bcio[A-Za-z0-9]{32}\b`, "cio")
	add("Hugging Face token", `\bhf_[A-Za-z0-9]{30,}`, "hf_")
	add("DigitalOcean token", `\bdo[opr]_v1_[a-f0-9]{64}`, "_v1_")
	add("SendGrid key", `\bSG\.[A-Za-z0-9_-]{16,64}\.[A-Za-z0-9_-]{16,64}`, "sg.")
	add("Docker token", `\bdckr_(?:pat|oat)_[A-Za-z0-9_-]{20,}`, "dckr_")
	add("Telegram token", `\b[0-9]{8,10}:AA[A-Za-z0-9_-]{32,33}`, ":aa")
	add("age key", `\bAGE-SECRET-KEY-1[0-9A-Z]{58}`, "age-secret-key-")
	add("JSON web token", `\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}`, "eyj")
	add("Authorization header", `(?i)\b(?:proxy-)?authorization["']?\s{0,4}[:=]\s{0,4}["']?(?:(?:bearer|basic|token|negotiate|digest|apikey)\s{1,4})?([A-Za-z0-9+/=_.~:-]{6,})`, "authorization")
	add("bearer token", `(?i)\bbearer\s{1,4}([A-Za-z0-9+/=_.~-]{16,})`, "bearer")
	add("cookie", `(?i)\b(?:set-)?cookie["']?\s{0,4}:\s{0,4}([^\r\n"']{8,})`, "cookie")
	add("password in an address", `\b[a-zA-Z][a-zA-Z0-9+.-]{1,20}://[^\s/:@"'<>]*:([^\s/@"'<>]+)@`, "://")
	// NAME=value, "name": "value", --name value
	about := []string{"pass", "secret", "token", "key", "credential"}
	add("value of a secret setting", `(?i)`+names+`["']?\s{0,4}[:=]>?\s{0,4}\\?["']?([^\s"'\\$(){}<>\[\];,&|]{6,})`, about...)
	t.shapes[len(t.shapes)-1].is = setting
	add("value of a secret setting", `(?i)\s--?(?:[a-z]{1,20}-)?`+names+`\s{1,4}["']?([^\s"'$(){}<>\[\]-][^\s"'$(){}<>\[\]]{5,})`, about...)
	t.secretName = regexp.MustCompile(`(?i)(?:^|_|-|[a-z])` + names + `$`)
	return t
})
