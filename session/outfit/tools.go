package outfit

import (
	"bufio"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"stepbox/runner"
	"stepbox/runner/overlay/manifest"
)

// systemFolders are visible in every sandbox, so what is in them needs no mount.
var systemFolders = []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix", "/etc"}

// secretFolders are never visible, whatever PATH says.
var secretFolders = []string{".ssh", ".gnupg", ".aws", ".azure", ".config/gcloud", ".kube", ".docker", ".password-store",
	".mozilla", ".config/google-chrome", ".config/chromium", ".local/share/keyrings", ".config/gh", ".netrc", ".git-credentials"}

// Secret are the folders of a home that hold a person's secrets, which are never shown.
func Secret(home string) (out []string) {
	for _, s := range secretFolders {
		out = append(out, filepath.Join(home, s))
	}
	return out
}

// toolFinder collects the read-only mounts that make the person's own tools
// visible: the folders of PATH outside the system, and what their links lead to.
type toolFinder struct {
	home, workspace string
	moved           map[string]string
	refused         []string // folders that hold what the sandbox must not see
	binds           []string
}

// tools lists the folders to mount for an environment's PATH and for the agent's own
// program, with the variables that say where some of these are.
func tools(argv0 string, env []string, home, workspace string, hidden ...string) (_ []runner.Bind, vars []string) {
	f := &toolFinder{home: home, workspace: workspace, moved: moved(home, env), refused: append([]string{home, workspace}, hidden...)}
	path := pathOf(env)
	f.refused = append(f.refused, Secret(home)...)
	for _, dir := range filepath.SplitList(path) {
		if !filepath.IsAbs(dir) {
			continue // relative to wherever the agent is: its own files
		}
		f.folder(filepath.Clean(dir))
	}
	f.environments()
	f.program(argv0, path)
	var out []runner.Bind
	for _, b := range f.binds {
		out = append(out, runner.Bind{Source: b, Target: b})
	}
	return out, located(env, f.covered)
}

// folder adds one folder of PATH.
func (f *toolFinder) folder(dir string) {
	if !f.add(dir) {
		return
	}
	f.neighbours(dir)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	const most = 2000 // a folder of programs; more is something else
	for _, e := range entries[:min(len(entries), most)] {
		if e.Type()&fs.ModeSymlink != 0 {
			f.target(filepath.Join(dir, e.Name()))
		}
	}
}

// program adds what the agent's own program needs: where its links lead, and
// its script's interpreter.
func (f *toolFinder) program(argv0, path string) {
	p := lookPath(argv0, path)
	if p == "" {
		return
	}
	if !f.covered(p) {
		f.add(filepath.Dir(p))
	}
	f.target(p)
	real, err := filepath.EvalSymlinks(p)
	if err != nil {
		return
	}
	if interpreter := shebang(real, path); interpreter != "" && interpreter != p {
		f.target(interpreter)
		if !f.covered(interpreter) {
			f.add(filepath.Dir(interpreter))
		}
	}
}

// target adds the folders that a link leads to, those on the way as well.
func (f *toolFinder) target(link string) {
	real, err := filepath.EvalSymlinks(link)
	if err != nil {
		return
	}
	for range 16 { // no tool has more
		to, err := os.Readlink(link)
		if err != nil {
			break
		}
		if !filepath.IsAbs(to) {
			to = filepath.Join(filepath.Dir(link), to)
		}
		link = filepath.Clean(to)
		f.around(link)
	}
	f.around(real)
}

// around adds the folder of a program: of a package the whole package, since its program
// reads its neighbours, and of a virtual environment its interpreter.
func (f *toolFinder) around(file string) {
	if f.covered(file) {
		return
	}
	dir := filepath.Dir(file)
	if i := strings.Index(dir+"/", "/node_modules/"); i >= 0 {
		dir = dir[:i] + "/node_modules"
	} else if filepath.Base(dir) == "bin" {
		// prefix/bin/tool with prefix/lib beside it
		if p := filepath.Dir(dir); isDir(filepath.Join(p, "lib")) && len(strings.Split(p, "/")) > 2 {
			dir = p
		}
	}
	if _, err := os.Lstat(filepath.Join(dir, "pyvenv.cfg")); f.add(dir) && err == nil {
		f.target(filepath.Join(dir, "bin/python"))
	}
}

// add takes a folder unless it is visible anyway or must not be.
func (f *toolFinder) add(dir string) bool {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil || !isDir(real) || dir == "/" || real == "/" {
		return false
	}
	if f.covered(dir) {
		return slices.Contains(f.binds, dir)
	}
	for _, r := range f.refused {
		if manifest.Within(r, dir) || manifest.Within(r, real) || r != f.home && manifest.Within(dir, r) || r != f.home && manifest.Within(real, r) {
			return false // it would show what must stay hidden
		}
	}
	f.binds = append(f.binds, dir)
	return true
}

func (f *toolFinder) covered(p string) bool {
	in := func(dir string) bool { return manifest.Within(p, dir) }
	return in(f.workspace) || slices.ContainsFunc(systemFolders, in) || slices.ContainsFunc(f.binds, in)
}

func isDir(p string) bool {
	st, err := os.Stat(p)
	return err == nil && st.IsDir()
}

// Program finds a program by an environment's PATH; "" when there is none.
func Program(name string, env []string) string { return lookPath(name, pathOf(env)) }

// lookPath finds a program as execvp(3) does.
func lookPath(name, path string) string {
	if strings.Contains(name, "/") {
		p, err := filepath.Abs(name)
		if err != nil {
			return ""
		}
		return p
	}
	for _, dir := range filepath.SplitList(path) {
		p := filepath.Join(dir, name)
		if st, err := os.Stat(p); err == nil && st.Mode().IsRegular() && st.Mode()&0o111 != 0 && filepath.IsAbs(p) {
			return p
		}
	}
	return ""
}

// shebang finds the program that runs a script.
func shebang(script, path string) string {
	file, err := os.Open(script)
	if err != nil {
		return ""
	}
	defer file.Close()
	line, err := bufio.NewReaderSize(file, 256).ReadSlice('\n') // the kernel reads 256 bytes, execve(2)
	if err != nil || !strings.HasPrefix(string(line), "#!") {
		return ""
	}
	words := strings.Fields(string(line[2:]))
	if len(words) == 0 {
		return ""
	}
	if filepath.Base(words[0]) == "env" {
		for _, w := range words[1:] {
			if !strings.HasPrefix(w, "-") && !strings.Contains(w, "=") {
				return lookPath(w, path)
			}
		}
	}
	return words[0]
}
