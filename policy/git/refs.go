package git

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// maxRefs bounds how many references are read as files of their own.
const maxRefs = 200_000

// Refs lists the objects that a repository's references name, in hexadecimal: its
// branches, tags and all others, but those below one prefix, and what is checked
// out. Metadata is the repository's folder, itself no link.
func Refs(metadata, but string) ([]string, error) {
	bad := func(err error) ([]string, error) {
		return nil, fmt.Errorf("cannot read the references of %q: %w", metadata, err)
	}
	if _, err := os.Lstat(filepath.Join(metadata, "reftable")); err == nil {
		return bad(errors.New("they are in a table rather than in files"))
	}
	found := make(map[string]bool)
	read := func(file string) {
		if data, err := readFile(file, maxRef); err == nil {
			if text := strings.TrimSpace(string(data)); isHash(text) {
				found[text] = true
			}
		}
	}
	heads, err := filepath.Glob(filepath.Join(literal(metadata), "worktrees", "*", "HEAD"))
	if err != nil {
		return bad(err)
	}
	for _, head := range append(heads, filepath.Join(metadata, "HEAD")) {
		read(head)
	}
	left := maxRefs
	err = filepath.WalkDir(filepath.Join(metadata, "refs"), func(file string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(metadata, file) // it is below
		switch left--; {
		case err != nil:
			return err
		case left < 0:
			return errors.New("there are too many")
		case d.IsDir() && strings.HasPrefix(rel+"/", but):
			return fs.SkipDir
		case d.Type().IsRegular():
			read(file)
		}
		return nil
	})
	if err != nil {
		return bad(err)
	}
	data, err := readFile(filepath.Join(metadata, "packed-refs"), maxPacked)
	if err != nil && !notThere(err) {
		return bad(err)
	}
	for line := range bytes.Lines(data) {
		hash, ref, ok := strings.Cut(strings.TrimSuffix(string(line), "\n"), " ")
		if ok && isHash(hash) && !strings.HasPrefix(ref, but) {
			found[hash] = true
		}
	}
	out := make([]string, 0, len(found))
	for hash := range found {
		out = append(out, hash)
	}
	return out, nil
}

// literal is a path as a pattern that matches it alone.
func literal(path string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(path)
}

// Above finds the working tree that a folder is in or is the root of, and the
// folder with its repository's HEAD; both are "" where there is none.
func Above(folder string) (root, metadata string) {
	for dir := folder; ; dir = filepath.Dir(dir) {
		if metadata, _ := repositoryAt(dir); metadata != "" {
			return dir, metadata
		}
		if dir == filepath.Dir(dir) {
			return "", ""
		}
	}
}
