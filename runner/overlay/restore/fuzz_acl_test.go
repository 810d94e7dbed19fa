package restore

import (
	"bytes"
	"testing"
)

func FuzzACL(f *testing.F) {
	f.Add(aclV2)
	f.Fuzz(func(t *testing.T, b []byte) {
		same := func(id uint32) (uint32, bool) { return id, true }
		if out, ok := mapACL(b, same, same); ok && !bytes.Equal(out, b) {
			t.Fatalf("%x became %x", b, out)
		}
	})
}
