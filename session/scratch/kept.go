package scratch

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"slices"
	"strings"
	"unicode"

	"stepbox/policy/git"
	"stepbox/runner/overlay/content"
	"stepbox/runner/overlay/manifest"
	"stepbox/session/files"
	"stepbox/session/merge"
)

// keeps says whether the session's own file has something of the branch's that a merge takes: the
// agent's commits may be without what its files have again. Where that can't be told it is so.
func (a *apart) keeps(ctx context.Context, in string, d differs) bool {
	e := a.state.Lookup(in)
	if d.made() || e.Absent() {
		return false
	}
	own, err := a.text(ctx, e)
	mode := fs.FileMode(e.Mode & 0o777)
	if e.Kind == manifest.KindSymlink {
		mode = fs.ModeSymlink
	}
	name, _ := hex.DecodeString(d.is) // it is git's
	switch {
	case err != nil || d.to != d.from && modeOf(mode) == d.from:
		return true
	case git.Holds(own, name):
		return false
	}
	was, err := a.blob(ctx, d.was)
	left, failure := a.blob(ctx, d.is)
	return err != nil || failure != nil || takes(lineEnds(was), lineEnds(left), lineEnds(own))
}

// text is what the session has as a file, or where its link points to.
func (a *apart) text(ctx context.Context, e *manifest.Entry) ([]byte, error) {
	if e.Kind == manifest.KindSymlink {
		return []byte(e.Target), nil
	}
	if e.Size > maxBlob {
		return nil, content.ErrTooMuch
	}
	r, err := content.Open(ctx, files.Bodies{Store: a.s.cfg.Store}, e.Hash, e.Size)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}

// takes says whether one change of a text takes lines that another keeps: all that it takes in a
// place, or one that the text has once. Others, as brackets are, may be a new text's as well.
func takes(was, left, own string) bool {
	there, remain, kept := counted(was), counted(left), keptBy(was, own)
	for _, e := range merge.Edits(was, left) {
		all, some := true, false
		for at, line := range linesOf(was[e.Start:e.End]) {
			switch lost := there[line] > remain[line]; {
			case !kept[e.Start+at]:
				all = false
			case lost && there[line] == 1:
				return true
			case lost:
				some = true
			}
		}
		if all && some {
			return true
		}
	}
	return false
}

// again are the paths to which a merge brings lines back that the branch has let go of since the tip went
// another way: it may have had them from what was picked of that. Nothing is, if something failed before.
func (a *apart) again(ctx context.Context, failed error, branch, tip string, written []differs) (out []string, err error) {
	if failed != nil || len(written) == 0 {
		return nil, failed
	}
	ask := strings.NewReader(branch + "\n^" + tip + "\n--\n" + onLines(written...))
	commits, err := a.git(ctx, ask, "rev-list", "--full-history", "--stdin")
	if len(commits) == 0 || err != nil {
		return nil, err
	}
	changes, err := a.changes(ctx, commits)
	changed := byPath(changes)
	both := slices.DeleteFunc(slices.Clone(written), func(d differs) bool {
		_, is := changed[d.path]
		return !is || d.made() || d.to == modeSubmodule
	})
	off, err := a.takenOff(ctx, err, commits, both)
	for _, d := range both {
		back := false
		if back, err = a.regains(ctx, err, commits, d, off); back {
			out = append(out, d.path)
		}
	}
	return out, err
}

// takenOff are the lines that some commits took off some files, unless something failed before.
func (a *apart) takenOff(ctx context.Context, failed error, commits []byte, list []differs) (off map[string]bool, err error) {
	off, err = map[string]bool{}, failed
	for some := range slices.Chunk(list, 500) { // a command line holds so many
		args := []string{"--literal-pathspecs", "diff-tree", "--stdin", "--no-commit-id", "-r", "-p", "-U0", "--no-renames", "--"}
		for _, d := range some {
			args = append(args, d.path)
		}
		if err != nil {
			break
		}
		var patch []byte
		patch, err = a.git(ctx, bytes.NewReader(commits), args...)
		in := false
		for line := range strings.Lines(string(patch)) {
			if in = strings.HasPrefix(line, "@@") || in && !strings.HasPrefix(line, "diff"); in && line[0] == '-' {
				off[strings.TrimSuffix(line[1:], "\n")] = true
			}
		}
	}
	return off, err
}

// regains says whether a merge gives a file a line, once, that some commits took off it; off are those
// that they took off any.
func (a *apart) regains(ctx context.Context, failed error, commits []byte, d differs, off map[string]bool) (is bool, err error) {
	if failed != nil {
		return false, failed
	}
	was, err := a.blob(ctx, d.was)
	left, failure := a.blob(ctx, d.is)
	there, gains := counted(string(was)), counted(string(left))
	back := func(line string) bool { return off[line] && gained(line, there, gains) }
	if anyOf(gains, back) {
		off, err = a.takenOff(ctx, cmp.Or(err, failure), commits, []differs{d})
	}
	return anyOf(gains, back), cmp.Or(err, failure)
}

func anyOf(lines map[string]int, is func(string) bool) bool {
	for line := range lines {
		if is(line) {
			return true
		}
	}
	return false
}

// gained says whether a line is new, once. One without words, as a bracket, may be from anywhere.
func gained(line string, there, left map[string]int) bool {
	return there[line] == 0 && left[line] == 1 && strings.ContainsFunc(line, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) })
}

// keptBy are the lines of a text, by where they begin, that a change of it keeps. Of one that is too
// different to say where, any that are anywhere in it.
func keptBy(was, own string) map[int]bool {
	changed, exact := merge.Compare(was, own)
	if !exact {
		changed = nil
	}
	kept, has := map[int]bool{}, counted(own)
	for at, line := range linesOf(was) {
		for len(changed) > 0 && changed[0].End <= at {
			changed = changed[1:]
		}
		kept[at] = has[line] > 0 && (len(changed) == 0 || at < changed[0].Start)
	}
	return kept
}

// counted is how often a text has each of its lines.
func counted(text string) map[string]int {
	out := map[string]int{}
	for _, line := range linesOf(text) {
		out[line]++
	}
	return out
}

// linesOf are the lines of a text, and where they begin.
func linesOf(text string) iter.Seq2[int, string] {
	return func(yield func(int, string) bool) {
		for at := 0; at < len(text); {
			line, _, _ := strings.Cut(text[at:], "\n")
			if !yield(at, line) {
				return
			}
			at += len(line) + 1
		}
	}
}

// lineEnds is a text with the ends of lines that git keeps.
func lineEnds(text []byte) string {
	return string(bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n")))
}

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
	out, err := a.git(ctx, strings.NewReader(few(sizes)), "cat-file", "--batch")
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

// few are the first small ones of what git names, by lines.
func few(sizes []byte) string {
	var ask strings.Builder
	left := maxAhead
	for line := range bytes.Lines(sizes) {
		if hash, size := named(line); hash != "" && size <= min(left, maxSmall) {
			left -= size
			ask.WriteString(hash + "\n")
		}
	}
	return ask.String()
}

// named is a blob that git names, with its size; "" if that is none.
func named(line []byte) (hash string, size int) {
	var kind string
	if n, _ := fmt.Sscan(string(line), &hash, &kind, &size); n != 3 || kind != "blob" {
		return "", 0
	}
	return hash, size
}
