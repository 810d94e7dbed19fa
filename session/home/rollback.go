package home

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path"
	"slices"

	"github.com/zeebo/blake3"

	"stepbox/policy"
	"stepbox/runner"
	"stepbox/runner/overlay/manifest"
	"stepbox/runner/overlay/restore"
	"stepbox/session/api"
)

// A roll back of a home makes it, or some paths of it, what the session's home would be
// without its upper folder: the profile's, with what was brought in front. That is what
// it was at the session's start, so nothing of a home has to be recorded for it, where
// there would be sign-ins; and what is taken back can't be had again.
//
// It is written through the merged mount by the same code as a roll back of the project,
// while the agent is frozen, with each file replaced as a whole by a rename: what a
// process still has open, mapped or linked elsewhere is another file from then on, so
// that it can't write to what went back.

// Box is what a roll back needs of a live sandbox.
type Box interface {
	OpenHome(ctx context.Context, rel string) (*os.File, error)
	HomeUse() (runner.HomeUse, error)
	RestoreHome(ctx context.Context, plan *restore.Plan, source restore.Source) (restore.Report, error)
}

// Plan is a roll back of a home as it is shown. It isn't changed once made.
type Plan struct {
	Shown api.RollbackPlan

	takes map[string]then       // what it puts back, by path
	stays map[string]bool       // what was known to differ, and stays
	again func() (*Plan, error) // it, made anew; nil: of a home that isn't shared
}

// errStale says that a plan can't be carried out as it was shown.
var errStale = api.Problemf(api.CodeStale, "the home has changed since the plan was made, in the way of what goes back; look at it again (while the session is paused it stays as it is)")

// Files is how many paths a plan writes.
func (p *Plan) Files() int { return len(p.takes) }

// Took names the first few of them, escaped and each in at most so many bytes.
func (p *Plan) Took(most, each int) (out []string) {
	for _, at := range slices.Sorted(maps.Keys(p.takes)) {
		if len(out) == most {
			break
		}
		out = append(out, api.Escape(api.Trim(at, each)))
	}
	return out
}

// Plan says what a roll back of a live session's home would do.
func (p Place) Plan(ctx context.Context, box Box, profile *policy.Profile, of api.HomePaths) (*Plan, error) {
	var paths []string
	for _, raw := range of.Paths {
		at := path.Clean(string(raw))
		if at == "." || !manifest.ValidPath(at) {
			return nil, api.Problemf(api.CodeInvalid, "%q is no path below the home folder; .claude/skills is one", api.Escape(api.Trim(string(raw), 200)))
		}
		paths = append(paths, at)
	}
	if p.Saved != "" {
		return p.planObeyed(profile, paths, of)
	}
	l, err := p.live(ctx, box)
	if err != nil {
		return nil, err
	}
	defer l.close()
	out := &Plan{takes: map[string]then{}, stays: map[string]bool{}}
	out.Shown = api.RollbackPlan{RollbackTarget: api.RollbackTarget{Home: &of}, Actions: []int{}, Files: []api.Change{}}
	b := profile.Brings()
	uses := map[string][]string{}
	for at, d := range l.differs {
		traps := d.traps(at, b)
		uses[at] = l.lives(at)
		if chosen := slices.ContainsFunc(paths, func(o string) bool { return manifest.Within(at, o) }); len(paths) > 0 && !chosen ||
			len(paths) == 0 && len(traps) == 0 && len(uses[at]) > 0 {
			out.stays[at] = true
			continue
		}
		out.takes[at] = d.then()
	}
	for blocked := l.blocked(out.takes); len(blocked) > 0; blocked = l.blocked(out.takes) {
		for other, taken := range blocked {
			if len(paths) > 0 {
				return nil, api.Problemf(api.CodeInvalid, "~/%s can't be rolled back without ~/%s: one is below the other, which is no folder now or was none; name that too", api.Escape(taken), api.Escape(other))
			}
			delete(out.stays, other) // what is in the way of the rest can't stay when all is meant
			out.takes[other] = l.differs[other].then()
		}
	}
	return out, l.show(ctx, out, b, uses, len(paths) == 0)
}

// show fills in what a person sees of a plan.
func (l *live) show(ctx context.Context, p *Plan, b policy.Brings, uses map[string][]string, all bool) error {
	steps, err := l.steps(ctx, p.takes)
	if err != nil {
		return err
	}
	var troubles []api.Trouble
	if all {
		for _, at := range slices.Sorted(maps.Keys(p.stays)) {
			troubles = append(troubles, api.Trouble{Path: api.Escape(at), Why: uses[at][0] + ": it stays unless it is named"})
		}
	}
	for _, t := range steps.Problems {
		if _, ok := p.takes[t.Path]; ok {
			troubles = append(troubles, api.Trouble{Path: api.Escape(t.Path), Why: api.Escape(t.Text)})
		}
	}
	p.Shown.Problems = troubles[:min(len(troubles), maxListed)]
	h := blake3.New()
	asked, _ := json.Marshal(p.Shown.Home) // plain data
	_, _ = h.Write(asked)                  // a hash never fails
	for _, at := range slices.Sorted(maps.Keys(p.takes)) {
		d := l.differs[at]
		if _, _ = fmt.Fprintf(h, " %q %v", at, p.takes[at]); d.old == nil {
			p.Shown.Removes++
		} else {
			p.Shown.Restores++
		}
		if len(p.Shown.Files) < maxListed {
			p.Shown.Files = append(p.Shown.Files, d.change(at, append(d.traps(at, b), uses[at]...)))
		}
	}
	p.Shown.More = len(p.takes) - len(p.Shown.Files)
	p.Shown.Hash = hex.EncodeToString(h.Sum(nil)[:16])
	return nil
}

// CarryOut does what was planned. The agent has to be frozen. Begin is called when all
// is ready, with what differs and stays since it wasn't there when the plan was made; an
// error of its means that nothing is written.
func (p Place) CarryOut(ctx context.Context, box Box, plan *Plan, begin func(left []string) error) ([]manifest.Problem, error) {
	if plan.again != nil {
		return p.putBack(plan, begin)
	}
	l, err := p.live(ctx, box)
	if err != nil {
		return nil, err
	}
	defer l.close()
	takes := map[string]then{} // of what was shown: some may be as it was by itself
	var left []string
	for at, d := range l.differs {
		was, shown := plan.takes[at]
		switch {
		case shown && was != d.then(): // the profile's home has another file by now
			return nil, errStale
		case shown:
			takes[at] = was
		case !plan.stays[at]:
			left = append(left, at)
		}
	}
	if len(l.blocked(takes)) > 0 {
		return nil, errStale
	}
	steps, err := l.steps(ctx, takes)
	if err != nil {
		return nil, err
	}
	slices.Sort(left)
	if err := begin(left); err != nil {
		return nil, err
	}
	report, err := box.RestoreHome(ctx, steps, restore.NewSource(l.lower, nil))
	if err != nil {
		return nil, fmt.Errorf("cannot roll back what was changed in the home: %w", err)
	}
	failed := report.Failed
	after, err := p.live(ctx, box)
	if err != nil {
		return failed, fmt.Errorf("cannot tell whether the home was rolled back: %w", err)
	}
	defer after.close()
	for at := range takes {
		if _, still := after.differs[at]; still && !slices.ContainsFunc(failed, func(f manifest.Problem) bool { return f.Path == at }) {
			failed = append(failed, manifest.Problem{Path: at, Text: "it isn't what it was to be"})
		}
	}
	if len(failed) > 0 {
		return failed, fmt.Errorf("cannot roll all back: %d failed, the first is ~/%s: %s", len(failed), api.Escape(failed[0].Path), api.Escape(failed[0].Text))
	}
	return nil, nil
}

// live is a home that is looked at while its session lives.
type live struct {
	*compared
	fixed   map[string]bool // what no step may touch: what is mounted there, the folders that lead to it, and others
	written map[string]bool // by a process that has it open
}

// live looks at it.
func (p Place) live(ctx context.Context, box Box) (*live, error) {
	if p.Upper == "" {
		return nil, errNotOwn
	}
	use, err := box.HomeUse()
	if err != nil {
		return nil, err
	}
	l := &live{fixed: map[string]bool{}, written: map[string]bool{}}
	for _, at := range use.Written {
		l.written[at] = true
	}
	for _, at := range use.Mounts {
		for ; at != ""; at, _ = manifest.Split(at) {
			l.fixed[at] = true
		}
	}
	if l.compared, err = p.compare(ctx, box.OpenHome); err != nil {
		return nil, err
	}
	l.leave(use.Mounts)
	return l, nil
}
