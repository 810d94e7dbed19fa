package git

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1" // as git names objects, no defence
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
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

// maxObject bounds an object that is unpacked, in bytes.
const maxObject = 16 << 20

// IsLoose says whether a file's content is a loose object that has its name, in hexadecimal, of SHA-1 or SHA-256: gitformat-loose(5).
// Data may be hostile.
func IsLoose(name string, data []byte) bool {
	r, err := zlib.NewReader(bytes.NewReader(data))
	if err != nil {
		return false
	}
	plain, err := io.ReadAll(io.LimitReader(r, maxObject+1))
	if err != nil || len(plain) > maxObject {
		return false
	}
	short, long := sha1.Sum(plain), sha256.Sum256(plain)
	return name == hex.EncodeToString(short[:]) || name == hex.EncodeToString(long[:])
}
