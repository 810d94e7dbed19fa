package restore

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"stepbox/runner/overlay/content"
	"stepbox/runner/overlay/diff"
	"stepbox/runner/overlay/inode"
	"stepbox/runner/overlay/manifest"
	"stepbox/runner/overlay/scan"
)

// Names that are hard on anything that takes them for text.
var hardNames = []string{
	"a", "b", "c", "d", "dir", "sub", "new\nline", "esc\x1b[31m", "\xff\xfe\x80", ".wh.a", ".wh..wh..opq", "sp ace", ".stepbox-0",
}

var genName = rapid.SampledFrom(hardNames)

var genPath = rapid.Custom(func(t *rapid.T) string {
	n := rapid.IntRange(1, 3).Draw(t, "depth")
	parts := make([]string, n)
	for i := range parts {
		if i < n-1 {
			parts[i] = rapid.SampledFrom([]string{"dir", "sub", "a", "new\nline"}).Draw(t, "dir")
		} else {
			parts[i] = genName.Draw(t, "name")
		}
	}
	return strings.Join(parts, "/")
})

var genData = rapid.Custom(func(t *rapid.T) []byte {
	b := rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "data")
	if rapid.IntRange(0, 9).Draw(t, "long") == 0 {
		b = append(b, make([]byte, rapid.IntRange(0, 20_000).Draw(t, "zeros"))...)
		b = append(b, 'x')
	}
	return b
})

var (
	modes      = []int64{0o644, 0o755, 0o600, 0o400, 0, 0o4755, 0o2755, 0o1777, 0o777, 0o111, 0o7777}
	plainAttrs = []string{"user.a", "user.b", "user.long.name"}
	ovlAttrs   = []string{"user.overlay.opaque", "user.overlay.whiteout", "user.overlay.x", "user.overlay.overlay.y", "user.overlay.origin", "user.overlay.redirect", "user.overlay.metacopy"}
	capV2, _   = hex.DecodeString("0100000200200000000000000000000000000000")
	aclV2, _   = hex.DecodeString("02000000" + "01000700ffffffff" + "0200060000000000" + "04000500ffffffff" + "10000700ffffffff" + "20000500ffffffff")
)

var mutationOps = []string{
	"write", "write", "write", "rewrite", "truncate", "append", "touchup", "rename", "rename", "exchange", "link", "link",
	"symlink", "fifo", "socket", "mkdir", "mkdir", "remove", "remove", "removeall", "recreate", "chmod", "chmod",
	"setxattr", "setxattr", "removexattr", "utimens", "utimens",
}

var genMutation = rapid.Custom(func(t *rapid.T) mutation {
	m := mutation{Op: rapid.SampledFrom(mutationOps).Draw(t, "op"), Path: genPath.Draw(t, "path")}
	if rapid.IntRange(0, 9).Draw(t, "picks") > 0 {
		m.Pick = rapid.IntRange(1, 1000).Draw(t, "pick")
	}
	switch m.Op {
	case "write", "append":
		m.Data = genData.Draw(t, "data")
	case "rewrite":
		m.N = int64(rapid.IntRange(0, 255).Draw(t, "xor"))
	case "truncate":
		m.N, m.M = int64(rapid.IntRange(0, 50).Draw(t, "n")), int64(rapid.IntRange(0, 9000).Draw(t, "m"))
	case "rename", "exchange", "link":
		m.To = genPath.Draw(t, "to")
		m.PickTo = rapid.IntRange(0, 1000).Draw(t, "pick to")
	case "symlink":
		// None leads anywhere that is there outside: later changes go through links.
		m.To = rapid.SampledFrom([]string{"a", "/nowhere/at/all", "dir", "missing\xff", "/nowhere/else"}).Draw(t, "target")
	case "fifo", "socket", "chmod", "recreate":
		m.N = rapid.SampledFrom(modes).Draw(t, "mode")
	case "setxattr", "removexattr":
		names := slices.Concat(plainAttrs, ovlAttrs, []string{manifest.Capability, manifest.ACLAccess, manifest.ACLDefault})
		m.To = rapid.SampledFrom(names).Draw(t, "xattr")
		switch m.To {
		case manifest.Capability:
			m.Data = capV2
		case manifest.ACLAccess, manifest.ACLDefault:
			m.Data = aclV2
		default:
			m.Data = rapid.SampledFrom([][]byte{nil, []byte("y"), []byte("x"), []byte("a\x00\xff")}).Draw(t, "value")
		}
	case "utimens":
		m.N = rapid.SampledFrom([]int64{0, -1, 1, 1_700_000_000, 4_000_000_000, 9_999_999_999}).Draw(t, "sec")
		m.M = int64(rapid.IntRange(0, 999_999_999).Draw(t, "nsec"))
	}
	return m
})

// fillLower makes a random project.
func fillLower(t *rapid.T, lower string) {
	muts := rapid.SliceOfN(genMutation, 10, 40).Draw(t, "lower")
	for _, m := range append([]mutation{{Op: "mkdir", Path: "dir"}, {Op: "mkdir", Path: "dir/sub"}, {Op: "write", Path: "dir/a", Data: []byte("dir a")}}, muts...) {
		if strings.HasPrefix(m.To, "user.overlay.") || m.To == manifest.Capability {
			continue // the host has none of those
		}
		if m.To == manifest.ACLAccess || m.To == manifest.ACLDefault { // the host calls the sandbox's root otherwise
			m.Data = slices.Clone(m.Data)
			binary.LittleEndian.PutUint32(m.Data[16:], uint32(os.Geteuid()))
		}
		_ = m.apply(lower)
	}
}

type saved struct {
	tree     map[string]seen
	manifest *manifest.Manifest
	root     content.Hash
}

func TestRollbackProperty(t *testing.T) {
	for name, place := range places(t) {
		t.Run(name, func(t *testing.T) {
			h := startHelper(t)
			rapid.Check(t, func(rt *rapid.T) { rollbackHistory(t, rt, h, place) })
		})
	}
}

func rollbackHistory(t *testing.T, rt *rapid.T, h *helper, place string) {
	s := newSession(t, h, place, func(lower string) { fillLower(rt, lower) })
	defer s.close()
	var history []string
	log := func(format string, args ...any) { history = append(history, fmt.Sprintf(format, args...)) }
	fail := func(format string, args ...any) {
		rt.Helper()
		rt.Fatalf("%s\nafter:\n%s", fmt.Sprintf(format, args...), strings.Join(history, "\n"))
	}
	var marks []saved
	checkpoint := func() {
		m := s.scan()
		root, err := m.Save(bg, s.bodies)
		if err != nil {
			fail("save: %v", err)
		}
		marks = append(marks, saved{s.capture(), m, root})
		log("checkpoint %d", len(marks)-1)
	}
	checkpoint()
	for range rapid.IntRange(2, 8).Draw(rt, "rounds") {
		muts := rapid.SliceOfN(genMutation, 1+rapid.IntRange(0, 12).Draw(rt, "least"), 30).Draw(rt, "muts")
		done, errs := s.mutate(muts...)
		for i, e := range errs {
			log("%s: %s", done[i], e)
		}
		if rapid.IntRange(0, 2).Draw(rt, "checkpoint") == 0 {
			checkpoint()
			checkIncremental(t, s, marks[len(marks)-1], fail)
			from := rapid.IntRange(0, len(marks)-1).Draw(rt, "from")
			checkDiff(s, marks[from], marks[len(marks)-1], fail)
			checkGraft(s, marks[from], marks[len(marks)-1], rapid.IntRange(0, 8).Draw(rt, "grafted"), fail)
			continue
		}
		to := rapid.IntRange(0, len(marks)-1).Draw(rt, "to")
		target := marks[to].manifest
		if rapid.Bool().Draw(rt, "loaded") {
			var err error
			if target, err = manifest.Load(bg, s.bodies, marks[to].root); err != nil {
				fail("load: %v", err)
			}
		}
		var o Options
		if rapid.Bool().Draw(rt, "replacing") {
			o.Replace = func(string) bool { return true }
		}
		log("rollback to %d, replacing %v", to, o.Replace != nil)
		checkRollback(s, target, marks[to].tree, o, fail)
	}
}

func checkRollback(s *session, target *manifest.Manifest, want map[string]seen, o Options, fail func(string, ...any)) {
	p, err := NewPlan(bg, s.lower, s.scan(), target, o)
	if err != nil {
		fail("plan: %v", err)
	}
	if troubled(p) {
		fail("plan: %q", p.Problems)
	}
	rep, err := s.h.execute(bg, s.q, p, NewSource(s.lower, s.bodies))
	if err != nil || len(rep.Failed) > 0 {
		fail("execute: %v %q", err, rep.Failed)
	}
	if diff := compareTrees(want, s.capture()); diff != "" {
		fail("the rollback left:\n%s\nplan: %+v", diff, p.Ops)
	}
	now := s.scan()
	again, err := NewPlan(bg, s.lower, now, target, o)
	if err != nil || len(again.Ops) > 0 {
		fail("a second plan isn't empty: %+v %v", again, err)
	}
	d, err := diff.Compare(bg, s.lower, now, target, diff.Options{})
	if err != nil || len(d.Changes) > 0 {
		fail("there are still differences: %+v %v", d.Changes, err)
	}
}

// checkIncremental compares a scan that followed others with one from scratch.
func checkIncremental(t *testing.T, s *session, m saved, fail func(string, ...any)) {
	fresh, err := scan.New(s.q.Upper, newMemory(), s.h.open(bg, s.q.Upper))
	must(t, err)
	defer fresh.Close()
	f, _, err := fresh.Scan(bg, scan.Options{})
	if err != nil {
		fail("scan from scratch: %v", err)
	}
	root, err := f.Save(bg, newMemory())
	if err != nil || root != m.root {
		fail("a scan from scratch gives another root (%v):\n%s", err, explainManifests(m.manifest, f))
	}
}

func explainManifests(a, b *manifest.Manifest) string {
	x, y := maps.Collect(a.All()), maps.Collect(b.All())
	var out []string
	for p, e := range x {
		if y[p] == nil || fmt.Sprintf("%+v", *e) != fmt.Sprintf("%+v", *y[p]) {
			out = append(out, fmt.Sprintf("%q: %+v | %+v", p, e, y[p]))
		}
	}
	for p, e := range y {
		if x[p] == nil {
			out = append(out, fmt.Sprintf("%q: nothing | %+v", p, e))
		}
	}
	return strings.Join(out, "\n")
}

// checkDiff compares a Diff with what the merged views show.
func checkDiff(s *session, a, b saved, fail func(string, ...any)) {
	d, err := diff.Compare(bg, s.lower, a.manifest, b.manifest, diff.Options{})
	if err != nil {
		fail("diff: %v", err)
	}
	got := map[string]diff.Status{}
	for _, c := range d.Changes {
		if c.Status == diff.Renamed {
			got[c.From] = diff.Deleted
			got[c.Path] = diff.Added
			continue
		}
		got[c.Path] = c.Status
	}
	emptyDir := func(tree map[string]seen, path string) bool {
		for p := range tree {
			if strings.HasPrefix(p, path+"/") {
				return false
			}
		}
		return true
	}
	want := map[string]diff.Status{}
	same := func(x, y seen) bool {
		x.MTime, y.MTime, x.Group, y.Group = manifest.Time{}, manifest.Time{}, "", ""
		return x == y
	}
	for p, x := range a.tree {
		y, ok := b.tree[p]
		switch {
		case !ok && (x.Kind != manifest.KindDir || emptyDir(a.tree, p)):
			want[p] = diff.Deleted
		case ok && x.Kind != y.Kind:
			want[p] = diff.Retyped
		case ok && !same(x, y):
			want[p] = diff.Modified
		}
	}
	for p, y := range b.tree {
		if _, ok := a.tree[p]; !ok && (y.Kind != manifest.KindDir || emptyDir(b.tree, p)) {
			want[p] = diff.Added
		}
	}
	if !maps.Equal(want, got) {
		fail("diff:\n  want %q\n  got  %q", want, got)
	}
}

func TestLowerFillIsSane(t *testing.T) {
	// The property is only as good as its lower: hard names must get there.
	dir := t.TempDir()
	for i, n := range hardNames {
		must(t, os.WriteFile(filepath.Join(dir, n), []byte{byte(i)}, 0o600))
	}
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	must(t, err)
	defer unix.Close(fd)
	n := 0
	must(t, inode.EachName(fd, make([]byte, 256), func([]byte) error { n++; return nil }))
	if n != len(hardNames) {
		t.Fatalf("%d names instead of %d", n, len(hardNames))
	}
}
