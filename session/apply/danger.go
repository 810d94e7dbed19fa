package apply

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode"

	"stepbox/runner/overlay/diff"
	"stepbox/runner/overlay/manifest"
	"stepbox/session/api"
	"stepbox/session/effects"
	"stepbox/session/project"
)

// scripts are files of which one part runs: the member of the document.
func scripts(base string) string {
	switch base {
	case "package.json", "composer.json":
		return "scripts"
	case "deno.json", "deno.jsonc":
		return "tasks"
	}
	return ""
}

// maxSteps bounds through how many names a link is followed: nobody's own has so many,
// and each takes a look at the project.
const maxSteps = 300

// mostScripts is how many bytes of such a file are read.
const mostScripts = 1 << 20

// dangers judges what an apply writes. Its words are escaped.
type dangers struct {
	obeyed   *obeyed             // what the person has there
	hidden   []string            // what the agent didn't see: files, and folders with all that is in them
	redacted []string            // what it saw without secrets
	rules    ruled               // what policies say of files
	git      map[string]bool     // folders that are, or are in, repositories once all is applied, as far as they were asked about
	folded   map[string][]string // what differs in case alone, by what it is in small letters

	// read gives a side's content, at most so many bytes of it; nil of none.
	read func(f *diff.File, most int64) ([]byte, error)
	// there says whether there is something under a path once all is applied.
	there func(path string) bool
	// target is where a path leads as a link once all is applied; "" when it is none.
	target func(path string) string
}

// of says what is dangerous about a change, in words; of a deletion only
// what is about the file.
func (d *dangers) of(c *diff.Change) []string {
	var out []string
	if d.covered(d.hidden, c.Path) {
		out = append(out, "lies over a file that was hidden from the agent")
	}
	if d.covered(d.redacted, c.Path) {
		out = append(out, "the agent saw this file without its secrets, which would be lost")
	}
	if r := d.rules.reviews(c); r != nil {
		out = append(out, "a policy wants it looked at: "+api.Escape(standing(r)))
	}
	if c.New == nil {
		return out
	}
	at := strings.ToLower(c.Path)
	link := c.New.Kind == manifest.KindSymlink
	if by := d.obeyed.named[c.Path]; by != "" {
		out = append(out, api.Escape(by)+" names this, and may run or read it by itself")
	}
	if base := path.Base(at); scripts(base) != "" {
		if w := d.ofScripts(c, scripts(base)); w != "" {
			out = append(out, w)
		}
	}
	for _, name := range append(d.obeyed.names(c.Path, link), at) {
		name = "/" + strings.ToLower(name)
		for _, r := range effects.Rules() {
			if (r.Covers(name) || link && r.Through(name)) && !slices.Contains(out, r.Words) {
				out = append(out, r.Words)
			}
		}
	}
	if d.repository(path.Dir(c.Path)) {
		out = append(out, "is part of a repository without a .git folder, whose hooks and configuration git obeys")
	}
	switch {
	case link:
		if w := d.ofLink(c.Path, c.New.Target); w != "" {
			out = append(out, w)
		}
	case c.New.Kind == manifest.KindFile && c.New.Mode&0o111 != 0 && (c.Old == nil || c.Old.Kind != manifest.KindFile || c.Old.Mode&0o111 == 0):
		out = append(out, "becomes executable")
	}
	if strings.ContainsFunc(c.Path, func(r rune) bool {
		return r != ' ' && unicode.In(r, unicode.C, unicode.Zs, unicode.Other_Default_Ignorable_Code_Point)
	}) {
		out = append(out, "its name has characters that can't be seen, or turn others round")
	}
	if open := func(f *diff.File) bool { return f != nil && f.Mode&0o002 != 0 && f.Kind != manifest.KindSymlink }; open(c.New) && !open(c.Old) {
		out = append(out, "everyone on this computer may write to it")
	}
	if c.Old == nil || c.Status == diff.Renamed {
		for _, other := range d.folded[at] {
			if other != c.Path {
				out = append(out, "differs from "+api.Escape(other)+" in case alone: some computers have room for only one of them")
				break
			}
		}
	}
	return out
}

// repository says whether git takes a folder, or one that it is in, for a repository:
// by HEAD, and objects or refs. It is one without a working tree, or one that a .git
// file leads to.
func (d *dangers) repository(dir string) bool {
	is, known := d.git[dir]
	if !known {
		is = d.there(path.Join(dir, "HEAD")) && (d.there(path.Join(dir, "objects")) || d.there(path.Join(dir, "refs"))) || dir != "." && d.repository(path.Dir(dir))
		d.git[dir] = is
	}
	return is
}

func (d *dangers) covered(by []string, at string) bool {
	return slices.ContainsFunc(by, func(p string) bool { return at == p || strings.HasPrefix(at, p+"/") })
}

// ofScripts says which scripts of a file a change adds or rewrites, and what else may
// be installed by it.
func (d *dangers) ofScripts(c *diff.Change, member string) string {
	old, _ := d.read(c.Old, mostScripts) // what can't be read has none of them
	now, err := d.read(c.New, mostScripts)
	names, _, rest, ok := effects.Scripts(old, now, member)
	if err != nil || !ok {
		return "what it runs can't be read, so it may run anything (" + member + ")"
	}
	for _, name := range rest {
		names = append(names, name+" {…}")
	}
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("changes %d parts that run by name or by themselves, or are installed: %s", len(names), api.Escape(api.Trim(strings.Join(names, ", "), 300)))
}

// ofLink says where a link leads, when that isn't to something in the project.
func (d *dangers) ofLink(at, target string) string {
	if path.IsAbs(target) {
		return "a link that leads out of the project: " + api.Escape(target)
	}
	out := "a link that may lead out of the project: " + api.Escape(target)
	// Each step is looked at as the kernel would take it: .. is that of where a
	// link led to, and not of its name.
	here, rest := path.Dir(at), strings.Split(target, "/")
	for hops, steps := 0, 0; len(rest) > 0; steps++ {
		if steps == maxSteps {
			return out
		}
		step := rest[0]
		rest = rest[1:]
		switch {
		case step == "" || step == ".":
			continue
		case step == ".." && here == ".":
			return out
		case step == "..":
			here = path.Dir(here)
			continue
		}
		here = path.Join(here, step)
		if project.Never(step) != "" {
			return "a link that leads into git's own folder: " + api.Escape(target)
		}
		if to := d.target(here); to != "" {
			if hops++; hops > 8 || path.IsAbs(to) {
				return out
			}
			here, rest = path.Dir(here), append(strings.Split(to, "/"), rest...)
		}
	}
	return ""
}
