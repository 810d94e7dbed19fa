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

// Act says which calls announce an action.
type Act struct {
	Lines   []string  // a command is called by any of these, escaped
	Paths   []string  // an edit by calls that name any of these files
	Project string    // in this folder, or below
	After   time.Time // what was called before then was of an earlier action
	// What had its result before From was another's, and so is what was called
	// after Until: a command's From is when it began; an edit's are when the
	// first and the last of its files were written.
	From, Until time.Time
}

// Late is how much later than it began a command an agent may write its call down: until
// then it is none of the next command with the same lines.
const Late = 100 * time.Millisecond

// call is an agent's call of a tool.
type call struct {
	api.Said
	at    time.Time
	id    string   // its result names it
	paths []string // those of the act that it names
	over  bool     // it had its result
}

// InTranscript finds what an agent announced of an action in the transcripts in
// its home folder; "" when nothing is found, or it may be of another one. No link
// of the agent's is followed.
func InTranscript(home string, c Act) (said api.Said) {
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
	var calls []*call
	for _, t := range found[:min(len(found), maxFiles)] {
		if f := open(root, t.path, unix.O_NONBLOCK); f != nil {
			calls = append(calls, read(f, c)...)
			f.Close()
		}
	}
	return c.words(calls)
}

// words are what the calls that are an action's say. A command has one call: it has no
// words when there are several that may be it, which have other words. An edit may
// have been made by several, but each of its files by the first of those that name it.
func (c *Act) words(calls []*call) (said api.Said) {
	slices.SortStableFunc(calls, func(a, b *call) int { return a.at.Compare(b.at) })
	var texts []string
	taken := make(map[string]bool)
	for _, k := range calls {
		first := len(k.paths) == 0
		for _, p := range k.paths {
			first, taken[p] = first || !taken[p], true
		}
		if first && !slices.Contains(texts, k.Text) {
			texts = append(texts, k.Text)
			said.Source = cmp.Or(said.Source, k.Source)
		}
	}
	if len(texts) == 0 || len(c.Paths) == 0 && len(texts) > 1 || slices.Contains(texts, "") {
		return api.Said{}
	}
	said.Text = strings.Join(texts, " / ")
	return said
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
func read(f *os.File, c Act) []*call {
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

// search finds the calls that may be an action's in the lines of a transcript, which
// aren't answered before it began. First is the transcript's first line, which tells
// the folder of some.
func search(first, tail []byte, c Act) (found []*call) {
	var head entry
	if json.Unmarshal(first, &head) == nil && !c.in(cmp.Or(head.Cwd, head.Payload.Cwd)) {
		return nil
	}
	before := "" // what the agent said since it last heard something
	for line := range bytes.Lines(tail) {
		has := func(word string) bool { return bytes.Contains(line, []byte(word)) }
		heard := has(`"user"`) || has(`"toolResult"`)
		var e entry
		if has(`"assistant"`) || has("_call") { // else the bulk: what the agent was told
			if len(line) > maxLine || json.Unmarshal(line, &e) != nil {
				continue
			}
			if heard = e.heard(); !heard {
				e.Cwd = cmp.Or(e.Cwd, head.Cwd, head.Payload.Cwd)
				found = append(found, c.called(line, e, &before)...)
			}
		}
		if !heard {
			continue
		}
		before = ""
		over := false
		found = slices.DeleteFunc(found, func(k *call) bool {
			if k.id == "" || !has(`"`+k.id+`"`) { // not its result
				return false
			}
			over = json.Unmarshal(line, &e) == nil && !e.Timestamp.Before(c.From)
			return !over && !k.over
		})
		if over && len(c.Lines) > 0 {
			break
		}
	}
	return found
}

// heard says whether an entry is something that the agent was told.
func (e *entry) heard() bool {
	role := cmp.Or(e.Message.Role, e.Payload.Role)
	return role != "" && role != "assistant" || strings.HasSuffix(e.Payload.Type, "_call_output")
}

// called finds calls of the action in a line of a transcript.
func (c *Act) called(line []byte, e entry, before *string) (found []*call) {
	var all struct{ Message, Payload any }
	if c.in(e.Cwd) && e.Timestamp.After(c.After) && !e.Timestamp.After(c.Until) && json.Unmarshal(line, &all) == nil {
		c.visit([]any{all.Message, all.Payload}, e, before, &found)
	}
	return found
}

// visit looks for calls of the action in what an agent said, and notes what it said
// before each.
func (c *Act) visit(v any, e entry, before *string, found *[]*call) {
	switch v := v.(type) {
	case []any:
		for _, v := range v {
			c.visit(v, e, before, found)
		}
	case map[string]any:
		*before = cmp.Or(word(v, "text"), *before)
		c.visit(v["content"], e, before, found)
		in, _ := cmp.Or(v["input"], v["arguments"]).(map[string]any)
		text := cmp.Or(word(v, "input"), word(v, "arguments"))
		if text != "" {
			_ = json.Unmarshal([]byte(text), &in) // Codex has them as text; else it is a patch
		}
		line := cmp.Or(word(in, "command"), word(in, "cmd"))
		if argv, _ := in["command"].([]any); len(argv) > 0 {
			line, _ = argv[len(argv)-1].(string)
		}
		is := call{at: e.Timestamp, id: cmp.Or(word(v, "call_id"), word(v, "id"))}
		for _, p := range append(patched(cmp.Or(line, word(in, "input"), text)), written(word(v, "name"), in)...) {
			if !path.IsAbs(p) {
				p = path.Join(e.Cwd, p)
			}
			if slices.Contains(c.Paths, path.Clean(p)) {
				is.paths = append(is.paths, path.Clean(p))
			}
		}
		if len(is.paths) == 0 && (line == "" || !slices.Contains(c.Lines, api.Escape(line))) {
			return
		}
		is.Said = api.Said{Text: cmp.Or(word(in, "description"), word(in, "justification")), Source: FromCall}
		if is.Text == "" {
			text := strings.TrimSpace(*before)
			is.Said = api.Said{Text: strings.TrimSpace(text[strings.LastIndexByte(text, '\n')+1:]), Source: FromMessage}
		}
		*found = append(*found, &is)
	}
}

func word(v map[string]any, key string) string { s, _ := v[key].(string); return s }

// written is the file that a tool writes, if it is one that does.
func written(tool string, in map[string]any) []string {
	if p := cmp.Or(word(in, "file_path"), word(in, "notebook_path"), word(in, "path")); p != "" && has("write edit multiedit notebookedit", strings.ToLower(tool)) {
		return []string{p}
	}
	return nil
}

// patched are the files that a patch of Codex names, which may stand in a command.
func patched(text string) (out []string) {
	_, patch, _ := strings.Cut(text, "*** Begin Patch\n")
	for line := range strings.Lines(patch) {
		for _, kind := range []string{"*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: "} {
			if p, ok := strings.CutPrefix(line, kind); ok {
				out = append(out, strings.TrimSpace(p))
			}
		}
	}
	return out
}

// in says whether a folder is the project's; a transcript that names none may be.
func (c *Act) in(dir string) bool {
	return dir == "" || dir == c.Project || strings.HasPrefix(dir, c.Project+"/")
}
