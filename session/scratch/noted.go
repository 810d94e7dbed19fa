package scratch

import (
	"encoding/hex"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"syscall"

	"stepbox/policy/git"
)

// maxBlob is how large a file may be, in bytes, that is compared.
const maxBlob = 64 << 20

// noted is what the index of the person's working tree notes of its files; read when asked.
type noted struct {
	entries map[string]git.Entry // nil where it can't be read
	written git.Stamp
	read    bool
}

// stands says whether a file is what git takes for the branch's. It may also be if a filter makes it
// that.
func (n *noted) stands(root string, d differs) bool {
	file := filepath.Join(root, d.path)
	info, err := os.Lstat(file)
	if err != nil {
		return true
	}
	n.load(root)
	e := n.entries[d.path]
	switch size := info.Size(); {
	case modeOf(info.Mode()) != d.from, n.entries != nil && hex.EncodeToString(e.Hash) != d.was:
		return false
	case e.Size == uint32(size) && n.unchanged(e, info), size > maxBlob:
		return true
	}
	return sameFile(file, d.was)
}

// letGo says whether a file that the branch has isn't there since the person let go of it, not
// since git was told not to have it there, or nothing was checked out.
func (n *noted) letGo(root, p string) bool {
	_, err := os.Lstat(filepath.Join(root, p))
	n.load(root)
	return err != nil && n.entries != nil && n.written != (git.Stamp{}) && !n.sparse(p)
}

// untracks says whether git is to have a file that the branch has no more, once that is committed.
func (n *noted) untracks(root, p string) bool {
	n.load(root)
	_, is := n.entries[p]
	return !is && n.entries != nil && !n.sparse(p)
}

// sparse says whether git was told not to have a file in the working tree.
func (n *noted) sparse(p string) bool {
	for at := p; at != "."; at = path.Dir(at) {
		if n.entries[at].Sparse || n.entries[at+"/"].Sparse {
			return true
		}
	}
	return false
}

func (n *noted) load(root string) {
	if n.read {
		return
	}
	n.read = true
	all, written, err := git.Open(root, git.Person{}).Index()
	if err != nil {
		return
	}
	n.entries, n.written = make(map[string]git.Entry, len(all)), written
	for _, e := range all {
		n.entries[e.Path] = e
	}
}

// unchanged says whether a file's times are those that git noted before it wrote the index.
func (n *noted) unchanged(e git.Entry, info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	at := git.Stamp{Sec: uint32(info.ModTime().Unix()), Nsec: uint32(info.ModTime().Nanosecond())}
	return ok && e.MTime == at && e.CTime == git.Stamp{Sec: uint32(st.Ctim.Sec), Nsec: uint32(st.Ctim.Nsec)} &&
		(at.Sec < n.written.Sec || at.Sec == n.written.Sec && at.Nsec < n.written.Nsec)
}

// sameFile says whether a file, or a link, has the content that git names so, or that with the ends of
// lines that other systems have. Behind a filter or an encoding it never has.
func sameFile(file, hash string) bool {
	_, text, err := there(file)
	name, _ := hex.DecodeString(hash) // it is git's
	return err == nil && git.Holds(text, name)
}

// there is what a working tree has: git's mode of a file or a link, and its content.
func there(file string) (mode string, text []byte, err error) {
	info, err := os.Lstat(file)
	if err != nil {
		return "", nil, err
	}
	if mode = modeOf(info.Mode()); info.Mode()&fs.ModeSymlink != 0 {
		target, err := os.Readlink(file)
		return mode, []byte(target), err
	}
	text, err = git.ReadFile(file, maxBlob)
	return mode, text, err
}
