package project

import (
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"stepbox/runner/overlay/inode"
	"stepbox/runner/overlay/manifest"
)

// moveAll makes all moves and looks once more at what they took out.
func (x *executor) moveAll() error {
	for i := range x.moves {
		m := &x.moves[i]
		if err := x.ctx.Err(); err != nil {
			return err
		}
		x.told(Progress{"place", int64(i), int64(len(x.moves))})
		x.begun = max(x.begun, i+1)
		if err := x.do(m); err != nil {
			return err
		}
		if i+1 == len(x.moves) || x.moves[i+1].dir != m.dir {
			if err := x.still(m.dir); err != nil {
				return err
			}
		}
	}
	if err := x.f.here(); err != nil {
		return err
	}
	if err := x.sync(); err != nil {
		return err
	}
	for i := range x.moves {
		m := &x.moves[i]
		at, err := x.dir(m.at)
		if err == nil && m.how != moveIn && there(at, m.temp) {
			var ok bool
			if ok, _, err = x.has(m, at, m.temp, false); err == nil && (!ok || written(at, m.temp)) {
				err = refuse(x.steps[m.step].Path, "was written to at that moment")
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// do makes one move, or undoes it. What comes out must be what was there when it
// was looked at (or, when undoing, what was put there); else it goes back, and that
// is a conflict.
func (x *executor) do(m *move) error {
	s, fd := &x.steps[m.step], -1
	at, err := x.dir(m.at)
	if err == nil {
		fd, err = x.dir(m.dir) // last: still asks for it
	}
	if err != nil && !inode.Gone(err) {
		return x.failed(m, err)
	}
	how := m.how
	if x.back && how != moveSwap {
		how = moveIn - how
	}
	if at >= 0 && (x.back || x.again) {
		if done, err := x.done(m, how, fd, at); err != nil || done {
			return err
		}
	}
	if err != nil {
		return refuse(s.Path, "can't be reached: its folder was moved away meanwhile")
	}
	if how == moveIn {
		if err = rename(at, m.temp, fd, m.name, unix.RENAME_NOREPLACE); err == unix.EEXIST {
			now, _, _ := x.look.look(fd, m.name)
			return x.refuse(m, now)
		}
		return x.failed(m, err)
	}
	fromfd, from, tofd, to, flags := fd, m.name, at, m.temp, uint(unix.RENAME_NOREPLACE)
	if how == moveSwap {
		flags = unix.RENAME_EXCHANGE
	}
	ok, now, err := x.has(m, fd, m.name, x.back)
	if err == nil && ok {
		err = rename(fromfd, from, tofd, to, flags)
		if err == unix.ENOENT {
			ok, now, err = false, State{}, nil
		} else if err == nil {
			// Should this go wrong too, what lies beside is named when that is cleaned.
			if ok, now, err = x.has(m, at, m.temp, x.back); err == nil && !ok {
				_ = rename(tofd, to, fromfd, from, flags)
			}
		}
	}
	switch {
	case err != nil:
		return x.failed(m, err)
	case ok:
		return nil
	case !x.back && how == moveOut && s.Old.Kind == manifest.KindDir && now.Kind == manifest.KindDir:
		x.leave(s.Path, "stays: there is something in it that isn't part of this")
		return nil
	case x.back && how == moveSwap && now.Absent(): // deleted meanwhile: what was there before is put back
		return x.failed(m, rename(at, m.temp, fd, m.name, unix.RENAME_NOREPLACE))
	}
	return x.refuse(m, now)
}

// failed names what a move's system call failed for.
func (x *executor) failed(m *move, err error) error {
	switch err {
	case nil:
		return nil
	case unix.EINVAL, unix.EOPNOTSUPP, unix.ENOSYS:
		err = fmt.Errorf("this file system can't exchange two files (renameat2(2)), without which nothing is written to it; stepbox export --format patch has the changes for git apply: %w", err)
	}
	return fmt.Errorf("cannot write %q: %w", x.steps[m.step].Path, explain(err))
}

// done says whether a move was made, or undone, before. What was taken out and
// isn't what was there before is the person's: a conflict, or when undoing,
// something to put back.
func (x *executor) done(m *move, how how, fd, at int) (bool, error) {
	switch beside := there(at, m.temp); {
	case how == moveIn:
		return !beside, nil
	case how == moveOut && !beside:
		return fd < 0 && !x.back || fd >= 0 && !there(fd, m.name), nil
	case x.back && !beside:
		return true, nil
	case !beside:
		return false, refuse(x.steps[m.step].Path, "can't be finished: "+manifest.Join(m.at, m.temp)+" was deleted")
	}
	ours, now, err := x.has(m, at, m.temp, true)
	if err != nil || ours || x.back && how == moveSwap {
		return ours && x.back, err
	}
	if x.back { // put in place again, if that is free; else it is named when names beside are cleaned
		_ = rename(at, m.temp, fd, m.name, unix.RENAME_NOREPLACE)
	} else {
		ours, now, err = x.has(m, at, m.temp, false)
	}
	if err == nil && !ours {
		err = x.refuse(m, now)
	}
	return ours, err
}

// refuse says that a move's path has something else than was there when it was
// looked at, or when undoing, than was put there.
func (x *executor) refuse(m *move, now State) error {
	s := &x.steps[m.step]
	was := s.Old
	if x.back {
		was = s.New
	}
	return refuse(s.Path, x.differs(s.Path, was, now))
}

// reverse takes back what was made and moved, newest first, and closes the
// journal. partial says that nothing was moved yet, and that what lies beside may
// be cut short. An error means that not all could be taken back; the journal stays
// open then, and Recover tries again.
//
// What a power loss leaves is what a kill leaves: each stage of the journal is on
// disk before anything of that stage is done, and all that was done before is on
// disk by then. Of the renames of one stage the disk may have any, in any order.
// Which it has can be told from the names beside, because those are only deleted
// in the stage that follows, or when undoing, where a name that is missing means
// that its move was undone.
func (x *executor) reverse(partial bool) error {
	x.detach()
	x.back, x.left = true, nil
	if !partial && x.r.stage != stageReversing {
		if err := x.r.become(stageReversing); err != nil {
			return err
		}
	}
	var failed []error
	for n := range x.moves {
		if partial {
			break
		}
		i := x.begun - 1 - n // first the folder that is still open
		if i < 0 {
			i = n
		}
		x.told(Progress{"take back", int64(n), int64(len(x.moves))})
		err := x.do(&x.moves[i])
		if refused := (*RefusedError)(nil); errors.As(err, &refused) {
			s, was := &x.steps[x.moves[i].step], ""
			if s.Old.Kind == manifest.KindFile {
				was = "; what it had before is in the record as " + s.Old.Hash.String()
			}
			x.leave(s.Path, "%s and stays so%s", refused.Conflicts[0].Why, was)
			err = nil
		}
		failed = append(failed, err)
	}
	failed = append(failed, x.sync(), x.queue.Flush(x.ctx))
	if errors.Join(failed...) == nil {
		failed = append(failed, x.clean(partial), x.settleFolders(), x.sync())
	}
	err := errors.Join(failed...)
	if err == nil {
		err = x.r.become(stageFailed)
	}
	if err != nil {
		return fmt.Errorf("not all of it could be undone, which the next start tries again: %w", err)
	}
	return nil
}

// clean deletes what lies beside: what was replaced, or what was made, both of
// which are in the record. Whatever else it finds there stays and is named.
// Something cut short is only ever what this package made: it had no other name.
func (x *executor) clean(partial bool) error {
	var failed []error
	for k := range x.moves {
		m := &x.moves[k]
		s := &x.steps[m.step]
		x.told(Progress{"clean up", int64(k), int64(len(x.moves))})
		at, err := x.dir(m.at)
		if inode.Gone(err) {
			x.leave(s.Path, "was moved away with its folder meanwhile; %q may be left there", m.temp)
			continue
		}
		if err != nil || !there(at, m.temp) {
			failed = append(failed, x.failed(m, err))
			continue
		}
		known := partial
		for _, after := range []bool{false, true} {
			if err == nil && !known {
				known, _, err = x.has(m, at, m.temp, after)
			}
		}
		if err == nil && known && !written(at, m.temp) {
			err = x.discard(m, at)
		} else if err == nil {
			err = unix.ENOTEMPTY
		}
		if err == unix.ENOTEMPTY {
			x.leave(s.Path, "was written to at that moment; those bytes are in %q", manifest.Join(m.at, m.temp))
			err = nil
		}
		failed = append(failed, x.failed(m, err))
	}
	return errors.Join(failed...)
}

// discard deletes a name beside, with what the steps know in it.
func (x *executor) discard(m *move, at int) error {
	var st unix.Stat_t
	err := inode.Lstat(at, m.temp, &st)
	if err == nil && st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return unlink(at, m.temp, 0)
	}
	each := func(i int, do func(fd int, name string) error) {
		if err == nil {
			err = x.inTree(m, at, m.temp, i, do)
		}
		if inode.Gone(err) {
			err = nil // it wasn't made yet
		}
	}
	folder := func(i int) bool { return i == m.step || x.steps[i].New.Kind == manifest.KindDir }
	for _, i := range m.tree {
		if folder(i) {
			each(i, func(fd int, name string) error { return chmodDir(fd, name, 0o700) })
		}
	}
	for _, i := range slices.Backward(m.tree) {
		flags := 0
		if folder(i) {
			flags = unix.AT_REMOVEDIR
		}
		each(i, func(fd int, name string) error { return unlink(fd, name, flags) })
	}
	return err
}
