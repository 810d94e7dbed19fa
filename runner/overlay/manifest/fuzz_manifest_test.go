package manifest

import (
	"bytes"
	"encoding/binary"
	"testing"

	"stepbox/runner/overlay/content"
)

func appendCount(b []byte, n int) []byte { return binary.AppendUvarint(b, uint64(n)) }

func FuzzManifest(f *testing.F) {
	e := Entry{Name: "x", Kind: KindFile, Meta: Meta{Mode: 0o644, Xattrs: []Xattr{{"user.a", nil}}}, Size: 3, Links: 7}
	page := append([]byte(pageMagic+"\x02"), AppendEntry(nil, &e, content.Hash{})...)
	f.Add(append(page, AppendEntry(nil, &Entry{Name: "y", Kind: KindWhiteout}, content.Hash{})...))
	f.Add(append([]byte(manifestMagic+"\x01\x02"), AppendEntry(nil, &Entry{Kind: KindDir, Opaque: true}, content.Hash{1})...))
	f.Add(append([]byte(indexMagic+"\x02"), make([]byte, 64)...))
	f.Fuzz(func(t *testing.T, b []byte) {
		if nodes, subs, err := decodePage(b); err == nil {
			again := appendCount([]byte(pageMagic), len(nodes))
			for i, n := range nodes {
				if !validName(n.Name) {
					t.Fatalf("the name %q was read", n.Name)
				}
				again = AppendEntry(again, &n.Entry, subs[i])
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
			again := appendCount(appendCount([]byte(magic), h.total), int(h.Bytes))
			again = AppendEntry(again, &h.root, h.sub)
			if h.recorded {
				again = AppendEntry(binary.AppendUvarint(again, h.steps), &h.base, h.baseSub)
			}
			if !bytes.Equal(again, b) {
				t.Fatalf("manifest %x became %x", b, again)
			}
		}
		_, _ = decodeIndex(b)
		// As the body of its own hash, it must load or fail, and soon.
		mem := memory{}
		h, _, _ := mem.Put(t.Context(), bytes.NewReader(b))
		_, _ = Load(t.Context(), mem, h)
	})
}
