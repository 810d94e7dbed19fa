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
	maxNames = 20_000  // names that are looked at in each place
	maxTail  = 1 << 20 // bytes at the end of each: what was announced last is there
	maxLine  = 256 << 10
)

// places are the folders of a home in which agents keep their transcripts, and
// how many folders deep the files are below each, at most.
var places = []struct {
	dir  string
	deep int
}{{".claude/projects", 3}, {".codex/sessions", 3}, {".pi/agent/sessions", 1}}

// Command says which command an announcement must be of.
type Command struct {
	Lines   []string  // any of these, escaped
	Project string    // in this folder, or below
	After   time.Time // what was called before then was of an earlier command
	Began   time.Time // so what had its result by then was another's
}

// Late is how much later than it began a command an agent may write its call down: until
// then it is none of the next command with the same lines.
const Late = 100 * time.Millisecond

// call is an agent's call of a command. It has no words when there are several that
// may be it, which have other words.
type call struct {
	api.Said
	id string // its result names it
}

// InTranscript finds what an agent announced of a command in the transcripts in
// its home folder; "" when nothing is found, or it may be of another command. No link
// of the agent's is followed.
func InTranscript(home string, c Command) (said api.Said) {
	root, err := unix.Open(home, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if err != nil {
		return said
	}
	defer unix.Close(root)
	type transcript struct {
		path string
		at   time.Time
	}
	var found []transcript
	names := 0 // that may still be looked at
	var walk func(dir string, deep int)
	walk = func(dir string, deep int) {
		d := open(root, dir, unix.O_DIRECTORY)
		if d == nil {
			return
		}
		defer d.Close()
		list, _ := d.ReadDir(names) // what can't be listed isn't there
		names -= len(list)
		slices.SortFunc(list, func(a, b os.DirEntry) int { return strings.Compare(b.Name(), a.Name()) })
		for _, e := range list {
			var st unix.Stat_t
			if p := path.Join(dir, e.Name()); deep > 0 && e.IsDir() && names > 0 {
				walk(p, deep-1)
			} else if strings.HasSuffix(p, ".jsonl") && unix.Fstatat(int(d.Fd()), e.Name(), &st, unix.AT_SYMLINK_NOFOLLOW) == nil {
				if at := time.Unix(st.Mtim.Unix()); !at.Before(c.After) {
					found = append(found, transcript{p, at})
				}
			}
		}
	}
	for _, p := range places {
		names = maxNames
		walk(p.dir, p.deep)
	}
	slices.SortFunc(found, func(a, b transcript) int { return b.at.Compare(a.at) })
	var called *call
	for _, t := range found[:min(len(found), maxFiles)] {
		if f := open(root, t.path, unix.O_NONBLOCK); f != nil {
			called = called.or(read(f, c))
			f.Close()
		}
	}
	if called != nil && called.Text != "" {
		said = called.Said
	}
	return said
}

// or is the one call that there is.
func (a *call) or(b *call) *call {
	switch {
	case a == nil:
		return b
	case b != nil && a.Text != b.Text:
		a.Text = ""
	}
	return a
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
func read(f *os.File, c Command) *call {
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return nil
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

// entry is a line of a transcript, as far as all the agents have these fields:
// what is said and called stands in message (Claude Code, pi) or payload (Codex).
type entry struct {
	Timestamp        time.Time
	Cwd              string
	Message, Payload struct{ Role, Type, Cwd string }
}

// search finds the call of a command in the lines of a transcript, which isn't
// answered before the command begins. First is the transcript's first line, which tells
// the folder of some.
func search(first, tail []byte, c Command) (found *call) {
	var head entry
	if json.Unmarshal(first, &head) == nil && !c.in(cmp.Or(head.Cwd, head.Payload.Cwd)) {
		return nil
	}
	before := "" // what the agent said since it last heard something
	for line := range bytes.Lines(tail) {
		has := func(word string) bool { return bytes.Contains(line, []byte(word)) }
		heard := has(`"user"`) || has(`"toolResult"`)
		var e entry
		if has(`"assistant"`) || has("function_call") { // else the bulk: what the agent was told
			if len(line) > maxLine || json.Unmarshal(line, &e) != nil {
				continue
			}
			if heard = e.heard(); !heard {
				found = found.or(c.called(line, e, &before))
			}
		}
		if !heard {
			continue
		}
		before = ""
		if found != nil && has(`"`+found.id+`"`) { // its result
			if json.Unmarshal(line, &e) == nil && !e.Timestamp.Before(c.Began) {
				return found
			}
			found = nil
		}
	}
	return found
}

// heard says whether an entry is something that the agent was told.
func (e *entry) heard() bool {
	role := cmp.Or(e.Message.Role, e.Payload.Role)
	return role != "" && role != "assistant" || e.Payload.Type == "function_call_output"
}

// called finds a call of the command in a line of a transcript.
func (c *Command) called(line []byte, e entry, before *string) (found *call) {
	var all struct{ Message, Payload any }
	if c.in(e.Cwd) && e.Timestamp.After(c.After) && !e.Timestamp.After(c.Began.Add(Late)) && json.Unmarshal(line, &all) == nil {
		c.visit([]any{all.Message, all.Payload}, before, &found)
	}
	return found
}

// visit looks for calls of a shell in what an agent said, and notes what it said
// before each.
func (c *Command) visit(v any, before *string, found **call) {
	switch v := v.(type) {
	case []any:
		for _, v := range v {
			c.visit(v, before, found)
		}
	case map[string]any:
		word := func(key string) string { s, _ := v[key].(string); return s }
		line := cmp.Or(word("command"), word("cmd"))
		if argv, _ := v["command"].([]any); len(argv) > 0 {
			line, _ = argv[len(argv)-1].(string)
		}
		*before = cmp.Or(word("text"), *before)
		var arguments any
		_ = json.Unmarshal([]byte(word("arguments")), &arguments) // Codex has them as text; else there are none
		c.visit([]any{v["content"], v["input"], v["arguments"], arguments}, before, found)
		if *found != nil && (*found).id == "" {
			(*found).id = cmp.Or(word("call_id"), word("id"))
		}
		if line == "" || !slices.Contains(c.Lines, api.Escape(line)) {
			return
		}
		is := call{Said: api.Said{Text: cmp.Or(word("description"), word("justification")), Source: FromCall}}
		if is.Text == "" {
			text := strings.TrimSpace(*before)
			is.Said = api.Said{Text: strings.TrimSpace(text[strings.LastIndexByte(text, '\n')+1:]), Source: FromMessage}
		}
		*found = (*found).or(&is)
	}
}

// in says whether a folder is the project's; a transcript that names none may be.
func (c *Command) in(dir string) bool {
	return dir == "" || dir == c.Project || strings.HasPrefix(dir, c.Project+"/")
}
