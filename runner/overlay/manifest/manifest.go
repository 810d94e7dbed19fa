// Package manifest holds checkpoints of an overlayfs' upper directory as
// immutable trees of directories that name file contents by hash. Manifests that
// follow each other share what didn't change, in memory and when they are saved.
//
// The words are overlayfs' own: lower holds the host's files and is never
// written, upper holds what the sandbox wrote, merged is what the sandbox sees.
// Names are bytes: they are kept in Go strings, may hold anything but NUL and
// slash, and are never shown by this package. Paths are relative to the project,
// slash-separated, without a leading slash; the project itself is "".
//
// Everything here is a value to be read from any goroutine. Stored objects are
// checked when they are decoded.
package manifest

import (
	"iter"
	"math"
	"slices"
	"sort"
	"strings"
	"sync"

	"stepbox/runner/overlay/content"
)

// Manifest is an immutable snapshot of an upper. Manifests of one Scanner
// share what didn't change between them. A nil *Manifest stands for an upper
// with nothing in it: the plain lower.
type Manifest struct {
	Root *Node
	Base *Base // what the upper covers of the lower; nil where that isn't kept
}

// Dir is what a directory holds, in pages sorted by name. It is immutable but
// for object.
type Dir struct {
	Pages []*Page
	Count int   // entries here
	Total int   // entries here and below
	Bytes int64 // of files here and below
	Links bool  // something here or below has more than one name
	object
}

// Page is a run of a directory's entries. Where a page ends depends on names
// alone, so that a change in a large directory stores one page and an index.
type Page struct {
	Nodes []*Node
	object
}

// object is the stored form's hash, once known.
type object struct {
	mu    sync.Mutex
	Hash  content.Hash // guarded by mu
	saved bool         // guarded by mu; Bodies holds it and all below it
}

func (o *object) known() (content.Hash, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.Hash, o.saved
}

func (o *object) set(h content.Hash, saved bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.Hash, o.saved = h, o.saved || saved
}

// Same says whether two directories are known to be equal without looking.
func (d *Dir) Same(o *Dir) bool {
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

// NewDir makes a directory of nodes sorted by name, sharing pages with old. It
// returns old itself when nothing differs.
func NewDir(nodes []*Node, old *Dir) *Dir {
	var shared map[*Node]*Page
	if old != nil {
		shared = make(map[*Node]*Page, len(old.Pages))
		for _, p := range old.Pages {
			if len(p.Nodes) > 0 {
				shared[p.Nodes[0]] = p
			}
		}
	}
	d := &Dir{}
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
		if p == nil || !slices.Equal(p.Nodes, run) {
			p = &Page{Nodes: run}
		}
		d.Pages = append(d.Pages, p)
		start = end
	}
	if old != nil && slices.Equal(d.Pages, old.Pages) {
		return old
	}
	return d
}

// With is a directory with some of its names replaced or added; nil takes one out.
func (d *Dir) With(fresh map[string]*Node) *Dir {
	if len(fresh) == 0 {
		return d
	}
	var nodes []*Node
	for n := range d.All() {
		if _, other := fresh[n.Name]; !other {
			nodes = append(nodes, n)
		}
	}
	for _, n := range fresh {
		if n != nil {
			nodes = append(nodes, n)
		}
	}
	slices.SortFunc(nodes, func(a, b *Node) int { return strings.Compare(a.Name, b.Name) })
	return NewDir(nodes, d)
}

// With is a directory with some of its names replaced or added, or itself.
func (n *Node) With(fresh map[string]*Node) *Node {
	if len(fresh) == 0 {
		return n
	}
	return &Node{Entry: n.Entry, Sub: n.Sub.With(fresh)}
}

// sum adds an entry to the directory's totals.
func (d *Dir) sum(n *Node) {
	d.Count++
	d.Total++
	d.Links = d.Links || n.Links != 0
	d.Bytes = addSizes(d.Bytes, n.Size)
	if n.Sub != nil {
		d.Total += n.Sub.Total
		d.Bytes = addSizes(d.Bytes, n.Sub.Bytes)
		d.Links = d.Links || n.Sub.Links
	}
}

// addSizes adds lengths that sandboxes chose: sparse files may have any.
func addSizes(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// All gives the entries of a directory in order. A nil directory has none.
func (d *Dir) All() iter.Seq[*Node] {
	return func(yield func(*Node) bool) {
		if d == nil {
			return
		}
		for _, p := range d.Pages {
			for _, n := range p.Nodes {
				if !yield(n) {
					return
				}
			}
		}
	}
}

// Find looks a name up. A nil directory has none.
func (d *Dir) Find(name string) *Node {
	if d == nil || len(d.Pages) == 0 {
		return nil
	}
	i := sort.Search(len(d.Pages), func(i int) bool { return d.Pages[i].Nodes[0].Name > name })
	if i == 0 {
		return nil
	}
	nodes := d.Pages[i-1].Nodes
	j := sort.Search(len(nodes), func(j int) bool { return nodes[j].Name >= name })
	if j < len(nodes) && nodes[j].Name == name {
		return nodes[j]
	}
	return nil
}

func (m *Manifest) RootDir() *Dir {
	if m == nil {
		return nil
	}
	return m.Root.Sub
}

// Len is the number of entries, whiteouts included, without the project itself.
func (m *Manifest) Len() int {
	if m == nil {
		return 0
	}
	return m.Root.Sub.Total
}

// Bytes is the length of all files together.
func (m *Manifest) Bytes() int64 {
	if m == nil {
		return 0
	}
	return m.Root.Sub.Bytes
}

// Lookup is the upper's own entry at path, nil when it has none. The entry
// must not be changed.
func (m *Manifest) Lookup(path string) *Entry {
	if m == nil {
		return nil
	}
	at := m.Root
	if path != "" {
		for name := range strings.SplitSeq(path, "/") {
			if at = at.Sub.Find(name); at == nil {
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
		var walk func(path string, n *Node) bool
		walk = func(path string, n *Node) bool {
			if !yield(path, &n.Entry) {
				return false
			}
			for c := range n.Sub.All() {
				if !walk(Join(path, c.Name), c) {
					return false
				}
			}
			return true
		}
		walk("", m.Root)
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
