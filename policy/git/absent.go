package git

import (
	"bytes"
	"crypto/sha1" // what an index ends with, no defence
	"crypto/sha256"
	"encoding/binary"
	"errors"
)

const (
	assumeValid = 0x8000
	intentToAdd = 0x2000 // in the further flags
)

// without writes an index anew in version 3, as gitformat-index(5) has it, in which some
// paths aren't meant to be in the working tree. Extensions are left out: git makes those
// again that it wants.
func without(data []byte, absent func(path string) bool) ([]byte, error) {
	entries, err := ParseIndex(data)
	if err != nil {
		return nil, err
	}
	out := bytes.NewBuffer(make([]byte, 0, len(data)+len(data)/4))
	out.WriteString("DIRC")
	word := func(v uint32) { out.Write(binary.BigEndian.AppendUint32(nil, v)) }
	word(3)
	word(uint32(len(entries)))
	hash := 20
	for i := range entries {
		e := &entries[i]
		if e.Mode == 0o40000 {
			return nil, errors.New("it is sparse already")
		}
		hash = len(e.Hash)
		fixed := indexStat + hash
		flags, more := binary.BigEndian.Uint16(e.raw[fixed:]), uint16(0)
		if flags&extended != 0 {
			more = binary.BigEndian.Uint16(e.raw[fixed+2:]) & (intentToAdd | skipWorktree)
		}
		if absent(e.Path) {
			more |= skipWorktree
		}
		flags = flags&assumeValid | uint16(e.Stage)<<12 | uint16(min(len(e.Path), nameMask))
		start := out.Len()
		out.Write(e.raw[:fixed])
		if more != 0 {
			flags |= extended
		}
		out.Write(binary.BigEndian.AppendUint16(nil, flags))
		if more != 0 {
			out.Write(binary.BigEndian.AppendUint16(nil, more))
		}
		out.WriteString(e.Path)
		out.Write(make([]byte, 8-(out.Len()-start)%8)) // one to eight
	}
	if hash == 32 {
		sum := sha256.Sum256(out.Bytes())
		return append(out.Bytes(), sum[:]...), nil
	}
	sum := sha1.Sum(out.Bytes())
	return append(out.Bytes(), sum[:]...), nil
}
