package tell

import (
	"encoding/json"
	"path"
	"slices"
	"strings"

	"stepbox/session/api"
)

// Bounds of a claim, in bytes, and of the files that it names.
const (
	maxInput   = 4 << 10
	maxCommand = 64 << 10
	maxWord    = 200
	maxPath    = 4 << 10
	maxPaths   = 64
)

// input is what agents hand to hooks, as far as it is used. Claude Code and Codex
// have it alike, and so has Qwen Code; Gemini CLI doesn't say which call it is. See
// docs/agents-tell.md.
type input struct {
	SessionID string          `json:"session_id,omitempty"`
	Helper    string          `json:"agent_id,omitempty"`
	Tool      string          `json:"tool_name,omitempty"`
	Call      string          `json:"tool_use_id,omitempty"`
	Input     json.RawMessage `json:"tool_input,omitempty"`
	Cwd       string          `json:"cwd,omitempty"`
}

// arguments are those of the tools that agents have.
type arguments struct {
	Command     json.RawMessage `json:"command"` // one text, or a list
	Description string          `json:"description"`
	Path        string          `json:"file_path"`
	Notebook    string          `json:"notebook_path"`
	URL         string          `json:"url"`
	Query       string          `json:"query"`
	Pattern     string          `json:"pattern"`
	Patch       string          `json:"input"`
	// What is to be in a file, by the names that tools have for it.
	Content json.RawMessage `json:"content"`
	New     json.RawMessage `json:"new_string"`
	Source  json.RawMessage `json:"new_source"`
	Edits   json.RawMessage `json:"edits"`
}

// Claim is what a hook says, as it is recorded; it has no number and no time yet. What
// isn't JSON of the shape that agents give says nothing but the event.
func (h *Hook) Claim() api.Claim {
	c := api.Claim{Event: word(h.Event)}
	var in input
	if json.Unmarshal(h.Input, &in) != nil {
		return c
	}
	c.Tool, c.Call, c.SessionID, c.Helper = word(in.Tool), word(in.Call), name(in.SessionID), word(in.Helper)
	c.Cut = len(in.Input) > maxInput
	c.Input = api.Escape(api.Trim(string(in.Input), maxInput))
	var args arguments
	if json.Unmarshal(in.Input, &args) != nil {
		return c
	}
	command := text(args.Command)
	patches := patched(command + "\n" + args.Patch)
	if len(patches) > 0 { // it is no command, whatever its argument is called
		command = ""
	}
	c.Writes = len(patches) > 0 || slices.ContainsFunc([]json.RawMessage{args.Content, args.New, args.Source, args.Edits}, func(m json.RawMessage) bool { return m != nil })
	for _, p := range append([]string{args.Path, args.Notebook}, patches...) {
		if p == "" || len(p) > maxPath || len(c.Paths) == maxPaths {
			continue
		}
		if !path.IsAbs(p) {
			p = path.Join(in.Cwd, p)
		}
		c.Paths = append(c.Paths, api.Escape(path.Clean(p)))
	}
	if len(command) <= maxCommand {
		c.Command = api.Escape(command)
	}
	for _, say := range []string{args.Description, firstLine(command), strings.Join(patches, ", "), args.Path, args.URL, args.Query, args.Pattern} {
		if c.Text = word(say); c.Text != "" {
			break
		}
	}
	return c
}

// word is a short text of the agent's.
func word(s string) string { return api.Escape(api.Trim(strings.TrimSpace(s), maxWord)) }

// name is what an agent calls its session, which a person puts behind a command: "" where
// it would be more than a name to a shell, or an option.
func name(s string) string {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
	if len(s) > maxWord || strings.Trim(s, letters+"-_.:") != "" || s != "" && strings.Trim(s[:1], letters) != "" {
		return ""
	}
	return s
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line
}

// text is a command: one text, or the arguments of a shell, of which the script is the
// last.
func text(raw json.RawMessage) string {
	var one string
	if json.Unmarshal(raw, &one) == nil {
		return one
	}
	var list []string
	if json.Unmarshal(raw, &list) == nil && len(list) > 0 {
		return list[len(list)-1]
	}
	return ""
}

// patched are the files that a patch of Codex's form names.
func patched(patch string) (out []string) {
	if !strings.Contains(patch, "*** Begin Patch") {
		return nil
	}
	for line := range strings.Lines(patch) {
		for _, mark := range []string{"*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: "} {
			if name, ok := strings.CutPrefix(strings.TrimRight(line, "\r\n"), mark); ok && len(out) < maxPaths {
				out = append(out, name)
			}
		}
	}
	return out
}
