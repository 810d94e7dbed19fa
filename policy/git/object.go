package git

import (
	"bytes"
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

// Holds says whether a file's content is that of a blob, or would be with the ends of lines
// that git keeps of a text (gitattributes(5), text).
func Holds(content, blob []byte) bool {
	for _, text := range [][]byte{content, bytes.ReplaceAll(content, []byte("\r\n"), []byte("\n"))} {
		sum := Object("blob", int64(len(text)), len(blob))
		_, _ = sum.Write(text) // a hash never fails
		if bytes.Equal(sum.Sum(nil), blob) {
			return true
		}
	}
	return false
}
