package base

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/bits"
	"strings"

	"github.com/klauspost/compress/zstd"

	"stepbox/runner/overlay/codec"
	"stepbox/runner/overlay/content"
	"stepbox/runner/overlay/manifest"
)

const (
	magic = "sbb2"

	maxPacked = 256 << 20 // bytes of a record that is read back
	maxPlain  = 512 << 20 // of it unpacked
	maxPath   = 64 << 10
)

// over begins a body that is packed over an earlier record, whose hash follows: what both
// have costs next to nothing.
const over = "sbb+"

// maxOver is how long an earlier record may be, unpacked, in bytes, to be packed over.
const maxOver = 64 << 20

// little is how much isn't worth the tables by which more is packed well.
const little = 16 << 10

// Save keeps a record, and returns what Load takes. It is packed over an earlier one of
// the project that was kept so by itself, and has to be kept as long; the zero hash is none.
func (r *Record) Save(ctx context.Context, b content.Bodies, earlier content.Hash) (content.Hash, error) {
	plain, head := r.encode(), []byte(nil)
	options := []zstd.EOption{zstd.WithEncoderConcurrency(1)}
	if len(plain) < little {
		options = append(options, zstd.WithEncoderLevel(zstd.SpeedFastest))
	}
	if !earlier.IsZero() {
		if dict, err := unpacked(ctx, b, earlier); err == nil && len(dict) <= maxOver {
			head = append([]byte(over), earlier[:]...)
			window := 1 << bits.Len(uint(len(dict)+len(plain))) // over both; it is allocated whole
			options = append(options, zstd.WithEncoderDictRaw(1, dict), zstd.WithWindowSize(min(max(window, zstd.MinWindowSize), maxOver)))
		}
	}
	enc, err := zstd.NewWriter(nil, options...)
	if err != nil {
		return content.Hash{}, err
	}
	defer enc.Close() // it wrote to nothing
	h, _, err := b.Put(ctx, bytes.NewReader(enc.EncodeAll(plain, head)))
	if err != nil {
		return h, fmt.Errorf("cannot keep what the project was: %w", err)
	}
	return h, nil
}

// Load reads a record that Save kept.
func Load(ctx context.Context, b content.Bodies, h content.Hash) (*Record, error) {
	plain, err := unpacked(ctx, b, h)
	if err != nil {
		return nil, fmt.Errorf("cannot unpack base %s: %w", h, err)
	}
	r, err := decode(plain)
	if err != nil {
		return nil, fmt.Errorf("cannot read base %s: %w", h, err)
	}
	return r, nil
}

func unpacked(ctx context.Context, b content.Bodies, h content.Hash) ([]byte, error) {
	packed, err := content.ReadBody(ctx, b, h, maxPacked)
	if err != nil {
		return nil, err
	}
	options := []zstd.DOption{zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxPlain)}
	if rest, ok := bytes.CutPrefix(packed, []byte(over)); ok {
		var earlier content.Hash
		packed = rest[copy(earlier[:], rest):]
		dict, err := unpacked(ctx, b, earlier) // nothing has its own hash in it, so that this ends
		if err != nil {
			return nil, err
		}
		options = append(options, zstd.WithDecoderDictRaw(1, dict))
	}
	dec, err := zstd.NewReader(nil, options...)
	if err != nil {
		return nil, err
	}
	defer dec.Close()
	return dec.DecodeAll(packed, nil)
}

// encode writes a record in the one form that it has: strings and numbers by
// length, paths by what they have more than the one before.
func (r *Record) encode() []byte {
	b := codec.AppendBytes([]byte(magic), r.Missing)
	b = binary.AppendUvarint(b, uint64(len(r.Repositories)))
	for i := range r.Repositories {
		b = r.Repositories[i].encode(b)
	}
	b = binary.AppendUvarint(b, uint64(len(r.Entries)))
	last := ""
	for i := range r.Entries {
		b = manifest.AppendEntry(appendPath(b, last, r.Entries[i].Path), &r.Entries[i].Entry, content.Hash{})
		last = r.Entries[i].Path
	}
	return b
}

func (r *Repository) encode(b []byte) []byte {
	commit, _ := hex.DecodeString(r.Commit) // it was checked to be hexadecimal
	for _, s := range []string{r.Path, r.Prefix, string(commit), r.Branch, r.Unread} {
		b = codec.AppendBytes(b, s)
	}
	b = binary.AppendUvarint(b, uint64(len(r.Tracked)))
	last := ""
	for _, t := range r.Tracked {
		b = appendPath(b, last, t.Path)
		last = t.Path
		flags := byte(t.Stage)
		if t.Sparse {
			flags |= flagSparse
		}
		b = binary.AppendUvarint(append(b, flags), uint64(t.Mode))
		b = codec.AppendBytes(b, string(t.Hash))
	}
	return b
}

const flagSparse = 4 // above the stage

// appendPath writes a path as how much of the last one it begins with, and the
// rest.
func appendPath(b []byte, last, path string) []byte {
	n := shared(last, path)
	return codec.AppendBytes(binary.AppendUvarint(b, uint64(n)), path[n:])
}

func shared(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// validPath says whether s is names joined by slashes, below where it starts.
func validPath(s string) bool {
	if len(s) > maxPath || strings.IndexByte(s, 0) >= 0 {
		return false
	}
	for name := range strings.SplitSeq(s, "/") {
		if name == "" || name == "." || name == ".." {
			return false
		}
	}
	return true
}
