package manifest

import (
	"bytes"
	"encoding/binary"
	"testing"

	"stepbox/runner/overlay/codec"
	"stepbox/runner/overlay/content"
)

func appendCount(b []byte, n int) []byte { return binary.AppendUvarint(b, uint64(n)) }

func FuzzManifest(f *testing.F) {
	e := Entry{Name: "x", Kind: KindFile, Mode: 0o644, Size: 3, Links: 7, Xattrs: []Xattr{{"user.a", nil}}}
	page := append([]byte(pageMagic+"\x02"), AppendEntry(nil, &e, content.Hash{})...)
	f.Add(append(page, AppendEntry(nil, &Entry{Name: "y", Kind: KindWhiteout}, content.Hash{})...))
	f.Add(append([]byte(manifestMagic+"\x01\x02"), AppendEntry(nil, &Entry{Kind: KindDir, Opaque: true}, content.Hash{1})...))
	f.Add(append([]byte(indexMagic+"\x02"), make([]byte, 64)...))
	f.Fuzz(func(t *testing.T, b []byte) {
		d := codec.NewDecoder(b)
		d.Magic(pageMagic)
		if entries, err := decodePage(d); err == nil {
			again := []byte(pageMagic)
			again = appendCount(again, len(entries))
			for i := range entries {
				if !validName(entries[i].Name) {
					t.Fatalf("the name %q was read", entries[i].Name)
				}
				again = AppendEntry(again, &entries[i].Entry, entries[i].sub)
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
		d = codec.NewDecoder(b)
		d.Magic(indexMagic)
		_, _ = decodeIndex(d)
		// As the body of its own hash, it must load or fail, and soon.
		mem := memory{}
		h, _, _ := mem.Put(t.Context(), bytes.NewReader(b))
		_, _ = Load(t.Context(), mem, h)
	})
}
