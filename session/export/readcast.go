package export

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"stepbox/session/api"
)

// Bounds of what is read of a recording.
const (
	maxCastLine = 10 << 20          // bytes of a line; a longer one is skipped
	maxCastOld  = 64 << 20          // bytes of a recording of version 1, which is one JSON value
	maxCastTime = 10000 * time.Hour // a recording's length; what is later is taken to be of that time
	maxCells    = 100_000_000       // of all sizes: each is drawn anew; later ones are skipped
	maxSkips    = 20                // lines that are named as skipped; the rest is counted
)

// castReader reads an asciicast of any version, whoever wrote it. What isn't as it
// should be is skipped and named; only what has no header is refused.
type castReader struct {
	header  castHeader
	exit    *int
	at      time.Duration
	line    int
	cells   int // of all sizes so far
	skipped []string
	more    int
	others  map[string]int // events that aren't of the screen, by their code
}

func (c *castReader) skip(why string) {
	if len(c.skipped) == maxSkips {
		c.more++
		return
	}
	c.skipped = append(c.skipped, fmt.Sprintf("line %d: %s", c.line, why))
}

// said is what was skipped, in words.
func (c *castReader) said() []string {
	out := slices.Clone(c.skipped)
	if c.more > 0 {
		out = append(out, fmt.Sprintf("and %d lines more", c.more))
	}
	for _, code := range slices.Sorted(maps.Keys(c.others)) {
		out = append(out, fmt.Sprintf("events of kind %q, which aren't of the screen: %d", api.Escape(api.Trim(code, 20)), c.others[code]))
	}
	return out
}

func (c *castReader) refuse(format string, args ...any) error {
	return api.Problemf(api.CodeInvalid, "line %d: "+format, append([]any{c.line}, args...)...)
}

// read calls f with each output and resize. It may be called once.
func (c *castReader) read(r io.Reader, f func(take) error) error {
	c.others = make(map[string]int)
	in := bufio.NewReaderSize(r, 64<<10)
	head, err := c.begin(in)
	if err != nil {
		return err
	}
	stdout, err := c.describe(head)
	if err != nil {
		return err
	}
	if err := f(take{kind: resize, cols: c.header.Width, rows: c.header.Height}); err != nil {
		return err
	}
	for i, e := range stdout {
		c.line = i + 1
		if len(e) != 2 {
			c.skip("no event")
		} else if err := c.event([]json.RawMessage{e[0], json.RawMessage(`"o"`), e[1]}, f); err != nil {
			return err
		}
	}
	if c.header.Version == 1 {
		return nil
	}
	for {
		line, err := c.next(in)
		if errors.Is(err, errLong) {
			c.skip(fmt.Sprintf("longer than %d MB", maxCastLine>>20))
			continue
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if text := bytes.TrimSpace(line); len(text) > 0 && text[0] != '#' {
			var e []json.RawMessage
			if jerr := json.Unmarshal(text, &e); jerr == nil && len(e) >= 3 {
				if err := c.event(e, f); err != nil {
					return err
				}
			} else if err != nil {
				c.skip("it is cut off")
			} else {
				c.skip("no event")
			}
		}
		if err != nil {
			return nil
		}
	}
}

// begin reads the header; of version 1 that is the whole recording. Whoever wrote it may
// have members of its own, and numbers where others have text.
func (c *castReader) begin(in *bufio.Reader) (head map[string]json.RawMessage, err error) {
	var first []byte
	for len(first) == 0 && err == nil {
		if first, err = c.next(in); err == nil || errors.Is(err, io.EOF) {
			first = bytes.TrimSpace(bytes.TrimPrefix(first, []byte("\xef\xbb\xbf"))) // as some editors begin a file
		}
	}
	switch {
	case bytes.HasPrefix(first, []byte("\x1f\x8b")), bytes.HasPrefix(first, []byte("\x28\xb5\x2f\xfd")):
		return nil, c.refuse("this is compressed; unpack it first, with gunzip or zstd -d")
	case len(first) == 0:
		return nil, c.refuse("this is no asciicast: it has no header")
	}
	if json.Unmarshal(first, &head) != nil || string(head["version"]) == "1" {
		rest, err := io.ReadAll(io.LimitReader(in, maxCastOld+1))
		if err != nil {
			return nil, err
		}
		if json.Unmarshal(append(first, rest...), &head) != nil || string(head["version"]) != "1" || len(rest) > maxCastOld {
			return nil, c.refuse("this is no asciicast: its first line isn't a header")
		}
	}
	return head, nil
}

// describe takes what is known of the header; of version 1 it gives the events.
func (c *castReader) describe(head map[string]json.RawMessage) (stdout [][]json.RawMessage, err error) {
	member := func(of map[string]json.RawMessage, name string, to any) {
		_ = json.Unmarshal(of[name], to) // what is none of its kind isn't there
	}
	var version, cols, rows, when float64
	member(head, "version", &version)
	if version != 1 && version != 2 && version != 3 {
		return nil, c.refuse("version %v of asciicast isn't known; there are 1, 2 and 3", version)
	}
	size, names := head, []string{"width", "height"}
	if version == 3 {
		member(head, "term", &size)
		names = []string{"cols", "rows"}
	}
	member(size, names[0], &cols)
	member(size, names[1], &rows)
	member(head, "timestamp", &when)
	member(head, "command", &c.header.Command)
	member(head, "title", &c.header.Title)
	member(head, "stdout", &stdout)
	whole := func(n float64) int { return int(math.Min(math.Max(n, -1), 1<<40)) }
	c.header.Version, c.header.Timestamp = int(version), int64(whole(when))
	c.header.Width, c.header.Height = clamp(cmp.Or(whole(cols), 80)), clamp(cmp.Or(whole(rows), 24))
	return stdout, nil
}

var errLong = errors.New("the line is too long")

// next reads a line; io.EOF with the last one, errLong when it is too long.
func (c *castReader) next(in *bufio.Reader) (line []byte, err error) {
	c.line++
	for {
		part, err := in.ReadSlice('\n')
		if len(line)+len(part) > maxCastLine {
			for errors.Is(err, bufio.ErrBufferFull) {
				_, err = in.ReadSlice('\n')
			}
			if err != nil && !errors.Is(err, io.EOF) {
				return nil, err
			}
			return nil, errLong
		}
		line = append(line, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// event reads one: when, its code, its data.
func (c *castReader) event(e []json.RawMessage, f func(take) error) error {
	var when float64
	var code, data string
	if json.Unmarshal(e[0], &when) != nil || json.Unmarshal(e[1], &code) != nil || json.Unmarshal(e[2], &data) != nil {
		c.skip("no event")
		return nil
	}
	at := time.Duration(math.Min(math.Max(when, 0), maxCastTime.Seconds()) * float64(time.Second))
	if c.header.Version != 2 {
		at += c.at // it counts from the event before
	}
	if at < c.at || when < 0 || at > maxCastTime {
		c.skip("a time that can't be, which stands still")
	}
	c.at = min(max(at, c.at), maxCastTime)
	switch code {
	case "o":
		return f(take{at: c.at, kind: output, data: []byte(data)})
	case "r":
		cols, rows, _ := strings.Cut(data, "x")
		w, werr := strconv.Atoi(cols)
		h, herr := strconv.Atoi(rows)
		if werr != nil || herr != nil {
			c.skip("a size that is none")
			return nil
		}
		if c.cells += clamp(w) * clamp(h); c.cells > maxCells {
			c.skip("a size after too many others")
			return nil
		}
		return f(take{at: c.at, kind: resize, cols: clamp(w), rows: clamp(h)})
	case "x":
		n, err := strconv.Atoi(data)
		if err != nil {
			c.skip("an exit that is none")
			return nil
		}
		n = min(max(n, 0), 255)
		c.exit = &n
		return nil
	}
	if _, ok := c.others[code]; ok || len(c.others) < maxSkips {
		c.others[code]++
	}
	return nil
}
