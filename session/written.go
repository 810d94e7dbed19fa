package session

import (
	"errors"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"stepbox/policy"
	"stepbox/runner/gate"
)

// places knows where on the host the agent's writes are, so that a program or a
// sourced file can be told from one that this session made. It only looks at
// names, and never through a link that the agent may have planted.
type places struct {
	project, upper string    // in the sandbox; on the host
	home, homeDir  string    // in the sandbox; on the host
	temp           string    // what /tmp is on the host
	began          time.Time // of the session: its home is older
}

// wrote says whether this session wrote a file, given by its path in the sandbox.
// What can't be looked at counts as written, such as a path through a link that
// the agent made.
func (p *places) wrote(file string) bool {
	st, where, err := p.stat(file)
	switch {
	case where == elsewhere:
		return false
	case err != nil:
		return !errors.Is(err, fs.ErrNotExist)
	case where == inHome:
		return !time.Unix(st.Ctim.Unix()).Before(p.began)
	}
	return true
}

// holds says whether a file is where the agent can write.
func (p *places) holds(file string) bool {
	_, where, _ := p.stat(file)
	return where != elsewhere
}

// made says whether the agent, or whoever wrote the project, can have made a
// file: all but what is mounted from the system and from the person's tools.
func (p *places) made(file string) bool {
	_, where, err := p.stat(file)
	return where == inProject || where != elsewhere && !errors.Is(err, fs.ErrNotExist)
}

// changedAt is when a file that the agent can write last changed; false when
// it can't write that file, or there is none. What can't be looked at changes
// all the time.
func (p *places) changedAt(file string) (time.Time, bool) {
	st, where, err := p.stat(file)
	switch {
	case where == elsewhere || errors.Is(err, fs.ErrNotExist):
		return time.Time{}, false
	case err != nil:
		return time.Now(), true
	}
	return time.Unix(st.Ctim.Unix()), true
}

// obeyed are files and folders of a home from which programs take commands, or
// run others, without being told to. None is where a person's tools are mounted,
// for which folders are made at the start.
var obeyed = []string{
	".bash_profile", ".bash_login", ".bash_logout", ".bashrc", ".profile", ".inputrc", ".zshenv", ".zprofile", ".zshrc", ".zlogin",
	".zlogout", ".config/fish", ".gitconfig", ".config/git", ".config/git/config", ".ssh", ".ssh/config", ".vimrc", ".vim", ".exrc",
	".config/nvim", ".emacs", ".tmux.conf", ".screenrc", ".gdbinit", ".sqliterc", ".npmrc", ".yarnrc", ".yarnrc.yml",
	".cargo/config.toml", ".config/pip", ".config/pip/pip.conf", ".pip", ".local/lib", ".pythonrc", ".perldb", ".irbrc", ".m2", ".gradle",
	".curlrc", ".wgetrc", ".mailcap", ".lesskey",
}

// traps lists those of the home that this session wrote: its changes aren't
// reviewed, and whatever is approved may read them.
func (p *places) traps() (out []string) {
	for _, name := range obeyed {
		if file := path.Join(p.home, name); p.home != "" && p.wrote(file) {
			out = append(out, file)
		}
	}
	return out
}

// sandboxOwn are the folders that are made for each sandbox, in memory, and the
// one through which other names lead to any.
var sandboxOwn = []string{"/proc", "/dev", "/run", "/var/run", "/var/lock", "/var/tmp"}

type place int

const (
	elsewhere place = iota
	inProject
	inHome
	inTemp
)

// stat looks at the session's own version of a file; fs.ErrNotExist when there
// is none.
func (p *places) stat(file string) (*unix.Stat_t, place, error) {
	file = path.Clean(file)
	for _, m := range []struct {
		inside, host string
		where        place
	}{{p.project, p.upper, inProject}, {p.home, p.homeDir, inHome}, {"/tmp", p.temp, inTemp}} {
		if m.inside == "" || !within(file, m.inside) {
			continue
		}
		st, err := beneath(m.host, strings.TrimPrefix(strings.TrimPrefix(file, m.inside), "/"))
		return st, m.where, err
	}
	for _, dir := range sandboxOwn {
		if within(file, dir) {
			return nil, inTemp, fs.ErrInvalid
		}
	}
	return nil, elsewhere, fs.ErrNotExist
}

// beneath stats what is below a host folder without following any link.
func beneath(root, rel string) (*unix.Stat_t, error) {
	if rel == "" {
		return nil, fs.ErrNotExist // the folder itself
	}
	if !filepath.IsLocal(rel) {
		return nil, fs.ErrInvalid
	}
	dir, err := unix.Open(root, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(dir)
	fd, err := unix.Openat2(dir, rel, &unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	})
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, err
	}
	return &st, nil
}

// made says whether this session made what an exec would load. A path alone
// doesn't tell: a file can be moved, deleted or only in memory when it runs. So
// any that changed since the session began counts, by a time that can't be set.
func (s *Session) made(e *gate.Exec) bool {
	return s.places.wrote(e.Program.Path) ||
		slices.ContainsFunc(e.Files, func(f gate.File) bool { return !f.Changed.Before(s.places.began) })
}

// loaders are variables, or with a star the beginnings of their names, that make
// a program run what isn't its own.
var loaders = []string{"LD_*", "NODE_OPTIONS", "BASH_ENV", "ENV", "PYTHON*", "PERL5*", "RUBYOPT", "RUBYLIB"}

// loadsMore says whether an exec has such a variable otherwise than the agent.
func (s *Session) loadsMore(e *gate.Exec) bool {
	return slices.ContainsFunc(e.Env, func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.ContainsFunc(loaders, func(l string) bool {
			stem, any := strings.CutSuffix(l, "*")
			return name == l || any && strings.HasPrefix(name, stem)
		}) && !slices.Contains(s.env, v)
	})
}

// trusted is a command as it is judged whether it is the agent's own program. A
// project may bring what looks like one, which is the agent's only if the person
// started the agent from there.
func (s *Session) trusted(c policy.Command) policy.Command {
	if !s.local {
		c.Wrote = func(file string) bool { return within(file, s.cfg.Workspace) || s.places.wrote(file) }
	}
	return c
}

// upkeepSlop is how far the clocks of a file system and of this process may be
// apart: a tick of the slowest kernel.
const upkeepSlop = 20 * time.Millisecond

// span is when one of the agent's housekeeping programs ran.
type span struct {
	from, to time.Time
	script   string // a shell's, of a known sum; else ""
}

// suspect says whether a file that a wrapper reads commands from may hold
// others than the agent's own housekeeping put there.
func (s *Session) suspect(file string) bool {
	if within(path.Clean(file), s.cfg.Workspace) { // the project's own, or through a link of the project
		return true
	}
	at, ok := s.places.changedAt(file)
	if !ok {
		return false // the system's, or it doesn't exist
	}
	for _, u := range s.upkeep {
		if strings.Contains(u.script, file) && !at.Before(u.from.Add(-upkeepSlop)) && !at.After(u.to.Add(upkeepSlop)) {
			return false
		}
	}
	return true
}
