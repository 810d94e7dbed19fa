package restore

import (
	"context"
	"encoding/binary"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"stepbox/runner/overlay/content"
	"stepbox/runner/overlay/inode"
	"stepbox/runner/overlay/manifest"
)

// The helper is the tests' sandbox and holder in one: a process that is root
// of a user namespace of its own, mounts the overlay there, changes files
// through the merged view as an agent would, and restores as the holder does.
// The scanner and the planner stay outside, as in the supervisor.

type request struct {
	Op                         string
	Lower, Upper, Work, Merged string
	Muts                       []mutation
	Plan                       []byte
	Kill                       int    // of execute: die before that content, counted from 1
	Half                       bool   // of execute: die when half of that content was given instead
	Swap                       string // of execute: run this attack meanwhile
	Path                       string
}

type response struct {
	Err    string
	Errs   []string // of mutations
	Muts   []mutation
	Tree   map[string]seen
	Report Report
	Data   []byte
}

// seen is what the merged view shows at one path.
type seen struct {
	Kind   manifest.Kind
	Mode   uint32
	UID    uint32
	GID    uint32
	MTime  manifest.Time
	Size   int64
	Hash   content.Hash
	Target string
	Xattrs string
	Group  string // the first of the names that share an inode
}

// helper is the parent's end.
type helper struct {
	t        testing.TB
	pid      int
	enc      *gob.Encoder
	dec      *gob.Decoder
	contents *os.File
	opener   *net.UnixConn
	mu       sync.Mutex // one Opener call at a time
	stop     func()
	wait     func() error
}

func startHelper(t testing.TB) *helper {
	t.Helper()
	reqR, reqW, err := os.Pipe()
	must(t, err)
	respR, respW, err := os.Pipe()
	must(t, err)
	conR, conW, err := os.Pipe()
	must(t, err)
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	must(t, err)
	theirs := os.NewFile(uintptr(pair[1]), "opener")
	ours := os.NewFile(uintptr(pair[0]), "opener")
	conn, err := net.FileConn(ours)
	must(t, err, ours.Close())
	attr := &os.ProcAttr{
		Env:   []string{helperEnv + "=serve", "GORACE=" + os.Getenv("GORACE")},
		Files: []*os.File{nil, os.Stdout, os.Stderr, reqR, respW, conR, theirs},
		Sys:   namespaces(),
	}
	p, err := os.StartProcess("/proc/self/exe", []string{"helper"}, attr)
	must(t, err, reqR.Close(), respW.Close(), conR.Close(), theirs.Close())
	h := &helper{
		t: t, pid: p.Pid, enc: gob.NewEncoder(reqW), dec: gob.NewDecoder(respR), contents: conW, opener: conn.(*net.UnixConn),
	}
	h.wait = sync.OnceValue(func() error { _, err := p.Wait(); return err })
	h.stop = sync.OnceFunc(func() {
		_, _ = reqW.Close(), conW.Close()
		_ = p.Kill()
		_ = h.wait()
		_, _ = respR.Close(), conn.Close()
	})
	t.Cleanup(h.stop)
	return h
}

func (h *helper) call(q request) (response, error) {
	if err := h.enc.Encode(q); err != nil {
		return response{}, err
	}
	var r response
	if err := h.dec.Decode(&r); err != nil {
		return response{}, err
	}
	if r.Err != "" {
		return r, errors.New(r.Err)
	}
	return r, nil
}

func (h *helper) must(q request) response {
	h.t.Helper()
	r, err := h.call(q)
	if err != nil {
		h.t.Fatalf("%s: %v", q.Op, err)
	}
	return r
}

// execute runs a plan in the helper, with contents from here.
func (h *helper) execute(ctx context.Context, q request, p *Plan, src Source) (Report, error) {
	q.Op = "execute"
	var err error
	if q.Plan, err = p.MarshalBinary(); err != nil {
		return Report{}, err
	}
	sent := make(chan error, 1)
	go func() { sent <- SendContents(ctx, h.contents, p, src) }()
	r, err := h.call(q)
	if serr := <-sent; err == nil {
		err = serr
	}
	return r.Report, err
}

// open is the Opener that the helper serves.
func (h *helper) open(ctx context.Context, upper string) inode.Opener {
	return func(_ context.Context, path string) (*os.File, error) {
		h.mu.Lock()
		defer h.mu.Unlock()
		msg := append(binary.AppendUvarint(nil, uint64(len(upper))), upper+path...)
		if _, err := h.opener.Write(msg); err != nil {
			return nil, err
		}
		var buf [4096]byte
		oob := make([]byte, unix.CmsgSpace(4))
		n, on, _, _, err := h.opener.ReadMsgUnix(buf[:], oob)
		if err != nil {
			return nil, err
		}
		if buf[0] != 0 {
			return nil, fmt.Errorf("%s: %w", buf[1:n], syscall.Errno(buf[0]))
		}
		cmsgs, err := unix.ParseSocketControlMessage(oob[:on])
		if err != nil || len(cmsgs) != 1 {
			return nil, errors.Join(err, errors.New("no descriptor came"))
		}
		fds, err := unix.ParseUnixRights(&cmsgs[0])
		if err != nil {
			return nil, err
		}
		unix.CloseOnExec(fds[0])
		return os.NewFile(uintptr(fds[0]), path), nil
	}
}

// helperMain is the child.
func helperMain() {
	if os.Getenv(helperEnv) == "wait" {
		fmt.Print("!")
		_, _ = os.Stdin.Read(make([]byte, 1))
		return
	}
	fail := func(err error) {
		fmt.Fprintln(os.Stderr, "helper:", err)
		os.Exit(1)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		fail(err)
	}
	unix.Umask(0)
	if os.Getenv(helperEnv) == "probe" {
		if err := probe(); err != nil {
			fail(err)
		}
		return
	}
	reqs, resps, contents := os.NewFile(3, "requests"), os.NewFile(4, "responses"), os.NewFile(5, "contents")
	opener := os.NewFile(6, "opener")
	for fd := 3; fd <= 6; fd++ {
		unix.CloseOnExec(fd)
	}
	conn, err := net.FileConn(opener)
	if err != nil {
		fail(err)
	}
	go serveOpener(conn.(*net.UnixConn))
	dec, enc := gob.NewDecoder(reqs), gob.NewEncoder(resps)
	s := &served{contents: contents}
	for {
		var q request
		if err := dec.Decode(&q); err != nil {
			return
		}
		r := s.serve(q)
		if err := enc.Encode(r); err != nil {
			return
		}
	}
}

func probe() error {
	dir := os.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, ""); err != nil {
		return err
	}
	for _, d := range []string{"l", "u", "w", "m"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o700); err != nil {
			return err
		}
	}
	return mount(request{Lower: dir + "/l", Upper: dir + "/u", Work: dir + "/w", Merged: dir + "/m"})
}

func mount(q request) error {
	return unix.Mount("overlay", q.Merged, "overlay", unix.MS_NODEV|unix.MS_NOSUID,
		"lowerdir="+q.Lower+",upperdir="+q.Upper+",workdir="+q.Work+",userxattr")
}

func serveOpener(c *net.UnixConn) {
	var buf [1 << 16]byte
	for {
		n, err := c.Read(buf[:])
		if err != nil || n == 0 {
			return
		}
		size, k := binary.Uvarint(buf[:n])
		upper, path := string(buf[k:k+int(size)]), string(buf[k+int(size):n])
		f, err := func() (*os.File, error) {
			root, err := os.Open(upper)
			if err != nil {
				return nil, err
			}
			defer root.Close()
			return inode.OpenUpper(root, path)
		}()
		if err != nil {
			no := unix.EIO
			errors.As(err, &no)
			_, _ = c.Write(append([]byte{byte(no)}, err.Error()...))
			continue
		}
		_, _, _ = c.WriteMsgUnix([]byte{0}, unix.UnixRights(int(f.Fd())), nil)
		_ = f.Close()
	}
}

type served struct {
	contents *os.File
	extras   extras
}

func (s *served) serve(q request) (r response) {
	err := func() error {
		switch q.Op {
		case "mount":
			return mount(q)
		case "unmount":
			return unix.Unmount(q.Merged, unix.MNT_DETACH)
		case "mutate":
			for _, m := range q.Muts {
				m = m.resolve(q.Merged)
				r.Muts = append(r.Muts, m)
				text := ""
				if err := m.apply(q.Merged); err != nil {
					text = err.Error()
				}
				r.Errs = append(r.Errs, text)
			}
			return nil
		case "capture":
			var err error
			r.Tree, err = capture(q.Merged, q.Upper)
			return err
		case "read":
			var err error
			r.Data, err = os.ReadFile(q.Path)
			return err
		case "execute":
			var err error
			r.Report, err = s.execute(q)
			return err
		case "clean": // modes may keep the parent from it
			return errors.Join(os.RemoveAll(q.Upper), os.RemoveAll(q.Work), os.RemoveAll(q.Lower))
		default:
			return s.extra(q, &r)
		}
	}()
	if err != nil {
		r.Err = err.Error()
	}
	return r
}

// killer dies at a content, before or in the middle of it.
type killer struct {
	Source
	left int
	half bool
}

func (k *killer) Open(ctx context.Context, p *Plan, i int) (io.ReadCloser, error) {
	k.left--
	if k.left == 0 && !k.half {
		_ = unix.Kill(os.Getpid(), unix.SIGKILL)
	}
	r, err := k.Source.Open(ctx, p, i)
	if k.left == 0 && err == nil {
		r = &halfway{r, p.Ops[i].Content.Size / 2}
	}
	return r, err
}

// halfway is a content that kills its reader.
type halfway struct {
	io.ReadCloser
	left int64
}

func (h *halfway) Read(p []byte) (int, error) {
	if h.left <= 0 {
		_ = unix.Kill(os.Getpid(), unix.SIGKILL)
	}
	n, err := h.ReadCloser.Read(p)
	h.left -= int64(n)
	return n, err
}

func (s *served) execute(q request) (Report, error) {
	var p Plan
	if err := p.UnmarshalBinary(q.Plan); err != nil {
		return Report{}, err
	}
	root, err := os.Open(q.Merged)
	if err != nil {
		return Report{}, err
	}
	defer root.Close()
	recv := ReceiveContents(s.contents).(*receiver)
	var src Source = recv
	if q.Kill > 0 {
		src = &killer{src, q.Kill, q.Half}
	}
	stop := attack(q)
	rep, err := Execute(context.Background(), root, &p, src)
	stop()
	if derr := recv.done(); err == nil {
		err = derr
	}
	return rep, err
}

// done reads what Execute didn't ask for, so that the pipe is empty.
func (s *receiver) done() error {
	for {
		if s.cur != nil {
			if err := s.cur.drain(); err != nil {
				return err
			}
		}
		kind, _, err := s.frame()
		if err != nil || kind == frameDone {
			return err
		}
		s.cur = &received{s: s}
	}
}
