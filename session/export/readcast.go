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
	first, err := c.next(in)
	if err != nil && !errors.Is(err, io.EOF) || len(bytes.TrimSpace(first)) == 0 {
		return c.refuse("this is no asciicast: it has no header")
	}
	var head struct {
		castHeader
		Stdout [][]json.RawMessage `json:"stdout"`
	}
	if json.Unmarshal(first, &head) != nil || head.Version == 1 {
		rest, err := io.ReadAll(io.LimitReader(in, maxCastOld+1))
		if err != nil {
			return err
		}
		if json.Unmarshal(append(first, rest...), &head) != nil || head.Version != 1 || len(rest) > maxCastOld {
			return c.refuse("this is no asciicast: its first line isn't a header")
		}
	}
	c.header = head.castHeader
	if c.header.Version < 1 || c.header.Version > 3 {
		return c.refuse("version %d of asciicast isn't known; there are 1, 2 and 3", c.header.Version)
	}
	if t := c.header.Term; t != nil && c.header.Version == 3 {
		c.header.Width, c.header.Height = t.Cols, t.Rows
	}
	c.header.Width, c.header.Height = clamp(cmp.Or(c.header.Width, 80)), clamp(cmp.Or(c.header.Height, 24))
	if err := f(take{kind: resize, cols: c.header.Width, rows: c.header.Height}); err != nil {
		return err
	}
	for i, e := range head.Stdout {
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
	c.at = min(max(at, c.at), maxCastTime) // time doesn't run backwards
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
