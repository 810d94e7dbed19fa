package gate

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"stepbox/session/e2e/must"
)

func FuzzState(f *testing.F) {
	own, err := os.ReadFile("/proc/self/stat")
	must.OK(f, err)
	f.Add(own)
	f.Add(bytes.Replace(own, []byte("("), []byte("(a) Z 1 ("), 1))
	f.Add([]byte("1 ("))
	f.Add([]byte(")("))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := parseState(b)
		if err == nil && (bytes.Count(b, []byte(" ")) < 40 || !bytes.Contains(b, []byte("("+s.name+")"))) {
			t.Errorf("%q became %+v", b, s)
		}
	})
}

// A name of a process can't make it look like another one.
func TestStateOfHostileName(t *testing.T) {
	own, err := os.ReadFile("/proc/self/stat")
	must.OK(t, err)
	want, err := parseState(own)
	if err != nil || want.parent != os.Getppid() || want.letter == 0 || want.start == 0 {
		t.Fatalf("%+v %v", want, err)
	}
	_, rest, _ := bytes.Cut(own, []byte("("))
	rest = rest[bytes.LastIndexByte(rest, ')'):]
	for _, name := range []string{") Z 1 1 1 (", "\n", "a b", "((((", "))))", ""} {
		got, err := parseState(append([]byte("1 ("+name), rest...))
		w := want
		w.name = name
		if err != nil || got != w {
			t.Errorf("named %q it is %+v, want %+v: %v", name, got, w, err)
		}
	}
}

func FuzzStatus(f *testing.F) {
	own, err := os.ReadFile("/proc/self/status")
	must.OK(f, err)
	f.Add(own)
	f.Add([]byte("Tgid:\t1\nNStgid:\t1\nNSpid:\t 7 1\nTracerPid:\t0\n"))
	f.Add([]byte("Tgid:\nNSpid: x"))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := parseStatus(b)
		if err == nil && (s.tgid <= 0 || s.inner <= 0 || s.group <= 0 || s.tracer < 0) {
			t.Errorf("%q became %+v", b, s)
		}
	})
}

func FuzzScript(f *testing.F) {
	for _, s := range []string{"#!/bin/sh", "#! /bin/sh -e \n", "#!\n", "#!\t\x00", "#!a b\x00c\n", "#!" + strings.Repeat("a", 300), "#!" + strings.Repeat(" ", 300)} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		b = b[:min(len(b), headSize)]
		interpreter, argument, has, err := parseScript(b)
		if err != nil {
			if !errors.Is(err, unix.ENOEXEC) {
				t.Errorf("%q: %v", b, err)
			}
			return
		}
		if strings.ContainsAny(interpreter, " \t\x00\n") || strings.ContainsAny(argument, "\x00\n") || !has && argument != "" {
			t.Errorf("%q became %q %q", b, interpreter, argument)
		}
		if !bytes.Contains(b, []byte(interpreter)) || !bytes.Contains(b, []byte(argument)) {
			t.Errorf("%q became %q %q, which it doesn't hold", b, interpreter, argument)
		}
	})
}

// sparse is memory of which some pages are there.
type sparse struct {
	base  uint64
	bytes []byte
}

func (s sparse) ReadAt(p []byte, at uint64) (int, error) {
	if at < s.base || at >= s.base+uint64(len(s.bytes)) {
		return 0, unix.EIO
	}
	return copy(p, s.bytes[at-s.base:]), nil
}

// FuzzWords reads lists of pointers that a hostile program laid out in its
// memory: into nowhere, in a circle, endless.
func FuzzWords(f *testing.F) {
	f.Add(make([]byte, 64), uint64(0), uint16(0))
	f.Add(append(binary.LittleEndian.AppendUint64(nil, 0x10000), make([]byte, 40)...), uint64(0), uint16(100))
	f.Add(bytes.Repeat(binary.LittleEndian.AppendUint64(nil, 0x10000), 3000), uint64(3), uint16(9))
	f.Fuzz(func(t *testing.T, b []byte, offset uint64, keep uint16) {
		const base = 0x10000
		source := sparse{base, b}
		m, p := &memory{source: source}, &memory{source: source}
		w, err := m.words(base+offset%4096, 1<<16, int(keep), p, true, nil)
		kept := 0
		for _, s := range w.list {
			kept += len(s)
		}
		if kept > int(keep) || w.size > 1<<16+maxString || len(w.list) > keepCount {
			t.Errorf("%d bytes in %d strings were kept of %d", kept, len(w.list), w.size)
		}
		var e unix.Errno
		if err != nil && !errors.As(err, &e) {
			t.Errorf("%v is nothing to tell a program", err)
		}
		if s, err := m.path(base + offset); err == nil && (len(s) >= maxPath || strings.ContainsRune(s, 0)) {
			t.Errorf("a path of %d bytes", len(s))
		}
	})
}

// What is read from a caller compares equal to what the kernel shows of its
// image, and to nothing else.
func TestComparer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		texts := rapid.SliceOfN(rapid.StringMatching(`[a-c\n]{0,5}`), 1, 6)
		argv := texts.Draw(t, "argv")
		prefix := rapid.SliceOfN(rapid.StringMatching(`[a-c]{1,3}`), 0, 3).Draw(t, "prefix")
		shown := append(prefix[:len(prefix):len(prefix)], argv...)
		if len(prefix) > 0 {
			shown = append(prefix[:len(prefix):len(prefix)], argv[1:]...)
		}
		w := lay(t, argv)
		if !w.truncated && len(w.list) != len(argv) {
			t.Fatalf("read %q of %q", w.list, argv)
		}
		if err := compare(t, &w, prefix, shown); err != nil {
			t.Fatalf("%q with %q isn't %q", argv, prefix, shown)
		}
		other := texts.Draw(t, "other")
		if flat(other) != flat(shown) {
			if compare(t, &w, prefix, other) == nil {
				t.Fatalf("%q with %q passes for %q", other, prefix, argv)
			}
		}
	})
}

func flat(l []string) string { return strings.Join(l, "\x00") + "\x00" }

// lay puts strings into memory as a program does and reads them.
func lay(t *rapid.T, list []string) words {
	const base = 1 << 20
	var pointers, text []byte
	for _, s := range list {
		pointers = binary.LittleEndian.AppendUint64(pointers, base+uint64(8*(len(list)+1)+len(text)))
		text = append(append(text, s...), 0)
	}
	source := sparse{base, append(append(pointers, make([]byte, 8)...), text...)}
	m, p := &memory{source: source}, &memory{source: source}
	w, err := m.words(base, 1<<20, 1<<20, p, true, nil)
	must.OK(t, err)
	return w
}

func compare(t *rapid.T, w *words, prefix, shown []string) error {
	c := newComparer(w, prefix)
	for b := []byte(flat(shown)); len(b) > 0; {
		n := rapid.IntRange(1, len(b)).Draw(t, "piece")
		if _, err := c.Write(b[:n]); err != nil {
			return err
		}
		b = b[n:]
	}
	return c.done()
}

func TestDigestTellsListsApart(t *testing.T) {
	seen := map[[sha256.Size]byte]string{}
	for _, e := range []*Exec{
		{place: place{name: "a"}},
		{place: place{name: "a"}, argv: words{count: 1}},
		{place: place{name: "a"}, env: words{count: 1}},
		{place: place{name: "b"}},
	} {
		d := e.digest()
		if seen[d] != "" {
			t.Errorf("%q and %q have one digest", seen[d], e.place.name)
		}
		seen[d] = e.place.name
	}
}
