package restore

import (
	"encoding/binary"
	"fmt"
	"strings"

	"stepbox/runner/overlay/codec"
	"stepbox/runner/overlay/content"
	"stepbox/runner/overlay/manifest"
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

func appendProblems(b []byte, ps []manifest.Problem) []byte {
	b = binary.AppendUvarint(b, uint64(len(ps)))
	for _, p := range ps {
		b = codec.AppendBytes(codec.AppendBytes(b, p.Path), p.Text)
	}
	return b
}

func readProblems(d *codec.Decoder) []manifest.Problem {
	var ps []manifest.Problem
	for range d.Count(2) {
		p := manifest.Problem{Path: string(d.Bytes()), Text: string(d.Bytes())}
		if d.Failed() != nil {
			return nil
		}
		ps = append(ps, p)
	}
	return ps
}

const (
	opLower = 1 << iota
	opInPlace
	opSameAttr
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
	if op.SameAttr {
		flags |= opSameAttr
	}
	b = append(b, byte(op.Kind), flags)
	b = codec.AppendBytes(b, op.Path)
	if op.Kind == OpRemove {
		return b
	}
	b = append(b, byte(op.What))
	b = manifest.AppendMeta(b, &op.Meta)
	switch op.Kind {
	case OpFile:
		b = binary.AppendUvarint(b, uint64(op.Content.Size))
		b = append(b, op.Content.Hash[:]...)
	case OpLink:
		b = codec.AppendBytes(b, op.Source)
	case OpSymlink:
		b = codec.AppendBytes(b, op.Target)
	}
	return b
}

func readOp(d *codec.Decoder) (op Op) {
	op.Kind = OpKind(d.Byte())
	flags := d.Byte()
	if op.Kind == 0 || op.Kind >= opEnd || flags >= opFlagEnd || flags != 0 && op.Kind != OpFile && (flags != opSameAttr || op.Kind != OpMeta) {
		d.Fail("an unknown step or flag")
		return op
	}
	op.Content.Lower, op.InPlace, op.SameAttr = flags&opLower != 0, flags&opInPlace != 0, flags&opSameAttr != 0
	op.Path = string(d.Bytes())
	if !manifest.ValidPath(op.Path) || op.Path == "" && op.Kind != OpMeta {
		d.Fail("a path that leaves the project or names it")
		return op
	}
	if op.Kind == OpRemove {
		return op
	}
	if op.What = manifest.Kind(d.Byte()); !op.fits() {
		d.Fail("a step on the wrong kind")
		return op
	}
	op.Meta = manifest.ReadMeta(d)
	switch op.Kind {
	case OpFile:
		op.Content.Size = int64(d.Uvarint(1<<63 - 1))
		op.Content.Hash = content.ReadHash(d)
	case OpLink:
		if op.Source = string(d.Bytes()); op.Source == "" || !manifest.ValidPath(op.Source) {
			d.Fail("a path that leaves the project or names it")
		}
	case OpSymlink:
		if op.Target = string(d.Bytes()); strings.IndexByte(op.Target, 0) >= 0 {
			d.Fail("a link target with NUL")
		}
	}
	return op
}

// fits says whether the step can make what it says it makes.
func (op *Op) fits() bool {
	switch op.Kind {
	case OpMkdir:
		return op.What == manifest.KindDir
	case OpFile, OpLink:
		return op.What == manifest.KindFile
	case OpSymlink:
		return op.What == manifest.KindSymlink
	case OpFIFO:
		return op.What == manifest.KindFIFO
	case OpSocket:
		return op.What == manifest.KindSocket
	case OpMeta:
		return op.What != 0 && op.What < manifest.KindWhiteout && (op.Path != "" || op.What == manifest.KindDir)
	}
	return false
}

// UnmarshalBinary reads what MarshalBinary wrote, and nothing else.
func (p *Plan) UnmarshalBinary(b []byte) error {
	d := codec.NewDecoder(b)
	d.Magic(planMagic)
	var got Plan
	for range d.Count(3) {
		op := readOp(d)
		if d.Failed() != nil {
			break
		}
		got.Ops = append(got.Ops, op)
	}
	got.Problems = readProblems(d)
	if err := d.End(); err != nil {
		return fmt.Errorf("cannot read plan: %w", err)
	}
	*p = got
	return nil
}
