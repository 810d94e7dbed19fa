package restore

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"stepbox/runner/overlay/diff"
	"stepbox/runner/overlay/lower"
	"stepbox/runner/overlay/manifest"
)

// NewPlan works out how to make the merged view, which holds cur, hold
// target again: kinds, contents, modes, owners, extended attributes, time
// stamps, link targets and hard links. cur must come from a full scan made
// while the sandbox was frozen, and the sandbox must stay frozen until Execute
// is done. A nil target is the plain lower; the project folder's own
// attributes are left alone then.
//
// Where cur hides the lower and target doesn't, what their Base knows goes back,
// whatever the host has there by now: a change that was taken over to the host is
// undone here all the same. What a Base couldn't keep is read from the lower as it
// is now.
func NewPlan(ctx context.Context, lower *lower.Lower, cur, target *manifest.Manifest, o Options) (*Plan, error) {
	p := &planner{
		ctx: ctx, lower: lower, plan: &Plan{}, touched: map[string]bool{},
		replace: o.Replace, only: o.Only, whole: o.Whole, up: o.Up, leave: map[string]bool{}, leaveBelow: map[string]bool{},
		force: map[string]bool{}, written: map[uint64]string{}, had: target,
	}
	for _, path := range o.Leave {
		p.leave[path] = true
		for path != "" {
			path, _ = manifest.Split(path)
			p.leaveBelow[path] = true
		}
	}
	target = manifest.Pin(target, cur)
	p.pair = diff.Walker{Visit: p.visit}
	p.links(cur, target)
	a, b := diff.Sides(lower.Dirs(), cur, target)
	if err := p.pair.Dir(ctx, "", a, b); err != nil {
		return nil, fmt.Errorf("cannot plan the rollback: %w", err)
	}
	if cur != nil && p.had != nil && !p.leave[""] {
		p.dirMeta("", &diff.Version{Entry: &cur.Root.Entry}, &diff.Version{Entry: &target.Root.Entry})
	}
	p.plan.Ops = slices.Concat(p.removes, p.ops, p.dirs)
	return p.plan, nil
}

type planner struct {
	ctx        context.Context
	lower      *lower.Lower
	pair       diff.Walker
	plan       *Plan
	removes    []Op
	ops        []Op
	dirs       []Op            // directories' own attributes, those below first
	touched    map[string]bool // directories in which something was touched
	replace    func(path string) bool
	only       func(path string) bool
	whole      bool
	up         func(path string) bool
	leave      map[string]bool // what stays as it is
	leaveBelow map[string]bool // directories with something below that stays
	left       int             // how much was found that stays

	force     map[string]bool     // files whose hard links differ
	curGroups map[string]uint64   // path → group, of files with more than one name
	groups    map[string]uint64   // the same in the target
	members   map[uint64][]string // of the target
	written   map[uint64]string   // group → the member that was written

	had    *manifest.Manifest // the target, without what the lower shows in it
	linked int                // for how many it was looked whether they are hard links of the lower's
}

// sandboxUID is what the sandbox calls an owner here: it knows one, the caller,
// as 0.
func sandboxUID(id uint32) (uint32, bool) { return sandboxID(id, os.Geteuid()) }
func sandboxGID(id uint32) (uint32, bool) { return sandboxID(id, os.Getegid()) }

func sandboxID(id uint32, mapped int) (uint32, bool) {
	if id == uint32(mapped) {
		return 0, true
	}
	return manifest.NoID, false
}

func (p *planner) problem(path, format string, args ...any) {
	p.plan.Problems = append(p.plan.Problems, manifest.Problem{Path: path, Text: fmt.Sprintf(format, args...)})
}

// lost is problem for what stays, or becomes something else than it was.
func (p *planner) lost(path, format string, args ...any) {
	p.problem(path, format, args...)
	p.plan.Lost = append(p.plan.Lost, path)
}

func (p *planner) touch(path string) {
	dir, _ := manifest.Split(path)
	p.touched[dir] = true
}

func (p *planner) remove(path string) {
	p.touch(path)
	p.removes = append(p.removes, Op{Kind: OpRemove, Path: path})
}

// add puts a step in that changes the times of the directory above.
func (p *planner) add(op Op, path string, v *diff.Version) {
	p.touch(path)
	p.put(op, path, v)
}

// put puts a step in with the attributes of v.
func (p *planner) put(op Op, path string, v *diff.Version) {
	op.Path, op.What, op.Mode, op.MTime = path, v.Kind, v.Mode, v.MTime
	uid, okUID := sandboxUID(v.UID)
	gid, okGID := sandboxGID(v.GID)
	op.UID, op.GID = uid, gid
	if (!okUID || !okGID) && op.Kind != OpMeta {
		p.problem(path, "its owner %d:%d isn't known in the sandbox; it gets the sandbox's own", v.UID, v.GID)
	}
	if !op.SameAttr {
		op.Xattrs = p.xattrs(path, v.Xattrs)
	}
	if op.Kind == OpMeta && v.Kind == manifest.KindDir {
		p.dirs = append(p.dirs, op)
		return
	}
	p.ops = append(p.ops, op)
}

func (p *planner) xattrs(path string, xs []manifest.Xattr) []manifest.Xattr {
	for i, x := range xs {
		if x.Name != manifest.ACLAccess && x.Name != manifest.ACLDefault {
			continue
		}
		mapped, ok := mapACL(x.Value, sandboxUID, sandboxGID)
		out := slices.Clone(xs[:i])
		if ok {
			out = append(out, manifest.Xattr{Name: x.Name, Value: mapped})
		} else {
			p.problem(path, "its access list names ids that aren't known in the sandbox; it is left out")
		}
		return append(out, p.xattrs(path, xs[i+1:])...)
	}
	return xs
}

// visit compares what is at path with what shall be there.
func (p *planner) visit(path string, cur, want *diff.Version) error {
	if err := want.Load(p.ctx); err != nil {
		return err
	}
	if p.leave[path] || p.hosts(path, cur) {
		if !cur.Absent() {
			p.left++
		}
		return p.visitLeft(path, cur, want)
	}
	if want.Absent() {
		return p.visitGone(path, cur)
	}
	if want.Unsaved != "" {
		return p.visitUnsaved(path, cur, want)
	}
	if err := cur.Load(p.ctx); err != nil {
		return err
	}
	if p.whole && cur.Is(manifest.KindDir) && cur.Low != nil && want.Opaque {
		p.remove(path)
		cur = nil
	}
	if want.Kind == manifest.KindDir {
		return p.visitDir(path, cur, want)
	}
	if cur.Is(manifest.KindDir) {
		p.remove(path)
		cur = nil
	}
	switch want.Kind {
	case manifest.KindFile:
		return p.visitFile(path, cur, want, want.Low != nil)
	case manifest.KindSymlink:
		if !cur.Is(manifest.KindSymlink) || cur.Target != want.Target {
			p.add(Op{Kind: OpSymlink, Target: want.Target}, path, want)
			return nil
		}
	case manifest.KindFIFO, manifest.KindSocket:
		if !cur.Is(want.Kind) {
			if cur != nil {
				p.remove(path)
			}
			op := Op{Kind: OpFIFO}
			if want.Kind == manifest.KindSocket {
				op.Kind = OpSocket
			}
			p.add(op, path, want)
			return nil
		}
	default:
		if !cur.Is(want.Kind) {
			p.lost(path, "a %s can't be made in the sandbox", want.Kind)
			return nil
		}
	}
	if !cur.SameMeta(&want.Meta) {
		p.add(metaOf(cur, want), path, want)
	}
	return nil
}

// metaOf is the step that sets the attributes of what is there.
func metaOf(cur, want *diff.Version) Op {
	return Op{Kind: OpMeta, SameAttr: cur.Unsaved == "" && sameAttrs(&cur.Meta, &want.Meta)}
}

// visitGone takes something away, but for what is below it and stays.
func (p *planner) visitGone(path string, cur *diff.Version) error {
	if cur.Is(manifest.KindDir) && (p.leaveBelow[path] || p.only != nil && cur.Sub.Open()) {
		before, removes := p.left, len(p.removes)
		if err := p.pair.Dir(p.ctx, path, cur.Sub, diff.Side{}); err != nil {
			return err
		}
		if p.leaveBelow[path] || p.left > before {
			return nil
		}
		p.removes = p.removes[:removes]
	}
	p.remove(path)
	return nil
}

// hosts says whether what is at path is the host's, and nothing to be written.
func (p *planner) hosts(path string, cur *diff.Version) bool {
	return p.only != nil && (cur.Absent() || cur.Low != nil) && !p.only(path)
}

// visitLeft is visit for what stays as it is. A directory does so in what it is
// itself; one that is gone is made when something goes back into it.
func (p *planner) visitLeft(path string, cur, want *diff.Version) error {
	switch {
	case cur.Is(manifest.KindDir) && want.Is(manifest.KindDir):
		return p.pair.Dir(p.ctx, path, cur.Sub, want.Sub)
	case cur.Is(manifest.KindDir) && want.Absent():
		return p.pair.Dir(p.ctx, path, cur.Sub, diff.Side{})
	case cur.Absent() && want.Is(manifest.KindDir):
		return p.visitDir(path, cur, want)
	}
	return nil
}

// visitUnsaved is visit for what the target couldn't keep. If it was the lower's, that
// may have it still, or else another one by now.
func (p *planner) visitUnsaved(path string, cur, want *diff.Version) error {
	if cur != nil && cur.Kind == want.Kind && cur.Unsaved != "" && cur.Size == want.Size && cur.MTime == want.MTime {
		return nil
	}
	text := fmt.Sprintf("what it was isn't in the record (%s)", strings.TrimPrefix(want.Unsaved, "not kept: "))
	has, err := p.lower.Stat(p.ctx, path)
	if err != nil || has == nil || has.Kind != manifest.KindFile || want.Kind != manifest.KindFile {
		if cur.Absent() {
			text += ", and the project hasn't got it"
		}
		p.lost(path, "%s: it stays as it is", text)
		return p.ctx.Err()
	}
	if err := cur.Load(p.ctx); err != nil {
		return err
	}
	if has.Size != want.Size || has.MTime != want.MTime {
		other, err := p.lower.Lookup(p.ctx, path)
		if err != nil {
			return err
		}
		if cur.Is(manifest.KindFile) && (cur.Low != nil || other != nil && other.Hash == cur.Hash && other.Size == cur.Size) {
			p.lost(path, "%s, and the project has it as it is here: it stays so", text)
			return nil
		}
		p.lost(path, "%s: it becomes what the project has by now", text)
	} else {
		has.Meta = want.Meta
	}
	has.Unsaved = ""
	if cur.Is(manifest.KindDir) {
		p.remove(path)
		cur = nil
	}
	return p.visitFile(path, cur, &diff.Version{Entry: has}, true)
}

func (p *planner) visitDir(path string, cur, want *diff.Version) error {
	if !cur.Is(manifest.KindDir) {
		if cur != nil {
			p.remove(path)
		}
		before := len(p.ops)
		p.add(Op{Kind: OpMkdir}, path, want)
		if err := p.pair.Dir(p.ctx, path, diff.Side{}, want.Sub); err != nil {
			return err
		}
		if (p.leave[path] || p.leaveBelow[path] || p.hosts(path, cur)) && len(p.ops) == before+1 {
			p.ops = p.ops[:before] // nothing goes back into it: it went with what stays away
			return nil
		}
		p.put(Op{Kind: OpMeta}, path, want)
		return nil
	}
	if cur.Unsaved != "" {
		p.lost(path, "what is below it isn't known: %s", cur.Unsaved)
		return nil
	}
	if err := p.pair.Dir(p.ctx, path, cur.Sub, want.Sub); err != nil {
		return err
	}
	p.dirMeta(path, cur, want)
	return nil
}

// dirMeta sets a directory's own attributes, after what happened in it.
func (p *planner) dirMeta(path string, cur, want *diff.Version) {
	if !p.touched[path] && cur.SameMeta(&want.Meta) {
		return
	}
	p.put(metaOf(cur, want), path, want)
}

// visitFile writes a file that isn't as wanted; lower says that its content is the
// lower's.
func (p *planner) visitFile(path string, cur, want *diff.Version, lower bool) error {
	group := p.groups[path]
	if cur.Is(manifest.KindFile) && !p.force[path] {
		same, err := diff.SameContent(p.ctx, cur, want)
		if err != nil {
			return err
		}
		if same {
			if !cur.SameMeta(&want.Meta) || cur.Low != nil && p.up != nil && p.up(path) {
				p.add(metaOf(cur, want), path, want)
			}
			return nil
		}
	}
	if group != 0 {
		if first, ok := p.written[group]; ok {
			p.add(Op{Kind: OpLink, Source: first}, path, want)
			return nil
		}
		p.written[group] = path
	}
	op := Op{Kind: OpFile, Content: Blob{Size: want.Size, Hash: want.Hash, Lower: lower}}
	if cur.Is(manifest.KindFile) && cur.Low == nil && !p.force[path] && !p.replaces(path, group) {
		op.InPlace = true
		// Writing takes capabilities away.
		op.SameAttr = cur.Unsaved == "" && sameAttrs(&cur.Meta, &want.Meta) &&
			!slices.ContainsFunc(want.Xattrs, func(x manifest.Xattr) bool { return x.Name == manifest.Capability })
	}
	p.add(op, path, want)
	return p.sayApart(path)
}

// replaces says whether a file, or one that shares its inode, gets another one.
func (p *planner) replaces(path string, group uint64) bool {
	if p.replace == nil {
		return false
	}
	return p.replace(path) || group != 0 && slices.ContainsFunc(p.members[group], p.replace)
}
