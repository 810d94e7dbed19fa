package policy

import (
	"errors"
	"fmt"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// FileError says what is wrong in a file of rules, and where.
type FileError struct {
	File         string
	Line, Column int // from 1; 0: the whole file
	Err          error
}

func (e *FileError) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("cannot read %q: %v", e.File, e.Err)
	}
	return fmt.Sprintf("cannot read %q: line %d, column %d: %v", e.File, e.Line, e.Column, e.Err)
}

func (e *FileError) Unwrap() error { return e.Err }

// inFile says which file an error from below is about.
func inFile(file string, err error) error {
	var fe *FileError
	if errors.As(err, &fe) {
		fe.File = file
	}
	return err
}

// Decode reads strict YAML: a key that isn't known or stands twice is an error.
func Decode(file string, data []byte, into any) error {
	err := yaml.UnmarshalWithOptions(data, into, yaml.Strict())
	if err == nil {
		return nil
	}
	var fe *FileError
	if errors.As(err, &fe) {
		fe.File = file
		return fe
	}
	var ye yaml.Error
	if errors.As(err, &ye) && ye.GetToken() != nil && ye.GetToken().Position != nil {
		p := ye.GetToken().Position
		return &FileError{File: file, Line: p.Line, Column: p.Column, Err: errors.New(ye.GetMessage())}
	}
	return &FileError{File: file, Err: err}
}

// text is a string that remembers where it stood.
type text struct {
	s            string
	line, column int
}

// UnmarshalYAML implements yaml.NodeUnmarshaler.
func (t *text) UnmarshalYAML(n ast.Node) error {
	tok := n.GetToken()
	t.line, t.column = tok.Position.Line, tok.Position.Column
	s, ok := n.(*ast.StringNode)
	if !ok {
		return t.bad(0, errors.New("text is expected here"))
	}
	t.s = s.Value
	if tok.Type == token.SingleQuoteType || tok.Type == token.DoubleQuoteType {
		t.column++ // of the first character
	}
	return nil
}

// bad is an error at an offset in the text.
func (t *text) bad(offset int, err error) error {
	return &FileError{Line: t.line, Column: t.column + offset, Err: err}
}

// textList is one text or several.
type textList []text

// UnmarshalYAML implements yaml.NodeUnmarshaler.
func (l *textList) UnmarshalYAML(n ast.Node) error {
	seq, ok := n.(*ast.SequenceNode)
	if !ok {
		*l = make(textList, 1)
		return (*l)[0].UnmarshalYAML(n)
	}
	*l = make(textList, len(seq.Values))
	for i, v := range seq.Values {
		if err := (*l)[i].UnmarshalYAML(v); err != nil {
			return err
		}
	}
	return nil
}
