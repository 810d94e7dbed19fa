package scratch

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"stepbox/runner/overlay/manifest"
)

// Once a plan is written and committed, a merge of what the agent committed has nothing left to
// change but what nobody was shown: what the person had in the working tree and threw away since,
// what they took off the branch, what the commits lack and the session's files have, what the agent
// didn't see. So git merges it into a commit of ours that has all that, see carriedOut.

// beyond lists what a merge of a tip changes of what a plan leaves on a branch; plain is what it
// makes of the branch itself.
func (a *apart) beyond(ctx context.Context, plan Shown, b branch, tip, none string, plain []differs) (list []differs, may []string, err error) {
	with := b
	if with.hash, err = a.carriedOut(ctx, plan, b.hash, tip, none, plain); err != nil {
		return nil, nil, err
	}
	list, may, err = a.merged(ctx, with, tip, none)
	// What git asks about once the plan is committed, it may merge unasked before.
	before := byPath(plain)
	var unasked []differs
	for _, d := range list {
		if p, is := before[d.path]; is && d.asked && !p.asked {
			unasked = append(unasked, p)
		}
	}
	taken, failure := a.taking(ctx, plan, unasked)
	return append(list, taken...), may, cmp.Or(err, failure)
}

// taking are those of a merge's changes that take something which the plan keeps.
func (a *apart) taking(ctx context.Context, plan Shown, list []differs) (out []differs, err error) {
	planned := map[string]*manifest.Entry{}
	list = slices.DeleteFunc(list, func(d differs) bool {
		if in, shown := a.s.inProject(a.r, d.path); shown && err == nil {
			planned[d.path], err = plan.Writes(in)
		}
		return planned[d.path] == nil // git refuses to merge where the person has changed it
	})
	texts, failure := a.blobs(ctx, list)
	for _, d := range list {
		e := planned[d.path]
		own, unread := a.text(ctx, e)
		changes := d.to != d.from && entryMode(e) == d.from
		if changes || unread != nil || d.gone() || takes(texts[d.was], texts[d.is], string(own)) {
			out = append(out, d)
		}
	}
	return out, cmp.Or(err, failure)
}

// shows says whether a plan makes of a file what a tip has.
func (a *apart) shows(ctx context.Context, plan Shown, d differs) bool {
	in, is := a.s.inProject(a.r, d.path)
	if !is {
		return false
	}
	e, err := plan.Writes(in)
	if e == nil || err != nil {
		return false
	}
	text, err := a.text(ctx, e)
	return err == nil && entryMode(e) == d.to && asTip(d, text) != nil
}

// takes says whether a change of a text takes lines that another keeps. One without words, as a
// bracket, may be a new text's as well.
func takes(was, is, own string) bool {
	remain, kept := counted(is), counted(own)
	for line, n := range counted(was) {
		if remain[line] < min(n, kept[line]) && strings.ContainsFunc(line, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) {
			return true
		}
	}
	return false
}

// counted is how often a text has each of its lines.
func counted(text string) map[string]int {
	out := map[string]int{}
	for line := range strings.Lines(text) {
		out[strings.TrimRight(line, "\r\n")]++
	}
	return out
}

// blobs reads what some differences are about, by hash: a process for each takes longer than all else.
func (a *apart) blobs(ctx context.Context, list []differs) (texts map[string]string, err error) {
	var ask strings.Builder
	for _, d := range list {
		if !d.made() && !d.gone() {
			ask.WriteString(d.was + "\n" + d.is + "\n")
		}
	}
	if ask.Len() == 0 {
		return nil, nil
	}
	out, err := a.git(ctx, strings.NewReader(ask.String()), "cat-file", "--batch")
	texts = map[string]string{}
	for len(out) > 0 && err == nil {
		head, rest, _ := bytes.Cut(out, []byte("\n"))
		var hash, kind string
		var size int
		if n, _ := fmt.Sscan(string(head), &hash, &kind, &size); n != 3 || len(rest) <= size {
			return nil, fmt.Errorf("git has no contents at %q", head)
		}
		texts[hash], out = string(rest[:size]), rest[size+1:]
	}
	return texts, err
}

// others notes what a merge writes beyond a plan, but where git refuses to; and what the project
// has as the commits have it, but git isn't to know of.
func (a *apart) others(ctx context.Context, l *losses, plan Shown, written []differs) error {
	root := a.s.root(a.r)
	var there []string
	for _, d := range written {
		in, shown := a.s.inProject(a.r, d.path)
		switch {
		case !filepath.IsLocal(d.path) || slices.Contains(l.over, d.path): // git writes no path that leads out
		case !d.made(), shown && plan.Deletes(in):
			l.otherwise = append(l.otherwise, d.path)
		case sameFile(filepath.Join(root, d.path), d.is):
			there = append(there, d.path)
		default:
			if _, err := os.Lstat(filepath.Join(root, d.path)); err != nil {
				l.otherwise = append(l.otherwise, d.path)
			}
		}
	}
	slices.Sort(l.otherwise)
	l.ignored = a.ignored(ctx, root, there)
	return context.Cause(ctx)
}
