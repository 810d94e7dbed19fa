package overlay

import (
	"bytes"
	"context"
	"fmt"
	"iter"
)

// Load reads a manifest that was saved under root. Every object is checked
// against its hash and for form.
func Load(ctx context.Context, b Bodies, root Hash) (*Manifest, error) {
	m, err := load(ctx, b, root)
	if err != nil {
		return nil, fmt.Errorf("cannot load checkpoint %s: %w", root, err)
	}
	return m, nil
}

func load(ctx context.Context, b Bodies, root Hash) (*Manifest, error) {
	body, err := readBody(ctx, b, root, maxObject)
	if err != nil {
		return nil, err
	}
	h, err := decodeManifest(body)
	if err != nil {
		return nil, err
	}
	l := loader{ctx: ctx, b: b, dirs: map[Hash]*dir{}, left: maxEntries}
	d, err := l.dir(h.sub, 0)
	if err != nil {
		return nil, err
	}
	if d.total != h.total || d.bytes != h.bytes {
		return nil, fmt.Errorf("%w: its totals don't add up", errForm)
	}
	m := &Manifest{root: &node{Entry: h.root, sub: d}}
	if h.recorded {
		if d, err = l.dir(h.baseSub, 0); err != nil {
			return nil, fmt.Errorf("cannot read what the project had: %w", err)
		}
		m.base = &Base{root: &node{Entry: h.base, sub: d}, steps: h.steps}
	}
	return m, nil
}

// head is a manifest as it is stored.
type head struct {
	root  Entry
	sub   Hash
	total int
	bytes int64

	recorded bool // a Base follows
	base     Entry
	baseSub  Hash
	steps    uint64
}

func decodeManifest(body []byte) (h head, err error) {
	d := decoder{b: body}
	if h.recorded = bytes.HasPrefix(body, []byte(recordedMagic)); h.recorded {
		d.magic(recordedMagic)
	} else {
		d.magic(manifestMagic)
	}
	h.total = int(d.uvarint(maxEntries))
	h.bytes = int64(d.uvarint(1<<63 - 1))
	h.root, h.sub = d.entry()
	if h.recorded {
		h.steps = d.uvarint(1<<64 - 1)
		h.base, h.baseSub = d.entry()
	}
	if d.err == nil && (h.root.Name != "" || h.root.Kind != KindDir || h.recorded && (h.base.Name != "" || h.base.Kind != KindDir)) {
		d.fail("its root isn't a directory")
	}
	return h, d.end()
}

// pageEntry is an entry as a page holds it.
type pageEntry struct {
	Entry
	sub Hash
}

func decodePage(d *decoder) ([]pageEntry, error) {
	n := d.count(4)
	entries := make([]pageEntry, 0, n)
	for i := range n {
		e, sub := d.entry()
		if d.err == nil && (!validName(e.Name) || i > 0 && entries[i-1].Name >= e.Name) {
			d.fail("a name that is invalid or out of order")
		}
		if d.err != nil {
			break
		}
		entries = append(entries, pageEntry{e, sub})
	}
	return entries, d.end()
}

func decodeIndex(d *decoder) ([]Hash, error) {
	n := d.count(len(Hash{}))
	if n == 1 {
		d.fail("an index of one page")
	}
	hashes := make([]Hash, 0, n)
	for range n {
		hashes = append(hashes, d.hash())
	}
	return hashes, d.end()
}

// loader reads one manifest. Directories that occur twice are read once.
type loader struct {
	ctx  context.Context
	b    Bodies
	dirs map[Hash]*dir
	left int // entries that may still come
}

func (l *loader) dir(h Hash, depth int) (*dir, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("%w: more than %d directories below each other", errForm, maxDepth)
	}
	if d := l.dirs[h]; d != nil {
		if l.left -= d.total; l.left < 0 {
			return nil, fmt.Errorf("%w: more than %d entries", errForm, maxEntries)
		}
		return d, nil
	}
	body, err := readBody(l.ctx, l.b, h, maxObject)
	if err != nil {
		return nil, err
	}
	d := &dir{}
	dec := decoder{b: body}
	if len(body) >= 4 && string(body[:4]) == pageMagic {
		p, err := l.page(h, body, depth)
		if err != nil {
			return nil, err
		}
		if len(p.nodes) == 0 {
			return nil, fmt.Errorf("%w: an empty page", errForm)
		}
		d.pages = []*page{p}
	} else {
		dec.magic(indexMagic)
		hashes, err := decodeIndex(&dec)
		if err != nil {
			return nil, err
		}
		for _, ph := range hashes {
			body, err := readBody(l.ctx, l.b, ph, maxObject)
			if err != nil {
				return nil, err
			}
			p, err := l.page(ph, body, depth)
			if err != nil {
				return nil, err
			}
			if k := len(d.pages); len(p.nodes) == 0 || k > 0 && d.pages[k-1].nodes[len(d.pages[k-1].nodes)-1].Name >= p.nodes[0].Name {
				return nil, fmt.Errorf("%w: pages out of order", errForm)
			}
			d.pages = append(d.pages, p)
		}
	}
	for n := range d.all() {
		d.sum(n)
	}
	d.set(h, true)
	l.dirs[h] = d
	return d, nil
}

func (l *loader) page(h Hash, body []byte, depth int) (*page, error) {
	dec := decoder{b: body}
	dec.magic(pageMagic)
	entries, err := decodePage(&dec)
	if err != nil {
		return nil, err
	}
	if l.left -= len(entries); l.left < 0 {
		return nil, fmt.Errorf("%w: more than %d entries", errForm, maxEntries)
	}
	p := &page{nodes: make([]*node, len(entries))}
	for i := range entries {
		n := &node{Entry: entries[i].Entry}
		if n.Kind == KindDir {
			if n.sub, err = l.dir(entries[i].sub, depth+1); err != nil {
				return nil, err
			}
		}
		p.nodes[i] = n
	}
	p.set(h, true)
	return p, nil
}

// Refs gives the hash of every body that the manifest needs beside root, for
// a collector of bodies that nobody names: directory objects, contents, and
// chunk lists with their chunks. A hash may come more than once. The manifest
// must have been saved.
func (m *Manifest) Refs(ctx context.Context, b Bodies) iter.Seq2[Hash, error] {
	return func(yield func(Hash, error) bool) {
		if m == nil {
			return
		}
		seen := map[Hash]bool{}
		var walk func(d *dir) bool
		walk = func(d *dir) bool {
			h, _ := d.known()
			if seen[h] {
				return true
			}
			seen[h] = true
			if !yield(h, nil) {
				return false
			}
			for _, p := range d.pages {
				if h, _ := p.known(); !yield(h, nil) {
					return false
				}
				for _, n := range p.nodes {
					if n.sub != nil && !walk(n.sub) {
						return false
					}
					if n.Kind == KindFile && n.Unsaved == "" && !yieldContent(ctx, b, &n.Entry, yield) {
						return false
					}
				}
			}
			return true
		}
		if walk(m.root.sub) && m.base != nil {
			walk(m.base.root.sub)
		}
	}
}

func yieldContent(ctx context.Context, b Bodies, e *Entry, yield func(Hash, error) bool) bool {
	if !yield(e.Hash, nil) {
		return false
	}
	if e.Size <= ChunkedAbove {
		return true
	}
	raw, err := readBody(ctx, b, e.Hash, maxList)
	if err != nil {
		return yield(Hash{}, err)
	}
	list, err := decodeList(raw)
	if err != nil {
		return yield(Hash{}, fmt.Errorf("cannot read chunk list %s: %w", e.Hash, err))
	}
	for _, r := range list.runs {
		for _, h := range r.data {
			if !yield(h, nil) {
				return false
			}
		}
	}
	return true
}
