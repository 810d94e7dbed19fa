package git

import (
	"bytes"
	"path"
	"path/filepath"
	"strings"
)

// Bounds of what Head reads.
const (
	maxRef    = 4096
	maxPacked = 64 << 20 // bytes of packed-refs
	maxSteps  = 5        // references that lead to each other, as git has it
)

// Checked is what a project has checked out.
type Checked struct {
	Commit, Branch string // see Head
	tables         string // which files have the references, where they are in tables: see gitrepository-layout(5), reftable
}

// CheckedOut looks that up. Where the repository's folders are read is asked of moved.
func CheckedOut(project string, moved func(dir string) string) (c Checked) {
	own, common := Folders(project)
	if own == "" {
		return c
	}
	r := &Repository{metadata: moved(own), common: moved(common)}
	c.Commit, c.Branch = r.Head()
	for _, dir := range []string{r.metadata, r.common} {
		list, _ := ReadFile(filepath.Join(dir, "reftable", "tables.list"), maxPacked) // there is none but where it is used
		c.tables += string(list)
	}
	return c
}

// Folders are a working tree's own in the repository that a folder is in, and what that has
// in common with linked ones; both are "" outside of one.
func Folders(project string) (own, common string) {
	if root, _ := Above(project); root != "" {
		return repositoryAt(root)
	}
	return "", ""
}

// Here reads a repository's folders where they are.
func Here(dir string) string { return dir }

// Head is the commit that is checked out, in hexadecimal, and the branch that
// it is on, as refs/heads/NAME; no branch when there is none, no commit on one
// that has none yet. Both are empty outside of a repository, and where it can't
// be told: where references are kept in another way than as files, or are
// malformed.
func (r *Repository) Head() (commit, branch string) {
	if r.metadata == "" {
		return "", ""
	}
	name := "HEAD"
	for range maxSteps {
		text, ok := r.ref(name)
		if !ok {
			return "", branch
		}
		next, symbolic := strings.CutPrefix(text, "ref:")
		if !symbolic {
			if !isHash(text) {
				return "", ""
			}
			return text, branch
		}
		name = strings.TrimSpace(next)
		if !isRef(name) || name == "refs/heads/.invalid" { // what git writes for others to find
			return "", ""
		}
		branch = name
	}
	return "", ""
}

// ref reads what a reference says: a worktree's own, else the repository's, as
// a file of its own or packed with others.
func (r *Repository) ref(name string) (string, bool) {
	for _, dir := range []string{r.metadata, r.common} {
		if data, err := ReadFile(filepath.Join(dir, name), maxRef); err == nil {
			return strings.TrimSpace(string(data)), true
		}
	}
	data, err := ReadFile(filepath.Join(r.common, "packed-refs"), maxPacked)
	if err != nil {
		return "", false
	}
	for line := range bytes.Lines(data) {
		hash, ref, ok := strings.Cut(strings.TrimSuffix(string(line), "\n"), " ")
		if ok && ref == name && isHash(hash) {
			return hash, true
		}
	}
	return "", false
}

// isRef says whether a name may be read as a reference, so that it leads to
// nowhere but below refs.
func isRef(name string) bool {
	return strings.HasPrefix(name, "refs/") && path.Clean(name) == name && !strings.ContainsAny(name, "\x00\n\\")
}

func isHash(s string) bool {
	return (len(s) == 40 || len(s) == 64) && strings.Trim(s, "0123456789abcdef") == ""
}
