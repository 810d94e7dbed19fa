package restore

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"stepbox/runner/overlay/content"
	"stepbox/runner/overlay/manifest"
)

// A content reads the same, whole or by chunks, from the disk, from Bodies and
// through the stream between two processes.
func TestContentRoundTrip(t *testing.T) {
	if os.Getenv(unprivilegedEnv) != "" {
		t.Skip("it is the same for everyone")
	}
	const chunk = 1 << 20 // of which large contents consist
	dir := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		parts := rapid.SliceOfN(rapid.IntRange(0, 3), 0, 6).Draw(rt, "parts")
		path := filepath.Join(dir, "file")
		f, err := os.Create(path)
		must(t, err)
		var want bytes.Buffer
		for i, p := range parts {
			n := []int{chunk, chunk + 1, 5000, 3 * chunk}[p]
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
		q := content.NewQueue(mem)
		c := content.Hasher{Limit: 1 << 40, Queue: q.Add}
		h, list, err := c.File(bg, int(f.Fd()), int64(want.Len()), nil)
		must(t, err, q.Flush(bg), f.Close())
		if (list != nil) != (want.Len() > content.ChunkedAbove) {
			rt.Fatalf("%d bytes and a list %v", want.Len(), list != nil)
		}
		plan := &Plan{Ops: []Op{{Kind: OpMkdir, Path: "d", What: manifest.KindDir}, {Kind: OpFile, Path: "f", What: manifest.KindFile, Content: Blob{Size: int64(want.Len()), Hash: h}}}}
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
		err = p.write(x, int(out.Fd()))
		must(t, err, out.Close())
		p.Close()
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
	for i, h := range []content.Hash{good, content.Sum([]byte("missing")), good, good} {
		plan.Ops = append(plan.Ops, Op{Kind: OpFile, Path: fmt.Sprint(i), What: manifest.KindFile, Content: Blob{Size: 4, Hash: h}})
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
