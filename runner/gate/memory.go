package gate

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// maxString is the kernel's bound on one string with its end, MAX_ARG_STRLEN
// in linux/binfmts.h.
var maxString = 32 * os.Getpagesize()

// Bounds on what is read from a caller. The kernel takes at most 6 MiB of
// arguments and environment (fs/exec.c, three quarters of _STK_LIM); a call
// beyond that fails by itself.
const (
	maxPath    = unix.PathMax
	maxStrings = 6 << 20
	keepArgv   = 256 << 10 // of argv kept for showing and judging, bytes
	keepEnv    = 64 << 10  // of the environment
	maxName    = 256       // of a variable's name that is looked at in any case
	keepCount  = 16 << 10  // strings kept of either
)

// memory reads the memory of a thread, in windows, for one goroutine.
type memory struct {
	source interface {
		ReadAt(p []byte, at uint64) (int, error)
	}
	base   uint64 // address of the window
	window []byte
	buffer [16 << 10]byte
}

const pageSize = 4096 // the smallest there is; larger ones are multiples

// memories are there to be used again.
var memories = sync.Pool{New: func() any { return new(memory) }}

// openMemory begins to read a thread's memory.
func openMemory(tid int) *memory {
	m := memories.Get().(*memory)
	m.source = threadMemory(tid)
	return m
}

func (m *memory) close() {
	m.source, m.base, m.window = nil, 0, nil
	memories.Put(m)
}

// threadMemory is the memory of the thread that has a number now.
type threadMemory int

// ReadAt reads up to len(p) bytes from the beginning of a page; fewer when what
// follows isn't mapped. The kernel stops between the pieces that it is asked for.
func (t threadMemory) ReadAt(p []byte, at uint64) (int, error) {
	var pages [len(memory{}.buffer) / pageSize]unix.RemoteIovec
	for i := range pages {
		pages[i] = unix.RemoteIovec{Base: uintptr(at) + uintptr(i*pageSize), Len: pageSize}
	}
	n, err := unix.ProcessVMReadv(int(t), []unix.Iovec{{Base: &p[0], Len: uint64(len(p))}}, pages[:], 0)
	if err != nil && !errors.Is(err, unix.EFAULT) {
		return 0, fmt.Errorf("cannot read the memory of thread %d: %v", int(t), err) // it isn't the caller's error
	}
	return max(n, 0), nil
}

// at returns the bytes at an address, at least one, as far as the window goes.
func (m *memory) at(address uint64) ([]byte, error) {
	if off := address - m.base; address >= m.base && off < uint64(len(m.window)) {
		return m.window[off:], nil
	}
	m.base = address &^ (pageSize - 1)
	m.window = nil
	if m.base > 1<<63-uint64(len(m.buffer)) { // beyond what a program can have
		return nil, unix.EFAULT
	}
	n, err := m.source.ReadAt(m.buffer[:], m.base)
	if err != nil {
		return nil, err
	}
	if uint64(n) <= address-m.base {
		return nil, unix.EFAULT
	}
	m.window = m.buffer[:n]
	return m.window[address-m.base:], nil
}

// text reads the string at an address, of at most max bytes, and passes it on
// in pieces without its end. It fails with E2BIG when there is more.
func (m *memory) text(address uint64, max int, piece func([]byte)) error {
	for {
		b, err := m.at(address)
		if err != nil {
			return err
		}
		end := bytes.IndexByte(b, 0)
		part := b
		if end >= 0 {
			part = b[:end]
		}
		if len(part) > max {
			return unix.E2BIG
		}
		piece(part)
		if end >= 0 {
			return nil
		}
		max -= len(part)
		address += uint64(len(part))
	}
}

// path reads a file name as execve(2) does.
func (m *memory) path(address uint64) (string, error) {
	var b []byte
	err := m.text(address, maxPath-1, func(p []byte) { b = append(b, p...) })
	if errors.Is(err, unix.E2BIG) {
		return "", unix.ENAMETOOLONG
	}
	return string(b), err
}

// words is a list of strings, argv or an environment, as it was read: the
// first of them, and digests that cover all.
type words struct {
	list      []string
	count     int
	size      int // bytes of all, with their ends
	truncated bool
	first     [sha256.Size]byte // of the first string
	rest      [sha256.Size]byte // of the others, each with its end
}

// digest takes in a list of strings one after the other.
type digest struct {
	count       int
	first, rest hash.Hash
}

func newDigest() *digest { return &digest{first: sha256.New(), rest: sha256.New()} }

// part takes in a piece of a string.
func (d *digest) part(b []byte) {
	if d.count == 0 {
		d.first.Write(b)
	} else {
		d.rest.Write(b)
	}
}

var zero = []byte{0}

// end takes in the end of a string.
func (d *digest) end() {
	if d.count > 0 {
		d.rest.Write(zero)
	}
	d.count++
}

// words reads the list of pointers at an address and the strings they lead
// to, at most budget bytes. Each byte is read once, so what is kept is what
// the digests are of. A list without strings is one with an empty string,
// where the kernel makes it so (argv, since 5.18). Also says which strings are kept beyond that: at most
// as much again, or the list isn't read.
func (m *memory) words(address uint64, budget, keep int, pointers *memory, filled bool, also func(string) bool) (words, error) {
	var w words
	d, extra := newDigest(), 0
	for at := address; address != 0; at += 8 {
		pointer, err := pointers.pointer(at)
		if err != nil {
			return w, err
		}
		if pointer == 0 {
			break
		}
		var text []byte
		kept := len(w.list) < keepCount && w.size < keep
		start, spare := w.size, max(keep-extra, maxName)
		err = m.text(untag(pointer), min(maxString-1, budget-w.size-1), func(p []byte) {
			d.part(p)
			w.size += len(p)
			switch {
			case kept:
				text = append(text, p[:min(len(p), keep-len(text)-start)]...)
			case also != nil:
				text = append(text, p[:min(len(p), spare-len(text))]...)
			}
		})
		if err != nil {
			return w, err
		}
		d.end()
		w.size++
		switch {
		case kept:
			w.list = append(w.list, string(text))
		case also != nil && also(string(text)):
			if extra += len(text); extra > keep || len(text) < w.size-1-start {
				return w, fmt.Errorf("there are more than %d bytes of variables like %.32q", keep, text)
			}
			w.list = append(w.list, string(text))
		}
		if !kept || len(text) < w.size-1-start {
			w.truncated = true
		}
		// Pointers count too: a list of them is as good a way as any to be
		// endless.
		if w.size+8*d.count > budget {
			return w, unix.E2BIG
		}
	}
	if d.count == 0 && filled {
		d.end()
		w.list, w.size = []string{""}, 1
	}
	w.count = d.count
	d.first.Sum(w.first[:0])
	d.rest.Sum(w.rest[:0])
	return w, nil
}

// pointer reads one pointer.
func (m *memory) pointer(address uint64) (uint64, error) {
	var w [8]byte
	err := m.fill(w[:], address)
	return binary.NativeEndian.Uint64(w[:]), err
}

// fill reads as many bytes as there is room for, which may lie across edges of windows.
func (m *memory) fill(p []byte, address uint64) error {
	for len(p) > 0 {
		b, err := m.at(address)
		if err != nil {
			return err
		}
		n := copy(p, b)
		p, address = p[n:], address+uint64(n)
	}
	return nil
}
