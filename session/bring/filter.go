package bring

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"stepbox/policy"
	"stepbox/session/api"
	"stepbox/session/redact"
)

// filter takes out of settings what is secret and what is a program of the host's.
type filter struct {
	of     policy.BroughtSettings
	secret func(string) (without string) // takes out secrets that are known by their shape
	left   func(kind, key, why string)
}

// patterns are made on first use: every re-execution of the binary would pay for them.
var patterns = sync.OnceValue(func() (p struct{ name, short, broad, query, reference, harmless, way, uuid *regexp.Regexp }) {
	// Names of settings that hold a secret, wherever they stand; and those that may, of
	// variables, headers and arguments, where more is left out than must be.
	const sure = `pass(word|wd|phrase)?|secret|token|api[-_]?key|access[-_]?key|secret[-_]?key|private[-_]?key|auth[-_]?key|credentials?|authorization|cookie`
	const maybe = `key|token|secret|passw|passphrase|pass$|pwd|oauth|auth([^o]|$)|cred|cookie|session|private|signature|dsn|bearer|jwt|(^|[_-])(pat|pw|pin)$|connection_?string|webhook`
	p.name = regexp.MustCompile(`(?i)(^|[_-]|[a-z])(` + sure + `)s?$`)
	p.short = regexp.MustCompile(`(?i)^([a-z]+[_-])?(auth|pw|pwd|pin|bearer)$`)
	p.way = regexp.MustCompile(`(?i)^(oauth2?|basic|bearer|digest|token|api[-_ ]?key|iam|adc|[a-z]+[-_](login|auth))$`) // of signing in
	p.broad = regexp.MustCompile(`(?i)` + maybe)
	p.query = regexp.MustCompile(`(?i)[?&;#][^=&;#]*(` + maybe + `|code|sig)[^=&;#]*=[^&;#]`)
	// What only names where a secret is: $NAME, {env:NAME}, X_API_KEY; and what people write where a
	// local model wants something.
	p.reference = regexp.MustCompile(`^(?i:bearer |token )?(\$[A-Za-z_]\w*|\$\{[A-Za-z_]\w*\}|\{env:[A-Za-z_]\w*\}|[A-Z]+(_[A-Z]+)*_(KEY|TOKEN)|` +
		`(?i:ollama|none|dummy|local|lm-?studio|vllm|empty|unused|not-needed|no-?key))$`)
	p.harmless = regexp.MustCompile(`^(true|false|yes|no|on|off|[0-9]{0,3})$`)
	p.uuid = regexp.MustCompile(`(?i)[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}`)
	return p
})

// variables are settings that are lists of variables, and headers those of an HTTP
// request's, by their names without case and marks.
var (
	variables = []string{"env", "environment", "envvars", "setenv", "set", "queryparams", "query"}
	headers   = []string{"header", "headers", "httpheader", "httpheaders", "customheaders", "extraheaders", "defaultheaders", "requestheaders"}
	servers   = []string{"mcpservers", "mcp", "servers", "lsp"}
)

func plain(key string) string {
	return strings.NewReplacer("_", "", "-", "").Replace(strings.ToLower(key))
}

// under says whether one of the keys that lead to a place is in a list.
func under(at []string, list []string) bool {
	return slices.ContainsFunc(at, func(k string) bool { return slices.Contains(list, plain(k)) })
}

// matches says whether a place is one of those that a profile names.
func matches(at, keys []string) bool {
	return slices.ContainsFunc(keys, func(k string) bool {
		ok, err := path.Match(strings.ReplaceAll(k, ".", "/"), strings.Join(at, "/"))
		return ok && err == nil
	})
}

// value is what stays of a value; ok is false when nothing does.
func (f *filter) value(at []string, v any) (_ any, ok bool) {
	switch v := v.(type) {
	case map[string]any:
		return f.members(at, v)
	case []any:
		return f.list(at, v), true
	case string:
		if why := f.hides(at, v); why != "" {
			f.left(api.LeftToken, strings.Join(at, "."), why)
			return nil, false
		}
	default: // a password may be a number
		if text := fmt.Sprint(v); v != nil && f.hides(at, text) != "" {
			return f.value(at, text)
		}
	}
	return v, true
}

func (f *filter) members(at []string, m map[string]any) (any, bool) {
	out := map[string]any{}
	for _, key := range slices.Sorted(maps.Keys(m)) {
		v := m[key]
		here := append(slices.Clip(at), key)
		switch name := strings.Join(here, "."); {
		case f.secret(key) != key:
			f.left(api.LeftToken, strings.Join(append(slices.Clip(at), "…"), "."), "its name is one")
		case matches(here, f.of.Hooks):
			f.left(api.LeftHook, name, "it is run by itself; in the sandbox it would be the agent's")
		case matches(here, f.of.Programs):
			f.left(api.LeftProgram, name, "it is a program of this machine")
		case holdsSecret(key, v):
			f.left(api.LeftToken, name, "its name says that it is secret")
		default:
			if kept, ok := f.value(here, v); ok {
				out[key] = kept
			}
		}
	}
	// A server without its address isn't valid, and then none of the settings may be.
	for _, must := range []string{"url", "httpUrl", "serverUrl", "command"} {
		if _, kept := out[must]; len(at) > 1 && under(at[len(at)-2:len(at)-1], servers) && m[must] != nil && !kept {
			f.left(api.LeftSetting, strings.Join(at, "."), "nothing of it works without its "+must+", which holds a secret")
			return nil, false
		}
	}
	return out, true
}

// holdsSecret says whether a setting's name says that its value is secret. A number
// under a name in the plural counts something, such as tokens.
func holdsSecret(key string, v any) bool {
	if !patterns().name.MatchString(key) {
		return false
	}
	switch v := v.(type) {
	case string:
		return v != "" && !patterns().reference.MatchString(v) && !counts(key, v)
	case bool, nil:
		return false
	case map[string]any, []any:
		return true
	}
	return !strings.HasSuffix(strings.ToLower(key), "s")
}

// list keeps the place of what is taken out: they may be a program's arguments.
func (f *filter) list(at []string, l []any) []any {
	out, before := []any{}, ""
	for _, v := range l {
		text, isText := v.(string)
		if n, ok := v.(json.Number); ok { // TOML's and YAML's are no arguments: those are texts there
			text, isText = n.String(), true
		}
		if isText {
			if why := cmp.Or(f.hides(at, text), f.argument(before, text)); why != "" {
				f.left(api.LeftToken, strings.Join(at, "."), why)
				v = redact.Mark + "left out]"
			}
		} else if kept, ok := f.value(at, v); ok {
			v = kept
		} else {
			continue
		}
		out, before = append(out, v), text
	}
	return out
}

// argument says why one of a program's arguments hides a secret: by its own name, as in
// NAME=value or "Name: value", or by that of the option before it.
func (f *filter) argument(before, text string) string {
	p := patterns()
	option := strings.TrimLeft(before, "-")
	if strings.HasPrefix(before, "-") && !strings.ContainsAny(before, "=: ") && p.broad.MatchString(option) && !strings.HasPrefix(text, "-") && !p.reference.MatchString(text) {
		return "the option before it says that it is secret"
	}
	i := strings.IndexAny(text, "=:")
	if i < 0 || strings.ContainsAny(text[:i], "/ @") || strings.HasPrefix(text[i:], "://") {
		return ""
	}
	value := strings.TrimSpace(text[i+1:])
	if p.broad.MatchString(text[:i]) && len(value) >= 4 && !p.reference.MatchString(value) {
		return "its name says that it may be secret"
	}
	return ""
}

// hides says why a text is, or has in it, a secret; "" when nothing tells that.
func (f *filter) hides(at []string, text string) string {
	p, key, above := patterns(), "", ""
	if n := len(at); n > 0 {
		key = at[n-1]
		above = plain(at[max(n-2, 0)])
	}
	switch {
	case f.secret(text) != text:
		return "it has the shape of a secret"
	case p.reference.MatchString(text):
		return ""
	case strings.Contains(text, "://") && p.query.MatchString(text):
		return "its address has a secret in it"
	case p.short.MatchString(key) && !p.harmless.MatchString(text) && !p.way.MatchString(text):
		return "its name says that it may be secret"
	case under(at, headers): // however they are listed
		return "headers may hold secrets"
	case slices.Contains(variables, above) && p.broad.MatchString(key) && !p.harmless.MatchString(text) && !counts(key, text):
		return "the variable's name says that it may be secret"
	case (under(at, variables) || under(at, servers) || strings.Contains(text, "://")) && random(text):
		return "it looks like a secret"
	}
	return ""
}

// counts says whether a variable is a number of tokens and the like.
func counts(key, text string) bool {
	var n json.Number
	return strings.Contains(strings.ToUpper(key), "TOKENS") && json.Unmarshal([]byte(text), &n) == nil
}

// random says whether a part of a text has no sense as a word: letters and digits mixed,
// or small and large ones, for longer than names are.
func random(text string) bool {
	if patterns().uuid.MatchString(text) {
		return true
	}
	for _, w := range strings.FieldsFunc(text, func(c rune) bool { return strings.ContainsRune(" -._/:@?&,;=\"'()", c) }) {
		digits, small, large := 0, 0, 0
		for _, c := range w {
			switch {
			case c >= '0' && c <= '9':
				digits++
			case c >= 'a' && c <= 'z':
				small++
			case c >= 'A' && c <= 'Z':
				large++
			}
		}
		if len(w) >= 16 && digits > 0 && small+large > 1 || len(w) >= 24 && small > 3 && large > 3 {
			return true
		}
	}
	return false
}
