package manifest

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"strings"

	"stepbox/runner/overlay/codec"
	"stepbox/runner/overlay/content"
)

// Load reads a manifest that was saved under root. Every object is checked
// against its hash and for form.
func Load(ctx context.Context, b content.Bodies, root content.Hash) (*Manifest, error) {
	m, err := load(ctx, b, root, nil)
	if err != nil {
		return nil, fmt.Errorf("cannot load checkpoint %s: %w", root, err)
	}
	return m, nil
}

// LoadPath is Load of what leads to one path: folders beside the way have nothing in
// them, so that it is good for nothing but to look that path up. Totals aren't checked.
func LoadPath(ctx context.Context, b content.Bodies, root content.Hash, path string) (*Manifest, error) {
	m, err := load(ctx, b, root, strings.Split(path, "/"))
	if err != nil {
		return nil, fmt.Errorf("cannot load checkpoint %s: %w", root, err)
	}
	return m, nil
}

func load(ctx context.Context, b content.Bodies, root content.Hash, way []string) (*Manifest, error) {
	body, err := content.ReadBody(ctx, b, root, maxObject)
	if err != nil {
		return nil, err
	}
	h, err := decodeManifest(body)
	if err != nil {
		return nil, err
	}
	l := loader{ctx: ctx, b: b, dirs: map[content.Hash]*Dir{}, left: maxEntries, way: way}
	d, err := l.dir(h.sub, 0)
	if err != nil {
		return nil, err
	}
	if way == nil && (d.Total != h.total || d.Bytes != h.Bytes) {
		return nil, fmt.Errorf("%w: its totals don't add up", codec.ErrForm)
	}
	m := &Manifest{Root: &Node{Entry: h.root, Sub: d}}
	if h.recorded {
		if d, err = l.dir(h.baseSub, 0); err != nil {
			return nil, fmt.Errorf("cannot read what the project had: %w", err)
		}
		m.Base = &Base{Root: &Node{Entry: h.base, Sub: d}, Steps: h.steps}
	}
	return m, nil
}

// head is a manifest as it is stored.
type head struct {
	root  Entry
	sub   content.Hash
	total int
	Bytes int64

	recorded bool // a Base follows
	base     Entry
	baseSub  content.Hash
	steps    uint64
}

func decodeManifest(body []byte) (h head, err error) {
	d := codec.NewDecoder(body)
	if h.recorded = bytes.HasPrefix(body, []byte(recordedMagic)); h.recorded {
		d.Magic(recordedMagic)
	} else {
		d.Magic(manifestMagic)
	}
	h.total = int(d.Uvarint(maxEntries))
	h.Bytes = int64(d.Uvarint(1<<63 - 1))
	h.root, h.sub = ReadEntry(d)
	if h.recorded {
		h.steps = d.Uvarint(1<<64 - 1)
		h.base, h.baseSub = ReadEntry(d)
	}
	if d.Failed() == nil && (h.root.Name != "" || h.root.Kind != KindDir || h.recorded && (h.base.Name != "" || h.base.Kind != KindDir)) {
		d.Fail("its root isn't a directory")
	}
	return h, d.End()
}

// decodePage reads a page's entries, and beside them the hashes of what is below.
func decodePage(body []byte) (nodes []*Node, subs []content.Hash, err error) {
	d := codec.NewDecoder(body)
	d.Magic(pageMagic)
	for i := range d.Count(4) {
		e, sub := ReadEntry(d)
		if d.Failed() == nil && (!validName(e.Name) || i > 0 && nodes[i-1].Name >= e.Name) {
			d.Fail("a name that is invalid or out of order")
		}
		if d.Failed() != nil {
			break
		}
		nodes, subs = append(nodes, &Node{Entry: e}), append(subs, sub)
	}
	return nodes, subs, d.End()
}

func decodeIndex(body []byte) (pages []content.Hash, err error) {
	d := codec.NewDecoder(body)
	d.Magic(indexMagic)
	n := d.Count(len(content.Hash{}))
	if n == 1 {
		d.Fail("an index of one page")
	}
	for range n {
		pages = append(pages, content.ReadHash(d))
	}
	return pages, d.End()
}

// loader reads one manifest. Directories that occur twice are read once.
type loader struct {
	ctx  context.Context
	b    content.Bodies
	dirs map[content.Hash]*Dir
	left int      // entries that may still come
	way  []string // names of the path that alone is loaded; nil: everything is
}

func (l *loader) dir(h content.Hash, depth int) (*Dir, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("%w: more than %d directories below each other", codec.ErrForm, maxDepth)
	}
	if d := l.dirs[h]; d != nil && l.way == nil {
		if l.left -= d.Total; l.left < 0 {
			return nil, fmt.Errorf("%w: more than %d entries", codec.ErrForm, maxEntries)
		}
		return d, nil
	}
	body, err := content.ReadBody(l.ctx, l.b, h, maxObject)
	if err != nil {
		return nil, err
	}
	d, pages := &Dir{}, []content.Hash{h} // the page may stand for the directory
	if !bytes.HasPrefix(body, []byte(pageMagic)) {
		if pages, err = decodeIndex(body); err != nil {
			return nil, err
		}
	}
	for k, ph := range pages {
		if ph != h {
			if body, err = content.ReadBody(l.ctx, l.b, ph, maxObject); err != nil {
				return nil, err
			}
		}
		p, err := l.page(ph, body, depth)
		if err != nil {
			return nil, err
		}
		if len(p.Nodes) == 0 {
			return nil, fmt.Errorf("%w: an empty page", codec.ErrForm)
		}
		if k > 0 && d.Pages[k-1].Nodes[len(d.Pages[k-1].Nodes)-1].Name >= p.Nodes[0].Name {
			return nil, fmt.Errorf("%w: pages out of order", codec.ErrForm)
		}
		d.Pages = append(d.Pages, p)
	}
	for n := range d.All() {
		d.sum(n)
	}
	d.set(h, true)
	l.dirs[h] = d
	return d, nil
}

func (l *loader) page(h content.Hash, body []byte, depth int) (*Page, error) {
	nodes, subs, err := decodePage(body)
	if err != nil {
		return nil, err
	}
	if l.left -= len(nodes); l.left < 0 {
		return nil, fmt.Errorf("%w: more than %d entries", codec.ErrForm, maxEntries)
	}
	for i, n := range nodes {
		if n.Kind == KindDir && l.way != nil && (depth >= len(l.way) || n.Name != l.way[depth]) {
			n.Sub = &Dir{}
		} else if n.Kind == KindDir {
			if n.Sub, err = l.dir(subs[i], depth+1); err != nil {
				return nil, err
			}
		}
	}
	p := &Page{Nodes: nodes}
	p.set(h, true)
	return p, nil
}

// Refs gives the hash of every body that the manifest needs beside root, for
// a collector of bodies that nobody names: directory objects, contents, and
// chunk lists with their chunks. A hash may come more than once. Directories that
// were seen are left out, with all below, and noted in seen, which may be nil. The
// manifest must have been saved.
func (m *Manifest) Refs(ctx context.Context, b content.Bodies, seen map[content.Hash]bool) iter.Seq2[content.Hash, error] {
	return func(yield func(content.Hash, error) bool) {
		if m == nil {
			return
		}
		if seen == nil {
			seen = map[content.Hash]bool{}
		}
		var walk func(d *Dir) bool
		walk = func(d *Dir) bool {
			h, _ := d.known()
			if seen[h] {
				return true
			}
			seen[h] = true
			if !yield(h, nil) {
				return false
			}
			for _, p := range d.Pages {
				if h, _ := p.known(); !yield(h, nil) {
					return false
				}
				for _, n := range p.Nodes {
					if n.Sub != nil && !walk(n.Sub) {
						return false
					}
					if n.Kind == KindFile && n.Unsaved == "" && !yieldContent(ctx, b, n, yield) {
						return false
					}
				}
			}
			return true
		}
		if walk(m.Root.Sub) && m.Base != nil {
			walk(m.Base.Root.Sub)
		}
	}
}

func yieldContent(ctx context.Context, b content.Bodies, n *Node, yield func(content.Hash, error) bool) bool {
	refs, err := content.Refs(ctx, b, n.Hash, n.Size)
	for _, h := range refs {
		if !yield(h, nil) {
			return false
		}
	}
	return err == nil || yield(content.Hash{}, err)
}
