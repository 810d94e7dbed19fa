package tree

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"stepbox/policy/git"
	"stepbox/runner/overlay/content"
	"stepbox/runner/overlay/manifest"
)

// maxTarget is the longest link target (PATH_MAX).
const maxTarget = 4096

// Open opens a file's content, all of which was checked against its hash before, and
// says how long it is. A *manifest.Problem says why it can't be had.
func (t *Tree) Open(ctx context.Context, path string) (io.ReadCloser, int64, error) {
	f := t.find(path)
	switch {
	case f == nil:
		return nil, 0, fmt.Errorf("cannot open %q: %w", path, fs.ErrNotExist)
	case f.Kind != manifest.KindFile:
		return nil, 0, fmt.Errorf("cannot open %q: it is a %s", path, f.Kind)
	}
	return t.open(ctx, f)
}

func (t *Tree) open(ctx context.Context, f *File) (io.ReadCloser, int64, error) {
	if f.kept() {
		r, err := content.Open(ctx, t.bodies, f.Hash, f.Size)
		return r, f.Size, err
	}
	found, err := t.outside(ctx, f)
	if err != nil {
		return nil, 0, err
	}
	info, err := found.Stat()
	if err != nil {
		found.Close()
		return nil, 0, err
	}
	return found, info.Size(), nil
}

// kept says whether a file's content is among the bodies.
func (f *File) kept() bool { return f.Unsaved == "" && !f.Hash.IsZero() }

// outside copies a content that isn't in the record to a file without a name: from
// git's objects, or from the project folder.
func (t *Tree) outside(ctx context.Context, f *File) (*os.File, error) {
	why := f.Unsaved
	if f.blob != nil {
		out, err := t.object(ctx, f)
		if err == nil || ctx.Err() != nil {
			return out, cmp.Or(ctx.Err(), err)
		}
		why = err.Error()
	}
	out, err := t.today(ctx, f)
	if err == nil || ctx.Err() != nil {
		return out, cmp.Or(ctx.Err(), err)
	}
	if why == "" {
		why = "its content isn't in the record"
	}
	return nil, &manifest.Problem{Path: f.Path, Text: why + ", and in the project " + err.Error()}
}

// today copies a file of the project folder, if it is still what it was.
func (t *Tree) today(ctx context.Context, f *File) (_ *os.File, err error) {
	if t.lower == nil {
		return nil, errors.New("it can't be looked for: the folder isn't there, or is another")
	}
	other := errors.New("it is another by now, or may be")
	e, err := t.lower.Stat(ctx, f.Path)
	switch {
	case err != nil:
		return nil, errors.New("it can't be looked at")
	case e == nil:
		return nil, errors.New("it isn't there any more")
	case e.Kind != f.Kind, f.blob == nil && !t.looksLike(ctx, f, e):
		return nil, other
	}
	r, size, err := t.lower.Open(ctx, f.Path)
	if err != nil {
		return nil, errors.New("it can't be read")
	}
	defer r.Close()
	out, err := t.source.Store.Temp()
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			out.Close()
		}
	}()
	sum := git.Object("blob", size, len(f.blob))
	if n, err := io.Copy(io.MultiWriter(out, sum), io.LimitReader(r, size+1)); err != nil || n != size {
		return nil, other
	}
	switch now, err := t.lower.Lookup(ctx, f.Path); {
	case err != nil || now == nil || now.Size != e.Size || now.MTime != e.MTime:
		return nil, other // it was just written
	case f.blob != nil && !bytes.Equal(sum.Sum(nil), f.blob), f.blob == nil && !f.Hash.IsZero() && now.Hash != f.Hash:
		return nil, other
	}
	_, err = out.Seek(0, io.SeekStart)
	return out, err
}

// looksLike says whether a file of the project folder is one that it was, as far as that
// can be told without its content: times that anybody can set aren't enough.
func (t *Tree) looksLike(ctx context.Context, f *File, now *manifest.Entry) bool {
	if now.Kind != f.Kind || now.Size != f.Size || now.MTime != f.MTime {
		return false
	}
	changed, err := t.lower.Changed(ctx, f.Path)
	return !f.Hash.IsZero() || err == nil && !time.Unix(changed.Sec, int64(changed.Nsec)).After(t.began)
}

func (t *Tree) linkTarget(ctx context.Context, f *File) (string, error) {
	if out, err := t.object(ctx, f); err == nil {
		defer out.Close()
		b, err := io.ReadAll(io.LimitReader(out, maxTarget+1))
		if err == nil && (len(b) == 0 || len(b) > maxTarget || bytes.IndexByte(b, 0) >= 0) {
			err = errors.New("git has no target of a link for it")
		}
		return string(b), err
	}
	if t.lower != nil {
		e, err := t.lower.Stat(ctx, f.Path)
		if err == nil && e != nil && e.Kind == manifest.KindSymlink {
			sum := git.Object("blob", int64(len(e.Target)), len(f.blob))
			io.WriteString(sum, e.Target) // hashes take all
			if bytes.Equal(sum.Sum(nil), f.blob) {
				return e.Target, nil
			}
		}
	}
	return "", errors.New("where it leads to isn't in the repository any more")
}

// repository is where a repository lies, if no link leads there now.
func (t *Tree) repository(repo int) (string, error) {
	dir := filepath.Join(t.Session.Folder, t.repos[repo].Path)
	if real, err := filepath.EvalSymlinks(dir); err != nil || real != dir {
		return "", errors.New("the repository that had it is gone, or is behind a link")
	}
	return dir, nil
}

// metadata is a repository's own folder, as it is now.
func (t *Tree) metadata(repo int) (string, error) {
	dir, err := t.repository(repo)
	if err != nil {
		return "", err
	}
	root, metadata := git.Above(dir)
	if prefix := t.repos[repo].Prefix; metadata == "" || filepath.Join(root, prefix) != dir {
		return "", errors.New("the repository that had it isn't there any more")
	}
	return metadata, nil
}

// objects is a git that gives a repository's objects, one after the other.
type objects struct {
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Reader
	fail error // it can't be used any more
}

// endTime is how long a git that has no more to do may take to end.
const endTime = 5 * time.Second

func (o *objects) close() {
	if o == nil || o.cmd == nil {
		return
	}
	o.in.Close()
	stop := time.AfterFunc(endTime, func() { _ = o.cmd.Process.Kill() }) // it has ended
	_ = o.cmd.Wait()                                                     // what it gave was checked
	stop.Stop()
}

// start starts a git for a repository, once.
func (t *Tree) start(repo int) *objects {
	if t.objects[repo] != nil {
		return t.objects[repo]
	}
	o := &objects{}
	t.objects[repo] = o
	cmd, err := t.git(context.Background(), repo, "cat-file", "--batch")
	if err == nil {
		o.in, err = cmd.StdinPipe()
	}
	var out io.ReadCloser
	if err == nil {
		out, err = cmd.StdoutPipe()
	}
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		o.fail = err
		return o
	}
	o.cmd, o.out = cmd, bufio.NewReaderSize(out, 64<<10)
	return o
}

// object copies a content out of git's objects.
func (t *Tree) object(ctx context.Context, f *File) (*os.File, error) {
	o := t.start(f.repo)
	if o.fail != nil {
		return nil, o.fail
	}
	defer context.AfterFunc(ctx, func() { _ = o.cmd.Process.Kill() })() // it has ended
	out, err := t.source.Store.Temp()
	if err != nil {
		return nil, err
	}
	name := hex.EncodeToString(f.blob)
	if err := o.copy(out, name, f.blob); err != nil {
		out.Close()
		return nil, err
	}
	if _, err := out.Seek(0, io.SeekStart); err != nil {
		out.Close()
		return nil, err
	}
	return out, nil
}

// copy asks for one object: git says what it is and how long, and gives it with a
// line's end (git-cat-file(1), "Batch output").
func (o *objects) copy(to io.Writer, name string, want []byte) error {
	broken := func(err error) error {
		o.fail = fmt.Errorf("the repository can't be read: %w", err)
		return o.fail
	}
	if _, err := io.WriteString(o.in, name+"\n"); err != nil {
		return broken(err)
	}
	line, err := o.out.ReadString('\n')
	if err != nil {
		return broken(err)
	}
	if strings.HasPrefix(line, name+" missing") {
		return errors.New("the repository doesn't have it any more")
	}
	var got, kind string
	var size int64
	if n, err := fmt.Sscanf(line, "%s %s %d\n", &got, &kind, &size); n != 3 || err != nil || got != name || size < 0 {
		return broken(fmt.Errorf("git answered %q", line))
	}
	sum := git.Object("blob", size, len(want))
	if _, err := io.CopyN(io.MultiWriter(to, sum), o.out, size); err != nil {
		return broken(err)
	}
	if _, err := o.out.Discard(1); err != nil {
		return broken(err)
	}
	if kind != "blob" || !bytes.Equal(sum.Sum(nil), want) {
		return errors.New("what the repository has under its name is something else")
	}
	return nil
}
