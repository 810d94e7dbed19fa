package inode

import (
	"bytes"
	"encoding/hex"
	"testing"
)

// Only what is bound to a namespace's root is rewritten, and into the form that has no such binding.
func FuzzCapability(f *testing.F) {
	for _, s := range []string{"0100000200200000000000000000000000000000", "010000030020000000000000000000000000000039300000"} {
		b, _ := hex.DecodeString(s)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		got := plainCapability(b)
		if again := plainCapability(got); !bytes.Equal(again, got) || len(got) != len(b) && len(got) != 20 {
			t.Fatalf("%x became %x, and then %x", b, got, again)
		}
	})
}
