package git

import (
	"encoding/binary"
	"testing"
)

// In version 4 a path begins with the one before it, so that a file of n entries
// can stand for n*n/2 bytes of paths.
func TestIndexOfLongNames(t *testing.T) {
	index := func(count int) []byte {
		data := binary.BigEndian.AppendUint32([]byte("DIRC"), 4)
		data = binary.BigEndian.AppendUint32(data, uint32(count))
		for i := range count {
			data = append(data, make([]byte, indexStat+20)...)
			data = binary.BigEndian.AppendUint16(data, uint16(min(i+1, nameMask)))
			data = append(data, 0, 'a', 0) // drops nothing, adds a letter
		}
		return append(data, make([]byte, 20)...)
	}
	for count, fine := range map[int]bool{100: true, 5000: true, 20_000: false} {
		entries, err := ParseIndex(index(count))
		if (err == nil) != fine || fine && len(entries[count-1].Path) != count {
			t.Errorf("%d entries: %d, %v", count, len(entries), err)
		}
	}
}
