package store

import (
	"encoding/hex"
	"fmt"

	"github.com/zeebo/blake3"
)

// Hash is a BLAKE3-256 hash: of a body, of a chunk's file, or of an event.
type Hash [32]byte

// String is the hash in hexadecimal.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// IsZero says whether h names nothing.
func (h Hash) IsZero() bool { return h == Hash{} }

// HashOf is the name of a body.
func HashOf(b []byte) Hash { return blake3.Sum256(b) }

// ParseHash reads what String wrote.
func ParseHash(s string) (Hash, error) {
	var h Hash
	if len(s) != 2*len(h) {
		return h, fmt.Errorf("cannot read a hash of %d characters: it has %d", len(s), 2*len(h))
	}
	if _, err := hex.Decode(h[:], []byte(s)); err != nil {
		return Hash{}, fmt.Errorf("cannot read hash %q: %w", s, err)
	}
	return h, nil
}
