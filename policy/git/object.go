package git

import (
	"crypto/sha1" // as git names objects, no defence
	"crypto/sha256"
	"fmt"
	"hash"
)

// Object begins the hash that git gives an object of a kind ("blob", "commit") and a
// size in bytes: as many bytes long as hashes are in the repository, SHA-256's if it
// uses those, else SHA-1's.
func Object(kind string, size int64, length int) hash.Hash {
	sum := sha1.New()
	if length == sha256.Size {
		sum = sha256.New()
	}
	fmt.Fprintf(sum, "%s %d\x00", kind, size) // hashes take all
	return sum
}
