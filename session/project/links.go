package project

import (
	"errors"

	"golang.org/x/sys/unix"

	"stepbox/runner/overlay/inode"
	"stepbox/runner/overlay/manifest"
)

// links are the files that shall have one inode under several names. What is in the
// project already is looked for, once, when something found there had another name.
type links struct {
	made   map[uint64][]linked // by State.Links
	sought bool
}

// linked is a name of such a file.
type linked struct {
	path string
	is   State
}

// maxSought is how many names of the project are looked at for those of one inode.
const maxSought = 1 << 20

// link gives a name below dirfd to the file that s shares, if there is one that is as s
// wants it. What was found with more than one name and gets its own is said.
func (x *executor) link(dirfd int, name string, s *Step) bool {
	if s.New.Links == 0 {
		return false
	}
	if s.New.Found && !x.links.sought {
		x.links.sought = true
		x.seek()
	}
	for _, l := range x.links.made[s.New.Links] {
		if l.is.Same(s.New) && l.is.Found == s.New.Found && x.linkTo(dirfd, name, l.path) == nil {
			return true
		}
	}
	return false
}

func (x *executor) linkTo(dirfd int, name, path string) error {
	dir, last := manifest.Split(path)
	fd, err := inode.OpenDirBeneath(x.f.fd, dir)
	if err != nil {
		return err
	}
	err = change(func() error { return unix.Linkat(fd, last, dirfd, name, 0) })
	return errors.Join(err, unix.Close(fd))
}

// made notes a name of a file that others may share.
func (x *executor) made(path string, group uint64, is State) {
	if group == 0 {
		return
	}
	if x.links.made == nil {
		x.links.made = map[uint64][]linked{}
	}
	x.links.made[group] = append(x.links.made[group], linked{path, is})
}

// alone says which of the files that had more than one name has only one by now.
func (x *executor) alone() {
	for i := range x.steps {
		s := &x.steps[i]
		if !s.New.Found || s.New.Links == 0 {
			continue
		}
		if st, there, err := x.f.Stat(s.Path); err == nil && there && st.Nlink < 2 {
			x.leave(s.Path, "had other names as a hard link, none of which is in the project as it was: it is a file of its own now")
		}
	}
}

// seek finds the names in the project of the inodes that are to get another one.
func (x *executor) seek() {
	wanted, stepped := map[uint64]bool{}, map[string]bool{}
	for i := range x.steps {
		s := &x.steps[i]
		stepped[s.Path] = true
		if s.New.Found && s.New.Links != 0 {
			wanted[s.New.Links] = true
		}
	}
	dirs, left := []string{""}, maxSought
	for len(dirs) > 0 && left > 0 && x.ctx.Err() == nil {
		dir := dirs[len(dirs)-1]
		dirs = dirs[:len(dirs)-1]
		fd, err := inode.OpenDirBeneath(x.f.fd, dir)
		if err != nil {
			continue // what can't be looked at has no name that could be told
		}
		_ = inode.EachName(fd, make([]byte, 32<<10), func(n []byte) error {
			var st unix.Stat_t
			name := string(n)
			path := manifest.Join(dir, name)
			left--
			switch err := inode.Lstat(fd, name, &st); {
			case err != nil || uint64(st.Dev) != x.f.dev:
			case inode.KindOf(&st) == manifest.KindDir:
				dirs = append(dirs, path)
			case wanted[st.Ino] && !stepped[path]:
				if is, _, err := x.look.look(fd, name); err == nil {
					x.made(path, st.Ino, is)
				}
			}
			return nil
		})
		_ = unix.Close(fd)
	}
}
