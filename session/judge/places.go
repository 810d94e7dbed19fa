package judge

import (
	"errors"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"stepbox/runner"
	"stepbox/runner/gate"
	"stepbox/runner/overlay/manifest"
)

// Places says where on the host the agent's writes are, so that a program or a
// sourced file can be told from one that this session made. It only looks at
// names, and never through a link that the agent may have planted.
type Places struct {
	Project, Upper string    // in the sandbox; on the host
	Home, HomeDir  string    // in the sandbox; on the host
	HomeBelow      string    // what the agent sees there of what HomeDir hasn't: earlier agents' work; "" for nothing
	Temp           string    // what /tmp is on the host
	Began          time.Time // of the session: its home is older
	Hidden         []string  // what isn't shown of the project, relative
	Beside         []string  // folders that are shown besides the project, by rules or because a person said so
	// Mounts are the folders that are mounted besides, by their paths inside, with the
	// host's folder of what the agent writes there; "" where it can't.
	Mounts map[string]string
}

// hides says whether a file of the project isn't shown in the sandbox.
func (p *Places) hides(file string) bool {
	rel, in := strings.CutPrefix(file, p.Project+"/")
	return in && p.Project != "" && slices.ContainsFunc(p.Hidden, func(h string) bool { return manifest.Within(rel, h) })
}

// region is a part of the sandbox's files, by who can write there.
type region int

const (
	elsewhere region = iota // the agent can't
	inProject
	inHome
	inTemp
	inMount
)

// sandboxOwn are the folders that are made for each sandbox, in memory, and the
// one through which other names lead to any.
var sandboxOwn = []string{"/proc", "/dev", "/run", "/var/run", "/var/lock", "/var/tmp"}

// region is where a file is, by its name alone.
func (p *Places) region(file string) region {
	r, _, _ := p.onHost(file)
	return r
}

// fixed says whether nothing that the agent does can make another file, or a link, of
// that name. Paths through which other names lead aren't.
func (p *Places) fixed(file string) bool {
	if !path.IsAbs(file) || strings.Contains(file, "..") {
		return false
	}
	for dir := path.Dir(path.Clean(file)); dir != "/"; dir = path.Dir(dir) {
		if upper, mounted := p.Mounts[dir]; mounted {
			return upper == ""
		}
		if dir == p.Project || dir == p.Home {
			return false
		}
	}
	return p.region(file) == elsewhere
}

// persons says whether a name in the project is the person's own: this session has made
// nothing there, and no folder on the way is a link. It looks at the real project, which
// the agent can't change.
func (p *Places) persons(file string) bool {
	if l := p.look(file); l.region != inProject || l.there || l.unclear || strings.Contains(file, "..") {
		return false
	}
	dir := path.Dir(file)
	real, err := filepath.EvalSymlinks(dir)
	return err == nil && real == dir
}

// posing says whether a program, by the path that it was started with and the file that
// this leads to, goes by a name that the agent may have chosen. A link's is as good as its
// file's only where the agent made none: many programs are one file, by their links.
func (p *Places) posing(called, started, program string) bool {
	name := path.Base(called)
	return name != path.Base(program) && (name != path.Base(started) || !p.fixed(started) && !p.persons(started))
}

// origin is who may have put a file where it is, before the session.
type origin int

const (
	ofTheSystem origin = iota // whoever installed the person's tools
	ofTheProject
	ofABeside
	ofAnAgent // an earlier session, in the home that they share
)

func (p *Places) origin(file string, l *looks) origin {
	switch found := l.at(file); {
	case manifest.Within(file, p.Project):
		return ofTheProject
	case found.region == inMount, slices.ContainsFunc(p.Beside, func(dir string) bool { return manifest.Within(file, dir) }):
		return ofABeside
	case found.region == inHome && found.there:
		return ofAnAgent
	}
	return ofTheSystem
}

// onHost is where a file is, and where this session's own version of it would be
// on the host; root is "" when it would be nowhere that can be looked at.
func (p *Places) onHost(file string) (r region, root, rel string) {
	file = path.Clean(file)
	for dir := file; path.IsAbs(dir) && dir != "/" && dir != p.Project; dir = path.Dir(dir) { // the innermost counts
		if upper, mounted := p.Mounts[dir]; mounted && upper == "" {
			return elsewhere, "", ""
		} else if mounted {
			return inMount, upper, strings.TrimPrefix(strings.TrimPrefix(file, dir), "/")
		}
	}
	for _, m := range []struct {
		inside, host string
		region       region
	}{{p.Project, p.Upper, inProject}, {p.Home, p.HomeDir, inHome}, {"/tmp", p.Temp, inTemp}} {
		if m.inside != "" && manifest.Within(file, m.inside) {
			return m.region, m.host, strings.TrimPrefix(strings.TrimPrefix(file, m.inside), "/")
		}
	}
	if manifest.Within(file, path.Dir(runner.SelfPath)) { // it can't be written
		return elsewhere, "", ""
	}
	if slices.ContainsFunc(sandboxOwn, func(dir string) bool { return manifest.Within(file, dir) }) {
		return inTemp, "", ""
	}
	return elsewhere, "", ""
}

// top says whether a path is a place itself where the agent can write, and none in it.
func (p *Places) top(file string) bool {
	_, root, rel := p.onHost(file)
	return root != "" && rel == ""
}

// look is what was found at a name: this session's own version of the file.
type look struct {
	region  region
	file    bool      // it isn't a folder, for all that is known
	there   bool      // there is one; where the agent can't write there is none
	own     bool      // it is in a home of the session's own, above that of others
	unclear bool      // it can't be looked at, as through a link that the agent made
	changed time.Time // its status (ctime), which can't be set by hand
}

// wrote says whether this session wrote the file. What can't be looked at counts
// as written.
func (l look) wrote(began time.Time) bool {
	return l.unclear || l.there && (l.region != inHome || l.own || !l.changed.Before(began))
}

// made says whether the agent, or whoever wrote the project, can have made the
// file: all but what is mounted from the system and from the person's tools.
func (l look) made() bool { return l.region == inProject || l.there || l.unclear }

// look looks at a name.
func (p *Places) look(file string) look {
	r, root, rel := p.onHost(file)
	out := look{region: r}
	if r == elsewhere {
		return out
	}
	err := fs.ErrInvalid
	if root != "" {
		var st *unix.Stat_t
		st, err = beneath(root, rel)
		out.own = r == inHome && p.HomeBelow != "" && err == nil
		if r == inHome && p.HomeBelow != "" && errors.Is(err, fs.ErrNotExist) {
			st, err = beneath(p.HomeBelow, rel)
		}
		if err == nil {
			out.there, out.changed = true, time.Unix(st.Ctim.Unix())
			out.file = st.Mode&unix.S_IFMT != unix.S_IFDIR
		}
	}
	out.unclear = err != nil && !errors.Is(err, fs.ErrNotExist)
	out.file = out.file || out.unclear
	return out
}

// text is what is in a small file where the agent can write, as look finds it. Nil is one
// that can't be read.
func (p *Places) text(file string) []byte {
	r, root, rel := p.onHost(file)
	if root == "" {
		return nil
	}
	data, err := readBeneath(root, rel)
	if r == inHome && p.HomeBelow != "" && errors.Is(err, fs.ErrNotExist) {
		data, err = readBeneath(p.HomeBelow, rel)
	}
	if err != nil {
		return nil
	}
	return data
}

// openBeneath opens what is below a host folder without following any link.
func openBeneath(root, rel string, flags uint64) (fd int, err error) {
	if !filepath.IsLocal(rel) {
		return -1, fs.ErrInvalid
	}
	dir, err := unix.Open(root, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	defer unix.Close(dir)
	return unix.Openat2(dir, rel, &unix.OpenHow{
		Flags:   flags | unix.O_NOFOLLOW | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	})
}

// beneath stats what is below a host folder without following any link.
func beneath(root, rel string) (*unix.Stat_t, error) {
	if rel == "" {
		return nil, fs.ErrNotExist // the folder itself
	}
	fd, err := openBeneath(root, rel, unix.O_PATH)
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

// obeyed are files and folders of a home from which programs take commands, or
// run others, without being told to. None is where a person's tools are mounted,
// for which folders are made at the start.
var obeyed = []string{
	".bash_profile", ".bash_login", ".bash_logout", ".bashrc", ".profile", ".inputrc", ".zshenv", ".zprofile", ".zshrc", ".zlogin",
	".zlogout", ".config/fish", ".gitconfig", ".config/git", ".config/git/config", ".ssh", ".ssh/config", ".vimrc", ".vim", ".exrc",
	".config/nvim", ".emacs", ".tmux.conf", ".screenrc", ".gdbinit", ".sqliterc", ".npmrc", ".yarnrc", ".yarnrc.yml",
	".cargo/config.toml", ".config/pip", ".config/pip/pip.conf", ".pip", ".local/lib", ".pythonrc", ".perldb", ".irbrc", ".m2", ".gradle",
	".curlrc", ".wgetrc", ".mailcap", ".lesskey", ".bash_aliases", ".cargo/config", ".hgrc", ".bazelrc", ".lldbinit", ".Rprofile", ".R/Makevars",
	".julia/config", ".ghci", ".iex.exs", ".erlang", ".node_modules", ".node_libraries", ".bunfig.toml", ".pdbrc", ".sbt", ".lein", ".latexmkrc",
	".config/go", ".config/gdb", ".config/tmux", ".ipython", "node_modules",
}

// Obeyed says whether a path below a home is one of these, or in one.
func Obeyed(rel string) bool {
	return slices.ContainsFunc(obeyed, func(o string) bool { return manifest.Within(rel, o) })
}

// ObeyedNames are these files and folders, below a home.
func ObeyedNames() []string { return slices.Clone(obeyed) }

// Traps lists those of the home, and of the folders from there to the project, that this session wrote: its changes aren't
// reviewed, and whatever is approved may read them.
func (p *Places) Traps() (out []string) {
	if p.Home == "" {
		return nil
	}
	dirs := []string{p.Home}
	for dir := path.Dir(p.Project); dir != p.Home && manifest.Within(dir, p.Home); dir = path.Dir(dir) {
		dirs = append(dirs, dir)
	}
	for _, dir := range dirs {
		for _, name := range obeyed {
			if file := path.Join(dir, name); p.look(file).wrote(p.Began) {
				out = append(out, file)
			}
		}
	}
	return out
}

// looks are the names that were looked at for one exec, each once.
type looks struct {
	places *Places
	seen   map[string]look
}

func (j *Judge) looks() *looks { return &looks{places: &j.Places} }

func (l *looks) at(file string) look {
	found, ok := l.seen[file]
	if !ok {
		if l.seen == nil {
			l.seen = make(map[string]look)
		}
		found = l.places.look(file)
		l.seen[file] = found
	}
	return found
}

// Wrote says whether the file of a program that runs was written since the session began.
// It looks at what is at its path, which may be another file by now, or none: so any
// that changed since counts.
func (j *Judge) Wrote(file string, changed time.Time) bool {
	return !changed.Before(j.Places.Began) || j.looks().wrote(file)
}

func (l *looks) wrote(file string) bool { return l.at(file).wrote(l.places.Began) }

// made says whether this session made what an exec would load. A path alone
// doesn't tell: a file can be moved, deleted or only in memory when it runs. So
// any that changed since the session began counts, and one that isn't found any more where it can be moved away.
func (l *looks) made(e *gate.Exec) bool {
	return l.wrote(e.Program.Path) || slices.ContainsFunc(e.Files, func(f gate.File) bool {
		found := l.at(f.Path)
		gone := (found.region == inHome || found.region == inTemp) && !found.there
		return gone || !f.Changed.Before(l.places.Began)
	})
}
