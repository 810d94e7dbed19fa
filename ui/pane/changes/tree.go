package changes

import (
	"cmp"
	"slices"
	"strings"

	"stepbox/session/api"
)

// Tree is what differs in a scope as folders and files, what a reader may want
// folded away last. It is made off the drawing goroutine and read-only afterwards.
// Only a part of a long list may have come: folders at its end then know of some
// of their files.
type Tree struct {
	api.Changes
	nodes []node // in the order of their rows: a folder, then what is below it
}

// node is a folder, a file, or the head of a group.
type node struct {
	place
	name           string // a folder that holds nothing but a folder is shown with it: a/b/c
	file           int32  // index in Files; -1 of folders and heads
	from, to       int32  // the files below, or the file itself
	end            int32  // index of the node after all that is below
	depth          int32
	files          int32 // how many are below; of a head also those that haven't come
	added, removed int
	open           bool // not all that is below has come
}

// place names a folder or the head of a group (path "") across trees.
type place struct{ group, path string }

// head says whether a node stands for a whole group.
func (n *node) head() bool { return n.file < 0 && n.path == "" }

// groups are what is folded away at first, in the order of their rows.
var groups = []string{"", "lock", "generated", "ignored", "git"}

// groupWords say what is in a group.
func groupWords(group string) string {
	return cmp.Or(map[string]string{"lock": "lock files", "generated": "generated files", "ignored": "files that git ignores", "git": "git's files"}[group], group)
}

func rank(group string) int {
	if i := slices.Index(groups, group); i >= 0 {
		return i
	}
	return len(groups)
}

// NewTree makes a tree of what differs.
func NewTree(c api.Changes) *Tree {
	byGroup := func(a, b api.Change) int { return rank(a.Group) - rank(b.Group) }
	last := ""
	if n := len(c.Files); n > 0 && c.Next != "" {
		last = c.Files[n-1].Key
	}
	if !slices.IsSortedFunc(c.Files, byGroup) {
		c.Files = slices.Clone(c.Files)
		slices.SortStableFunc(c.Files, byGroup)
	}
	b := builder{Tree: &Tree{Changes: c, nodes: make([]node, 0, len(c.Files)*5/4+8)}, last: -1}
	if last != "" {
		b.last = slices.IndexFunc(c.Files, func(f api.Change) bool { return f.Key == last })
	}
	for at := 0; at < len(c.Files); {
		group := c.Files[at].Group
		to := at
		for to < len(c.Files) && c.Files[to].Group == group {
			to++
		}
		if group == "" {
			b.below(at, to, "", 0, 0)
		} else {
			b.head(group, at, to)
		}
		at = to
	}
	for _, g := range c.Groups { // those of which nothing has come
		if !slices.ContainsFunc(b.nodes, func(n node) bool { return n.head() && n.group == g.Name }) {
			n := len(c.Files)
			b.nodes = append(b.nodes, node{
				place: place{group: g.Name}, name: groupWords(g.Name), file: -1, from: int32(n), to: int32(n), end: int32(len(b.nodes) + 1),
				files: int32(g.Files), added: g.Added, removed: g.Removed, open: true,
			})
		}
	}
	return b.Tree
}

type builder struct {
	*Tree
	last int // the file after which further ones come; -1 for none
}

func (b *builder) head(group string, from, to int) {
	at := b.folder(node{place: place{group: group}, name: groupWords(group)}, from, to, 0, 0)
	for _, g := range b.Groups {
		if n := &b.nodes[at]; g.Name == group {
			n.files, n.added, n.removed = int32(g.Files), g.Added, g.Removed
		}
	}
}

// folder adds a folder with its files, whose paths are alike up to prefix.
func (b *builder) folder(n node, from, to, prefix int, depth int32) int {
	at := len(b.nodes)
	n.file, n.from, n.to, n.files, n.depth = -1, int32(from), int32(to), int32(to-from), depth
	n.open = b.last >= from && b.last == to-1
	b.nodes = append(b.nodes, n)
	n.added, n.removed = b.below(from, to, n.group, prefix, depth+1)
	n.end = int32(len(b.nodes))
	b.nodes[at] = n
	return at
}

// below adds what is in a folder and returns its lines.
func (b *builder) below(from, to int, group string, prefix int, depth int32) (added, removed int) {
	for i := from; i < to; {
		f := &b.Files[i]
		slash := strings.IndexByte(f.Path[prefix:], '/')
		if slash < 0 {
			b.nodes = append(b.nodes, node{
				place: place{group: group, path: f.Path}, name: f.Path[prefix:], file: int32(i), from: int32(i), to: int32(i + 1),
				end: int32(len(b.nodes) + 1), depth: depth, added: f.Added, removed: f.Removed,
			})
			added, removed = added+f.Added, removed+f.Removed
			i++
			continue
		}
		end := prefix + slash + 1
		j := b.alike(i, to, end)
		for {
			next := strings.IndexByte(f.Path[end:], '/')
			if next < 0 || b.alike(i, j, end+next+1) != j {
				break
			}
			end += next + 1
		}
		at := b.folder(node{place: place{group: group, path: f.Path[:end-1]}, name: f.Path[prefix:end]}, i, j, end, depth)
		added, removed = added+b.nodes[at].added, removed+b.nodes[at].removed
		i = j
	}
	return added, removed
}

// alike is where the files end whose paths begin as the first one's.
func (b *builder) alike(from, to, end int) int {
	prefix := b.Files[from].Path[:end]
	for from < to && strings.HasPrefix(b.Files[from].Path, prefix) {
		from++
	}
	return from
}

// rows lists the nodes that are shown when some are folded, and there is something in them;
// flat, folders aren't.
func (t *Tree) rows(flat bool, folded, empty func(*node) bool) []int32 {
	out := make([]int32, 0, len(t.nodes))
	for i := 0; i < len(t.nodes); {
		n := &t.nodes[i]
		if empty(n) {
			i = int(n.end)
			continue
		}
		if i++; flat && n.file < 0 && !n.head() {
			continue
		}
		if out = append(out, int32(i-1)); n.file < 0 && folded(n) {
			i = int(n.end)
		}
	}
	return out
}

// find is the index of the file of a key among the nodes, or -1.
func (t *Tree) find(key string) int {
	return slices.IndexFunc(t.nodes, func(n node) bool { return n.file >= 0 && t.Files[n.file].Key == key })
}

// folderAt is the index of a folder or head among the nodes, or -1.
func (t *Tree) folderAt(p place) int {
	return slices.IndexFunc(t.nodes, func(n node) bool { return n.file < 0 && n.place == p })
}
