package content

import (
	"bytes"
	"testing"
)

// What decodes must encode to the same bytes: one form for each list.
func FuzzList(f *testing.F) {
	l := List{size: 6 << 20}
	l.addHoles(3)
	l.addData(Hash{1})
	l.addData(Hash{2})
	l.addHoles(1)
	f.Add(l.encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		if l, err := decodeList(b); err == nil && !bytes.Equal(l.encode(), b) {
			t.Fatalf("list %x became %x", b, l.encode())
		}
	})
}
