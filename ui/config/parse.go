package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"stepbox/session/api"
	"stepbox/ui/keys"
	"stepbox/ui/near"
)

// most is how much a file of settings has, in bytes.
const most = 64 << 10

// settle is how long a file stands unchanged before it is taken as it is: editors that write
// in place have a part of it there meanwhile.
const settle = 100 * time.Millisecond

// tries are how often a file is read that just changed.
const tries = 20

// read reads the file once nobody writes to it; none is nothing. What isn't a plain file of
// text is an error.
func read(path string, now func() time.Time, pause func(time.Duration)) ([]byte, error) {
	for range tries {
		data, changed, err := readOnce(path)
		if age := now().Sub(changed); age < 0 || age >= settle { // before 0 a clock was put back
			return data, err
		}
		pause(settle)
	}
	return nil, errors.New("is being written all the time")
}

// readOnce reads the file as it is, and says when that last changed: the zero time where it
// isn't known.
func readOnce(path string) (_ []byte, changed time.Time, _ error) {
	fail := func(err error) ([]byte, time.Time, error) { return nil, changed, err }
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe has nobody wait
	if errors.Is(err, os.ErrNotExist) {
		if to, err := os.Readlink(path); err == nil {
			return fail(fmt.Errorf("is a link to %q, which isn't there", to))
		}
		return fail(nil)
	}
	if err != nil {
		return fail(fmt.Errorf("cannot be read: %w", errors.Unwrap(err)))
	}
	defer f.Close()
	st, err := f.Stat()
	if err == nil && !st.Mode().IsRegular() {
		return fail(errors.New("isn't a file that can be read"))
	}
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil {
		st, err = f.Stat() // afterwards: it may have changed meanwhile
	}
	if err == nil {
		changed = time.Unix(st.Sys().(*syscall.Stat_t).Ctim.Unix()) // which nobody sets
	}
	switch {
	case err != nil:
		return fail(fmt.Errorf("cannot be read: %w", err))
	case len(data) > most:
		return fail(fmt.Errorf("has more than %d KiB, which no settings have", most>>10))
	case !utf8.Valid(data) || bytes.IndexByte(data, 0) >= 0:
		return fail(errors.New("isn't text in UTF-8"))
	}
	return bytes.TrimPrefix(data, []byte(mark)), changed, nil
}

// mark is what some editors begin a text in UTF-8 with.
const mark = "\ufeff"

// mostFaults is how often a file is read again without what couldn't be.
const mostFaults = 10

// parse takes what the file says. What isn't YAML is left out with all of the section
// that it stands in.
func (c *Config) parse(data []byte) {
	for range mostFaults {
		f, line, column, err := document(data)
		if err != nil {
			words, _, _ := strings.Cut(err.Error(), "\n")
			if line == 0 {
				c.warn(0, 0, "can't be read as YAML: %s; the defaults hold", words)
				return
			}
			var from int
			data, from = without(data, line)
			c.warn(line, column, "can't be read as YAML: %s; line %d and what belongs to it is left out", words, from)
			continue
		}
		for i, doc := range f.Docs {
			if i > 0 && doc.Body != nil {
				c.warn(at(doc.Body), 1, "a second document is left out")
				continue
			}
			if doc.Body != nil {
				c.section("", doc.Body, map[string]int{})
			}
		}
		return
	}
	c.warn(0, 0, "too much of it can't be read; the defaults hold")
}

// document reads YAML. The library may panic on what nobody writes.
func document(data []byte) (f *ast.File, line, column int, err error) {
	defer func() {
		if r := recover(); r != nil {
			f, line, err = nil, 0, fmt.Errorf("%v", r)
		}
	}()
	f, err = parser.ParseBytes(data, 0, parser.AllowDuplicateMapKey())
	var ye yaml.Error
	if err != nil && errors.As(err, &ye) {
		err = errors.New(ye.GetMessage())
		if t := ye.GetToken(); t != nil && t.Position != nil {
			line, column = t.Position.Line, t.Position.Column
		}
	}
	return f, line, column, err
}

// without is the text with a line blank, and all that belongs to the same key of the
// outermost level, which begins in line from.
func without(data []byte, line int) (_ []byte, from int) {
	lines := bytes.Split(data, []byte("\n"))
	outer := func(i int) bool {
		l := lines[i]
		return len(l) > 0 && !strings.ContainsRune(" \t#-]}\r", rune(l[0]))
	}
	i := min(line, len(lines)) - 1
	for i > 0 && !outer(i) {
		i--
	}
	end := i + 1
	for end < len(lines) && !outer(end) {
		end++
	}
	for j := i; j < max(end, min(line, len(lines))); j++ {
		lines[j] = nil
	}
	return bytes.Join(lines, []byte("\n")), i + 1
}

func at(n ast.Node) int { return n.GetToken().Position.Line }

// pairs are a mapping's; ok is false for anything else.
func pairs(n ast.Node) (_ []*ast.MappingValueNode, ok bool) {
	switch n := n.(type) {
	case *ast.MappingNode:
		return n.Values, true
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{n}, true
	}
	return nil, false
}

// section takes the settings of a mapping, named with its prefix. seen are the lines of
// those that there were.
func (c *Config) section(prefix string, n ast.Node, seen map[string]int) {
	all, ok := pairs(n)
	if !ok {
		c.warn(at(n), n.GetToken().Position.Column, "settings are expected here, like theme: dark")
		return
	}
	for _, p := range all {
		pos := p.Key.GetToken().Position
		name := prefix + p.Key.GetToken().Value
		if line := seen[name]; line != 0 {
			c.warn(pos.Line, pos.Column, "%s stands twice: line %d holds", name, line)
			continue
		}
		seen[name] = pos.Line
		i := slices.IndexFunc(Settings, func(s Setting) bool { return s.Name == name })
		switch {
		case i >= 0:
			if v, why := words(p.Value, Settings[i].list); why != "" {
				c.warn(pos.Line, pos.Column, "%s: %s; use %s", name, why, Settings[i].Allowed)
			} else {
				c.take(&Settings[i], v, pos.Line, pos.Column)
			}
		case name == "keys":
			c.keys("", p.Value)
		case slices.Contains(sections(), name):
			c.section(name+".", p.Value, seen)
		default:
			c.warn(pos.Line, pos.Column, "there is no setting %q%s", api.Trim(name, 60), near.Words(name, names()))
		}
	}
}

// keys takes the keys of a mapping, of one place or of all.
func (c *Config) keys(place keys.Scope, n ast.Node) {
	all, ok := pairs(n)
	if !ok {
		c.warn(at(n), n.GetToken().Position.Column, "keys are expected here, like approve: a")
		return
	}
	for _, p := range all {
		pos := p.Key.GetToken().Position
		b := bound{Change: keys.Change{Place: place, Name: p.Key.GetToken().Value}, line: pos.Line, column: pos.Column}
		b.name = b.Name
		if place != "" {
			b.name = place.Short() + "." + b.Name
		}
		if _, nested := pairs(p.Value); nested {
			scope, ok := keys.Named(b.Name)
			if !ok || place != "" {
				c.warn(pos.Line, pos.Column, "keys: there is no place %q: use %s", api.Trim(b.Name, 40), strings.Join(keys.Shorts(), ", "))
				continue
			}
			c.keys(scope, p.Value)
			continue
		}
		v, why := words(p.Value, true)
		for i := 0; i < len(v) && why == ""; i++ {
			var err error
			if v[i], err = keys.Clean(v[i]); err != nil {
				why = err.Error()
			}
		}
		if len(v) == 0 && why == "" {
			why = "it needs a key at least"
		}
		if why != "" {
			c.warn(pos.Line, pos.Column, "keys: %s: %s", b.name, why)
			continue
		}
		b.Keys = v
		c.bound = append(c.bound, b)
	}
}

// words is a text, or those of a list.
func words(n ast.Node, list bool) (_ []string, why string) {
	if seq, ok := n.(*ast.SequenceNode); ok && list {
		out := []string{}
		for _, v := range seq.Values {
			w, why := words(v, false)
			if why != "" {
				return nil, why
			}
			out = append(out, w...)
		}
		return out, ""
	}
	switch n := n.(type) {
	case *ast.StringNode:
		return []string{n.Value}, ""
	case *ast.LiteralNode:
		return []string{strings.TrimSuffix(n.Value.Value, "\n")}, ""
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		return []string{n.GetToken().Value}, ""
	case *ast.NullNode, nil:
		return nil, "nothing is said"
	case *ast.AnchorNode, *ast.AliasNode, *ast.TagNode, *ast.MergeKeyNode:
		return nil, "anchors, aliases and tags aren't taken"
	}
	return nil, "one text is expected"
}

func sections() (out []string) {
	for _, s := range Settings {
		if before, _, ok := strings.Cut(s.Name, "."); ok && !slices.Contains(out, before) {
			out = append(out, before)
		}
	}
	return out
}

func names() []string {
	out := append(sections(), "keys")
	for _, s := range Settings {
		out = append(out, s.Name)
	}
	return out
}

// Template is a file with everything in it as a comment.
func Template() string {
	var b strings.Builder
	b.WriteString("# Settings of Stepbox. Each line below says what holds; take the # away to change it.\n" +
		"# stepbox config show says what is in force, docs/configuration.md all of it.\n")
	section := ""
	for _, s := range Settings {
		before, name, ok := strings.Cut(s.Name, ".")
		if !ok {
			before, name = "", s.Name
		}
		if before != section {
			fmt.Fprintf(&b, "\n#%s:\n", before)
		}
		section = before
		indent := ""
		if ok {
			indent = "  "
		}
		fmt.Fprintf(&b, "#%s%s: %s  # %s: %s\n", indent, name, strings.TrimSpace(orNone(s)), s.About, s.Allowed)
	}
	b.WriteString("\n# Keys by their names or, in a place, by the usual ones: docs/keys.md lists both.\n#keys:\n#  approve: a\n#  changes:\n#    \"]\": n\n")
	return b.String()
}

func orNone(s Setting) string {
	if s.list {
		return "[]"
	}
	return s.Default
}
