package box

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/moby/sys/mountinfo"
	"github.com/opencontainers/runc/libcontainer/configs"
	"golang.org/x/sys/unix"
)

// shown is a host folder that is visible inside, read-only. It is a layer of an
// overlay rather than a bind: through an overlay a socket or a named pipe is
// another one than the host's, where nobody listens, also if it is made later.
// That holds for all that is in the folder, so that nothing has to be searched.
type shown struct {
	source, target string
	front          string // a folder of ours whose files stand in front; "" for none
	upper          string // a folder that takes what is written; "" for read-only
	spare          bool   // left out where no overlay can be put over it
	system         bool
}

// addShown mounts the folders to show, and /etc with our own files. Where the
// kernel takes a folder for no layer, because something is mounted below it or
// overlays are stacked too high already, it is bound: the sockets that are there
// now are covered or refused, and it is said that later ones aren't.
func (l *layout) addShown(spec Spec, mounts []*mountinfo.Info) error {
	front, files, err := l.makeEtc(spec)
	if err != nil {
		return err
	}
	l.shown = append(l.shown, shown{source: "/etc", target: "/etc", front: front, system: true})
	empty := filepath.Join(l.dir, "empty")
	if err := os.Mkdir(empty, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("cannot prepare the sandbox's folders: %w", err)
	}
	sources := make([]string, len(l.shown))
	for i, s := range l.shown {
		sources[i] = s.source
	}
	refused, err := spec.Layers(empty, sources)
	if err != nil {
		return fmt.Errorf("cannot try the sandbox's mounts: %w", err)
	}
	for i, s := range l.shown {
		if s.upper != "" && refused[i] == "" {
			work := s.upper + ".work"
			if err := os.MkdirAll(work, 0o700); err != nil {
				return fmt.Errorf("cannot prepare the sandbox's folders: %w", err)
			}
			if err := l.overUpper(s.source, s.target, escape(s.source), s.upper, work); err != nil {
				return err
			}
			continue
		}
		if refused[i] == "" {
			s.front = cmp.Or(s.front, empty)
			if err := l.overlay(spec, s); err != nil {
				return err
			}
			continue
		}
		if s.spare {
			continue
		}
		why := refused[i]
		if below := submounts(mounts, s.source); len(below) > 0 {
			why = below[0] + " is mounted there"
		}
		l.notes = append(l.notes, fmt.Sprintf("a socket that the host makes in %s while the session runs could be reached: no overlay can be put over it (%s)", s.source, why))
		if s.upper != "" {
			l.notes = append(l.notes, fmt.Sprintf("%s can't be written, for the same reason", s.source))
		}
		if err := l.bindShown(s); err != nil {
			return err
		}
		if s.front != "" {
			l.bindEtc(s.front, files)
		}
		if spec.Root && s.system {
			if err := l.maskPrivate(s.source, why); err != nil {
				return err
			}
		}
	}
	return nil
}

// overlay shows a folder as the layer of an overlay. For a root caller a system
// folder is mounted with other owners first, or searched for what to cover.
func (l *layout) overlay(spec Spec, s shown) error {
	lower, list := s.source, &l.mounts
	if spec.Root && s.system {
		if err := canMapOwners(s.source, namespacePath(spec.Holder, "user")); err != nil {
			if err := l.maskPrivate(s.source, err.Error()); err != nil {
				return err
			}
		} else {
			l.first = append(l.first, mapOwners(s.source))
			lower, list = filepath.Join(l.rootfs, aside(s.source)), &l.first
		}
	}
	*list = append(*list, &configs.Mount{
		Source: "overlay", Device: "overlay", Destination: s.target,
		Flags: unix.MS_RDONLY | unix.MS_NOSUID | unix.MS_NODEV,
		Data:  "lowerdir=" + escape(s.front) + ":" + escape(lower) + ",userxattr",
	})
	return nil
}

// bindShown shows a folder by a bind, without the sockets that it holds now.
func (l *layout) bindShown(s shown) error {
	l.addReadOnly(s.source, s.target)
	if !s.system {
		return refuseSockets(s.source)
	}
	below, err := listeningBelow(s.source)
	for _, path := range below {
		l.masks = append(l.masks, filepath.Join(s.target, path))
	}
	return err
}
