package git

import (
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
	own := filepath.Join(project, ".git")
	if to, err := os.Readlink(own); err == nil && !below(beside(project, to), project) {
		return "", fmt.Errorf("%q is a symbolic link to %q; a repository that an agent makes there is lost", own, to)
	}
	root, metadata := Above(project)
	if metadata == "" || metadata == own {
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
	if info, err := os.Lstat(filepath.Join(root, ".git")); err != nil || info.Mode().IsRegular() && Worktree(metadata) != root {
		return "", fmt.Errorf("%q doesn't lead back to %q, as a linked working tree's or a submodule's folder does", metadata, root)
	}
	return folder, nil
}

func below(path, folder string) bool {
	return strings.HasPrefix(path, strings.TrimSuffix(folder, "/")+"/")
}

// Worktree is the working tree that a repository's folder says it is of, as a linked one's does
// or, in its configuration, a submodule's; "" for none.
func Worktree(metadata string) string {
	data, err := ReadFile(filepath.Join(metadata, "gitdir"), maxConfig)
	if err == nil {
		return filepath.Dir(beside(metadata, string(data)))
	}
	data, err = ReadFile(filepath.Join(metadata, "config"), maxConfig)
	to := core(data, "worktree", "")
	if err != nil || to == "" {
		return ""
	}
	return beside(metadata, to)
}

// ServeOuter writes, in a copy of an Outer folder, what is to be shown in place of some of
// its files: configurations without their secrets and, for a project that is a part of a
// working tree, an index in which nothing else is meant to be there, since nothing else is
// shown. Without that, git would take all the rest of the working tree for deleted.
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
	part := strings.TrimPrefix(project, root+"/") + "/"
	data, err := ReadFile(filepath.Join(to, at, "index"), maxIndex)
	if err == nil {
		data, err = without(data, func(path string) bool { return !strings.HasPrefix(path, part) })
	}
	if err != nil {
		return fmt.Errorf("the index of %q can't be used for a part of the working tree: %w", root, err)
	}
	if err := writeServed(folder, to, filepath.Join(at, "index"), data); err != nil {
		return err
	}
	return sparse(folder, to, at, part)
}

// sparse writes a configuration by which only a part of a working tree is meant to be there.
func sparse(folder, to, at, part string) error {
	config, err := ReadFile(filepath.Join(to, "config"), maxConfig)
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
	file := filepath.Join(info, "sparse-checkout")
	if err := os.Remove(file); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return os.WriteFile(file, []byte("/"+literalPattern(part)+"\n"), 0o644)
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
