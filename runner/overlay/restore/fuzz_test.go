package restore

import (
	"bytes"
	"testing"

	"stepbox/runner/overlay/manifest"
)

// What decodes must encode to the same bytes: one form for each value.
func FuzzPlan(f *testing.F) {
	for _, p := range []Plan{
		{},
		{Ops: []Op{{Kind: OpRemove, Path: "a/\xff"}}},
		{Ops: []Op{{Kind: OpFile, Path: "a", What: manifest.KindFile, Meta: manifest.Meta{Mode: 0o4755, UID: manifest.NoID, Xattrs: []manifest.Xattr{{Name: "user.a", Value: []byte("v")}}}, Content: Blob{Size: 5, Lower: true}, InPlace: true}}},
		{Ops: []Op{{Kind: OpLink, Path: "a", What: manifest.KindFile, Source: "b"}, {Kind: OpSymlink, Path: "c", What: manifest.KindSymlink, Target: "/x"}}},
		{Ops: []Op{{Kind: OpMeta, What: manifest.KindDir, Meta: manifest.Meta{MTime: manifest.Time{Sec: -1, Nsec: 5}}}}, Problems: []manifest.Problem{{Path: "p", Text: "t"}}},
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
			if !manifest.ValidPath(p.Ops[i].Path) || !manifest.ValidPath(p.Ops[i].Source) {
				t.Fatalf("the path %q was read", p.Ops[i].Path)
			}
		}
		again, err := p.MarshalBinary()
		if err != nil || !bytes.Equal(again, b) {
			t.Fatalf("%x became %x (%v)", b, again, err)
		}
	})
}
