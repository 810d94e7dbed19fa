package overlay

import (
	"encoding/binary"
	"fmt"
	"strings"
)

const planMagic = "sbr1"

// MarshalBinary gives the plan's one binary form. gob uses it.
func (p Plan) MarshalBinary() ([]byte, error) {
	b := binary.AppendUvarint([]byte(planMagic), uint64(len(p.Ops)))
	for i := range p.Ops {
		b = appendOp(b, &p.Ops[i])
	}
	return appendProblems(b, p.Problems), nil
}

func appendProblems(b []byte, ps []Problem) []byte {
	b = binary.AppendUvarint(b, uint64(len(ps)))
	for _, p := range ps {
		b = appendBytes(appendBytes(b, p.Path), p.Text)
	}
	return b
}

func (d *decoder) problems() []Problem {
	var ps []Problem
	for range d.count(2) {
		p := Problem{Path: string(d.bytes()), Text: string(d.bytes())}
		if d.err != nil {
			return nil
		}
		ps = append(ps, p)
	}
	return ps
}

const (
	opLower = 1 << iota
	opInPlace
	opFlagEnd
)

func appendOp(b []byte, op *Op) []byte {
	var flags byte
	if op.Content.Lower {
		flags |= opLower
	}
	if op.InPlace {
		flags |= opInPlace
	}
	b = append(b, byte(op.Kind), flags)
	b = appendBytes(b, op.Path)
	if op.Kind == OpRemove {
		return b
	}
	b = append(b, byte(op.What))
	b = binary.AppendUvarint(b, uint64(op.Mode))
	b = binary.AppendUvarint(b, uint64(op.UID))
	b = binary.AppendUvarint(b, uint64(op.GID))
	b = appendVarint(b, op.MTime.Sec)
	b = binary.AppendUvarint(b, uint64(op.MTime.Nsec))
	b = appendXattrs(b, op.Xattrs)
	switch op.Kind {
	case OpFile:
		b = binary.AppendUvarint(b, uint64(op.Content.Size))
		b = append(b, op.Content.Hash[:]...)
	case OpLink:
		b = appendBytes(b, op.Source)
	case OpSymlink:
		b = appendBytes(b, op.Target)
	}
	return b
}

func (d *decoder) op() (op Op) {
	op.Kind = OpKind(d.byte())
	flags := d.byte()
	if op.Kind == 0 || op.Kind >= opEnd || flags >= opFlagEnd || flags != 0 && op.Kind != OpFile {
		d.fail("an unknown step or flag")
		return op
	}
	op.Content.Lower, op.InPlace = flags&opLower != 0, flags&opInPlace != 0
	op.Path = string(d.bytes())
	if !validPath(op.Path) || op.Path == "" && op.Kind != OpMeta {
		d.fail("a path that leaves the project or names it")
		return op
	}
	if op.Kind == OpRemove {
		return op
	}
	if op.What = Kind(d.byte()); !op.fits() {
		d.fail("a step on the wrong kind")
		return op
	}
	op.Mode = uint32(d.uvarint(07777))
	op.UID = uint32(d.uvarint(NoID))
	op.GID = uint32(d.uvarint(NoID))
	op.MTime.Sec = d.varint()
	op.MTime.Nsec = uint32(d.uvarint(maxNsec))
	op.Xattrs = d.xattrs()
	switch op.Kind {
	case OpFile:
		op.Content.Size = int64(d.uvarint(1<<63 - 1))
		op.Content.Hash = d.hash()
	case OpLink:
		if op.Source = string(d.bytes()); op.Source == "" || !validPath(op.Source) {
			d.fail("a path that leaves the project or names it")
		}
	case OpSymlink:
		if op.Target = string(d.bytes()); strings.IndexByte(op.Target, 0) >= 0 {
			d.fail("a link target with NUL")
		}
	}
	return op
}

// fits says whether the step can make what it says it makes.
func (op *Op) fits() bool {
	switch op.Kind {
	case OpMkdir:
		return op.What == KindDir
	case OpFile, OpLink:
		return op.What == KindFile
	case OpSymlink:
		return op.What == KindSymlink
	case OpFIFO:
		return op.What == KindFIFO
	case OpSocket:
		return op.What == KindSocket
	case OpMeta:
		return op.What != 0 && op.What < KindWhiteout && (op.Path != "" || op.What == KindDir)
	}
	return false
}

// UnmarshalBinary reads what MarshalBinary wrote, and nothing else.
func (p *Plan) UnmarshalBinary(b []byte) error {
	d := decoder{b: b}
	d.magic(planMagic)
	var got Plan
	for range d.count(3) {
		op := d.op()
		if d.err != nil {
			break
		}
		got.Ops = append(got.Ops, op)
	}
	got.Problems = d.problems()
	if err := d.end(); err != nil {
		return fmt.Errorf("cannot read plan: %w", err)
	}
	*p = got
	return nil
}
