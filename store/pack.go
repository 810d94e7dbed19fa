package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/klauspost/compress/zstd"
	"golang.org/x/sys/unix"
)

// chunk is the document of a packed file of a journal.
type chunk struct {
	N      int64  `json:"n"`
	File   string `json:"file"` // in the session's terminal folder
	Hash   Hash   `json:"-"`
	Name   string `json:"hash"`          // of the file's bytes
	Frames int    `json:"frames"`        // in it
	Bytes  int64  `json:"bytes"`         // unpacked, with headers
	Packed int64  `json:"packed"`        // of the file
	FromMS int64  `json:"from_ms"`       // of the first frame, since the journal began
	ToMS   int64  `json:"to_ms"`         // of the last
	Key    bool   `json:"key,omitempty"` // it begins with a keyframe

	Printed []span `json:"printed"` // when
}

// packer packs full files and syncs the current one, until it is stopped.
func (j *Journal) packer(ctx context.Context) {
	sync := time.NewTimer(time.Hour)
	sync.Stop()
	defer sync.Stop()
	armed := false
	for {
		select {
		case <-j.pack:
			if !armed {
				sync.Reset(syncEvery)
				armed = true
			}
		case <-sync.C:
			armed = false
			j.sync()
			continue
		case <-ctx.Done():
			return
		}
		for ctx.Err() == nil {
			j.mu.Lock()
			n, ok := j.first, j.first < j.number && j.err == nil
			j.mu.Unlock()
			if !ok {
				break
			}
			err := j.packOne(ctx, n)
			if err != nil && ctx.Err() != nil {
				return // Close does it again
			}
			j.mu.Lock()
			if err != nil {
				_ = j.failed(err) // the next call returns it
			} else {
				j.first = n + 1
				j.capacity.Broadcast()
			}
			j.mu.Unlock()
		}
	}
}

// sync makes what was written survive power loss. It doesn't hold up writers:
// the lock covers only the copy of the descriptor.
func (j *Journal) sync() {
	j.mu.Lock()
	if !j.dirty || j.f == nil {
		j.mu.Unlock()
		return
	}
	j.dirty = false
	fd, err := unix.FcntlInt(j.f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	j.mu.Unlock()
	if err != nil {
		return // out of descriptors: the next one may do better
	}
	defer unix.Close(fd)
	_ = unix.Fdatasync(fd) // the write succeeded; what power loss takes is bounded by the file's size
}

// packOne compresses file n, records the chunk and removes the raw file. It may
// be interrupted anywhere and done again.
func (j *Journal) packOne(ctx context.Context, n uint32) error {
	_, err := j.store.Doc(ctx, j.session, KindChunk, int64(n))
	switch {
	case err == nil: // only the removal was left to do
		return os.Remove(j.raw(n))
	case !errors.Is(err, ErrNotFound):
		return err
	}
	raw, err := readWhole(j.raw(n), rawMost)
	if err != nil {
		return err
	}
	if _, err := parseHeader(raw, n); err != nil {
		return fmt.Errorf("cannot pack %q: %w", j.raw(n), err)
	}
	c := chunk{N: int64(n), File: chunkName(n), Bytes: int64(len(raw))}
	p := parser{b: raw[headerSize:], number: n}
	for {
		f, err := p.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("cannot pack %q: at byte %d %w", j.raw(n), headerSize+p.off, err)
		}
		if c.Frames == 0 {
			c.FromMS, c.Key = f.At.Milliseconds(), f.Kind == FrameKey
		}
		c.Frames, c.ToMS = c.Frames+1, f.At.Milliseconds()
	}
	if c.Frames == 0 {
		return j.drop(n)
	}
	c.Printed = append([]span{}, joined(p.printed, pause)...) // of nothing it isn't nil
	packed, err := compress(raw)
	if err != nil {
		return err
	}
	if err := WriteDurably(j.chunk(n), packed); err != nil {
		return fileFault(j.store.dir, err)
	}
	c.Packed, c.Name = int64(len(packed)), HashOf(packed).String()
	doc, err := json.Marshal(c)
	if err != nil {
		return err
	}
	if _, err := j.store.Append(ctx, j.session, Fact{Kind: KindChunk, Key: c.N, Event: "chunk", Doc: doc}); err != nil {
		return err
	}
	return os.Remove(j.raw(n))
}

func compress(raw []byte) ([]byte, error) {
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true), zstd.WithWindowSize(1<<20))
	if err != nil {
		return nil, err
	}
	return enc.EncodeAll(raw, nil), enc.Close()
}

// rawMost bounds a raw file: it is full at rotateAt, which one frame can pass, and
// begins with a keyframe.
const rawMost = rotateAt + 2*(frameMost+int64(frameExtra)) + int64(headerSize)

// readWhole reads a file of at most limit bytes.
func readWhole(p string, limit int64) ([]byte, error) {
	f, err := os.OpenFile(p, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(b)) > limit {
		err = fmt.Errorf("cannot read %q: it is larger than %d bytes", p, limit)
	}
	return b, err
}

// unfinished ends the name of a file that gets another when it is whole.
const unfinished = ".tmp"

// WriteDurably gives a file its content in one step that survives power loss.
// What a writer that died left of one is written over by the next.
func WriteDurably(p string, b []byte) (err error) {
	tmp := p + unfinished
	f, err := os.OpenFile(tmp, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if _, err := f.Write(b); err != nil {
		return errors.Join(err, f.Close(), os.Remove(tmp))
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return errors.Join(err, os.Remove(tmp))
	}
	if err := os.Rename(tmp, p); err != nil {
		return err
	}
	d, err := os.Open(filepath.Dir(p))
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
