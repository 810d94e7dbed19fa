package project

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"stepbox/runner/overlay/codec"
	"stepbox/runner/overlay/inode"
	"stepbox/runner/overlay/manifest"
)

// folder is one that has no step itself, and in which something is moved. That changes
// its time.
type folder struct {
	path   string
	before manifest.Time // what it had, and gets when all is taken back
	after  manifest.Time // what it gets, or manifest.NoTime
}

// folders are those of the moves. When undoing, they get the time that they had before
// what is undone, if nothing was done in them since.
func (x *executor) folders(undone *record) []folder {
	var done unix.Stat_t
	had := map[string]manifest.Time{}
	if undone != nil && inode.Lstat(unix.AT_FDCWD, undone.file(undone.stage), &done) == nil {
		for _, f := range undone.folders {
			had[f.path] = f.before
		}
	}
	paths := map[string]bool{}
	for _, m := range x.moves {
		paths[m.dir], paths[m.at] = true, true
	}
	for i := range x.steps {
		delete(paths, x.steps[i].Path)
	}
	var out []folder
	for _, path := range slices.SortedFunc(maps.Keys(paths), order) {
		st, there, err := x.f.Stat(path)
		if err != nil || !there {
			continue
		}
		f := folder{path, manifest.TimeOf(st.Mtim), manifest.NoTime}
		if t, ok := had[path]; ok && !manifest.TimeOf(done.Ctim).Before(f.before) {
			f.after = t
		}
		out = append(out, f)
	}
	return out
}

func appendFolders(b []byte, all []folder) []byte {
	b = binary.AppendUvarint(b, uint64(len(all)))
	for _, f := range all {
		b = manifest.AppendTime(manifest.AppendTime(codec.AppendBytes(b, f.path), f.before), f.after)
	}
	return b
}

func readFolders(d *codec.Decoder) (all []folder) {
	for range d.Count(5) {
		all = append(all, folder{readPath(d), manifest.ReadTime(d), manifest.ReadTime(d)})
	}
	return all
}

func readPath(d *codec.Decoder) string {
	path := string(d.Bytes())
	if !manifest.ValidPath(path) {
		d.Fail("a path that leaves the project")
	}
	return path
}

// settleFolders gives folders what they shall have, or had before, after all that is in
// them: they may have been opened for writing, and everything moves their times.
func (x *executor) settleFolders() error {
	var failed []error
	for _, s := range slices.Backward(x.steps) {
		if s.Old.Kind != manifest.KindDir {
			continue
		}
		if x.back || s.New.Kind != manifest.KindDir {
			s.New = s.Old
		}
		if err := x.settleFolder(&s); err != nil && !inode.Gone(err) {
			failed = append(failed, fmt.Errorf("cannot give %q its mode: %w", s.Path, err))
		}
	}
	for _, f := range x.r.folders {
		t := f.after
		if x.back {
			t = f.before
		}
		if fd, err := x.dir(f.path); err == nil && t != manifest.NoTime {
			ts := []unix.Timespec{{Nsec: unix.UTIME_OMIT}, {Sec: t.Sec, Nsec: int64(t.Nsec)}}
			_ = change(func() error { return unix.UtimesNanoAt(fd, "", ts, unix.AT_EMPTY_PATH) }) // it may be another's
		}
	}
	return errors.Join(failed...)
}

// settleFolder has a folder that a step knows be what the step wants.
func (x *executor) settleFolder(s *Step) error {
	dir, name := manifest.Split(s.Path)
	at, err := x.dir(dir)
	if err != nil {
		return err
	}
	return open(at, name, unix.O_PATH|unix.O_DIRECTORY, func(fd int) error { // its owner needn't be able to read it
		var st unix.Stat_t
		if err := inode.Fstat(fd, &st); err != nil {
			return err
		}
		now, loose := State{Kind: manifest.KindDir}, s.Old
		now.Mode, loose.Mode = st.Mode&0o7777, s.Old.Mode|0o700
		if !now.Same(s.Old) && !now.Same(loose) && !now.Same(s.New) {
			x.leave(s.Path, "was given mode %04o meanwhile and keeps it", now.Mode)
			return nil
		}
		x.dress(fd, s)
		return nil
	})
}

// dress gives what a step made all that it shall have beside its content. What can't be
// had is said; a journal that is taken back says it anew.
func (x *executor) dress(fd int, s *Step) {
	m := s.Written()
	if s.New.Kind == manifest.KindDir && !s.New.Found {
		var st unix.Stat_t
		if inode.Fstat(fd, &st) == nil {
			m.Mode |= st.Mode & (unix.S_ISUID | unix.S_ISGID) // handed down by the folder that it is in
		}
	}
	crashPoint()
	if err := inode.SetMeta(fd, s.New.Kind, &m, false); err != nil {
		x.leave(s.Path, "has its content, but %s", strings.ReplaceAll(err.Error(), "\n", "; "))
	}
}
