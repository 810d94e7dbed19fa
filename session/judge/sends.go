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

// push is a git push's.
func (p *Places) push(words []string, cwd string) string {
	for len(words) > 0 && strings.HasPrefix(words[0], "-") {
		if words[0] == "-C" && len(words) > 1 {
			cwd = under(cwd, words[1])
		}
		if (words[0] == "-C" || words[0] == "-c") && len(words) > 1 {
			words = words[1:]
		}
		words = words[1:]
	}
	if len(words) == 0 || words[0] != "push" {
		return ""
	}
	var names []string
	for _, w := range words[1:] {
		if !strings.HasPrefix(w, "-") {
			names = append(names, w)
		}
	}
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
		return "pushes " + what + " to " + remote + ", of which the repository's settings have no address"
	case len(names) == 0:
		return "pushes " + what + ", to " + to + " if that is origin"
	}
	return "pushes " + what + " to " + to
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
