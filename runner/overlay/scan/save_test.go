package scan

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"stepbox/runner/overlay/content"
	"stepbox/runner/overlay/manifest"
)

// A change in one of many directories stores that directory and those above,
// and in a large directory one page and the index.
func TestSaveCosts(t *testing.T) {
	dir := t.TempDir()
	mem := newMemory()
	sc, err := New(dir, mem, nil)
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
		m, _ := scanWith(t, sc, Options{})
		p, n := mem.puts, mem.size
		root, err := m.Save(bg, mem)
		must(t, err)
		back, err := manifest.Load(bg, mem, root)
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
	refs := map[content.Hash]bool{}
	for h, err := range m.Refs(bg, mem, nil) {
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
	if back, err := manifest.Load(bg, kept, root); err != nil || back.Len() != m.Len() {
		t.Errorf("what Refs names isn't enough: %v", err)
	}
	if m.Lookup("nothing") != nil || m.Lookup("flat/4999") == nil || m.Lookup("flat/4999/x") != nil {
		t.Error("lookups are off")
	}
}

func TestSaveThroughPlainBodies(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "f"), []byte("x"), 0o644))
	mem := plainBodies{newMemory()}
	sc, err := New(dir, mem, nil)
	must(t, err)
	defer sc.Close()
	m, st := scanWith(t, sc, Options{})
	root, err := m.Save(bg, mem)
	must(t, err)
	if back, err := manifest.Load(bg, mem, root); err != nil || back.Len() != 1 || st.Stored != 1 {
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
	sc, err := New(dir, mem, nil)
	must(t, err)
	defer sc.Close()
	m, _ := scanWith(t, sc, Options{})
	root, err := m.Save(bg, mem)
	must(t, err)
	for h, b := range mem.bodies {
		if !bytes.HasPrefix(b, []byte("sb")) { // the magic of every object begins so
			continue
		}
		for name, damaged := range map[string][]byte{"flipped": append([]byte{b[0] ^ 1}, b[1:]...), "cut": b[:len(b)-1], "missing": nil} {
			if mem.bodies[h] = damaged; damaged == nil {
				delete(mem.bodies, h)
			}
			if _, err := manifest.Load(bg, mem, root); err == nil {
				t.Errorf("%s object %.4s was loaded", name, b)
			}
		}
		mem.bodies[h] = b
	}
	if _, err := manifest.Load(bg, mem, root); err != nil {
		t.Fatal(err)
	}
}
