package redact

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// shape is how a kind of secret looks. It begins with one of some texts, here in small
// letters, so that the expression, which begins there too, is tried in few places.
type shape struct {
	kind   string
	begins []string
	pairs  []uint8 // numbers of the first two letters of each
	word   bool    // not in the middle of a word
	re     func() *regexp.Regexp
	back   func() *regexp.Regexp                        // what belongs to it before its beginning; may be nil
	is     func(lead, before, value, after []byte) bool // looks closer; may be nil
}

// setting says whether what stands behind a secret setting's name is a value, and
// not a type, a variable or a call in some program's text.
func setting(_, before, value, after []byte) bool {
	quoted := strings.ContainsAny(string(before[len(before)-1:]), `"'`)
	shell := bytes.HasSuffix(before, []byte("=")) && bytes.Equal(before, bytes.ToUpper(before))
	return !bytes.HasPrefix(after, []byte("(")) && !version().Match(value) && (quoted || shell || bytes.ContainsAny(value, "0123456789"))
}

// version is a package's, or a range of them: its name may be any word.
var version = once(`^(?:[~^<>=!v]{0,3}\s?)\d{1,5}(?:\.(?:\d{1,9}|[x*])){1,3}(?:[-+][a-z]{1,8}(?:\.?\d{1,10})?)?,?$`)

// once is an expression that is compiled when it is first tried: few are, of most texts.
func once(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}

type table struct {
	shapes     []shape
	pairs      *[256][256]uint8      // numbers of the first two letters of all shapes, from 1 on
	secretName func() *regexp.Regexp // of a variable or setting
	assignment func() *regexp.Regexp // a variable's, as a word of a command
	address    func() *regexp.Regexp // what a word begins with that is an address
	header     func() *regexp.Regexp // an option, or a header that is given as one, before a place in a text
	cut        func() *regexp.Regexp // what stands at the end of a text that was cut off
	option     func() *regexp.Regexp // what stands before the name of one that is an option, or of a .netrc
	inWord     func() *regexp.Regexp // what a word begins with before a place in it
	escaped    func() *regexp.Regexp // the same, where it is a character's escape
}

// passwords are options that are passwords for some programs alone, whose names have
// to stand before them on the line.
var passwords = []password{
	{[]string{"curl", "wget"}, `(?:-u|--user|--proxy-user)[\s=]{0,4}["']?[^\s:"'$-][^\s:"']{0,200}:`, `[^\s"'$][^\s"']*`, []string{" -u", " --user", " --proxy-user"}},
	{[]string{"curl"}, `(?:-b|--cookie)[\s=]{0,4}["']?[^\s"'$=]+=`, `[^\s"'$][^"'\r\n]*`, []string{" -b", " --cookie"}},
	{[]string{"mysql", "mariadb", "7z"}, `-p["']?`, `[^\s"'$-][^\s"']*`, []string{" -p"}},
	{[]string{"sshpass", "docker login", "podman login", "mongo"}, `-p\s{0,4}["']?`, `[^\s"'$-][^\s"']*`, []string{" -p"}},
	{[]string{"ldap"}, `-w\s{0,4}["']?`, `[^\s"'$-][^\s"']*`, []string{" -w"}},
	{[]string{"redis-cli"}, `-a\s{0,4}["']?`, `[^\s"'$-][^\s"']*`, []string{" -a"}},
}

type password struct {
	of            []string
	option, value string
	begins        []string
}

// is says whether one of the programs is called before.
func (p password) is(lead, _, _, _ []byte) bool {
	line := lead[bytes.LastIndexAny(lead, "\n;|&")+1:]
	return slices.ContainsFunc(p.of, func(name string) bool { return bytes.Contains(line, []byte(name)) })
}

// Kinds of what stands behind the name of a setting, and behind an option of some programs.
const (
	settingKind  = "value of a secret setting"
	passwordKind = "password on a command line"
)

// names are words that a secret setting's name ends with, after - _ . or none.
const names = `(?:pass(?:word|wd|phrase)?|secret|token|api[-_]?key|access[-_]?key|secret[-_]?key|private[-_]?key|auth[-_]?key|credentials?)`

// rules is the table of shapes, after what the services document of their tokens
// and what the rules of gitleaks and GitHub's secret scanning have in common. It is
// made on first use: every re-execution of the binary would pay for it otherwise.
var rules = sync.OnceValue(func() table {
	var t table
	add := func(kind, expr string, begins ...string) {
		// Nothing else looks like a long one that ends in a mark; and cut off, as long arguments are, that alone tells.
		sure := !slices.ContainsFunc(begins, func(b string) bool { return len(b) < 4 || !strings.ContainsAny(b[len(b)-1:], "_-") })
		if sure {
			expr += `|(?i:` + strings.Join(begins, "|") + `)[A-Za-z0-9_.=-]*… and \d+ bytes more`
		}
		t.shapes = append(t.shapes, shape{kind: kind, begins: begins, word: !sure, re: once(`^(?:` + expr + `)`)})
	}
	within := func(kind, expr string, is func(lead, before, value, after []byte) bool, begins ...string) {
		t.shapes = append(t.shapes, shape{kind: kind, begins: begins, re: once(`^(?i:` + expr + `)`), is: is})
	}
	// Cut off, all that looks like its lines goes. Between the lines of a JSON text stand \n. Another's
	// beginning, with its dashes, ends the search: of many without an end each reads on to the next alone.
	within("private key", `-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----(?:(?:[A-Za-z0-9+/=:,. \t\r\n\\]|-[A-Za-z0-9])*?-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|[A-Za-z0-9+/=\r\n\\]*)`, nil, "-----begin ")
	// Its last lines alone, as a difference shows them with what was changed behind it.
	const marks, base64 = "[ \\t>|#*\"',+-]*", `[A-Za-z0-9+/=\\]`
	within("private key", `-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----`, nil, "-----end ")
	t.shapes[len(t.shapes)-1].back = once(`(?:(?m:^)` + marks + base64 + "{16,}[ \\t\\r\"',]*\n)*(?:(?m:^)" + marks + base64 + "+[ \\t\\r\"',]*\n)?(?:(?m:^)" + marks + `)?(?:` + base64 + `{16,})?$`)
	add("GitHub token", `gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{22,}`, "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_")
	add("GitLab token", `gl(?:pat|dt|rt|cbt|ptt|ft|soat|agent)-[A-Za-z0-9_.=-]{16,}`, "glpat-", "gldt-", "glrt-", "glcbt-", "glptt-", "glft-", "glsoat-", "glagent-")
	add("AWS access key", `(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}\b`, "akia", "asia", "abia", "acca")
	add("Anthropic key", `sk-ant-[A-Za-z0-9_-]{16,}`, "sk-ant-")
	add("OpenAI key", `sk-(?:proj-|svcacct-|admin-)?[A-Za-z0-9_-]{20,}`, "sk-")
	add("Slack token", `xox[abeoprs]-[A-Za-z0-9-]{10,}`, "xox")
	add("Slack webhook", `hooks\.slack\.com/(?:services|workflows|triggers)/([A-Za-z0-9+/]{20,})`, "hooks.slack.com/")
	add("Stripe key", `(?:[rs]k_(?:live|test)|whsec)_[A-Za-z0-9]{16,}`, "sk_live_", "rk_live_", "sk_test_", "rk_test_", "whsec_")
	add("Google key", `AIza[0-9A-Za-z_-]{35}|ya29\.[0-9A-Za-z_-]{20,}|GOCSPX-[0-9A-Za-z_-]{20,60}`, "aiza", "ya29.", "gocspx-")
	add("npm token", `npm_[A-Za-z0-9]{36}`, "npm_")
	add("PyPI token", `pypi-[A-Za-z0-9_-]{32,}`, "pypi-")
	add("crates.io token", `cio[A-Za-z0-9]{32}\b`, "cio")
	add("Hugging Face token", `hf_[A-Za-z0-9]{30,}`, "hf_")
	add("DigitalOcean token", `do[opr]_v1_[a-f0-9]{64}`, "dop_v1_", "doo_v1_", "dor_v1_")
	add("SendGrid key", `SG\.[A-Za-z0-9_-]{16,64}\.[A-Za-z0-9_-]{16,64}`, "sg.")
	add("Docker token", `dckr_(?:pat|oat)_[A-Za-z0-9_-]{20,}`, "dckr_")
	within("Telegram token", `:AA[A-Za-z0-9_-]{32,33}`, func(lead, _, _, _ []byte) bool { return bytes.ContainsAny(lead[max(0, len(lead)-1):], "0123456789") }, ":aa")
	add("age key", `AGE-SECRET-KEY-1[0-9A-Z]{58}`, "age-secret-key-")
	add("JSON web token", `eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}`, "eyj")
	within("Authorization header", `authorization["']?\s{0,4}[:=]\s{0,4}["']?(?:(?:bearer|basic|token|negotiate|digest|apikey)\s{1,4})?([A-Z0-9+/=_.~:-]{6,})`, func(_, _, value, _ []byte) bool {
		return !strings.Contains("bearer negotiate digest apikey", strings.ToLower(string(value))) // with nothing behind it
	}, "authorization")
	within("bearer token", `bearer\s{1,4}([A-Z0-9+/=_.~-]{16,})`, nil, "bearer")
	// A cookie has a name and a value; a package of that name has a version.
	within("cookie", `cookie["']?\s{0,4}:\s{0,4}([A-Z0-9_][A-Z0-9_!#$%&*+.^|~-]{0,200}=(?:"[^\r\n"]*"|[^\r\n"']){3,}(?:="[^\r\n"]*"|[^\r\n"'])*)`, nil, "cookie")
	within("password in an address", `://[^\s/:@"'<>]*:([^\s/"'<>]+)@`, nil, "://")
	// NAME=value, "name": "value", --name value
	about := []string{"pass", "secret", "token", "api", "access", "private", "auth", "credential"}
	const quoted = `"((?:[^"\\\r\n]|\\[^"\r\n]){6,})\\?"|'([^'\r\n]{6,})'|`
	within(settingKind, names+`\\?["']?\s{0,4}[:=]>?\s{0,4}\\?(?:`+quoted+`["']?([^\s"'\\$(){}<>\[\];,&|]{6,}))`, setting, about...)
	within(settingKind, `(?-i:`+strings.ToUpper(names)+`|_KEY|_PWD)=([^\s"'$][^\s"']{5,})`, setting, append(about, "_key", "_pwd")...)
	within(settingKind, names+`\s{1,4}(?:`+quoted+`["']?([^\s"'$(){}<>\[\]-][^\s"'$(){}<>\[\]]{5,}))`, func(lead, _, _, _ []byte) bool { return t.option().Match(lead[max(0, len(lead)-90):]) }, about...)
	for _, p := range passwords {
		within(passwordKind, `\s`+p.option+`(`+p.value+`)`, p.is, p.begins...)
	}
	t.number()
	t.secretName = once(`(?:^|_|-|[A-Za-z])(?i:` + names + `)$|_(?:KEY|PWD)$`)
	t.assignment = once(`(?:^|[\s'"])(-?-?[A-Za-z_][A-Za-z0-9_-]*)=("?'?)([^\s'"]+)`)
	t.address = once(`^(?:[\w-]*=)?(?:https?|ssh|git|ftps?|wss?|postgres(?:ql)?|mysql|mariadb|rediss?|mongodb(?:\+srv)?|amqps?)://`)
	t.header = once(`(?:(?:^|\s)--?[A-Za-z][A-Za-z0-9-]{0,60}[\s=]{1,4}["']?(?:[A-Za-z][A-Za-z0-9-]{0,60}:\s{1,4}(?:[A-Za-z]{1,12}\s{1,4})?)?["']?)$`)
	t.cut = once(`…(?: and \d+ (?:bytes )?more)?$`)
	t.option = once(`(?i)(?:\s--?(?:[a-z0-9]{1,20}-){0,3}|\blogin\s+\S{1,60}\s+)$`)
	t.inWord = once(`[0-9A-Za-z_]$`)
	t.escaped = once(`(?:\\[abefnrtv]|\\x[0-9A-Fa-f]{2}|\\u[0-9A-Fa-f]{4}|\\[0-7]{3}|%[0-9A-Fa-f]{2})$`)
	return t
})

// number gives the first two letters of each beginning their number.
func (t *table) number() {
	t.pairs = new([256][256]uint8)
	var last uint8
	for i := range t.shapes {
		for _, begin := range t.shapes[i].begins {
			n := &t.pairs[begin[0]][begin[1]]
			if *n == 0 {
				last++
				*n = last
			}
			t.shapes[i].pairs = append(t.shapes[i].pairs, *n)
		}
	}
}
