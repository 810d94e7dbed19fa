package manifest

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Problem is something about one path that a person should know.
type Problem struct {
	Path string
	Text string
}

// Error makes a problem an error that says why.
func (p *Problem) Error() string { return p.Text }

// problemJSON is a Problem whose path survives JSON.
type problemJSON struct {
	Path []byte `json:"path"`
	Text string `json:"text"`
}

// MarshalJSON keeps the path's exact bytes, in base64.
func (p Problem) MarshalJSON() ([]byte, error) {
	return json.Marshal(problemJSON{[]byte(p.Path), string(bytes.ToValidUTF8([]byte(p.Text), []byte("\uFFFD")))})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (p *Problem) UnmarshalJSON(b []byte) error {
	var j problemJSON
	if err := json.Unmarshal(b, &j); err != nil {
		return fmt.Errorf("cannot read problem: %w", err)
	}
	p.Path, p.Text = string(j.Path), j.Text
	return nil
}
