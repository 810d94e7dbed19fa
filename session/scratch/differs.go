package scratch

import (
	"io/fs"
	"path/filepath"
	"strings"

	"stepbox/runner/overlay/manifest"
)

// differs is a path that one tree has in another way than another.
type differs struct {
	was, is  string // hashes; of zeros alone where there is none
	from, to string // modes
	path     string
	asked    bool // git leaves it to a person
}

func (d differs) gone() bool { return strings.Trim(d.is, "0") == "" }
func (d differs) made() bool { return strings.Trim(d.was, "0") == "" }

// back says whether what a difference changed is as it was at an earlier time.
func (d differs) back(mode, hash string) bool {
	return d.is != d.was && d.is == hash || !d.made() && d.to != d.from && d.to == mode
}

// raw reads git's raw list of differences, and passes over what is none.
func raw(out []byte) (list []differs) {
	fields := strings.Split(string(out), "\x00")
	for i := 0; i+1 < len(fields); i++ {
		if f := strings.Fields(fields[i]); len(f) == 5 && strings.HasPrefix(f[0], ":") {
			i++
			list = append(list, differs{from: f[0][1:], to: f[1], was: f[2], is: f[3], path: fields[i]})
		}
	}
	return list
}

// lined escapes a pattern of git's; what git reads by lines can't have an end of one.
var lined = strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`, "\n", "?", "\r", "?")

// onLines gives git paths by lines; it may take others for these.
func onLines(list ...differs) string {
	var out strings.Builder
	for _, d := range list {
		if filepath.IsLocal(d.path) { // else it refuses
			out.WriteString(":(glob)" + lined.Replace(d.path) + "\n")
		}
	}
	return out.String()
}

func byPath(list []differs) map[string]differs {
	out := make(map[string]differs, len(list))
	for _, d := range list {
		out[d.path] = d
	}
	return out
}

// added are those of a list that weren't there; has tells by path what was, so that git has a
// copy of it.
func added(list []differs) (made []differs, has map[string]bool) {
	has = make(map[string]bool, len(list))
	for _, d := range list {
		if has[d.path] = !d.made(); d.made() {
			made = append(made, d)
		}
	}
	return made, has
}

// modeOf is what git makes of a file's looks.
func modeOf(mode fs.FileMode) string {
	switch {
	case mode&fs.ModeSymlink != 0:
		return "120000"
	case !mode.IsRegular():
		return ""
	case mode&0o100 != 0:
		return "100755"
	}
	return "100644"
}

// entryMode is what git makes of a file or a link.
func entryMode(e *manifest.Entry) string {
	mode := fs.FileMode(e.Mode & 0o777)
	if e.Kind == manifest.KindSymlink {
		mode = fs.ModeSymlink
	}
	return modeOf(mode)
}

// isLocal says whether a difference is of a file that git writes: no path leads out, and a
// submodule is none.
func isLocal(d differs) bool {
	return filepath.IsLocal(d.path) && d.from != modeSubmodule && d.to != modeSubmodule
}
