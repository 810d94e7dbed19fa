package bring

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/token"
	"github.com/pelletier/go-toml/v2"
	"github.com/tailscale/hujson"

	"stepbox/policy"
	"stepbox/session/api"
)

// settings brings a file of settings, written anew from what was read of it: what isn't
// understood can't be searched, and isn't brought.
func (b *bringer) settings(s policy.BroughtSettings) {
	from := b.at(s.File)
	real := b.real(s.File, from, false)
	if real == "" {
		return
	}
	item := named(s.File, from, real)
	data, _, err := b.read(real, b.most(s))
	if err != nil {
		b.left(api.LeftFile, s.File, "it isn't read: "+cause(err))
		return
	}
	kind := path.Ext(s.File)
	all, err := decode(kind, data)
	if err != nil {
		b.left(api.LeftFile, s.File, "it isn't valid "+strings.ToUpper(kind[1:])+", or is too deep or too long, and can't be searched for secrets") // the error may quote it
		return
	}
	if m, ok := all.(map[string]any); ok && len(s.Only) > 0 {
		for key := range m {
			if !slices.Contains(s.Only, key) {
				delete(m, key)
			}
		}
		if item.Name = path.Base(s.File) + " (" + s.Only[0] + ")"; len(m) == 0 {
			return
		}
	}
	f := filter{of: s, secret: b.without, left: func(kind, key, why string) { b.left(kind, s.File+": "+key, why) }}
	kept, ok := f.value(nil, all)
	if ok {
		kept, err = b.merged(s, kept)
	}
	var text []byte
	if ok && err == nil {
		text, err = encode(kind, kept)
	}
	if err != nil {
		b.left(api.LeftFile, s.File, err.Error())
	} else if ok {
		b.write(s.File, text, false, item)
	}
}

// most is how many bytes a file of settings may have: one that the agent keeps its own
// things in has many.
func (b *bringer) most(s policy.BroughtSettings) int64 {
	if len(s.Only) > 0 {
		return maxHomes
	}
	return maxSettings
}

// merged puts settings together with those that the agent has in its home, which may hold
// anything.
func (b *bringer) merged(s policy.BroughtSettings, kept any) (any, error) {
	m, ok := kept.(map[string]any)
	if !ok || len(s.Only)+len(s.Own) == 0 {
		return kept, nil
	}
	data, _, err := b.Was.Read(s.File, maxHomes)
	if err != nil {
		return kept, nil // none, or what isn't a file, in whose place this comes
	}
	was, err := decode(path.Ext(s.File), data)
	had, ok := was.(map[string]any)
	if err != nil || !ok {
		if len(s.Only) > 0 && len(data) > 0 {
			return nil, errors.New("the agent's own file of that name can't be read, and is left as it is")
		}
		return kept, nil
	}
	if len(s.Only) > 0 {
		for key, v := range m {
			had[key] = v
		}
		return had, nil
	}
	for _, key := range s.Own {
		if v, ok := had[key]; ok {
			m[key] = v
		}
	}
	return m, nil
}

// decode reads settings of a kind. A library may panic on what nobody writes.
func decode(kind string, data []byte) (v any, err error) {
	defer func() {
		if r := recover(); r != nil {
			v, err = nil, fmt.Errorf("%v", r)
		}
		if err == nil && !shallow(v, maxDeep) {
			v, err = nil, errDeep
		}
	}()
	switch kind {
	case ".toml":
		if len(data) > maxSettings { // a dotted key may have as many levels as it has dots
			return nil, errors.New("it is too long for TOML")
		}
		var m map[string]any
		err = toml.Unmarshal(data, &m)
		return m, err
	case ".yml", ".yaml":
		if len(data) > maxYAML {
			return nil, errors.New("it is too long")
		}
		if err := plainYAML(string(data)); err != nil {
			return nil, err
		}
		err = yaml.Unmarshal(data, &v)
		return v, err
	}
	if !json.Valid(data) { // it has comments
		if len(data) > maxSettings { // hujson goes as deep as it is nested, until the stack is full
			return nil, errors.New("it is too long for JSON with comments")
		}
		if data, err = hujson.Standardize(data); err != nil {
			return nil, err
		}
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	err = d.Decode(&v)
	return v, err
}

var errDeep = errors.New("it is nested too deep")

// shallow says whether a value has so many levels at most.
func shallow(v any, levels int) bool {
	deep := func(v any) bool { return levels == 0 || !shallow(v, levels-1) }
	switch v := v.(type) {
	case map[string]any:
		return !slices.ContainsFunc(slices.Collect(maps.Values(v)), deep)
	case []any:
		return !slices.ContainsFunc(v, deep)
	}
	return true
}

// plainYAML refuses what the parser takes long for: aliases, and lists in lists, of which
// a line can have thousands. Block mappings need more bytes for each level.
func plainYAML(text string) error {
	brackets, dashes, line := 0, 0, 0
	for _, t := range lexer.Tokenize(text) {
		switch t.Type {
		case token.AliasType, token.AnchorType:
			return errors.New("it has anchors or aliases")
		case token.SequenceStartType, token.MappingStartType:
			brackets++
		case token.SequenceEndType, token.MappingEndType:
			brackets = max(brackets-1, 0)
		case token.SequenceEntryType:
			if t.Position.Line != line {
				line, dashes = t.Position.Line, 0
			}
			dashes++
		}
		if brackets+dashes > maxDeep {
			return errDeep
		}
	}
	return nil
}

func encode(kind string, v any) ([]byte, error) {
	switch kind {
	case ".toml":
		return toml.Marshal(v)
	case ".yml", ".yaml":
		return yaml.Marshal(v)
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(v)
	return b.Bytes(), err
}
