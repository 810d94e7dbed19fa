package overlay

import (
	"iter"
	"math"
	"slices"
	"sort"
	"strings"
	"sync"
)

// Manifest is an immutable snapshot of an upper. Manifests of one Scanner
// share what didn't change between them. A nil *Manifest stands for an upper
// with nothing in it: the plain lower.
type Manifest struct {
	root *node
	base *Base // what the upper covers of the lower; nil where that isn't kept
}

// dir is what a directory holds, in pages sorted by name. It is immutable but
// for object.
type dir struct {
	pages []*page
	count int   // entries here
	total int   // entries here and below
	bytes int64 // of files here and below
	links bool  // something here or below has more than one name
	object
}

// page is a run of a directory's entries. Where a page ends depends on names
// alone, so that a change in a large directory stores one page and an index.
type page struct {
	nodes []*node
	object
}

// object is the stored form's hash, once known.
type object struct {
	mu    sync.Mutex
	hash  Hash // guarded by mu
	saved bool // guarded by mu; Bodies holds it and all below it
}

func (o *object) known() (Hash, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.hash, o.saved
}

func (o *object) set(h Hash, saved bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.hash, o.saved = h, o.saved || saved
}

// same says whether two directories are known to be equal without looking.
func (d *dir) same(o *dir) bool {
	if d == o {
		return true
	}
	if d == nil || o == nil {
		return false
	}
	a, _ := d.known()
	b, _ := o.known()
	return a == b && !a.IsZero()
}

const pageMax = 256

// endsPage says whether a page ends after name: after one in 64, by FNV-1a.
func endsPage(name string) bool {
	h := uint32(2166136261)
	for i := range len(name) {
		h = (h ^ uint32(name[i])) * 16777619
	}
	return (h^h>>16)&63 == 63
}

// newDir makes a directory of nodes sorted by name, sharing pages with old. It
// returns old itself when nothing differs.
func newDir(nodes []*node, old *dir) *dir {
	var shared map[*node]*page
	if old != nil {
		shared = make(map[*node]*page, len(old.pages))
		for _, p := range old.pages {
			if len(p.nodes) > 0 {
				shared[p.nodes[0]] = p
			}
		}
	}
	d := &dir{}
	for _, n := range nodes {
		d.sum(n)
	}
	for start := 0; start < len(nodes); {
		end := start + 1
		for end < len(nodes) && end-start < pageMax && !endsPage(nodes[end-1].Name) {
			end++
		}
		run := nodes[start:end:end]
		p := shared[run[0]]
		if p == nil || len(p.nodes) != len(run) {
			p = nil
		} else {
			for i := range run {
				if p.nodes[i] != run[i] {
					p = nil
					break
				}
			}
		}
		if p == nil {
			p = &page{nodes: run}
		}
		d.pages = append(d.pages, p)
		start = end
	}
	if old != nil && slices.Equal(d.pages, old.pages) {
		return old
	}
	return d
}

// sum adds an entry to the directory's totals.
func (d *dir) sum(n *node) {
	d.count++
	d.total++
	d.links = d.links || n.Links != 0
	d.bytes = addSizes(d.bytes, n.Size)
	if n.sub != nil {
		d.total += n.sub.total
		d.bytes = addSizes(d.bytes, n.sub.bytes)
		d.links = d.links || n.sub.links
	}
}

// addSizes adds lengths that sandboxes chose: sparse files may have any.
func addSizes(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// all gives the entries of a directory in order. A nil directory has none.
func (d *dir) all() iter.Seq[*node] {
	return func(yield func(*node) bool) {
		if d == nil {
			return
		}
		for _, p := range d.pages {
			for _, n := range p.nodes {
				if !yield(n) {
					return
				}
			}
		}
	}
}

// find looks a name up. A nil directory has none.
func (d *dir) find(name string) *node {
	if d == nil || len(d.pages) == 0 {
		return nil
	}
	i := sort.Search(len(d.pages), func(i int) bool { return d.pages[i].nodes[0].Name > name })
	if i == 0 {
		return nil
	}
	nodes := d.pages[i-1].nodes
	j := sort.Search(len(nodes), func(j int) bool { return nodes[j].Name >= name })
	if j < len(nodes) && nodes[j].Name == name {
		return nodes[j]
	}
	return nil
}

func (m *Manifest) rootDir() *dir {
	if m == nil {
		return nil
	}
	return m.root.sub
}

// Len is the number of entries, whiteouts included, without the project itself.
func (m *Manifest) Len() int {
	if m == nil {
		return 0
	}
	return m.root.sub.total
}

// Bytes is the length of all files together.
func (m *Manifest) Bytes() int64 {
	if m == nil {
		return 0
	}
	return m.root.sub.bytes
}

// Lookup is the upper's own entry at path, nil when it has none. The entry
// must not be changed.
func (m *Manifest) Lookup(path string) *Entry {
	if m == nil {
		return nil
	}
	at := m.root
	if path != "" {
		for name := range strings.SplitSeq(path, "/") {
			if at = at.sub.find(name); at == nil {
				return nil
			}
		}
	}
	return &at.Entry
}

// All gives every entry of the upper with its path, directories before what
// they hold, the project itself ("") first.
func (m *Manifest) All() iter.Seq2[string, *Entry] {
	return func(yield func(string, *Entry) bool) {
		if m == nil {
			return
		}
		var walk func(path string, n *node) bool
		walk = func(path string, n *node) bool {
			if !yield(path, &n.Entry) {
				return false
			}
			for c := range n.sub.all() {
				if !walk(join(path, c.Name), c) {
					return false
				}
			}
			return true
		}
		walk("", m.root)
	}
}

const (
	manifestMagic = "sbm1"
	recordedMagic = "sbm2" // of a manifest with a Base
	pageMagic     = "sbp1"
	indexMagic    = "sbi1"
	maxObject     = 64 << 20 // bytes of one stored object
	maxEntries    = 4 << 20  // entries of a manifest that is read back
	maxDepth      = 1024     // directories below each other in one that is read back
)
