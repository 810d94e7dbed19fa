package scratch

import "strings"

// differs is a path that one tree has in another way than another.
type differs struct {
	was, is  string // hashes; of zeros alone where there is none
	from, to string // modes
	path     string
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

// change is what a tip changes that git merges into a branch without asking.
type change struct {
	made, kept []differs
	gone       []string
	branches   map[string]differs // what the branch changed, by path
	tips       map[string]differs
}

// parts makes that out of what the tip, and the branch, changed of what they went on from.
func parts(agents, persons []differs) *change {
	c := &change{branches: byPath(persons), tips: byPath(agents)}
	for _, d := range agents {
		other, both := c.branches[d.path]
		switch {
		case both && (d.gone() || !other.gone()): // git doesn't merge it without asking
		case both || d.made(): // what is there is untracked
			c.made = append(c.made, d)
		case d.gone():
			c.gone = append(c.gone, d.path)
		default:
			c.kept = append(c.kept, d)
		}
	}
	return c
}

// written is what the branch gets of the tip: what the tip made, or changed, and the branch
// left as it was.
func (c *change) written() (out []differs) {
	for _, d := range c.made {
		if _, both := c.branches[d.path]; !both {
			out = append(out, d)
		}
	}
	return append(out, c.kept...)
}

func byPath(list []differs) map[string]differs {
	out := make(map[string]differs, len(list))
	for _, d := range list {
		out[d.path] = d
	}
	return out
}

// tracked says whether the branch has what is at a path, so that git has a copy of it, as
// far as the tip changes that.
func (c *change) tracked(path string) bool {
	if d, changed := c.branches[path]; changed {
		return !d.gone()
	}
	d, changed := c.tips[path]
	return changed && d.gone()
}
