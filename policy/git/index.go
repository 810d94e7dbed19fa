package git

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
)

// ErrIndex is what is wrong with an index, as one that is split in two.
var ErrIndex = errors.New("it isn't an index that Stepbox can read")

// Entry is a path in a repository's index, with what git noted of the working
// file when it last found it to be what the index says.
type Entry struct {
	Path  string // from the working tree's root; a sparse folder's ends in a slash
	Mode  uint32 // 100644, 100755, 120000 for links, 160000 for submodules, 40000 for sparse folders; octal
	Hash  []byte // of the blob, or of a submodule's commit
	Stage int    // 0, or 1 to 3 of a path with a conflict
	Size  uint32 // of the file, modulo 2^32; 0 when git wants it compared
	MTime Stamp  // of the file
	CTime Stamp

	Sparse bool // it isn't meant to be in the working tree

	raw []byte // what stands before the name, flags included
}

// Stamp is a time as an index has it.
type Stamp struct{ Sec, Nsec uint32 }

// Index reads what the repository's index has, by path and stage, and when the
// index was written: what was written then or later has to be compared by its
// content. There is none before the first git add.
func (r *Repository) Index() ([]Entry, Stamp, error) {
	if r.metadata == "" {
		return nil, Stamp{}, nil
	}
	file := filepath.Join(r.metadata, "index")
	data, written, err := readStamped(file, maxIndex)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, Stamp{}, nil
	}
	if err != nil {
		return nil, Stamp{}, err
	}
	entries, err := ParseIndex(data)
	if err != nil {
		return nil, Stamp{}, fmt.Errorf("cannot read %q: %w", file, err)
	}
	return entries, written, nil
}

// maxNames bounds the paths of an index together, in bytes: in version 4 each
// is written as what it has more than the one before, so that a small file can
// stand for very long ones.
const maxNames = 128 << 20

const (
	indexHeader = 12 // signature, version, count
	indexStat   = 40 // times, ids, mode and size of an entry
	nameMask    = 0xfff
	extended    = 0x4000 // two more bytes of flags follow

	skipWorktree = 0x4000 // in those
)

// ParseIndex reads the entries of an index of version 2, 3 or 4, see
// gitformat-index(5). Hashes are those of SHA-1 or, where entries don't add up
// so, of SHA-256. The data may be hostile.
func ParseIndex(data []byte) ([]Entry, error) {
	entries, _, err := parseIndex(data)
	return entries, err
}

// parseIndex gives what follows on the entries, too.
func parseIndex(data []byte) (entries []Entry, extensions []byte, err error) {
	entries, extensions, err = parseEntries(data, 20)
	if err != nil {
		entries, extensions, err = parseEntries(data, 32)
	}
	return entries, extensions, err
}

func parseEntries(data []byte, hash int) ([]Entry, []byte, error) {
	if len(data) < indexHeader || string(data[:4]) != "DIRC" {
		return nil, nil, ErrIndex
	}
	version, count := binary.BigEndian.Uint32(data[4:]), binary.BigEndian.Uint32(data[8:])
	if version < 2 || version > 4 || uint64(count) > uint64(len(data)) {
		return nil, nil, ErrIndex
	}
	// A lie about the count doesn't cost more than what is there.
	entries := make([]Entry, 0, min(int(count), len(data)/(indexStat+hash+2)))
	at, previous, left := indexHeader, "", maxNames
	for range count {
		start := at
		if at += indexStat + hash + 2; at > len(data) {
			return nil, nil, ErrIndex
		}
		flags := binary.BigEndian.Uint16(data[at-2:])
		sparse := false
		if flags&extended != 0 {
			if at += 2; at > len(data) {
				return nil, nil, ErrIndex
			}
			sparse = binary.BigEndian.Uint16(data[at-2:])&skipWorktree != 0
		}
		raw := data[start:at:at]
		keep := ""
		if version == 4 { // what the name before has more is dropped from its end
			n, drop, ok := varint(data, at)
			if !ok || drop > len(previous) {
				return nil, nil, ErrIndex
			}
			at, keep = n, previous[:len(previous)-drop]
		}
		if at > len(data) {
			return nil, nil, ErrIndex
		}
		end := bytes.IndexByte(data[at:], 0)
		if end < 0 {
			return nil, nil, ErrIndex
		}
		if left -= len(keep) + end; left < 0 {
			return nil, nil, ErrIndex
		}
		name := keep + string(data[at:at+end])
		if n := int(flags & nameMask); name == "" || n != nameMask && n != len(name) {
			return nil, nil, ErrIndex
		}
		entries, previous = append(entries, entryAt(data[start:], hash, name)), name
		e := &entries[len(entries)-1]
		e.raw = raw
		e.Stage, e.Sparse = int(flags>>12&3), sparse || e.Mode == 0o40000
		if at += end + 1; version < 4 { // padded to a multiple of eight
			at = start + (at-start+7)/8*8
		}
	}
	// A split index has most of its entries in another file.
	if at+hash > len(data) || bytes.HasPrefix(data[at:], []byte("link")) {
		return nil, nil, ErrIndex
	}
	return entries, data[at : len(data)-hash], nil
}

// Refreshed says whether an index says the same as the one before it, but for what git noted of the working
// files as it looked at them (git status does). Extensions have to be the same: git may go by what stands there, as where entries begin.
func Refreshed(was, is []byte) bool {
	old, more, err := parseIndex(was)
	if err != nil {
		return false
	}
	entries, extensions, err := parseIndex(is)
	return err == nil && slices.EqualFunc(old, entries, func(a, b Entry) bool {
		return a.Path == b.Path && a.Mode == b.Mode && bytes.Equal(a.raw[indexStat:], b.raw[indexStat:])
	}) && bytes.Equal(more, extensions)
}

// entryAt reads the fields of an entry that are of fixed width.
func entryAt(data []byte, hash int, name string) Entry {
	n := func(i int) uint32 { return binary.BigEndian.Uint32(data[4*i:]) }
	return Entry{
		Path: name, CTime: Stamp{n(0), n(1)}, MTime: Stamp{n(2), n(3)}, Mode: n(6), Size: n(9),
		Hash: data[indexStat : indexStat+hash : indexStat+hash],
	}
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
