package overlay

import (
	"context"
	"fmt"
	"os"
	"slices"
)

// PlanRestore works out how to make the merged view, which holds cur, hold
// target again: kinds, contents, modes, owners, extended attributes, time
// stamps, link targets and hard links. cur must come from a full scan made
// while the sandbox was frozen, and the sandbox must stay frozen until Execute
// is done. A nil target is the plain lower; the project folder's own
// attributes are left alone then. The lower is read as it is now.
func PlanRestore(ctx context.Context, lower *Lower, cur, target *Manifest, o RestoreOptions) (*Plan, error) {
	p := &planner{
		ctx: ctx, plan: &Plan{}, touched: map[string]bool{},
		inPlace: map[string]bool{}, leave: map[string]bool{}, leaveBelow: map[string]bool{},
		force: map[string]bool{}, written: map[uint64]string{},
	}
	for _, path := range o.InPlace {
		p.inPlace[path] = true
	}
	for _, path := range o.Leave {
		p.leave[path] = true
		for path != "" {
			path, _ = split(path)
			p.leaveBelow[path] = true
		}
	}
	p.pair = pair{visit: p.visit}
	p.links(cur, target)
	a, b := startPlaces(lower.dirs(), cur, target)
	if err := p.pair.dir(ctx, "", a, b); err != nil {
		return nil, fmt.Errorf("cannot plan the rollback: %w", err)
	}
	if cur != nil && target != nil && !p.leave[""] {
		p.dirMeta("", &version{Entry: &cur.root.Entry}, &version{Entry: &target.root.Entry})
	}
	p.plan.Ops = slices.Concat(p.removes, p.ops, p.dirs)
	return p.plan, nil
}

type planner struct {
	ctx        context.Context
	pair       pair
	plan       *Plan
	removes    []Op
	ops        []Op
	dirs       []Op            // directories' own attributes, those below first
	touched    map[string]bool // directories in which something was touched
	inPlace    map[string]bool
	leave      map[string]bool // what stays as it is
	leaveBelow map[string]bool // directories with something below that stays

	force     map[string]bool     // files whose hard links differ
	curGroups map[string]uint64   // path → group, of files with more than one name
	groups    map[string]uint64   // the same in the target
	members   map[uint64][]string // of the target
	written   map[uint64]string   // group → the member that was written
}

// sandboxUID is what the sandbox calls an owner here: it knows one, the caller,
// as 0.
func sandboxUID(id uint32) (uint32, bool) { return sandboxID(id, os.Geteuid()) }
func sandboxGID(id uint32) (uint32, bool) { return sandboxID(id, os.Getegid()) }

func sandboxID(id uint32, mapped int) (uint32, bool) {
	if id == uint32(mapped) {
		return 0, true
	}
	return NoID, false
}

func (p *planner) problem(path, format string, args ...any) {
	p.plan.Problems = append(p.plan.Problems, Problem{path, fmt.Sprintf(format, args...)})
}

func (p *planner) touch(path string) {
	dir, _ := split(path)
	p.touched[dir] = true
}

func (p *planner) remove(path string) {
	p.touch(path)
	p.removes = append(p.removes, Op{Kind: OpRemove, Path: path})
}

// add puts a step in that changes the times of the directory above.
func (p *planner) add(op Op, path string, v *version) {
	p.touch(path)
	p.put(op, path, v)
}

// put puts a step in with the attributes of v.
func (p *planner) put(op Op, path string, v *version) {
	op.Path, op.What, op.Mode, op.MTime = path, v.Kind, v.Mode, v.MTime
	uid, okUID := sandboxUID(v.UID)
	gid, okGID := sandboxGID(v.GID)
	op.UID, op.GID = uid, gid
	if (!okUID || !okGID) && op.Kind != OpMeta {
		p.problem(path, "its owner %d:%d isn't known in the sandbox; it gets the sandbox's own", v.UID, v.GID)
	}
	op.Xattrs = p.xattrs(path, v.Xattrs)
	if op.Kind == OpMeta && v.Kind == KindDir {
		p.dirs = append(p.dirs, op)
		return
	}
	p.ops = append(p.ops, op)
}

func (p *planner) xattrs(path string, xs []Xattr) []Xattr {
	for i, x := range xs {
		if x.Name != aclAccess && x.Name != aclDefault {
			continue
		}
		mapped, ok := mapACL(x.Value, sandboxUID, sandboxGID)
		out := slices.Clone(xs[:i])
		if ok {
			out = append(out, Xattr{x.Name, mapped})
		} else {
			p.problem(path, "its access list names ids that aren't known in the sandbox; it is left out")
		}
		return append(out, p.xattrs(path, xs[i+1:])...)
	}
	return xs
}

// visit compares what is at path with what shall be there.
func (p *planner) visit(path string, cur, want *version) error {
	if err := want.load(p.ctx); err != nil {
		return err
	}
	if p.leave[path] {
		return p.visitLeft(path, cur, want)
	}
	if want.absent() {
		if p.leaveBelow[path] && cur.is(KindDir) {
			return p.pair.dir(p.ctx, path, cur.sub, place{})
		}
		p.remove(path)
		return nil
	}
	if want.Unsaved != "" {
		return p.visitUnsaved(path, cur, want)
	}
	if err := cur.load(p.ctx); err != nil {
		return err
	}
	if want.Kind == KindDir {
		return p.visitDir(path, cur, want)
	}
	if cur.is(KindDir) {
		p.remove(path)
		cur = nil
	}
	switch want.Kind {
	case KindFile:
		return p.visitFile(path, cur, want)
	case KindSymlink:
		if !cur.is(KindSymlink) || cur.Target != want.Target {
			p.add(Op{Kind: OpSymlink, Target: want.Target}, path, want)
			return nil
		}
	case KindFIFO, KindSocket:
		if !cur.is(want.Kind) {
			if cur != nil {
				p.remove(path)
			}
			op := Op{Kind: OpFIFO}
			if want.Kind == KindSocket {
				op.Kind = OpSocket
			}
			p.add(op, path, want)
			return nil
		}
	default:
		if !cur.is(want.Kind) {
			p.problem(path, "a %s can't be made in the sandbox", want.Kind)
			return nil
		}
	}
	if !cur.sameMeta(want.Entry) {
		p.add(Op{Kind: OpMeta}, path, want)
	}
	return nil
}

// visitLeft is visit for what stays as it is. A directory does so in what it is
// itself; one that is gone is made when something goes back into it.
func (p *planner) visitLeft(path string, cur, want *version) error {
	switch {
	case cur.is(KindDir) && want.is(KindDir):
		return p.pair.dir(p.ctx, path, cur.sub, want.sub)
	case cur.is(KindDir) && want.absent():
		return p.pair.dir(p.ctx, path, cur.sub, place{})
	case cur.absent() && want.is(KindDir):
		return p.visitDir(path, cur, want)
	}
	return nil
}

// visitUnsaved is visit for what the target couldn't keep.
func (p *planner) visitUnsaved(path string, cur, want *version) error {
	if cur != nil && cur.Kind == want.Kind && cur.Unsaved != "" && cur.Size == want.Size && cur.MTime == want.MTime {
		return nil
	}
	p.problem(path, "it wasn't saved: %s", want.Unsaved)
	return nil
}

func (p *planner) visitDir(path string, cur, want *version) error {
	if !cur.is(KindDir) {
		if cur != nil {
			p.remove(path)
		}
		before := len(p.ops)
		p.add(Op{Kind: OpMkdir}, path, want)
		if err := p.pair.dir(p.ctx, path, place{}, want.sub); err != nil {
			return err
		}
		if (p.leave[path] || p.leaveBelow[path]) && len(p.ops) == before+1 {
			p.ops = p.ops[:before] // nothing goes back into it: it went with what stays away
			return nil
		}
		p.put(Op{Kind: OpMeta}, path, want)
		return nil
	}
	if cur.Unsaved != "" {
		p.problem(path, "what is below it isn't known: %s", cur.Unsaved)
		return nil
	}
	if err := p.pair.dir(p.ctx, path, cur.sub, want.sub); err != nil {
		return err
	}
	p.dirMeta(path, cur, want)
	return nil
}

// dirMeta sets a directory's own attributes, after what happened in it.
func (p *planner) dirMeta(path string, cur, want *version) {
	if !p.touched[path] && cur.sameMeta(want.Entry) {
		return
	}
	p.put(Op{Kind: OpMeta}, path, want)
}

func (p *planner) visitFile(path string, cur, want *version) error {
	group := p.groups[path]
	if cur.is(KindFile) && !p.force[path] {
		same, err := sameContent(p.ctx, cur, want)
		if err != nil {
			return err
		}
		if same {
			if !cur.sameMeta(want.Entry) {
				p.add(Op{Kind: OpMeta}, path, want)
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
	op := Op{Kind: OpFile, Content: Blob{Size: want.Size, Hash: want.Hash, Lower: want.low != nil}}
	if cur.is(KindFile) && !p.force[path] {
		op.InPlace = p.inPlace[path]
		for _, m := range p.members[group] {
			op.InPlace = op.InPlace || group != 0 && p.inPlace[m]
		}
	}
	p.add(op, path, want)
	return nil
}
