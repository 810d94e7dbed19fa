package overlay

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
)

// OpKind is what one step of a Plan does.
type OpKind uint8

const (
	OpRemove  OpKind = iota + 1 // take a name away, with all below it
	OpMkdir                     // make a directory of mode 0700, or keep the one there
	OpFile                      // write a file and put it in the name's place
	OpLink                      // give the name to the file at Source
	OpSymlink                   // make a link
	OpFIFO                      // make a FIFO
	OpSocket                    // make the node of a socket; nothing listens on it
	OpMeta                      // set owner, mode, attributes and times of what is there
	opEnd
)

var opNames = [...]string{"none", "remove", "mkdir", "file", "link", "symlink", "fifo", "socket", "meta"}

// String is the step's name for messages.
func (k OpKind) String() string {
	if int(k) < len(opNames) {
		return opNames[k]
	}
	return "unknown"
}

// NoID as an owner means: as the kernel makes it.
const NoID = 1<<32 - 1

// Op is one step. Paths are relative to the merged root; "" is the root.
type Op struct {
	Kind     OpKind
	Path     string
	What     Kind   // what the path is afterwards, but for OpRemove
	Source   string // of OpLink: a path that an earlier step, or nothing, touched
	Target   string // of OpSymlink
	Mode     uint32
	UID, GID uint32 // in the sandbox's user namespace; NoID leaves it
	MTime    Time
	Xattrs   []Xattr
	Content  Blob // of OpFile
	InPlace  bool // of OpFile: write into the inode that is there
}

// Blob names the bytes that an OpFile writes.
type Blob struct {
	Size  int64
	Hash  Hash // zero when Lower and not known
	Lower bool // the host's file of the same path instead of a stored body
}

// Plan says how to get from one state of the files to another. It is plain
// data; gob and JSON keep it byte for byte.
type Plan struct {
	Ops      []Op      // in order: removals first, directories' own attributes last
	Problems []Problem // what can't be restored, and why; the rest can
}

// Counts are what a plan would do, for a person to see first.
type Counts struct {
	Remove, Write, Link, Make, Meta int
	Bytes                           int64
	FromLower                       int // files copied from the host's: they take space in the upper for good
}

// Counts sums the plan up.
func (p *Plan) Counts() Counts {
	var c Counts
	for i := range p.Ops {
		op := &p.Ops[i]
		switch op.Kind {
		case OpRemove:
			c.Remove++
		case OpFile:
			c.Write++
			c.Bytes = addSizes(c.Bytes, op.Content.Size)
			if op.Content.Lower {
				c.FromLower++
			}
		case OpLink:
			c.Link++
		case OpMeta:
			c.Meta++
		default:
			c.Make++
		}
	}
	return c
}

// IDRange maps count ids from the scanner's side to the sandbox's.
type IDRange struct{ Outside, Inside, Count uint32 }

// RestoreOptions are for one PlanRestore.
type RestoreOptions struct {
	// InPlace are files that living processes hold open for writing: their
	// inode is kept and its content written over, so that what such a process
	// appends lands in the file and not in one that has no name any more.
	InPlace []string
	// UIDs and GIDs are the sandbox's id maps. Nil is the single map of the
	// calling process' effective id to 0.
	UIDs, GIDs []IDRange
}

// PlanRestore works out how to make the merged view, which holds cur, hold
// target again: kinds, contents, modes, owners, extended attributes, time
// stamps, link targets and hard links. cur must come from a full scan made
// while the sandbox was frozen, and the sandbox must stay frozen until Execute
// is done. A nil target is the plain lower; the project folder's own
// attributes are left alone then. The lower is read as it is now.
func PlanRestore(ctx context.Context, lower *Lower, cur, target *Manifest, o RestoreOptions) (*Plan, error) {
	p := &planner{
		ctx: ctx, plan: &Plan{}, touched: map[string]bool{},
		inPlace: map[string]bool{}, force: map[string]bool{}, written: map[uint64]string{},
	}
	if o.UIDs == nil {
		o.UIDs = []IDRange{{Outside: uint32(os.Geteuid()), Count: 1}}
	}
	if o.GIDs == nil {
		o.GIDs = []IDRange{{Outside: uint32(os.Getegid()), Count: 1}}
	}
	p.uids, p.gids = o.UIDs, o.GIDs
	for _, path := range o.InPlace {
		p.inPlace[path] = true
	}
	p.pair = pair{lower: lower, visit: p.visit}
	p.links(cur, target)
	a, b := startPlaces(lower, cur, target)
	if err := p.pair.dir(ctx, "", a, b); err != nil {
		return nil, fmt.Errorf("cannot plan the rollback: %w", err)
	}
	if cur != nil && target != nil {
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
	uids, gids []IDRange

	force     map[string]bool     // files whose hard links differ
	curGroups map[string]uint64   // path → group, of files with more than one name
	groups    map[string]uint64   // the same in the target
	members   map[uint64][]string // of the target
	written   map[uint64]string   // group → the member that was written
}

func mapID(ranges []IDRange, id uint32) (uint32, bool) {
	for _, r := range ranges {
		if id >= r.Outside && id-r.Outside < r.Count {
			return r.Inside + (id - r.Outside), true
		}
	}
	return NoID, false
}

func (p *planner) problem(path, format string, args ...any) {
	p.plan.Problems = append(p.plan.Problems, Problem{path, fmt.Sprintf(format, args...)})
}

// links finds the files whose hard links differ between cur and target: those
// are written anew with all members of their group, and visited even where
// nothing else differs.
func (p *planner) links(cur, target *Manifest) {
	var curMembers map[uint64][]string
	p.curGroups, curMembers = linkGroups(cur)
	p.groups, p.members = linkGroups(target)
	for path, g := range p.groups {
		if !slices.Equal(p.members[g], curMembers[p.curGroups[path]]) {
			p.force[path] = true
		}
	}
	for path, g := range p.curGroups {
		if !slices.Equal(curMembers[g], p.members[p.groups[path]]) {
			p.force[path] = true
		}
	}
	for path := range p.force {
		if p.pair.forced == nil {
			p.pair.forced = map[string]bool{}
		}
		for path != "" {
			path, _ = split(path)
			p.pair.forced[path] = true
		}
	}
}

// linkGroups finds the hard links of an upper: each path's group and each
// group's paths in order. Group 0 has none.
func linkGroups(m *Manifest) (map[string]uint64, map[uint64][]string) {
	groups, members := map[string]uint64{}, map[uint64][]string{}
	if m == nil {
		return groups, members
	}
	var walk func(path string, d *dir)
	walk = func(path string, d *dir) {
		if !d.links {
			return
		}
		for n := range d.all() {
			switch {
			case n.sub != nil:
				walk(join(path, n.Name), n.sub)
			case n.Links != 0:
				members[n.Links] = append(members[n.Links], join(path, n.Name))
			}
		}
	}
	walk("", m.root.sub)
	for g, paths := range members {
		if len(paths) < 2 {
			delete(members, g) // the other names were left out of the manifest
			continue
		}
		for _, path := range paths {
			groups[path] = g
		}
	}
	return groups, members
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
	uid, okUID := mapID(p.uids, v.UID)
	gid, okGID := mapID(p.gids, v.GID)
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
		mapped, ok := mapACL(x.Value,
			func(id uint32) (uint32, bool) { return mapID(p.uids, id) },
			func(id uint32) (uint32, bool) { return mapID(p.gids, id) })
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
	if want.absent() {
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
		p.add(Op{Kind: OpMkdir}, path, want)
		if err := p.pair.dir(p.ctx, path, place{}, want.sub); err != nil {
			return err
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

// Paths are what the plan touches, sorted, each once.
func (p *Plan) Paths() []string {
	set := map[string]bool{}
	for i := range p.Ops {
		set[p.Ops[i].Path] = true
	}
	return slices.SortedFunc(maps.Keys(set), strings.Compare)
}
