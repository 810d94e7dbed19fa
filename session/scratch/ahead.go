package scratch

import (
	"bytes"
	"context"
	"fmt"
	"strings"
)

// Bounds of contents that are read ahead, in bytes.
const (
	maxAhead = 32 << 20 // of all
	maxSmall = 1 << 20  // of one
)

// blob reads a content of those that a tip's differences have, all at once when the first is
// asked for: a process for each takes longer than all else.
func (a *apart) blob(ctx context.Context, hash string) ([]byte, error) {
	if list := a.asks; list != nil {
		a.asks = nil
		if err := a.readAhead(ctx, list); err != nil {
			return nil, err
		}
	}
	if text, is := a.ahead[hash]; is {
		return text, nil
	}
	return a.git(ctx, nil, "cat-file", "blob", hash)
}

func (a *apart) readAhead(ctx context.Context, list []differs) error {
	var ask strings.Builder
	for _, d := range list {
		if !d.made() && d.to != modeSubmodule {
			ask.WriteString(d.was + "\n" + d.is + "\n")
		}
	}
	sizes, err := a.git(ctx, strings.NewReader(ask.String()), "cat-file", "--batch-check")
	if err != nil {
		return err
	}
	ask.Reset()
	left := maxAhead
	for line := range bytes.Lines(sizes) {
		if hash, size := named(line); hash != "" && size <= min(left, maxSmall) {
			left -= size
			ask.WriteString(hash + "\n")
		}
	}
	out, err := a.git(ctx, strings.NewReader(ask.String()), "cat-file", "--batch")
	a.ahead = map[string][]byte{}
	for len(out) > 0 && err == nil {
		head, rest, _ := bytes.Cut(out, []byte("\n"))
		hash, size := named(head)
		if hash == "" || len(rest) <= size {
			return fmt.Errorf("git has no contents at %q", head)
		}
		a.ahead[hash], out = rest[:size:size], rest[size+1:]
	}
	return err
}

// named is a blob that git names, with its size; "" if that is none.
func named(line []byte) (hash string, size int) {
	var kind string
	if n, _ := fmt.Sscan(string(line), &hash, &kind, &size); n != 3 || kind != "blob" {
		return "", 0
	}
	return hash, size
}
