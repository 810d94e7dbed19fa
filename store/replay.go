package store

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"
)

// journalFile is one numbered file of a journal, packed or raw. A file that is
// both counts as raw until its chunk is recorded: packing it wasn't finished.
type journalFile struct {
	number uint32
	raw    bool
}

// journalFiles lists the files of a session's journal that count, by number, with
// what is recorded of the packed ones. A raw file counts until its chunk is recorded,
// or its session is over, before which all are packed: else anyone could add to what is
// sealed. Those that don't count are left.
func (s *Store) journalFiles(ctx context.Context, session string) (files []journalFile, chunks map[uint32]chunk, left []uint32, err error) {
	// In this order what a live session packs or ends meanwhile is taken for neither.
	all, err := listJournal(filepath.Join(s.SessionDir(session), terminal))
	if err != nil {
		return nil, nil, nil, err
	}
	if chunks, err = s.chunks(ctx, session); err != nil {
		return nil, nil, nil, err
	}
	over, err := s.Over(ctx, session)
	for _, f := range all {
		_, recorded := chunks[f.number]
		if f.raw && (recorded || over) {
			left = append(left, f.number)
			if f.raw = false; !recorded {
				continue
			}
		}
		files = append(files, f)
	}
	return files, chunks, left, err
}

// Over says whether a session prints nothing more, unless it is resumed: it has ended, or
// was found dead and sealed by who found it.
func (s *Store) Over(ctx context.Context, session string) (bool, error) {
	doc, err := s.Doc(ctx, session, KindSession, 0)
	if errors.Is(err, ErrNotFound) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	var is struct{ State string }
	if err := json.Unmarshal(doc, &is); err != nil {
		return false, fmt.Errorf("cannot read the row of the session: %w: %w", ErrTampered, err)
	}
	seals, err := s.Newest(ctx, session, KindSeal, 1)
	if is.State == "ended" || err != nil || len(seals) == 0 {
		return is.State == "ended", err
	}
	var seal struct {
		Of int64
		By string
	}
	if err := json.Unmarshal(seals[0], &seal); err != nil {
		return false, fmt.Errorf("cannot read the row of a seal: %w: %w", ErrTampered, err)
	}
	over := false
	if seal.By != "going" {
		err = s.reads.QueryRowContext(ctx, `SELECT NOT EXISTS (SELECT 1 FROM events WHERE session = ? AND kind = 'session' AND key = 0 AND seq > ? AND event = 'session.resumed')`, session, seal.Of).Scan(&over)
	}
	return over, s.fault(err)
}

// spare says whether a raw file is what its chunk was packed from.
func (s *Store) spare(dir string, n uint32, c chunk) bool {
	raw, err := readWhole(rawName(dir, n), rawMost)
	packed, perr := unpack(filepath.Join(dir, chunkName(n)), c.Hash, true)
	return err == nil && perr == nil && bytes.Equal(raw, packed)
}

// listJournal lists a journal's files by number.
func listJournal(dir string) ([]journalFile, error) {
	entries, err := os.ReadDir(dir) // sorted by name; numbers have leading zeros
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var files []journalFile
	for _, e := range entries {
		base, ext, _ := strings.Cut(e.Name(), ".")
		n, err := strconv.ParseUint(base, 10, 32)
		if err != nil || ext != "raw" && ext != "zst" || base != fmt.Sprintf(journalFmt, n) {
			continue // not the journal's
		}
		if k := len(files) - 1; k >= 0 && files[k].number == uint32(n) {
			files[k].raw = true
			continue
		}
		files = append(files, journalFile{uint32(n), ext == "raw"})
	}
	return files, nil
}

// ReadJournal yields what was printed in a session's terminal and its sizes, in
// order, of recorded sessions and of live ones up to now; a session without a
// journal has none. It holds one file, about 1 MiB, at a time. A frame that isn't
// whole at the end is left out: it was never acknowledged. Where the record is
// damaged the last pair is an error that wraps io.ErrUnexpectedEOF, ErrBody when a
// chunk isn't the one that was recorded.
func (s *Store) ReadJournal(session string) iter.Seq2[Frame, error] {
	return func(yield func(Frame, error) bool) {
		r, err := s.Recording(context.Background(), session)
		if err != nil {
			yield(Frame{}, err)
			return
		}
		r.play(0, nil, func(f Frame, err error) bool {
			return f.Kind == FrameKey || yield(f, err) && err == nil
		})
	}
}

// chunks lists what is recorded of a session's packed files, by number.
func (s *Store) chunks(ctx context.Context, session string) (map[uint32]chunk, error) {
	docs, err := s.Docs(ctx, session, KindChunk, 0, 0)
	if err != nil {
		return nil, err
	}
	chunks := make(map[uint32]chunk, len(docs))
	for _, d := range docs {
		c, err := parseChunk(d)
		if err != nil {
			return nil, err
		}
		chunks[uint32(c.N)] = c
	}
	return chunks, nil
}

func parseChunk(doc json.RawMessage) (chunk, error) {
	var c chunk
	err := json.Unmarshal(doc, &c)
	if err == nil {
		c.Hash, err = ParseHash(c.Name)
	}
	if err == nil && (c.N < 1 || c.N > 1<<31 || c.File != chunkName(uint32(c.N))) {
		err = fmt.Errorf("it names %q", c.File)
	}
	if err != nil {
		return c, fmt.Errorf("cannot read the row of a chunk: %w: %w", ErrTampered, err)
	}
	return c, nil
}

// readJournalFile reads a file, unpacked and with a good header. The packer may
// be at work: a raw file that has gone is there packed.
func (s *Store) readJournalFile(dir string, f journalFile, chunks map[uint32]chunk) (raw []byte, began time.Time, err error) {
	if f.raw {
		raw, err = readWhole(rawName(dir, f.number), rawMost)
	}
	if !f.raw || errors.Is(err, fs.ErrNotExist) {
		c, known := chunks[f.number]
		raw, err = unpack(filepath.Join(dir, chunkName(f.number)), c.Hash, known)
	}
	if err != nil {
		return nil, began, err
	}
	began, err = parseHeader(raw, f.number)
	return raw, began, err
}

// unpack reads a packed file. A hash that is known must be that of its bytes.
func unpack(p string, want Hash, known bool) ([]byte, error) {
	// Incompressible bytes grow a little.
	packed, err := readWhole(p, rawMost+64<<10)
	if err != nil {
		return nil, err
	}
	if known && HashOf(packed) != want {
		return nil, fmt.Errorf("%q: %w", p, ErrBody)
	}
	dec, err := unpacker(nil)
	if err != nil {
		return nil, err
	}
	defer dec.Close()
	raw, err := dec.DecodeAll(packed, nil)
	if err != nil {
		return nil, fmt.Errorf("cannot unpack %q: %w", p, err)
	}
	return raw, nil
}

func unpacker(r io.Reader) (*zstd.Decoder, error) {
	return zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(uint64(rawMost)), zstd.WithDecoderMaxWindow(8<<20))
}
