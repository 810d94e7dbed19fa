package judge

import (
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"golang.org/x/sys/unix"

	"stepbox/policy"
	"stepbox/policy/git"
	"stepbox/runner/overlay/manifest"
	"stepbox/session/api"
)

// Bounds on what is read to tell what a command would send, and on what is told of it.
const (
	maxManifest = 256 << 10
	maxSends    = 8
	maxSend     = 300
)

// sends are sentences on what commands would send out of the sandbox, and to where, as far
// as the project's files tell before they run. They may say otherwise by then.
func (j *Judge) sends(parts []policy.Part, cwd string) (out []string) {
	for i := range parts {
		all := parts[i].Readings()
		if len(all) == 0 {
			continue
		}
		if words := all[0]; words[0] == "cd" && len(words) == 2 {
			cwd = path.Join(cwd, words[1])
			if path.IsAbs(words[1]) {
				cwd = path.Clean(words[1])
			}
			continue
		}
		for _, words := range all {
			if s := j.Places.send(words, cwd); s != "" && len(out) < maxSends {
				out = append(out, api.Escape(api.Trim(s, maxSend)))
				break
			}
		}
	}
	return out
}

// send is what one command would send; "" isn't known.
func (p *Places) send(words []string, cwd string) string {
	switch name := path.Base(words[0]); {
	case name == "git":
		return p.push(words[1:], cwd)
	case slices.Contains([]string{"npm", "pnpm", "yarn", "bun"}, name) && len(words) > 1 && words[1] == "publish":
		return p.npmPackage(operand(words[2:]), option(words, "--registry"), cwd)
	case name == "cargo" && len(words) > 1 && words[1] == "publish":
		return p.crate(cwd)
	}
	return ""
}

// valued are options of publish whose value is a word of its own.
var valued = []string{"--access", "--tag", "--otp", "--registry", "--workspace", "-w", "--provenance-file"}

// operand is the first word that is no option's.
func operand(words []string) string {
	for i, w := range words {
		if !strings.HasPrefix(w, "-") && (i == 0 || !slices.Contains(valued, words[i-1])) {
			return w
		}
	}
	return ""
}

// option is the value of one that is given, as two words or as one.
func option(words []string, name string) string {
	for i, w := range words {
		if v, ok := strings.CutPrefix(w, name+"="); ok {
			return v
		}
		if w == name && i+1 < len(words) {
			return words[i+1]
		}
	}
	return ""
}

// plain are options of a push that don't change what it sends, nor where; those of forced are told.
var (
	plain  = []string{"-u", "--set-upstream", "-q", "--quiet", "-v", "--verbose", "--progress", "--no-progress", "--porcelain", "--atomic", "--no-verify", "--thin", "--no-thin"}
	forced = []string{"-f", "--force", "--force-with-lease", "--force-if-includes"}
)

// push is a git push's. What it sends is told only where its words say that by themselves: with
// an option that isn't known, they may say something else.
func (p *Places) push(words []string, cwd string) string {
	set := false // by options before the word, of which the repository may be another
	for len(words) > 0 && strings.HasPrefix(words[0], "-") {
		switch {
		case words[0] == "-C" && len(words) > 1:
			cwd, words = under(cwd, words[1]), words[1:]
		case words[0] == "-c" && len(words) > 1:
			set, words = true, words[1:]
		default:
			set = true
		}
		words = words[1:]
	}
	at := slices.Index(words, "push")
	switch {
	case at != 0 && (at < 0 || !set): // an option's value may stand before it
		return ""
	case set:
		return as(words[at:])
	}
	var names []string
	force := ""
	for _, w := range words[1:] {
		switch {
		case slices.Contains(forced, w):
			force = ", and takes away what is there"
		case slices.Contains(plain, w):
		case strings.HasPrefix(w, "-"):
			return as(words)
		default:
			names = append(names, w)
		}
	}
	return p.pushes(names, cwd, force)
}

// as are the words of a push that says more than can be told in others.
func as(words []string) string { return "pushes as its options say: git " + strings.Join(words, " ") }

// pushes is what a push sends to a remote, and where that is.
func (p *Places) pushes(names []string, cwd, force string) string {
	remote, what := "origin", "what git's settings say"
	if len(names) > 0 {
		remote = names[0]
	}
	if len(names) > 1 {
		what = strings.Join(names[1:], " ")
	}
	config, dir := []byte(nil), cwd
	for ; manifest.Within(dir, p.Project); dir = path.Dir(dir) {
		if config = p.read(path.Join(dir, ".git/config")); config != nil {
			break
		}
	}
	to := git.PushURL(config, remote)
	switch {
	case to == "" && config == nil:
		return ""
	case to == "":
		return "pushes " + what + " to " + remote + ", of which the repository's settings have no address" + force
	case strings.Contains(strings.ToLower(string(config)), "insteadof"):
		to += ", if its settings have no other for that"
	case len(names) == 0:
		return "pushes " + what + ", to " + to + " if that is origin" + force
	}
	return "pushes " + what + " to " + to + force
}

// npmPackage is what npm publish and the like send: a package's folder, or a file.
func (p *Places) npmPackage(what, registry, cwd string) string {
	if strings.HasSuffix(what, ".tgz") || strings.HasSuffix(what, ".tar.gz") {
		return "publishes the package in the file " + what
	}
	var m struct {
		Name, Version string
		Private       bool
		PublishConfig struct{ Registry string }
	}
	if json.Unmarshal(p.read(path.Join(under(cwd, what), "package.json")), &m) != nil || m.Name == "" {
		return ""
	}
	s := "publishes " + m.Name + " " + m.Version + " to " + cmp.Or(registry, m.PublishConfig.Registry, "the registry that its settings name")
	if m.Private {
		s += "; its package.json says that it is private"
	}
	return s
}

// crate is what cargo publish sends.
func (p *Places) crate(cwd string) string {
	var m struct {
		Package struct {
			Name    string
			Version any
		}
	}
	if toml.Unmarshal(p.read(path.Join(cwd, "Cargo.toml")), &m) != nil || m.Package.Name == "" {
		return ""
	}
	version, _ := m.Package.Version.(string)
	return strings.TrimSpace("publishes the crate " + m.Package.Name + " " + version)
}

func under(dir, name string) string {
	if path.IsAbs(name) {
		return path.Clean(name)
	}
	return path.Join(dir, name)
}

// read reads a small file of the project as the agent sees it: this session's own, or the
// person's where the session has none. Links aren't followed. Nil is none that can be read.
func (p *Places) read(file string) []byte {
	rel, in := strings.CutPrefix(path.Clean(file), p.Project+"/")
	if !in || p.Project == "" || p.hides(file) {
		return nil
	}
	data, err := readBeneath(p.Upper, rel)
	if errors.Is(err, fs.ErrNotExist) {
		data, err = readBeneath(p.Project, rel)
	}
	if err != nil {
		return nil
	}
	return data
}

// readBeneath reads a regular file below a host folder without following any link.
func readBeneath(root, rel string) ([]byte, error) {
	fd, err := openBeneath(root, rel, unix.O_RDONLY|unix.O_NONBLOCK)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), rel)
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() || info.Size() > maxManifest {
		return nil, fs.ErrInvalid
	}
	return io.ReadAll(io.LimitReader(f, maxManifest))
}
