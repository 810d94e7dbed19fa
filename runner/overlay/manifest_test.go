package overlay

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// A change in one of many directories stores that directory and those above,
// and in a large directory one page and the index.
func TestSaveCosts(t *testing.T) {
	dir := t.TempDir()
	mem := newMemory()
	sc, err := NewScanner(dir, mem, nil)
	must(t, err)
	defer sc.Close()
	for i := range 100 {
		must(t, os.MkdirAll(filepath.Join(dir, fmt.Sprintf("top/d%d", i)), 0o755))
		must(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("top/d%d/f", i)), nil, 0o644))
	}
	must(t, os.Mkdir(filepath.Join(dir, "flat"), 0o755))
	for i := range 5000 {
		must(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("flat/%d", i)), nil, 0o644))
	}
	save := func() (puts int, size int64) {
		t.Helper()
		m, _ := scanWith(t, sc, ScanOptions{})
		p, n := mem.puts, mem.size
		root, err := m.Save(bg, mem)
		must(t, err)
		back, err := Load(bg, mem, root)
		must(t, err)
		if diff := explainManifests(m, back); diff != "" || back.Len() != m.Len() || back.Bytes() != m.Bytes() {
			t.Fatalf("loaded: %s", diff)
		}
		if again, err := back.Save(bg, mem); err != nil || again != root {
			t.Fatalf("saved again: %v", err)
		}
		return mem.puts - p, mem.size - n
	}
	save()
	must(t, os.WriteFile(filepath.Join(dir, "top/d7/f"), []byte("x"), 0o644))
	if puts, _ := save(); puts > 6 { // d7, two pages' worth of top, the root, the manifest
		t.Errorf("one file in a tree stores %d objects", puts)
	}
	must(t, os.WriteFile(filepath.Join(dir, "flat/new"), []byte("x"), 0o644))
	if puts, size := save(); puts > 5 || size > 40_000 {
		t.Errorf("one file in a large directory stores %d objects of %d bytes", puts, size)
	}
	if puts, _ := save(); puts != 0 {
		t.Errorf("nothing new stores %d objects", puts)
	}
	m := sc.Last()
	refs := map[Hash]bool{}
	for h, err := range m.Refs(bg, mem) {
		must(t, err)
		refs[h] = true
	}
	root, err := m.Save(bg, mem)
	must(t, err)
	kept := newMemory()
	for h := range refs {
		kept.bodies[h] = mem.bodies[h]
	}
	kept.bodies[root] = mem.bodies[root]
	if back, err := Load(bg, kept, root); err != nil || back.Len() != m.Len() {
		t.Errorf("what Refs names isn't enough: %v", err)
	}
	if m.rootDir().find("nothing") != nil || m.Lookup("flat/4999") == nil || m.Lookup("flat/4999/x") != nil {
		t.Error("lookups are off")
	}
}

func TestSaveThroughPlainBodies(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "f"), []byte("x"), 0o644))
	mem := plainBodies{newMemory()}
	sc, err := NewScanner(dir, mem, nil)
	must(t, err)
	defer sc.Close()
	m, st := scanWith(t, sc, ScanOptions{})
	root, err := m.Save(bg, mem)
	must(t, err)
	if back, err := Load(bg, mem, root); err != nil || back.Len() != 1 || st.Stored != 1 {
		t.Error(err)
	}
}

// A manifest that was tampered with or cut short isn't loaded.
func TestLoadDamaged(t *testing.T) {
	dir := t.TempDir()
	for i := range 300 {
		must(t, os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), nil, 0o644))
	}
	must(t, os.Mkdir(filepath.Join(dir, "d"), 0o755), os.WriteFile(filepath.Join(dir, "d/f"), nil, 0o644))
	mem := newMemory()
	sc, err := NewScanner(dir, mem, nil)
	must(t, err)
	defer sc.Close()
	m, _ := scanWith(t, sc, ScanOptions{})
	root, err := m.Save(bg, mem)
	must(t, err)
	for h, b := range mem.bodies {
		if len(b) < 4 || !strings.Contains(manifestMagic+pageMagic+indexMagic, string(b[:4])) {
			continue
		}
		for name, damaged := range map[string][]byte{"flipped": append([]byte{b[0] ^ 1}, b[1:]...), "cut": b[:len(b)-1], "missing": nil} {
			if mem.bodies[h] = damaged; damaged == nil {
				delete(mem.bodies, h)
			}
			if _, err := Load(bg, mem, root); err == nil {
				t.Errorf("%s object %.4s was loaded", name, b)
			}
		}
		mem.bodies[h] = b
	}
	if _, err := Load(bg, mem, root); err != nil {
		t.Fatal(err)
	}
}

// Objects that lead into themselves, or are too many, end the load.
func TestLoadBombs(t *testing.T) {
	mem := newMemory()
	put := func(b []byte) Hash { h, _, _ := mem.Put(bg, bytes.NewReader(b)); return h }
	dirEntry := func(name string, sub Hash) []byte { return appendEntry(nil, &Entry{Name: name, Kind: KindDir}, sub) }
	sub := put([]byte(indexMagic + "\x00"))
	for range 40 { // two directories in each: 2^40 entries from 40 objects
		page := append([]byte(pageMagic+"\x02"), dirEntry("a", sub)...)
		sub = put(append(page, dirEntry("b", sub)...))
	}
	m := append([]byte(manifestMagic+"\x00\x00"), dirEntry("", sub)...)
	if _, err := Load(bg, mem, put(m)); err == nil || !strings.Contains(err.Error(), "entries") {
		t.Errorf("got %v", err)
	}
	sub = put([]byte(indexMagic + "\x00"))
	for range maxDepth + 10 {
		sub = put(append([]byte(pageMagic+"\x01"), dirEntry("a", sub)...))
	}
	m = append([]byte(manifestMagic+"\x00\x00"), dirEntry("", sub)...)
	if _, err := Load(bg, mem, put(m)); err == nil || !strings.Contains(err.Error(), "below each other") {
		t.Errorf("got %v", err)
	}
}

var genEntry = rapid.Custom(func(t *rapid.T) Entry {
	e := Entry{Name: genName.Draw(t, "name"), Kind: Kind(rapid.IntRange(1, int(kindEnd)-1).Draw(t, "kind"))}
	if e.Kind == KindWhiteout {
		return e
	}
	e.Mode = uint32(rapid.IntRange(0, 07777).Draw(t, "mode"))
	e.UID, e.GID = rapid.Uint32().Draw(t, "uid"), rapid.Uint32().Draw(t, "gid")
	e.MTime = Time{rapid.Int64().Draw(t, "sec"), uint32(rapid.IntRange(0, maxNsec).Draw(t, "nsec"))}
	switch e.Kind {
	case KindFile:
		e.Size = rapid.Int64Range(0, math.MaxInt64).Draw(t, "size")
		copy(e.Hash[:], rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "hash"))
		e.Links = rapid.Uint64().Draw(t, "links")
	case KindSymlink:
		e.Target = strings.ReplaceAll(string(rapid.SliceOf(rapid.Byte()).Draw(t, "target")), "\x00", "")
	case KindDir:
		e.Opaque = rapid.Bool().Draw(t, "opaque")
	}
	e.Unsaved = rapid.SampledFrom([]string{"", "why"}).Draw(t, "unsaved")
	for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"user.a", "user.\xff", capability, aclAccess}), 0, 4, rapid.ID).Draw(t, "xattrs") {
		e.Xattrs = append(e.Xattrs, Xattr{name, rapid.SliceOf(rapid.Byte()).Draw(t, "value")})
	}
	slices.SortFunc(e.Xattrs, func(a, b Xattr) int { return strings.Compare(a.Name, b.Name) })
	return e
})

func TestEntryRoundTrip(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		e := genEntry.Draw(rt, "entry")
		var sub Hash
		if e.Kind == KindDir {
			sub = hashOf([]byte(e.Name))
		}
		raw := appendEntry(nil, &e, sub)
		d := decoder{b: raw}
		back, backSub := d.entry()
		if err := d.end(); err != nil {
			rt.Fatalf("%+v: %v", e, err)
		}
		if a, b := (&node{Entry: e}), (&node{Entry: back}); !a.equal(b) || sub != backSub {
			rt.Fatalf("%+v became %+v", e, back)
		}
	})
}

// A content reads the same, whole or by chunks, from the disk, from Bodies and
// through the stream between two processes.
func TestContentRoundTrip(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		parts := rapid.SliceOfN(rapid.IntRange(0, 3), 0, 9).Draw(rt, "parts")
		path := filepath.Join(dir, "file")
		f, err := os.Create(path)
		must(t, err)
		var want bytes.Buffer
		for i, p := range parts {
			n := []int{chunkSize, chunkSize + 1, 5000, 3 * chunkSize}[p]
			if rapid.Bool().Draw(rt, "zeros") {
				want.Write(make([]byte, n))
			} else {
				b := bytes.Repeat([]byte{byte(i + 1), byte(p)}, n/2+1)[:n]
				_, err := f.WriteAt(b, int64(want.Len()))
				must(t, err)
				want.Write(b)
			}
		}
		must(t, f.Truncate(int64(want.Len())))
		mem := newMemory()
		q := newBatch(mem)
		c := contentHasher{limit: 1 << 40, queue: q.add}
		h, list, err := c.file(bg, int(f.Fd()), int64(want.Len()), nil)
		must(t, err, q.flush(bg), f.Close())
		if (list != nil) != (want.Len() > ChunkedAbove) {
			rt.Fatalf("%d bytes and a list %v", want.Len(), list != nil)
		}
		plan := &Plan{Ops: []Op{{Kind: OpMkdir, Path: "d", What: KindDir}, {Kind: OpFile, Path: "f", What: KindFile, Content: Blob{Size: int64(want.Len()), Hash: h}}}}
		if want.Len() == 0 {
			return
		}
		r, w, err := os.Pipe()
		must(t, err)
		sent := make(chan error, 1)
		go func() { sent <- SendContents(bg, w, plan, NewSource(nil, mem)) }()
		recv := ReceiveContents(r)
		body, err := recv.Open(bg, plan, 1)
		must(t, err)
		got, err := io.ReadAll(body)
		must(t, err, recv.(*receiver).done(), <-sent, r.Close(), w.Close())
		if !bytes.Equal(got, want.Bytes()) {
			rt.Fatal("the stream differs")
		}
		// And sparsely into a file.
		out, err := os.Create(filepath.Join(dir, "out"))
		must(t, err)
		x := &executor{ctx: bg, plan: plan, src: NewSource(nil, mem)}
		p, err := x.open(1, &plan.Ops[1])
		must(t, err)
		_, err = p.write(x, int(out.Fd()))
		must(t, err, out.Close())
		p.close()
		if got, err := os.ReadFile(out.Name()); err != nil || !bytes.Equal(got, want.Bytes()) {
			rt.Fatalf("the file differs: %v", err)
		}
	})
}

// A content that can't be had fails alone; a stream that ends fails the rest.
func TestSendContentsFaults(t *testing.T) {
	mem := newMemory()
	good, _, _ := mem.Put(bg, strings.NewReader("good"))
	plan := &Plan{}
	for i, h := range []Hash{good, hashOf([]byte("missing")), good, good} {
		plan.Ops = append(plan.Ops, Op{Kind: OpFile, Path: fmt.Sprint(i), What: KindFile, Content: Blob{Size: 4, Hash: h}})
	}
	var buf bytes.Buffer
	must(t, SendContents(bg, &buf, plan, NewSource(nil, mem)))
	whole := buf.Bytes()
	read := func(raw []byte, steps ...int) (out []string) {
		recv := ReceiveContents(bytes.NewReader(raw))
		for _, i := range steps {
			r, err := recv.Open(bg, plan, i)
			if err != nil {
				out = append(out, "no open")
				continue
			}
			b, err := io.ReadAll(r)
			if err != nil {
				out = append(out, "no read")
				continue
			}
			out = append(out, string(b))
		}
		return out
	}
	for _, c := range []struct {
		raw   []byte
		steps []int
		want  []string
	}{
		{whole, []int{0, 1, 2, 3}, []string{"good", "no read", "good", "good"}},
		{whole, []int{2}, []string{"good"}},
		{whole, []int{1, 0}, []string{"no read", "no open"}},
		{whole[:5], []int{0, 1}, []string{"no read", "no open"}},
		{nil, []int{0}, []string{"no open"}},
		{[]byte("f\x00d\xff\xff\xff\xff\x7f"), []int{0}, []string{"no read"}},
	} {
		if got := read(c.raw, c.steps...); !slices.Equal(got, c.want) {
			t.Errorf("steps %v: %q instead of %q", c.steps, got, c.want)
		}
	}
	ctx, cancel := context.WithCancel(bg)
	cancel()
	if err := SendContents(ctx, io.Discard, plan, NewSource(nil, mem)); err == nil {
		t.Error("a cancelled send went on")
	}
}
