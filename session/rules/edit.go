package rules

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"stepbox/policy"
	"stepbox/session/api"
)

// Insert puts a rule into a policy's text, before those that are there, since the first
// that matches decides. Rules for exactly the same go that were put there so. All else stays
// as it is, byte for byte, also what a person wrote on the same: where that denies what
// the rule doesn't, it would win, and the rule is refused. The remark is put behind the
// rule; "" is none.
func Insert(text []byte, r api.Rule, remark string) ([]byte, error) {
	if text, marked := bytes.CutPrefix(text, byteOrder); marked {
		out, err := Insert(text, r, remark)
		return slices.Concat(byteOrder, out), err
	}
	any := r
	any.Verdict = ""
	out, _, err := deleteAll(text, any, true)
	if err != nil {
		return nil, err
	}
	d, err := parse(out)
	if err != nil {
		return nil, err
	}
	if line := d.denies(r); line > 0 {
		return nil, fmt.Errorf("deny %s%s in line %d says otherwise, and wins: take it out first, or change it there", r.Command, r.Host, line)
	}
	return d.insert(r, remark)
}

// byteOrder is what some editors put before a text, and isn't part of it.
var byteOrder = []byte("\ufeff")

// errNone is said where there is no such rule.
var errNone = errors.New("there is no such rule")

// Delete takes the rules for exactly the same out of a policy's text, whatever they
// say, unless r.Verdict does: then those that say that. What else belongs to a rule, as
// the programs that it is for, makes it another one. Where some were put there by Insert
// only those go, so that what a person wrote holds again.
func Delete(text []byte, r api.Rule) ([]byte, error) {
	if text, marked := bytes.CutPrefix(text, byteOrder); marked {
		out, err := Delete(text, r)
		return slices.Concat(byteOrder, out), err
	}
	out, found, err := deleteAll(text, r, true)
	if err != nil || found {
		return out, err
	}
	if out, found, err = deleteAll(text, r, false); err == nil && !found {
		err = errNone
	}
	return out, err
}

// deleteAll takes all such rules out, or those that Insert put there, and says whether
// there was any.
func deleteAll(text []byte, r api.Rule, inserted bool) (out []byte, found bool, err error) {
	for {
		d, err := parse(text)
		if err != nil {
			return nil, false, err
		}
		next, err := d.delete(r, inserted)
		if errors.Is(err, errNone) {
			return text, found, nil
		}
		if err != nil {
			return nil, false, err
		}
		text, found = next, true
	}
}

// made is the remark behind a rule that a command or an answer put there.
var made = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(` # (answered|made) on \d{4}-\d\d-\d\d\r?\n?$`) })

// inserted says whether a rule stands as Insert has written it: on a line of its own,
// with such a remark.
func (d *document) inserted(n ast.Node) bool {
	from, to, err := d.linesOf(n)
	return err == nil && bytes.Count(d.text[from:to], []byte("\n")) <= 1 && made().Match(d.text[from:to])
}

// denies is the line of a rule that denies exactly what another rule is to say otherwise
// of; 0: none does.
func (d *document) denies(r api.Rule) int {
	key, text := list(r)
	e := d.entry(key)
	if e == nil || r.Verdict == api.Deny {
		return 0
	}
	seq, ok := e.Value.(*ast.SequenceNode)
	if !ok {
		return 0
	}
	for _, n := range seq.Values {
		if rule, k := plainRule(n, api.Deny, text); rule != nil {
			return textAt(rule.Value, k).GetToken().Position.Line
		}
	}
	return 0
}

// document is a policy's text with what stands where.
type document struct {
	text  []byte
	lines []int // where each begins, and the end
	root  ast.Node
	data  map[string]any
}

func parse(text []byte) (*document, error) {
	d := &document{text: text, lines: []int{0}}
	for i, b := range text {
		if b == '\n' {
			d.lines = append(d.lines, i+1)
		}
	}
	f, err := parser.ParseBytes(text, 0)
	if err != nil {
		return nil, err
	}
	if len(f.Docs) > 1 {
		return nil, errAlien
	}
	if len(f.Docs) == 1 {
		d.root = f.Docs[0].Body
	}
	return d, yaml.Unmarshal(text, &d.data)
}

// errAlien is said of what is right, but written in a way that isn't edited.
var errAlien = errors.New("it is written in a way that can't be edited here: change it by hand")

// list is where rules of a kind stand.
func list(r api.Rule) (key, text string) {
	if r.Command != "" {
		return "commands", r.Command
	}
	return "network", r.Host
}

// items are the rules that a list has.
func (d *document) items(key string) []any {
	items, _ := d.data[key].([]any)
	return items
}

// pairs are the keys of a node with what stands there.
func pairs(n ast.Node) []*ast.MappingValueNode {
	switch n := n.(type) {
	case *ast.MappingNode:
		return n.Values
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{n}
	}
	return nil
}

func (d *document) entry(key string) *ast.MappingValueNode {
	for _, e := range pairs(d.root) {
		if e.Key.GetToken().Value == key {
			return e
		}
	}
	return nil
}

// at is where a token begins in the text. Columns are counted in characters.
func (d *document) at(line, column int) int {
	i := d.lines[min(line, len(d.lines))-1]
	for ; column > 1 && i < len(d.text); column-- {
		_, n := utf8.DecodeRune(d.text[i:])
		i += n
	}
	return i
}

// end is where the line after one begins.
func (d *document) end(line int) int {
	if line < len(d.lines) {
		return d.lines[line]
	}
	return len(d.text)
}

func (d *document) newline() string {
	if bytes.Contains(d.text, []byte("\r\n")) {
		return "\r\n"
	}
	return "\n"
}

// insert puts a rule first in its list.
func (d *document) insert(r api.Rule, remark string) ([]byte, error) {
	key, text := list(r)
	item, nl := string(r.Verdict)+": "+scalar(text), d.newline()
	rule := map[string]any{string(r.Verdict): text}
	if r.Why != "" {
		item += ", why: " + scalar(r.Why)
		rule["why"] = r.Why
	}
	inFlow := "{" + item + "}"
	if r.Why != "" { // on its one line, by which it is known later
		item = inFlow
	}
	if remark != "" {
		remark = " # " + remark
	}
	want := append([]any{rule}, d.items(key)...)
	e := d.entry(key)
	if e == nil {
		indent := ""
		if all := pairs(d.root); len(all) > 0 {
			indent = strings.Repeat(" ", all[0].Key.GetToken().Position.Column-1)
		}
		at := len(d.text)
		return d.with(at, at, d.broken(at, nl)+indent+key+":"+nl+indent+"  - "+item+remark+nl, key, want)
	}
	column := e.Key.GetToken().Position.Column + 2
	switch seq, ok := e.Value.(*ast.SequenceNode); {
	case isNull(e.Value):
	case !ok:
		return nil, errAlien
	case seq.IsFlowStyle:
		at := d.at(seq.Start.Position.Line, seq.Start.Position.Column) + 1
		if len(seq.Values) > 0 {
			inFlow += ", "
		}
		return d.with(at, at, inFlow, key, want)
	default:
		column = seq.Start.Position.Column
	}
	at := d.end(e.Key.GetToken().Position.Line)
	return d.with(at, at, d.broken(at, nl)+strings.Repeat(" ", column-1)+"- "+item+remark+nl, key, want)
}

// broken ends a last line that nothing ended.
func (d *document) broken(at int, nl string) string {
	if at > 0 && d.text[at-1] != '\n' {
		return nl
	}
	return ""
}

// delete takes one rule out, of those that Insert put there or of all.
func (d *document) delete(r api.Rule, inserted bool) ([]byte, error) {
	key, text := list(r)
	e := d.entry(key)
	if e == nil {
		return nil, errNone
	}
	seq, ok := e.Value.(*ast.SequenceNode)
	if !ok {
		if isNull(e.Value) || inserted {
			return nil, errNone
		}
		return nil, errAlien
	}
	for i, n := range seq.Values {
		rule, k := plainRule(n, r.Verdict, text)
		if rule == nil || inserted && !d.inserted(n) {
			continue
		}
		want := slices.Clone(d.items(key))
		if len(want) != len(seq.Values) {
			return nil, errAlien
		}
		if texts, ok := rule.Value.(*ast.SequenceNode); ok && len(texts.Values) > 1 {
			if want[i] = withoutText(want[i], rule.Key.GetToken().Value, k); want[i] == nil {
				return nil, errAlien
			}
			return d.cut(texts, k, key, want)
		}
		want = slices.Delete(want, i, i+1)
		if len(seq.Values) > 1 || seq.IsFlowStyle {
			return d.cut(seq, i, key, want)
		}
		return d.cutLast(e, seq, key, want)
	}
	return nil, errNone
}

// withoutText is a rule without one of the texts that it says the same of.
func withoutText(rule any, verdict string, k int) any {
	m, _ := rule.(map[string]any)
	texts, _ := m[verdict].([]any)
	if k >= len(texts) {
		return nil
	}
	m = maps.Clone(m)
	m[verdict] = slices.Delete(slices.Clone(texts), k, k+1)
	return m
}

// plainRule is where an item says one thing of a text, and nothing else but why; nil when
// it doesn't. Of no verdict it is of any. k is which of several texts it is.
func plainRule(n ast.Node, v api.Verdict, text string) (rule *ast.MappingValueNode, k int) {
	for _, e := range pairs(n) {
		switch key := e.Key.GetToken().Value; {
		case key == "why":
		case rule != nil, !slices.Contains([]api.Verdict{api.Allow, api.Deny, api.Ask}, api.Verdict(key)):
			return nil, 0 // it says two things, or another
		case v == "" || key == string(v):
			rule = e
		default:
			return nil, 0
		}
	}
	if rule == nil {
		return nil, 0
	}
	texts := []ast.Node{rule.Value}
	if seq, ok := rule.Value.(*ast.SequenceNode); ok {
		texts = seq.Values
	}
	if k = slices.IndexFunc(texts, func(t ast.Node) bool { return same(t, text) }); k < 0 {
		return nil, 0
	}
	return rule, k
}

// textAt is one of the texts that a verdict stands before.
func textAt(value ast.Node, k int) ast.Node {
	if seq, ok := value.(*ast.SequenceNode); ok {
		return seq.Values[k]
	}
	return value
}

// same says whether a node is a text, however its words are apart.
func same(n ast.Node, text string) bool {
	s, ok := n.(*ast.StringNode)
	return ok && slices.Equal(policy.Words(s.Value), policy.Words(text))
}

// cut takes one of several values out of a list.
func (d *document) cut(seq *ast.SequenceNode, i int, key string, want []any) ([]byte, error) {
	if seq.IsFlowStyle {
		return d.cutFlow(seq, i, key, want)
	}
	from, to, err := d.linesOf(seq.Values[i])
	if err != nil {
		return nil, err
	}
	return d.with(from, to, "", key, want)
}

// cutLast takes the only value out of a list, and the list's key with it where that
// stands alone.
func (d *document) cutLast(e *ast.MappingValueNode, seq *ast.SequenceNode, key string, want []any) ([]byte, error) {
	from, to, err := d.linesOf(seq.Values[0])
	if err != nil {
		return nil, err
	}
	at := d.lines[e.Key.GetToken().Position.Line-1]
	if line := string(d.text[at:from]); strings.TrimSpace(line) == key+":" {
		from = at
	}
	return d.with(from, to, "", key, want)
}

// linesOf is where an item of a block stands, from its dash on.
func (d *document) linesOf(n ast.Node) (from, to int, err error) {
	first, last := span(n)
	from, to = d.lines[first-1], d.end(last)
	if line := strings.TrimLeft(string(d.text[from:to]), " "); !strings.HasPrefix(line, "- ") {
		return 0, 0, errAlien
	}
	return from, to, nil
}

// span is the first and the last line of what a node has.
func span(n ast.Node) (first, last int) {
	first = n.GetToken().Position.Line
	last = first
	note := func(line int) { first, last = min(first, line), max(last, line) }
	ast.Walk(visit(func(n ast.Node) {
		note(n.GetToken().Position.Line)
		switch v := n.(type) {
		case *ast.MappingNode:
			if v.End != nil {
				note(v.End.Position.Line)
			}
		case *ast.SequenceNode:
			if v.End != nil {
				note(v.End.Position.Line)
			}
		case *ast.StringNode:
			note(v.GetToken().Position.Line + strings.Count(strings.TrimSpace(v.GetToken().Origin), "\n"))
		}
	}), n)
	return first, last
}

type visit func(ast.Node)

func (f visit) Visit(n ast.Node) ast.Visitor { f(n); return f }

// cutFlow takes a value out of a list in brackets, with one of the commas beside it.
func (d *document) cutFlow(seq *ast.SequenceNode, i int, key string, want []any) ([]byte, error) {
	begins := func(n ast.Node) int {
		t := n.GetToken()
		if m, ok := n.(*ast.MappingNode); ok {
			t = m.Start
		} else if _, ok := n.(*ast.StringNode); !ok {
			return -1
		}
		return d.at(t.Position.Line, t.Position.Column)
	}
	from, to := begins(seq.Values[i]), 0
	switch {
	case i+1 < len(seq.Values):
		to = begins(seq.Values[i+1])
		if m, ok := seq.Values[i].(*ast.MappingNode); ok && m.End != nil && bytes.ContainsAny(d.text[max(from, 0):to], "#") {
			to = d.comma(d.at(m.End.Position.Line, m.End.Position.Column) + 1)
		}
	case seq.End != nil:
		to = d.at(seq.End.Position.Line, seq.End.Position.Column)
		if i > 0 { // the comma before it goes
			if from = bytes.LastIndexByte(d.text[:max(from, 0)], ','); begins(seq.Values[i-1]) > from {
				return nil, errAlien
			}
		}
	}
	if from < 0 || to <= from || bytes.ContainsAny(d.text[from:to], "#") {
		return nil, errAlien // or a remark would go
	}
	return d.with(from, to, "", key, want)
}

// comma is behind the comma, and the spaces after it, that follow a place.
func (d *document) comma(at int) int {
	rest := bytes.TrimLeft(d.text[at:], " ")
	if !bytes.HasPrefix(rest, []byte(",")) {
		return at
	}
	return len(d.text) - len(bytes.TrimLeft(rest[1:], " "))
}

// with puts something in the place of a part of the text. It is refused unless the rules
// of the list then are those that are wanted, and all else is as it was.
func (d *document) with(from, to int, put, key string, want []any) ([]byte, error) {
	out := slices.Concat(d.text[:from], []byte(put), d.text[to:])
	now, err := parse(out)
	if err != nil {
		return nil, errAlien
	}
	items, isList := now.data[key].([]any)
	if !isList && now.data[key] != nil || !slices.EqualFunc(items, want, func(a, b any) bool { return reflect.DeepEqual(a, b) }) {
		return nil, errAlien
	}
	was, is := maps.Clone(d.data), maps.Clone(now.data)
	delete(was, key)
	delete(is, key)
	if !maps.EqualFunc(was, is, func(a, b any) bool { return reflect.DeepEqual(a, b) }) {
		return nil, errAlien
	}
	return out, nil
}

func isNull(n ast.Node) bool {
	_, null := n.(*ast.NullNode)
	return n == nil || null
}

// plain are the texts that need no quotes.
var plain = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[a-z][a-zA-Z0-9_.-]*(:[0-9-]+)?(/[a-z]+)?$|^[a-z][a-zA-Z0-9_.-]*( [a-zA-Z0-9_./=-]+)*$`)
})

// taken are words that mean something else to YAML, in one of its versions.
var taken = []string{"true", "false", "null", "yes", "no", "on", "off", "y", "n"}

// scalar writes a text as YAML has it.
func scalar(text string) string {
	if plain().MatchString(text) && !slices.Contains(taken, strings.ToLower(text)) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", "''") + "'"
}

// CheckText says what is wrong with a rule's text, whatever it is for: it is to stand on
// one line that a person can read.
func CheckText(text string) error {
	switch {
	case len(text) > maxText:
		return fmt.Errorf("a rule has at most %d bytes", maxText)
	case api.Unclear(text) || strings.ContainsAny(text, "\n\r\t"):
		return errors.New("a rule can't have characters that aren't seen")
	}
	return nil
}

// maxText is how many bytes a rule's text has at most.
const maxText = 4 << 10
