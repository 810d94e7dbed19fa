package git

import (
	"bytes"
	"crypto/sha1" // what an index ends with, no defence
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Outer is the folder of a project's repository when that lies outside of the
// project: the project is a linked working tree, a submodule, or a folder of a
// larger working tree. It is "" for a project that has its own or none. An error
// says in words why the folder can't be shown to an agent: it must be the
// person's own and, when it is a file that leads there, lead back to the project,
// so that a file which came with the project opens nothing else.
func Outer(project string) (folder string, err error) {
	root, metadata := Above(project)
	if metadata == "" || metadata == filepath.Join(project, ".git") {
		return "", nil
	}
	_, folder = repositoryAt(root)
	if metadata != folder && !below(metadata, folder) {
		return "", fmt.Errorf("the repository's folder %q isn't in its common one, %q", metadata, folder)
	}
	if below(folder, project) || below(project, folder) {
		return "", fmt.Errorf("the repository's folder %q and the project are in one another", folder)
	}
	for _, dir := range []string{metadata, folder, filepath.Join(folder, "objects"), filepath.Join(folder, "refs")} {
		var st unix.Stat_t
		if err := unix.Lstat(dir, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFDIR {
			return "", fmt.Errorf("%q isn't a repository's folder", dir)
		}
		if int(st.Uid) != os.Getuid() {
			return "", fmt.Errorf("%q belongs to somebody else (uid %d)", dir, st.Uid)
		}
	}
	if real, err := filepath.EvalSymlinks(metadata); err != nil || real != metadata {
		return "", fmt.Errorf("there are symbolic links on the way to %q", metadata)
	}
	if info, err := os.Lstat(filepath.Join(root, ".git")); err != nil || info.Mode().IsRegular() && !leadsBack(metadata, root) {
		return "", fmt.Errorf("%q doesn't lead back to %q, as a linked working tree's or a submodule's folder does", metadata, root)
	}
	return folder, nil
}

func below(path, folder string) bool {
	return strings.HasPrefix(path, strings.TrimSuffix(folder, "/")+"/")
}

// leadsBack says whether a repository's folder names a working tree as its own:
// that of a linked one in a file (gitrepository-layout(5)), that of a submodule in
// its configuration.
func leadsBack(metadata, root string) bool {
	if data, err := ReadFile(filepath.Join(metadata, "gitdir"), 4096); err == nil {
		return beside(metadata, strings.TrimSpace(string(data))) == filepath.Join(root, ".git")
	}
	data, err := ReadFile(filepath.Join(metadata, "config"), maxConfig)
	if err != nil {
		return false
	}
	to := core(data, "worktree", "")
	return to != "" && beside(metadata, to) == root
}

// ServeOuter writes, below a folder of the caller's, what is to be shown in place of
// files of an Outer folder: configurations without their secrets and, for a project
// that is a part of a working tree, an index in which nothing else is meant to be
// there, since nothing else is shown. Without that, git would take all the rest of
// the working tree for deleted.
func ServeOuter(project, folder, to string) error {
	root, metadata := Above(project)
	at, err := filepath.Rel(folder, metadata)
	if err != nil {
		return err
	}
	_, hidden, err := Serve(folder, to, []string{".", at})
	if err != nil {
		return err
	}
	if len(hidden) > 0 {
		return fmt.Errorf("%q can't be read", filepath.Join(folder, hidden[0]))
	}
	if root == project {
		return nil
	}
	part := strings.TrimPrefix(project, root+"/")
	data, err := ReadFile(filepath.Join(metadata, "index"), maxIndex)
	if err != nil {
		return fmt.Errorf("the index of %q can't be read: %w", root, err)
	}
	if data, err = narrow(data, part); err != nil {
		return fmt.Errorf("the index of %q can't be used for a part of the working tree: %w", root, err)
	}
	if err := writeServed(folder, to, filepath.Join(at, "index"), data); err != nil {
		return err
	}
	config, err := os.ReadFile(filepath.Join(to, "config")) // as it is served
	if errors.Is(err, os.ErrNotExist) {
		config, err = ReadFile(filepath.Join(folder, "config"), maxConfig)
	}
	if err != nil {
		return err
	}
	config = append(config, "\n[core]\n\tsparseCheckout = true\n\tsparseCheckoutCone = false\n[index]\n\tsparse = false\n"...)
	if err := writeServed(folder, to, "config", config); err != nil {
		return err
	}
	info := filepath.Join(to, at, "info")
	if err := os.MkdirAll(info, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(info, "sparse-checkout"), []byte("/"+literalPattern(part)+"/\n"), 0o644)
}

// literalPattern is a pattern that matches a path and nothing else.
func literalPattern(path string) string {
	var b strings.Builder
	for i := range len(path) {
		if strings.IndexByte(`\*?[! #`, path[i]) >= 0 {
			b.WriteByte('\\')
		}
		b.WriteByte(path[i])
	}
	return b.String()
}

const (
	assumeValid = 0x8000
	intentToAdd = 0x2000 // in the further flags
)

// narrow writes an index anew in version 3, as gitformat-index(5) has it, in which
// only what is below a path is meant to be in the working tree. Extensions are
// left out: git makes those again that it wants.
func narrow(data []byte, part string) ([]byte, error) {
	entries, err := ParseIndex(data)
	if err != nil {
		return nil, err
	}
	out := bytes.NewBuffer(make([]byte, 0, len(data)+len(data)/4))
	out.WriteString("DIRC")
	word := func(v uint32) { out.Write(binary.BigEndian.AppendUint32(nil, v)) }
	word(3)
	word(uint32(len(entries)))
	hash := 20
	for i := range entries {
		e := &entries[i]
		if e.Mode == 0o40000 {
			return nil, errors.New("it is sparse already")
		}
		hash = len(e.Hash)
		fixed := indexStat + hash
		flags, more := binary.BigEndian.Uint16(e.raw[fixed:]), uint16(0)
		if flags&extended != 0 {
			more = binary.BigEndian.Uint16(e.raw[fixed+2:]) & (intentToAdd | skipWorktree)
		}
		if !below(e.Path, part) {
			more |= skipWorktree
		}
		flags = flags&assumeValid | uint16(e.Stage)<<12 | uint16(min(len(e.Path), nameMask))
		start := out.Len()
		out.Write(e.raw[:fixed])
		if more != 0 {
			flags |= extended
		}
		out.Write(binary.BigEndian.AppendUint16(nil, flags))
		if more != 0 {
			out.Write(binary.BigEndian.AppendUint16(nil, more))
		}
		out.WriteString(e.Path)
		out.Write(make([]byte, 8-(out.Len()-start)%8)) // one to eight
	}
	if hash == 32 {
		sum := sha256.Sum256(out.Bytes())
		return append(out.Bytes(), sum[:]...), nil
	}
	sum := sha1.Sum(out.Bytes())
	return append(out.Bytes(), sum[:]...), nil
}
