package home

import (
	"cmp"
	"context"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"stepbox/policy"
	"stepbox/runner/overlay/diff"
	"stepbox/runner/overlay/inode"
	"stepbox/runner/overlay/lower"
	"stepbox/runner/overlay/manifest"
	"stepbox/runner/overlay/restore"
	"stepbox/runner/overlay/scan"
	"stepbox/session/api"
	"stepbox/session/judge"
)

// maxDiffers bounds what of a home can be rolled back at once.
const maxDiffers = 200_000

// difference is one path of a home that isn't as at the session's start.
type difference struct {
	now *diff.File // nil: nothing is there
	old *diff.File // nil: nothing was there

	obeyed  bool // programs obey it, whatever its name
	content bool // of a file or link on both sides: that differs
}

// then is what goes back to a path. It is compared.
type then struct {
	kind   manifest.Kind // 0: nothing
	mode   uint32
	size   int64
	mtime  manifest.Time
	target string
}

func (d difference) then() then {
	if d.old == nil {
		return then{}
	}
	t := then{kind: d.old.Kind, mode: d.old.Mode, target: d.old.Target}
	if t.kind == manifest.KindFile {
		t.size, t.mtime = d.old.Size, d.old.MTime
	}
	return t
}

// compared is what a session made of its home.
type compared struct {
	lower   *lower.Lower       // what the home would be without it
	now     *manifest.Manifest // what it wrote
	differs map[string]difference
}

func (c *compared) close() { _ = c.lower.Close() }

// compare reads what was written and what is below that. Nothing of it is stored. Open
// opens what the caller can't; nil: nobody does.
func (p Place) compare(ctx context.Context, open inode.Opener) (*compared, error) {
	scanner, err := scan.New(p.Upper, nil, open)
	if err != nil {
		return nil, err
	}
	defer scanner.Close()
	c := &compared{differs: map[string]difference{}}
	if c.now, _, err = scanner.Scan(ctx, scan.Options{}); err != nil {
		return nil, err
	}
	above := slices.DeleteFunc(p.Above(), func(dir string) bool { _, err := os.Lstat(dir); return err != nil }) // nothing was brought
	if c.lower, err = lower.Open(p.Folder, lower.Options{Above: above}); err != nil {
		return nil, err
	}
	found, err := diff.Compare(ctx, c.lower, c.now, nil, diff.Options{Max: maxDiffers})
	if err == nil && found.More > 0 {
		err = api.Problemf(api.CodeInvalid, "more than %d files of the home differ, which is too much to compare; stepbox rm drops the session with its home", maxDiffers)
	}
	if err != nil {
		c.close()
		return nil, err
	}
	for _, d := range found.Changes {
		if d.Status == diff.Renamed {
			c.differs[d.From] = difference{now: d.Old}
			c.differs[d.Path] = difference{old: d.New}
			continue
		}
		c.differs[d.Path] = difference{now: d.Old, old: d.New, content: d.Content}
	}
	delete(c.differs, "") // the home itself
	return c, nil
}

// leave takes out what no step may touch: what is mounted in the home, and folders that
// only are there besides. These are nothing, and some are made at each start, for mounts.
func (l *live) leave(mounts []string) {
	maps.DeleteFunc(l.differs, func(at string, d difference) bool {
		mounted := slices.ContainsFunc(mounts, func(m string) bool { return manifest.Within(at, m) })
		l.fixed[at] = l.fixed[at] || mounted || d.old == nil && d.now.Kind == manifest.KindDir && !d.unseen()
		return l.fixed[at]
	})
}

// steps are how some paths become what they were, and nothing else does.
func (l *live) steps(ctx context.Context, takes map[string]then) (*restore.Plan, error) {
	var leave []string
	for at, is := range l.fixed {
		if is {
			leave = append(leave, at)
		}
	}
	for at := range l.differs {
		if _, ok := takes[at]; !ok {
			leave = append(leave, at)
		}
	}
	return restore.NewPlan(ctx, l.lower, l.now, nil, restore.Options{Leave: leave, Replace: func(string) bool { return true }})
}

// blocked are paths that aren't taken back though they have to be, since one above or
// below them is, and what the upper of the two is or was has no room for the other; by
// them, that other one.
func (l *live) blocked(takes map[string]then) map[string]string {
	out := map[string]string{}
	for at := range l.differs {
		_, below := takes[at]
		for up := path.Dir(at); up != "."; up = path.Dir(up) {
			d, ok := l.differs[up]
			if !ok {
				continue
			}
			switch _, above := takes[up]; {
			case below && !above && d.now != nil && d.now.Kind != manifest.KindDir:
				out[up] = at
			case !below && above && d.old != nil && d.old.Kind != manifest.KindDir:
				out[at] = up
			}
		}
	}
	return out
}

// unseen says whether it is a folder that nobody could look into, as one too deep, or one
// that its mode keeps even its owner out of: what is in it isn't among the differences.
func (d difference) unseen() bool {
	return d.now != nil && d.now.Kind == manifest.KindDir && d.now.Unsaved != ""
}

// traps says what a changed file does to who comes after.
func (d difference) traps(at string, b policy.Brings) (out []string) {
	if f := d.now; f != nil && f.Kind == manifest.KindFile && f.Mode&0o111 != 0 {
		out = append(out, "it can be run")
	}
	if d.unseen() {
		out = append(out, "what is in it isn't known")
	}
	if out = append(out, beware(at, b)...); d.obeyed && !judge.Obeyed(at) {
		out = append(out, "programs take commands from it through a link")
	}
	return out
}

// lives says why the agent may be at a loss without a file as it is now; nothing where
// it isn't known to be.
func (l *live) lives(at string) (out []string) {
	if l.written[at] {
		out = append(out, "a program has it open, and what it writes there from then on is lost")
	}
	name := strings.ToLower(path.Base(at))
	switch stem, journal := strings.CutSuffix(strings.NewReplacer("-wal", "", "-shm", "", "-journal", "").Replace(name), ".db"); {
	case journal, strings.Contains(stem, ".sqlite"):
		out = append(out, "it is a database, of which its parts belong together")
	case strings.HasSuffix(name, ".jsonl"):
		out = append(out, "it is a history or a transcript")
	case slices.Contains([]string{".credentials.json", "auth.json", "oauth_creds.json", "credentials.json"}, name):
		out = append(out, "it is a sign-in")
	}
	return out
}

// change is a difference as it is listed, from how it is to how it will be.
func (d difference) change(at string, words []string) api.Change {
	c := api.Change{Path: api.Escape(at), Key: api.KeyOf(at), Status: "M", Words: strings.Join(words, "; ")}
	switch {
	case d.old == nil:
		c.Status = "D"
	case d.now == nil:
		c.Status = "A"
	case d.now.Kind != d.old.Kind:
		c.Status = "T"
	}
	f := cmp.Or(d.old, d.now)
	c.Kind = f.Kind.String()
	if d.now != nil {
		c.OldSize = d.now.Size
	}
	if d.old != nil {
		c.NewSize = d.old.Size
	}
	return c
}
