package overlay

import (
	"bytes"
	"encoding/binary"
	"testing"
)

func appendCount(b []byte, n int) []byte { return binary.AppendUvarint(b, uint64(n)) }

// What decodes must encode to the same bytes: one form for each value.
func FuzzPlan(f *testing.F) {
	for _, p := range []Plan{
		{},
		{Ops: []Op{{Kind: OpRemove, Path: "a/\xff"}}},
		{Ops: []Op{{Kind: OpFile, Path: "a", What: KindFile, Mode: 0o4755, UID: NoID, Content: Blob{Size: 5, Lower: true}, InPlace: true, Xattrs: []Xattr{{"user.a", []byte("v")}}}}},
		{Ops: []Op{{Kind: OpLink, Path: "a", What: KindFile, Source: "b"}, {Kind: OpSymlink, Path: "c", What: KindSymlink, Target: "/x"}}},
		{Ops: []Op{{Kind: OpMeta, What: KindDir, MTime: Time{-1, 5}}}, Problems: []Problem{{"p", "t"}}},
	} {
		b, _ := p.MarshalBinary()
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var p Plan
		if p.UnmarshalBinary(b) != nil {
			return
		}
		for i := range p.Ops {
			if !validPath(p.Ops[i].Path) || !validPath(p.Ops[i].Source) {
				t.Fatalf("the path %q was read", p.Ops[i].Path)
			}
		}
		again, err := p.MarshalBinary()
		if err != nil || !bytes.Equal(again, b) {
			t.Fatalf("%x became %x (%v)", b, again, err)
		}
	})
}

func FuzzManifest(f *testing.F) {
	e := Entry{Name: "x", Kind: KindFile, Mode: 0o644, Size: 3, Links: 7, Xattrs: []Xattr{{"user.a", nil}}}
	page := append([]byte(pageMagic+"\x02"), appendEntry(nil, &e, Hash{})...)
	f.Add(append(page, appendEntry(nil, &Entry{Name: "y", Kind: KindWhiteout}, Hash{})...))
	f.Add(append([]byte(manifestMagic+"\x01\x02"), appendEntry(nil, &Entry{Kind: KindDir, Opaque: true}, Hash{1})...))
	f.Add(append([]byte(indexMagic+"\x02"), make([]byte, 64)...))
	l := chunkList{size: 6 << 20}
	l.addHoles(3)
	l.addData(Hash{1})
	l.addData(Hash{2})
	l.addHoles(1)
	f.Add(l.encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		d := decoder{b: b}
		d.magic(pageMagic)
		if entries, err := decodePage(&d); err == nil {
			again := []byte(pageMagic)
			again = appendCount(again, len(entries))
			for i := range entries {
				if !validName(entries[i].Name) {
					t.Fatalf("the name %q was read", entries[i].Name)
				}
				again = appendEntry(again, &entries[i].Entry, entries[i].sub)
			}
			if !bytes.Equal(again, b) {
				t.Fatalf("page %x became %x", b, again)
			}
		}
		if h, err := decodeManifest(b); err == nil {
			magic := manifestMagic
			if h.recorded {
				magic = recordedMagic
			}
			again := appendCount(appendCount([]byte(magic), h.total), int(h.bytes))
			again = appendEntry(again, &h.root, h.sub)
			if h.recorded {
				again = appendEntry(binary.AppendUvarint(again, h.steps), &h.base, h.baseSub)
			}
			if !bytes.Equal(again, b) {
				t.Fatalf("manifest %x became %x", b, again)
			}
		}
		if l, err := decodeList(b); err == nil && !bytes.Equal(l.encode(), b) {
			t.Fatalf("list %x became %x", b, l.encode())
		}
		d = decoder{b: b}
		d.magic(indexMagic)
		_, _ = decodeIndex(&d)
		// As the body of its own hash, it must load or fail, and soon.
		mem := newMemory()
		h, _, _ := mem.Put(bg, bytes.NewReader(b))
		_, _ = Load(bg, mem, h)
		_ = new(Plan).UnmarshalBinary(b)
	})
}

func FuzzACL(f *testing.F) {
	f.Add(aclV2)
	f.Fuzz(func(t *testing.T, b []byte) {
		same := func(id uint32) (uint32, bool) { return id, true }
		if out, ok := mapACL(b, same, same); ok && !bytes.Equal(out, b) {
			t.Fatalf("%x became %x", b, out)
		}
		_ = plainCapability(b)
	})
}
