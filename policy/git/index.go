package git

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
)

var errIndex = errors.New("it isn't an index that Stepbox can read")

// readIndex lists the paths that an index file tracks; none where there is no
// such file. See gitformat-index(5).
func readIndex(file string) ([]string, error) {
	data, err := readFile(file, maxIndex)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	names, err := parseIndex(data)
	if err != nil {
		return nil, fmt.Errorf("cannot read %q: %w", file, err)
	}
	return names, nil
}

const (
	indexHeader = 12 // signature, version, count
	indexStat   = 40 // times, ids, mode and size of an entry
	nameMask    = 0xfff
	extended    = 0x4000 // two more bytes of flags follow
)

// parseIndex reads the entries of an index of version 2, 3 or 4. Hashes are
// those of SHA-1 or, where entries don't add up so, of SHA-256.
func parseIndex(data []byte) ([]string, error) {
	names, err := parseEntries(data, 20)
	if err != nil {
		names, err = parseEntries(data, 32)
	}
	return names, err
}

func parseEntries(data []byte, hash int) ([]string, error) {
	if len(data) < indexHeader || string(data[:4]) != "DIRC" {
		return nil, errIndex
	}
	version, count := binary.BigEndian.Uint32(data[4:]), binary.BigEndian.Uint32(data[8:])
	if version < 2 || version > 4 || uint64(count) > uint64(len(data)) {
		return nil, errIndex
	}
	names := make([]string, 0, count)
	at, previous := indexHeader, ""
	for range count {
		start := at
		if at += indexStat + hash + 2; at > len(data) {
			return nil, errIndex
		}
		flags := binary.BigEndian.Uint16(data[at-2:])
		if flags&extended != 0 {
			at += 2
		}
		keep := ""
		if version == 4 { // what the name before has more is dropped from its end
			n, drop, ok := varint(data, at)
			if !ok || drop > len(previous) {
				return nil, errIndex
			}
			at, keep = n, previous[:len(previous)-drop]
		}
		if at > len(data) {
			return nil, errIndex
		}
		end := bytes.IndexByte(data[at:], 0)
		if end < 0 {
			return nil, errIndex
		}
		name := keep + string(data[at:at+end])
		if n := int(flags & nameMask); name == "" || n != nameMask && n != len(name) {
			return nil, errIndex
		}
		names, previous = append(names, name), name
		if at += end + 1; version < 4 { // padded to a multiple of eight
			at = start + (at-start+7)/8*8
		}
	}
	// A split index has most of its entries in another file.
	if at > len(data) || bytes.HasPrefix(data[at:], []byte("link")) {
		return nil, errIndex
	}
	return names, nil
}

// varint reads a number as git writes offsets in packs.
func varint(data []byte, at int) (next, value int, ok bool) {
	for i := 0; at < len(data) && i < 4; i++ {
		c := data[at]
		at++
		if i > 0 {
			value++
		}
		if value = value<<7 | int(c&0x7f); c&0x80 == 0 {
			return at, value, true
		}
	}
	return 0, 0, false
}
