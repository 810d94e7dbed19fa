package project

import (
	"fmt"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"stepbox/runner/overlay/inode"
	"stepbox/runner/overlay/manifest"
)

// check compares every path with what its step expects, keeps what is there in
// the bodies. What is so already is taken out of the steps. Nothing is written to the
// project.
func (x *executor) check() error {
	refused := &RefusedError{}
	var left []Step
	var known []unix.Stat_t
	for i := range x.steps {
		if err := x.ctx.Err(); err != nil {
			return err
		}
		x.told(Progress{"check", int64(i), int64(len(x.steps))})
		s := &x.steps[i]
		now, why, err := x.expect(i, left)
		if err != nil {
			if x.ctx.Err() != nil {
				return x.ctx.Err()
			}
			why = "can't be read: " + explain(err).Error()
		}
		if why != "" {
			refused.add(s.Path, why)
		} else if !now.Same(s.New) {
			left, known = append(left, Step{s.Path, now, s.New}), append(known, x.known[i])
		}
	}
	if err := x.queue.Flush(x.ctx); err != nil {
		return err
	}
	if len(refused.Conflicts) > 0 {
		return refused
	}
	x.take(left, known)
	return nil
}

// expect says what a step's path has, and why it isn't what the step expects.
// before are the steps that will be carried out.
func (x *executor) expect(i int, before []Step) (now State, why string, err error) {
	s := &x.steps[i]
	dir, name := manifest.Split(s.Path)
	fd, err := x.dir(dir)
	parent := err == nil
	if parent {
		at := time.Now()
		var st unix.Stat_t
		now, st, err = x.look.look(fd, name)
		x.know(i, &st, at)
	} else if inode.Gone(err) {
		err = nil
	}
	for n := len(before) - 1; !parent && n >= 0 && manifest.Within(before[n].Path, dir); n-- {
		parent = before[n].Path == dir
	}
	switch {
	case err != nil || now.Same(s.New):
	case !now.Same(s.Old):
		why = x.differs(s.Path, s.Old, now)
	case s.Old.Absent() && !parent:
		why = "can't be made: its folder isn't there"
	case now.Kind == manifest.KindFile && written(fd, name):
		why = "can't be replaced: a program has it open for writing; end that and try again"
	}
	return now, why, err
}

// differs says in words how a path isn't what was expected.
func (x *executor) differs(path string, want, now State) string {
	switch {
	case now.Absent():
		return "was deleted in the project meanwhile"
	case want.Absent():
		if alias := x.alias(path); alias != "" {
			return fmt.Sprintf("can't be told from %q, which is there: this file system takes small and large letters for the same", alias)
		}
		return fmt.Sprintf("is there as a %s meanwhile", now.Kind)
	case now.Kind != want.Kind:
		return fmt.Sprintf("is a %s in the project meanwhile, and was a %s", now.Kind, want.Kind)
	case now.Kind == manifest.KindDir && now.Same(want):
		return "can't go: there is something in it that isn't part of this"
	case now.Mode&0o777 != want.Mode&0o777 && now.Hash == want.Hash && now.Target == want.Target:
		return fmt.Sprintf("has mode %04o in the project meanwhile, and had %04o", now.Mode&0o777, want.Mode&0o777)
	}
	return "was changed in the project meanwhile"
}

// alias is the name that a folder has in place of a path's, when a file system
// that folds case finds the one by the other.
func (x *executor) alias(path string) (alias string) {
	dir, name := manifest.Split(path)
	itself := false
	_ = eachName(x.f.fd, dir, func(_ int, n string) error {
		itself = itself || n == name
		if strings.EqualFold(n, name) {
			alias = n
		}
		return nil
	})
	if itself {
		return ""
	}
	return alias
}
