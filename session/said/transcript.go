package said

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"stepbox/session/api"
)

// Bounds of what is read of an agent's transcripts, which it may write as it likes.
const (
	maxFiles = 4       // transcripts, the newest
	maxNames = 2000    // names that are looked at
	maxTail  = 1 << 20 // bytes at the end of each: what was announced last is there
	maxLine  = 256 << 10
)

// places are the folders of a home in which agents keep their transcripts, and
// how many folders deep the files are below each.
var places = []struct {
	dir  string
	deep int
}{{".claude/projects", 1}, {".codex/sessions", 3}, {".pi/agent/sessions", 1}}

// Command says which command an announcement must be of.
type Command struct {
	Lines    []string  // any of these, escaped
	Project  string    // in this folder, or below
	From, To time.Time // between these moments
}

// InTranscript finds what an agent announced of a command in the transcripts in
// its home folder, the newest first; "" when nothing is found. No link of the
// agent's is followed.
func InTranscript(home string, c Command) string {
	root, err := unix.Open(home, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if err != nil {
		return ""
	}
	defer unix.Close(root)
	type transcript struct {
		path string
		at   time.Time
	}
	var found []transcript
	names := maxNames
	var walk func(dir string, deep int)
	walk = func(dir string, deep int) {
		d := open(root, dir, unix.O_DIRECTORY)
		if d == nil {
			return
		}
		defer d.Close()
		list, _ := d.ReadDir(names) // what can't be listed isn't there
		names -= len(list)
		for _, e := range slices.Backward(list) {
			var st unix.Stat_t
			if p := path.Join(dir, e.Name()); deep > 0 && e.IsDir() && names > 0 {
				walk(p, deep-1)
			} else if deep == 0 && strings.HasSuffix(p, ".jsonl") && unix.Fstatat(int(d.Fd()), e.Name(), &st, unix.AT_SYMLINK_NOFOLLOW) == nil {
				if at := time.Unix(st.Mtim.Unix()); !at.Before(c.From) {
					found = append(found, transcript{p, at})
				}
			}
		}
	}
	for _, p := range places {
		walk(p.dir, p.deep)
	}
	slices.SortFunc(found, func(a, b transcript) int { return b.at.Compare(a.at) })
	for _, t := range found[:min(len(found), maxFiles)] {
		if f := open(root, t.path, unix.O_NONBLOCK); f != nil {
			text := read(f, c)
			f.Close()
			if text != "" {
				return text
			}
		}
	}
	return ""
}

// open opens what is below a folder, through no link and no other mount.
func open(root int, p string, flags uint64) *os.File {
	fd, err := unix.Openat2(root, p, &unix.OpenHow{
		Flags: unix.O_RDONLY | unix.O_CLOEXEC | unix.O_NOFOLLOW | flags, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_XDEV,
	})
	if err != nil {
		return nil
	}
	return os.NewFile(uintptr(fd), p)
}

// read looks through the end of a transcript.
func read(f *os.File, c Command) string {
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return ""
	}
	head := make([]byte, 16<<10)
	n, _ := f.ReadAt(head, 0)
	first, _, _ := bytes.Cut(head[:n], []byte("\n"))
	from := max(info.Size()-maxTail, 0)
	tail, _ := io.ReadAll(io.NewSectionReader(f, from, maxTail))
	if from > 0 {
		_, tail, _ = bytes.Cut(tail, []byte("\n"))
	}
	return search(first, tail, c)
}

// entry is a line of a transcript, as far as any of the agents has these fields.
type entry struct {
	Timestamp time.Time `json:"timestamp"`
	Cwd       string    `json:"cwd"`
	Message   struct {  // Claude Code, pi
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	} `json:"message"`
	Payload struct { // Codex
		Type      string          `json:"type"`
		Role      string          `json:"role"`
		Cwd       string          `json:"cwd"`
		Content   json.RawMessage `json:"content"`
		Arguments string          `json:"arguments"`
	} `json:"payload"`
}

// block is a part of a message: text, or a tool's call.
type block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	Input     json.RawMessage `json:"input"`
	Arguments json.RawMessage `json:"arguments"`
}

// call is what a shell's tool is called with.
type call struct {
	Command       json.RawMessage `json:"command"`
	Cmd           string          `json:"cmd"`
	Description   string          `json:"description"`
	Justification string          `json:"justification"`
}

func (c *call) line() string {
	var line string
	var argv []string
	if json.Unmarshal(c.Command, &line) != nil && json.Unmarshal(c.Command, &argv) == nil && len(argv) > 0 {
		line = argv[len(argv)-1]
	}
	return cmp.Or(line, c.Cmd)
}

// search finds the last announcement of a command in the lines of a transcript.
// First is the transcript's first line, which tells the folder of some.
func search(first, tail []byte, c Command) (found string) {
	var head entry
	if json.Unmarshal(first, &head) == nil && !c.in(cmp.Or(head.Cwd, head.Payload.Cwd)) {
		return ""
	}
	before := "" // what the agent said since it last heard something
	for line := range bytes.Lines(tail) {
		var e entry
		if len(line) > maxLine || json.Unmarshal(line, &e) != nil || !c.in(e.Cwd) || e.Timestamp.Before(c.From) || e.Timestamp.After(c.To) {
			continue
		}
		var blocks []block
		if role := cmp.Or(e.Message.Role, e.Payload.Role); role == "assistant" {
			_ = json.Unmarshal(append(e.Message.Content, e.Payload.Content...), &blocks) // one of them; no blocks: it says nothing
		} else if role != "" || e.Payload.Type == "function_call_output" {
			before = ""
		}
		if e.Payload.Type == "function_call" {
			blocks = append(blocks, block{Type: "toolCall", Input: json.RawMessage(e.Payload.Arguments)})
		}
		for _, b := range blocks {
			if b.Text != "" {
				before = b.Text
				continue
			}
			var args call
			for _, raw := range []json.RawMessage{b.Input, b.Arguments} {
				if len(raw) > 0 && json.Unmarshal(raw, &args) != nil {
					args = call{}
				}
			}
			if line := api.Escape(args.line()); line != "" && slices.Contains(c.Lines, line) {
				found = cmp.Or(args.Description, args.Justification, lastLine(before))
			}
		}
	}
	return found
}

// in says whether a folder is the project's; a transcript that names none may be.
func (c *Command) in(dir string) bool {
	return dir == "" || dir == c.Project || strings.HasPrefix(dir, c.Project+"/")
}

// lastLine is the last line of a text with words in it.
func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return strings.TrimSpace(text[strings.LastIndexByte(text, '\n')+1:])
}
