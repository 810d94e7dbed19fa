package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"
)

// recover takes up what an earlier writer left and sets where to go on. The
// caller has j alone and holds its lock.
func (j *Journal) recover() error {
	files, chunks, left, err := j.store.journalFiles(context.Background(), j.session)
	if err != nil {
		return err
	}
	for _, n := range left {
		if c, ok := chunks[n]; ok && j.store.spare(j.dir, n, c) {
			err = os.Remove(j.raw(n))
		} else {
			err = os.Rename(j.raw(n), j.damaged(n))
		}
		if err != nil {
			return err
		}
	}
	if k := len(files) - 1; k >= 0 && files[k].raw {
		left, err := j.repair(files[k].number)
		if err != nil {
			return err
		}
		if !left {
			files = files[:k] // its number is free again
		}
	}
	j.opened = time.Now()
	j.began, j.number, j.first = j.opened.UTC(), 1, 1
	for i, f := range files {
		if f.number != uint32(i+1) {
			return fmt.Errorf("file %d of the terminal journal is missing", i+1)
		}
		j.number = f.number + 1
		if !f.raw {
			j.first = f.number + 1
		}
	}
	if len(files) == 0 {
		return nil
	}
	return j.continueFrom(files[len(files)-1], chunks)
}

// continueFrom sets the clock so that time goes on after a file's last frame.
func (j *Journal) continueFrom(f journalFile, chunks map[uint32]chunk) error {
	raw, began, err := j.store.readJournalFile(j.dir, f, chunks)
	if err != nil {
		return err
	}
	p := parser{b: raw[headerSize:], number: f.number}
	if err := p.end(); err != nil {
		return fmt.Errorf("cannot go on after file %d: %w", f.number, err)
	}
	j.began, j.ms = began, p.ms
	j.offset = max(j.opened.Sub(began), time.Duration(p.ms)*time.Millisecond)
	return nil
}

// repair cuts the unfinished end off the last raw file; false when nothing is
// left of it. What isn't just unfinished but wrong is kept beside, for people.
func (j *Journal) repair(n uint32) (bool, error) {
	raw, err := readWhole(j.raw(n), rawMost)
	if err != nil {
		return false, err
	}
	good := 0
	_, err = parseHeader(raw, n)
	if err == nil {
		p := parser{b: raw[headerSize:], number: n}
		err = p.end()
		if good = headerSize + p.off; p.frames == 0 {
			good = 0
		}
	}
	if errors.Is(err, errDamaged) {
		if err := WriteDurably(j.damaged(n), raw[good:]); err != nil {
			return false, err
		}
	}
	if good == 0 {
		return false, os.Remove(j.raw(n))
	}
	return true, os.Truncate(j.raw(n), int64(good))
}
