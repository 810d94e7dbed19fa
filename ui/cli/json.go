package cli

import (
	"encoding/json"
	"io"

	"stepbox/session/api"
)

// values writes JSON, a value a line. Everything of ours that is JSON for a person or a
// program is written by it: what an agent named or said may end on a terminal.
func values(out io.Writer) *json.Encoder { return json.NewEncoder(inert{out}) }

// inert writes JSON so that a terminal does nothing that it says. A Write has whole runes,
// as an encoder's has.
type inert struct{ io.Writer }

func (w inert) Write(p []byte) (int, error) {
	if _, err := w.Writer.Write(api.EscapeJSON(p)); err != nil {
		return 0, err
	}
	return len(p), nil
}
