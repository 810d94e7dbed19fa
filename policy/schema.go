package policy

import (
	"encoding/json"
	"reflect"
	"strings"
)

// Schema is the format of files of rules as a JSON Schema (draft 2020-12), by which
// editors complete and check them. It is made of the structs that such files are read
// into.
func Schema() []byte {
	s := schemaOf(reflect.TypeFor[layerFile]())
	s["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	s["title"] = "Stepbox policy"
	s["description"] = "What agents may do without asking: policy.yaml in the configuration folder, or .stepbox.yaml in a project."
	out, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		panic(err) // it is made of strings
	}
	return append(out, '\n')
}

type object = map[string]any

// schemaOf is what a value of a type looks like.
func schemaOf(t reflect.Type) object {
	str := object{"type": "string"}
	switch t {
	case reflect.TypeFor[text]():
		return str
	case reflect.TypeFor[setting]():
		return object{"type": []string{"string", "number", "boolean"}}
	case reflect.TypeFor[textList]():
		return object{"anyOf": []any{str, object{"type": "array", "items": str}}}
	case reflect.TypeFor[variables]():
		return object{"type": "object", "additionalProperties": object{"type": []string{"string", "number", "boolean"}}}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return schemaOf(t.Elem())
	case reflect.String:
		return str
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Slice:
		return object{"type": []string{"array", "null"}, "items": schemaOf(t.Elem())}
	case reflect.Struct:
		return object{"type": []string{"object", "null"}, "additionalProperties": false, "properties": properties(t)}
	}
	panic("a field of type " + t.String())
}

func properties(t reflect.Type) object {
	out := object{}
	for i := range t.NumField() {
		f := t.Field(i)
		key := f.Tag.Get("yaml")
		if key == "" {
			continue
		}
		s := schemaOf(f.Type)
		if only := f.Tag.Get("only"); only != "" {
			s = object{"enum": []any{json.Number(only), only}}
		}
		s["description"] = f.Tag.Get("doc")
		if of := f.Tag.Get("enum"); of != "" {
			s["enum"] = strings.Split(of, ",")
		}
		out[key] = s
	}
	return out
}
