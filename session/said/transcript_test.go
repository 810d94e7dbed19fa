package said

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// Lines as Claude Code 2.1, Codex 0.169 and pi write them.
func claudeLine(at time.Time, cwd, command, description string) string {
	return fmt.Sprintf(`{"isSidechain":false,"message":{"id":"m","type":"message","role":"assistant","content":[{"type":"tool_use","id":"t","name":"Bash","input":{"command":%q,"description":%q}}],"stop_reason":"tool_use"},"type":"assistant","timestamp":%q,"cwd":%q}`+"\n",
		command, description, at.Format(time.RFC3339Nano), cwd)
}

func codexLines(at time.Time, cwd, arguments, before string) string {
	stamp := at.Format(time.RFC3339Nano)
	return fmt.Sprintf(`{"timestamp":%q,"type":"session_meta","payload":{"id":"x","cwd":%q,"originator":"codex_exec"}}
{"timestamp":%q,"type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":%q}]}}
{"timestamp":%q,"type":"response_item","payload":{"type":"function_call","name":"exec_command","arguments":%q,"call_id":"c"}}
`, stamp, cwd, stamp, before, stamp, arguments)
}

func piLines(at time.Time, cwd, command, before string) string {
	stamp := at.Format(time.RFC3339Nano)
	return fmt.Sprintf(`{"type":"session","version":3,"timestamp":%q,"cwd":%q}
{"type":"message","timestamp":%q,"message":{"role":"assistant","content":[{"type":"text","text":%q},{"type":"toolCall","id":"c","name":"bash","arguments":{"command":%q}}]}}
`, stamp, cwd, stamp, before, command)
}

// The result of each.
func claudeResult(at time.Time) string {
	return fmt.Sprintf(`{"message":{"role":"user","content":[{"tool_use_id":"t","type":"tool_result","content":"a.txt"}]},"type":"user","timestamp":%q}`+"\n", at.Format(time.RFC3339Nano))
}

func codexResult(at time.Time) string {
	return fmt.Sprintf(`{"timestamp":%q,"type":"response_item","payload":{"type":"function_call_output","call_id":"c","output":"a.txt"}}`+"\n", at.Format(time.RFC3339Nano))
}

func piResult(at time.Time) string {
	return fmt.Sprintf(`{"type":"message","timestamp":%q,"message":{"role":"toolResult","toolCallId":"c","content":[{"type":"text","text":"a.txt"}]}}`+"\n", at.Format(time.RFC3339Nano))
}

const (
	inClaude = ".claude/projects/-p/a.jsonl"
	inCodex  = ".codex/sessions/2026/11/22/rollout-a.jsonl"
	inPi     = ".pi/agent/sessions/--p--/a.jsonl"
)

func TestInTranscript(t *testing.T) {
	other := claudeLine(noon, "/p", "make", "Build it")
	for name, c := range map[string]struct {
		files map[string]string
		want  string
	}{
		"Claude Code":          {map[string]string{inClaude: other + claudeLine(noon, "/p", "ls -la", "List files") + other}, "List files"},
		"a helper of Claude's": {map[string]string{".claude/projects/-p/id/subagents/agent-1.jsonl": claudeLine(noon, "/p", "ls -la", "List files")}, "List files"},
		"in a folder below":    {map[string]string{inClaude: claudeLine(noon, "/p/src", "ls -la", "List files")}, "List files"},
		"either of two":        {map[string]string{inClaude: claudeLine(noon, "/p", "ls -la", "First") + claudeLine(noon, "/p", "ls -la", "Second")}, ""},
		"either of two files":  {map[string]string{inClaude: claudeLine(noon, "/p", "ls -la", "First"), inPi: piLines(noon, "/p", "ls -la", "Second")}, ""},
		"two that say one":     {map[string]string{inClaude: claudeLine(noon, "/p", "ls -la", "List files") + claudeLine(noon, "/p", "ls -la", "List files")}, "List files"},
		"one that is over":     {map[string]string{inClaude: claudeLine(noon, "/p", "ls -la", "First") + claudeResult(noon) + other}, ""},
		"one over, one not":    {map[string]string{inClaude: claudeLine(noon, "/p", "ls -la", "First") + claudeResult(noon) + claudeLine(noon, "/p", "ls -la", "Second")}, "Second"},
		"one over since":       {map[string]string{inClaude: claudeLine(noon, "/p", "ls -la", "First") + claudeResult(noon.Add(time.Hour)) + claudeLine(noon, "/p", "ls -la", "Second")}, "First"},
		"one over, in Codex":   {map[string]string{inCodex: codexLines(noon, "/p", `{"cmd":"ls -la"}`, "hm") + codexResult(noon)}, ""},
		"one over, in pi":      {map[string]string{inPi: piLines(noon, "/p", "ls -la", "hm") + piResult(noon)}, ""},
		"Codex":                {map[string]string{inCodex: codexLines(noon, "/p", `{"cmd":"ls -la","justification":"See what is there"}`, "hm")}, "See what is there"},
		"Codex, before":        {map[string]string{inCodex: codexLines(noon, "/p", `{"cmd":"ls -la"}`, "I know now.\n\nI'll list the files.")}, "I'll list the files."},
		"Codex, words":         {map[string]string{inCodex: codexLines(noon, "/p", `{"command":["bash","-lc","ls -la"]}`, "Listing")}, "Listing"},
		"pi":                   {map[string]string{inPi: piLines(noon, "/p", "ls -la", "Listing files")}, "Listing files"},
		"another command":      {map[string]string{inClaude: other}, ""},
		"another project":      {map[string]string{inClaude: claudeLine(noon, "/q", "ls -la", "List files")}, ""},
		"another's, in Codex":  {map[string]string{inCodex: codexLines(noon, "/q", `{"cmd":"ls -la"}`, "Listing")}, ""},
		"a name that begins":   {map[string]string{inClaude: claudeLine(noon, "/pp", "ls -la", "List files")}, ""},
		"before the session":   {map[string]string{inClaude: claudeLine(noon.Add(-2*time.Hour), "/p", "ls -la", "List files")}, ""},
		"after it began":       {map[string]string{inClaude: claudeLine(noon.Add(2*time.Hour), "/p", "ls -la", "List files")}, ""},
		"half a line":          {map[string]string{inClaude: claudeLine(noon, "/p", "ls -la", "List files") + `{"type":"assistant","mess`}, "List files"},
		"a very long line":     {map[string]string{inClaude: claudeLine(noon, "/p", "ls -la", strings.Repeat("x", maxLine))}, ""},
		"behind much":          {map[string]string{inClaude: strings.Repeat(other, maxTail/len(other)+10) + claudeLine(noon, "/p", "ls -la", "List files")}, "List files"},
		"too far back":         {map[string]string{inClaude: claudeLine(noon, "/p", "ls -la", "List files") + strings.Repeat(other, maxTail/len(other)+10)}, ""},
		"not a transcript":     {map[string]string{".claude/projects/-p/a.txt": claudeLine(noon, "/p", "ls -la", "List files")}, ""},
		"elsewhere":            {map[string]string{"notes/a.jsonl": claudeLine(noon, "/p", "ls -la", "List files")}, ""},
		"text and then no use": {map[string]string{inPi: piLines(noon, "/p", "make", "Building")}, ""},
		"deeply nested":        {map[string]string{inClaude: strings.Repeat("[", 100_000) + "\n" + claudeLine(noon, "/p", "ls -la", "List files")}, "List files"},
	} {
		t.Run(name, func(t *testing.T) {
			home := t.TempDir()
			for p, text := range c.files {
				put(t, filepath.Join(home, p), text)
			}
			got := InTranscript(home, Act{Lines: []string{"ls -la"}, Project: "/p", After: noon.Add(-time.Hour), From: noon.Add(time.Hour), Until: noon.Add(time.Hour)})
			if got.Text != c.want || name == "Codex, before" && got.Source != FromMessage || name == "Claude Code" && got.Source != FromCall {
				t.Errorf("%+v, want %q", got, c.want)
			}
		})
	}
}

// Edits as the agents call them.
func claudeEdit(at time.Time, id, words, tool, field, file string) string {
	stamp := at.Format(time.RFC3339Nano)
	return fmt.Sprintf(`{"message":{"role":"assistant","content":[{"type":"text","text":%q}]},"type":"assistant","timestamp":%q,"cwd":"/p"}
{"message":{"role":"assistant","content":[{"type":"tool_use","id":%q,"name":%q,"input":{%q:%q,"old_string":"a","new_string":"b"}}]},"type":"assistant","timestamp":%q,"cwd":"/p"}
`, words, stamp, id, tool, field, file, stamp)
}

func claudeEdited(at time.Time, id string) string {
	return fmt.Sprintf(`{"message":{"role":"user","content":[{"tool_use_id":%q,"type":"tool_result","content":"done"}]},"type":"user","timestamp":%q}`+"\n", id, at.Format(time.RFC3339Nano))
}

func codexPatch(at time.Time, cwd, words, call string) string {
	stamp := at.Format(time.RFC3339Nano)
	return fmt.Sprintf(`{"timestamp":%q,"type":"session_meta","payload":{"id":"x","cwd":%q}}
{"timestamp":%q,"type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":%q}]}}
{"timestamp":%q,"type":"response_item","payload":{%s,"call_id":"c"}}
`, stamp, cwd, stamp, words, stamp, call)
}

// TestEditsInTranscript: the file was written a second after noon.
func TestEditsInTranscript(t *testing.T) {
	patch := `*** Begin Patch\n*** Update File: src/a.go\n@@\n-a\n+b\n*** End Patch`
	after := noon.Add(time.Minute)
	for name, c := range map[string]struct{ file, text, want string }{
		"Write":                 {inClaude, claudeEdit(noon, "1", "I write it.", "Write", "file_path", "/p/src/a.go"), "I write it."},
		"Edit, and its result":  {inClaude, claudeEdit(noon, "1", "I mend it.", "Edit", "file_path", "/p/src/a.go") + claudeEdited(after, "1"), "I mend it."},
		"MultiEdit":             {inClaude, claudeEdit(noon, "1", "I mend it.", "MultiEdit", "file_path", "/p/src/a.go"), "I mend it."},
		"NotebookEdit":          {inClaude, claudeEdit(noon, "1", "I mend it.", "NotebookEdit", "notebook_path", "/p/src/a.go"), "I mend it."},
		"pi":                    {inPi, piLines(noon, "/p", "ls", "hm") + strings.NewReplacer(`"name":"bash"`, `"name":"edit"`, `"command":"ls"`, `"path":"src/a.go"`).Replace(piLines(noon, "/p", "ls", "I mend it.")), "I mend it."},
		"Codex":                 {inCodex, codexPatch(noon, "/p", "I mend it.", `"type":"custom_tool_call","name":"apply_patch","input":"`+patch+`"`), "I mend it."},
		"Codex, as a function":  {inCodex, codexPatch(noon, "/p", "I mend it.", fmt.Sprintf(`"type":"function_call","name":"apply_patch","arguments":%q`, `{"input":"`+patch+`"}`)), "I mend it."},
		"Codex, in a shell":     {inCodex, codexPatch(noon, "/p", "I mend it.", fmt.Sprintf(`"type":"function_call","name":"exec_command","arguments":%q`, `{"cmd":"apply_patch <<'E'\n`+patch+`\nE"}`)), "I mend it."},
		"Codex, a folder below": {inCodex, codexPatch(noon, "/p/x", "I mend it.", `"type":"custom_tool_call","name":"apply_patch","input":"`+patch+`"`), ""},
		"Codex, over":           {inCodex, codexPatch(noon, "/p", "I mend it.", `"type":"custom_tool_call","name":"apply_patch","input":"`+patch+`"`) + strings.Replace(codexResult(noon), "function_call", "custom_tool_call", 1), ""},
		"only read":             {inClaude, claudeEdit(noon, "1", "I read it.", "Read", "file_path", "/p/src/a.go"), ""},
		"another file":          {inClaude, claudeEdit(noon, "1", "I write it.", "Write", "file_path", "/p/a.go"), ""},
		"without words":         {inClaude, claudeEdit(noon, "1", "", "Write", "file_path", "/p/src/a.go"), ""},
		"one over, one not":     {inClaude, claudeEdit(noon, "1", "First.", "Edit", "file_path", "/p/src/a.go") + claudeEdited(noon, "1") + claudeEdit(noon, "2", "Second.", "Edit", "file_path", "/p/src/a.go"), "Second."},
		"one after it":          {inClaude, claudeEdit(noon, "1", "First.", "Edit", "file_path", "/p/src/a.go") + claudeEdited(after, "1") + claudeEdit(after, "2", "Second.", "Edit", "file_path", "/p/src/a.go"), "First."},
		"the first of two":      {inClaude, claudeEdit(noon, "1", "First.", "Edit", "file_path", "/p/src/a.go") + claudeEdit(noon, "2", "Second.", "Edit", "file_path", "/p/src/a.go"), "First."},
		"two files":             {inClaude, claudeEdit(noon, "1", "First.", "Edit", "file_path", "/p/src/a.go") + claudeEdited(after, "1") + claudeEdit(noon, "2", "Second.", "Write", "file_path", "/p/b.go"), "First. / Second."},
		"two files, one said":   {inClaude, claudeEdit(noon, "1", "", "Edit", "file_path", "/p/src/a.go") + claudeEdit(noon, "2", "Second.", "Write", "file_path", "/p/b.go"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			home := t.TempDir()
			put(t, filepath.Join(home, c.file), c.text)
			wrote := noon.Add(time.Second)
			got := InTranscript(home, Act{Paths: []string{"/p/src/a.go", "/p/b.go"}, Project: "/p", From: wrote, Until: wrote})
			if got.Text != c.want || c.want != "" && got.Source != FromMessage {
				t.Errorf("%+v, want %q", got, c.want)
			}
		})
	}
}

func put(t testing.TB, p, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(p, noon, noon); err != nil {
		t.Fatal(err)
	}
}

// What an agent puts in the place of its transcripts is neither followed nor
// waited for.
func TestTraps(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "a.jsonl")
	put(t, outside, claudeLine(noon, "/p", "ls -la", "List files"))
	for name, trap := range map[string]func(home string) error{
		"a link": func(home string) error { return os.Symlink(outside, filepath.Join(home, inClaude)) },
		"a link in the home": func(home string) error {
			put(t, filepath.Join(home, "notes"), claudeLine(noon, "/p", "ls -la", "List files"))
			return os.Symlink("../../../notes", filepath.Join(home, inClaude))
		},
		"a linked folder": func(home string) error {
			return os.Symlink(filepath.Dir(outside), filepath.Join(home, ".claude/projects/x"))
		},
		"a FIFO":   func(home string) error { return unix.Mkfifo(filepath.Join(home, inClaude), 0o644) },
		"a folder": func(home string) error { return os.Mkdir(filepath.Join(home, inClaude), 0o755) },
		"a device": func(home string) error {
			if err := unix.Mknod(filepath.Join(home, inClaude), unix.S_IFCHR|0o644, 1<<8|5); err != unix.EPERM {
				return err
			}
			return nil
		},
	} {
		home := t.TempDir()
		if err := os.MkdirAll(filepath.Join(home, filepath.Dir(inClaude)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := trap(home); err != nil {
			t.Fatal(err)
		}
		if got := InTranscript(home, Act{Lines: []string{"ls -la"}, Project: "/p", From: noon.Add(time.Hour), Until: noon.Add(time.Hour)}); got.Text != "" {
			t.Errorf("%s: it was read: %q", name, got.Text)
		}
	}
	if got := InTranscript(filepath.Join(t.TempDir(), "none"), Act{Lines: []string{"ls -la"}}); got.Text != "" {
		t.Errorf("of no home: %q", got.Text)
	}
}

func FuzzSearch(f *testing.F) {
	f.Add("", claudeLine(noon, "/p", "ls -la", "List files"))
	f.Add(`{"payload":{"cwd":"/p"}}`, codexLines(noon, "/p", `{"cmd":"ls -la","justification":"x"}`, "hm"))
	f.Add(`{"cwd":"/p"}`, piLines(noon, "/p", "ls -la", "Listing"))
	f.Add(`[`, `{"message":{"role":"assistant","content":{"type":3}},"payload":[]}`)
	f.Fuzz(func(t *testing.T, first, tail string) {
		got := search([]byte(first), []byte(tail), Act{Lines: []string{"ls -la"}, Project: "/p", From: noon.Add(time.Hour), Until: noon.Add(time.Hour)})
		for _, k := range got {
			if len(k.Text) > len(tail) {
				t.Errorf("%d bytes were found in %d", len(k.Text), len(tail))
			}
		}
	})
}
