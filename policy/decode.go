package policy

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// decoder fills structs from a document and goes on after what is wrong, so that a
// person is told all of it at once.
type decoder struct{ problems Problems }

// fromNode is a value that reads itself from a document.
type fromNode interface{ read(n ast.Node) Problems }

// into fills what a pointer leads to.
func (d *decoder) into(n ast.Node, to any) { d.value(n, reflect.ValueOf(to).Elem(), "") }

// place is where something stands in a file. Structs that have one remember theirs.
type place struct{ line, column int }

func (p *place) stands(at place) { *p = at }

// bad is what is wrong there.
func (p *place) bad(format string, a ...any) Problems { return wrong(p.line, p.column, format, a...) }

// where is where it stands in a layer.
func (p *place) where(l *Layer) Where { return Where{l.Name, l.File, p.line} }

// placeOf is where a node begins.
func placeOf(n ast.Node) place {
	at := n.GetToken().Position
	switch m := n.(type) {
	case *ast.MappingNode:
		if len(m.Values) > 0 && !m.IsFlowStyle {
			return placeOf(m.Values[0])
		}
	case *ast.MappingValueNode:
		at = m.Key.GetToken().Position
	}
	return place{at.Line, at.Column}
}

func (d *decoder) bad(n ast.Node, format string, a ...any) {
	at := placeOf(n)
	d.add(at.bad(format, a...))
}

func (d *decoder) add(all Problems) {
	d.problems = append(d.problems, all[:min(len(all), maxProblems-len(d.problems))]...)
}

// value fills one value. A key without a value leaves it as it is.
func (d *decoder) value(n ast.Node, v reflect.Value, key string) {
	if _, none := n.(*ast.NullNode); none {
		return
	}
	if r, ok := v.Addr().Interface().(fromNode); ok {
		d.add(r.read(n))
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		d.value(n, v.Elem(), key)
	case reflect.Struct:
		d.fields(n, v, key)
	case reflect.Slice:
		d.list(n, v, key)
	case reflect.Map:
		d.pairs(n, v, key)
	default:
		d.add(scalar(n, v))
	}
}

func scalar(n ast.Node, v reflect.Value) Problems {
	at := placeOf(n)
	switch v.Kind() {
	case reflect.String:
		s, ok := textOf(n)
		if !ok {
			return at.bad(noText)
		}
		v.SetString(s)
	case reflect.Bool:
		b, ok := n.(*ast.BoolNode)
		if !ok {
			return at.bad("true or false is expected here")
		}
		v.SetBool(b.Value)
	case reflect.Int:
		i, err := strconv.Atoi(n.GetToken().Value)
		if _, ok := n.(*ast.IntegerNode); !ok || err != nil {
			return at.bad("a whole number is expected here")
		}
		v.SetInt(int64(i))
	default:
		panic("a field of type " + v.Type().String()) // of a struct of ours, and tested
	}
	return nil
}

const noText = "text is expected here; in quotes, anything is text"

// textOf is the text that a node is.
func textOf(n ast.Node) (string, bool) {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value, true
	case *ast.LiteralNode:
		return n.Value.Value, true
	}
	return "", false
}

func (d *decoder) list(n ast.Node, v reflect.Value, key string) {
	seq, ok := n.(*ast.SequenceNode)
	if !ok {
		d.bad(n, "a list is expected here, each entry on a line of its own after a hyphen")
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), len(seq.Values), len(seq.Values)))
	for i, e := range seq.Values {
		d.value(e, v.Index(i), key)
	}
}

// pairs fills a map of texts.
func (d *decoder) pairs(n ast.Node, v reflect.Value, key string) {
	v.Set(reflect.MakeMap(v.Type()))
	for name, e := range d.mapping(n) {
		to := reflect.New(v.Type().Elem()).Elem()
		d.value(e.Value, to, key)
		v.SetMapIndex(reflect.ValueOf(name), to)
	}
}

// mapping goes through the keys of a node; those that aren't text or stand twice are told.
func (d *decoder) mapping(n ast.Node) func(yield func(string, *ast.MappingValueNode) bool) {
	var all []*ast.MappingValueNode
	switch n := n.(type) {
	case *ast.MappingNode:
		all = n.Values
	case *ast.MappingValueNode:
		all = []*ast.MappingValueNode{n}
	default:
		d.bad(n, "keys are expected here, each with a colon")
	}
	return func(yield func(string, *ast.MappingValueNode) bool) {
		seen := map[string]bool{}
		for _, e := range all {
			name, ok := textOf(e.Key)
			switch {
			case !ok:
				d.bad(e.Key, "a key is text; quote what isn't")
			case seen[name]:
				d.bad(e.Key, "the key %q stands here twice", name)
			default:
				if seen[name] = true; !yield(name, e) {
					return
				}
			}
		}
	}
}

func (d *decoder) fields(n ast.Node, v reflect.Value, key string) {
	if p, ok := v.Addr().Interface().(interface{ stands(place) }); ok {
		p.stands(placeOf(n))
	}
	for name, e := range d.mapping(n) {
		f, ok := field(v, name)
		if !ok {
			d.bad(e.Key, "%s", unknownKey(name, key, keysOf(v.Type())))
			continue
		}
		d.value(e.Value, f, name)
	}
}

// field is the field of a key, also of the structs within that are inline.
func field(v reflect.Value, name string) (reflect.Value, bool) {
	for i := range v.NumField() {
		switch tag, how, _ := strings.Cut(v.Type().Field(i).Tag.Get("yaml"), ","); {
		case how == "inline":
			if f, ok := field(v.Field(i), name); ok {
				return f, true
			}
		case tag == name && tag != "":
			return v.Field(i), true
		}
	}
	return reflect.Value{}, false
}

// keysOf are the keys that a struct knows.
func keysOf(t reflect.Type) (out []string) {
	for i := range t.NumField() {
		switch tag, how, _ := strings.Cut(t.Field(i).Tag.Get("yaml"), ","); {
		case how == "inline":
			out = append(out, keysOf(t.Field(i).Type)...)
		case tag != "":
			out = append(out, tag)
		}
	}
	return out
}

// unknownKey says that there is no such key, and which was likely meant.
func unknownKey(name, within string, known []string) string {
	s := fmt.Sprintf("there is no key %q", name)
	if within != "" {
		s += fmt.Sprintf(" in %q", within)
	}
	if near := nearest(name, known); near != "" {
		return s + fmt.Sprintf("; did you mean %q?", near)
	}
	return s + ": there are " + strings.Join(known, ", ")
}

// nearest is the word that differs least from another, by up to a third of it; "" when
// none is near.
func nearest(word string, known []string) string {
	best, least := "", 1+max(1, min(len(word), 30)/3)
	for _, k := range known {
		if len(word) > 3*len(k) {
			continue
		}
		if n := distance(strings.ToLower(word), k); n < least {
			best, least = k, n
		}
	}
	return best
}

// distance is how many letters have to be put in, taken out or replaced.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := before
			if a[i] != b[j] {
				cost++
			}
			before = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// text is a string that remembers where it stood.
type text struct {
	place
	s string
}

func (t *text) read(n ast.Node) Problems {
	t.place = placeOf(n)
	s, ok := n.(*ast.StringNode)
	if !ok {
		return t.bad(noText)
	}
	t.s = s.Value
	if q := n.GetToken().Type; q == token.SingleQuoteType || q == token.DoubleQuoteType {
		t.column++ // of the first character
	}
	return nil
}

// setting is a text or a number, and where it stood.
type setting struct{ text }

func (t *setting) read(n ast.Node) Problems {
	switch n := n.(type) {
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		t.s, t.place = n.GetToken().Value, placeOf(n)
		return nil
	}
	return t.text.read(n)
}

// textList is one text or several.
type textList []text

func (l *textList) read(n ast.Node) (all Problems) {
	values := []ast.Node{n}
	if seq, ok := n.(*ast.SequenceNode); ok {
		values = seq.Values
	}
	*l = nil
	for _, v := range values {
		var t text
		if bad := t.read(v); bad != nil {
			all = append(all, bad...)
			continue
		}
		*l = append(*l, t)
	}
	return all
}
