package manifest

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"stepbox/runner/overlay/codec"
	"stepbox/runner/overlay/content"
)

// Objects that lead into themselves, or are too many, end the load.
func TestLoadBombs(t *testing.T) {
	mem := memory{}
	put := func(b []byte) content.Hash { h, _, _ := mem.Put(t.Context(), bytes.NewReader(b)); return h }
	dirEntry := func(name string, sub content.Hash) []byte {
		return AppendEntry(nil, &Entry{Name: name, Kind: KindDir}, sub)
	}
	sub := put([]byte(indexMagic + "\x00"))
	for range 40 { // two directories in each: 2^40 entries from 40 objects
		page := append([]byte(pageMagic+"\x02"), dirEntry("a", sub)...)
		sub = put(append(page, dirEntry("b", sub)...))
	}
	m := append([]byte(manifestMagic+"\x00\x00"), dirEntry("", sub)...)
	if _, err := Load(t.Context(), mem, put(m)); err == nil || !strings.Contains(err.Error(), "entries") {
		t.Errorf("got %v", err)
	}
	sub = put([]byte(indexMagic + "\x00"))
	for range maxDepth + 10 {
		sub = put(append([]byte(pageMagic+"\x01"), dirEntry("a", sub)...))
	}
	m = append([]byte(manifestMagic+"\x00\x00"), dirEntry("", sub)...)
	if _, err := Load(t.Context(), mem, put(m)); err == nil || !strings.Contains(err.Error(), "below each other") {
		t.Errorf("got %v", err)
	}
}

var genEntry = rapid.Custom(func(t *rapid.T) Entry {
	e := Entry{Name: rapid.SampledFrom([]string{"a", "new\nline", "\xff\xfe\x80", ".wh.a"}).Draw(t, "name"), Kind: Kind(rapid.IntRange(1, int(kindEnd)-1).Draw(t, "kind"))}
	if e.Kind == KindWhiteout {
		return e
	}
	e.Mode = uint32(rapid.IntRange(0, 07777).Draw(t, "mode"))
	e.UID, e.GID = rapid.Uint32().Draw(t, "uid"), rapid.Uint32().Draw(t, "gid")
	e.MTime = Time{rapid.Int64().Draw(t, "sec"), uint32(rapid.IntRange(0, maxNsec).Draw(t, "nsec"))}
	switch e.Kind {
	case KindFile:
		e.Size = rapid.Int64Range(0, math.MaxInt64).Draw(t, "size")
		copy(e.Hash[:], rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "hash"))
		e.Links = rapid.Uint64().Draw(t, "links")
	case KindSymlink:
		e.Target = strings.ReplaceAll(string(rapid.SliceOf(rapid.Byte()).Draw(t, "target")), "\x00", "")
	case KindDir:
		e.Opaque = rapid.Bool().Draw(t, "opaque")
	}
	e.Unsaved = rapid.SampledFrom([]string{"", "why"}).Draw(t, "unsaved")
	for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"user.a", "user.\xff", Capability, ACLAccess}), 0, 4, rapid.ID).Draw(t, "xattrs") {
		e.Xattrs = append(e.Xattrs, Xattr{name, rapid.SliceOf(rapid.Byte()).Draw(t, "value")})
	}
	slices.SortFunc(e.Xattrs, func(a, b Xattr) int { return strings.Compare(a.Name, b.Name) })
	return e
})

func TestEntryRoundTrip(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		e := genEntry.Draw(rt, "entry")
		var sub content.Hash
		if e.Kind == KindDir {
			sub = content.Sum([]byte(e.Name))
		}
		raw := AppendEntry(nil, &e, sub)
		d := codec.NewDecoder(raw)
		back, backSub := ReadEntry(d)
		if err := d.End(); err != nil {
			rt.Fatalf("%+v: %v", e, err)
		}
		if a, b := (&Node{Entry: e}), (&Node{Entry: back}); !a.Equal(b) || sub != backSub {
			rt.Fatalf("%+v became %+v", e, back)
		}
	})
}
