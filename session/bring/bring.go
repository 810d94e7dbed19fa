// Package bring copies what is the person's to the home that an agent has: who makes
// commits, the agent's instructions and its settings, without secrets and without what
// would run programs of the host's.
//
// The person's home is only read. Of it a profile names what comes along; links there
// are followed to where the person has led them, not out of a folder that others may have
// filled, and never to where secrets are. What is found by a secret's name or shape is
// left out and told; a secret without either isn't found. The agent's home is hostile, see
// package home.
package bring

import (
	"fmt"
	"path"
	"path/filepath"
	"strings"

	"stepbox/policy"
	"stepbox/session/api"
	"stepbox/session/home"
	"stepbox/session/outfit"
	"stepbox/session/redact"
)

// Needs says what is brought where.
type Needs struct {
	Home      string // the person's
	Workspace string
	Private   []string // folders that nothing is brought from, besides those of secrets
	Env       []string // the person's
	Brings    policy.Brings
	Into, Was home.Dir // where it is written; the agent's files as they were, which may be the same
}

// Bounds on what is brought. What is more is left out and told.
const (
	maxFile     = 1 << 20
	maxSettings = 256 << 10
	maxYAML     = 64 << 10 // its parser compares each key with all others
	maxDeep     = 40       // levels of settings
	maxHomes    = 8 << 20  // of the agent's own settings that some are put into
	maxFiles    = 500      // of a folder
	maxBytes    = 4 << 20  // of all
	maxLevels   = 8        // of folders in one another
	maxTold     = 100
)

type bringer struct {
	Needs
	redactor *redact.Redactor
	secrets  []string // folders, resolved
	bytes    int64
	out      api.Brought
}

// All brings all of it and says what that was. What can't be brought is left out.
func All(n Needs) *api.Brought {
	b := &bringer{Needs: n, redactor: redact.New(n.Env)}
	for _, s := range append(outfit.Secret(n.Home), n.Private...) {
		b.secrets = append(b.secrets, s)
		if real, err := filepath.EvalSymlinks(s); err == nil {
			b.secrets = append(b.secrets, real)
		}
	}
	b.git()
	for _, t := range n.Brings.Texts {
		if folder, ok := strings.CutSuffix(t, "/"); ok {
			b.folder(folder)
		} else {
			b.file(t)
		}
	}
	for _, s := range n.Brings.Settings {
		b.settings(s)
	}
	return &b.out
}

// git brings the person's git settings, to the file that all programs read which know
// git's: those that git reads before it can't go over them, and the agent may set others
// there, until the next start.
func (b *bringer) git() {
	const file, ignore = ".gitconfig", ".config/git/ignore"
	person := outfit.Person(b.Home, b.Env)
	own := person.Own(b.Workspace, func(v string) bool { return b.without(v) != v })
	for _, l := range own.Left {
		kind := api.LeftSetting
		switch {
		case l.Secret:
			kind = api.LeftToken
		case strings.HasPrefix(l.Why, "it is a shell"):
			kind = api.LeftProgram
		}
		b.left(kind, "git "+l.Key, l.Why)
	}
	if own.Text != nil {
		was, _, err := b.Was.Read(file, maxFile)
		if err != nil {
			was = nil
		}
		name := "git settings"
		if own.Identity {
			name = "git identity"
		}
		b.write(file, own.Over(was), false, api.BroughtItem{Name: name})
	}
	from := own.Excludes
	if from == "" {
		from = b.at(ignore)
	}
	b.text(ignore, from, api.BroughtItem{Name: "git ignore"})
}

// at is where a listed path is in the person's home, unless a variable says elsewhere.
func (b *bringer) at(rel string) string {
	places := map[string]string{"XDG_CONFIG_HOME": ".config"}
	for name, dir := range b.Brings.At {
		places[name] = dir
	}
	found, longest := filepath.Join(b.Home, rel), 0
	for name, dir := range places {
		below, in := strings.CutPrefix(rel, dir+"/")
		if to := outfit.Variable(b.Env, name); in && filepath.IsAbs(to) && len(dir) > longest {
			found, longest = filepath.Join(to, below), len(dir)
		}
	}
	return found
}

// without is a text without the secrets that are known by their shape.
func (b *bringer) without(text string) string { return b.redactor.Text(text, "") }

// left tells of what is left out.
func (b *bringer) left(kind, what, why string) {
	if len(b.out.Left) >= maxTold {
		b.out.More++
		return
	}
	b.out.Left = append(b.out.Left, api.LeftOut{Kind: kind, What: api.Escape(api.Trim(what, 200)), Why: api.Escape(api.Trim(why, 300))})
}

// write writes a file to the agent's home, and tells of it if it has a name.
func (b *bringer) write(rel string, data []byte, executable bool, item api.BroughtItem) bool {
	if b.bytes += int64(len(data)); b.bytes > maxBytes {
		b.left(api.LeftFile, rel, fmt.Sprintf("all that is brought may have %d MiB", maxBytes>>20))
		return false
	}
	if err := b.Into.Write(rel, data, executable); err != nil {
		b.left(api.LeftFile, rel, fmt.Sprintf("it can't be written to the agent's home (%v): remove there what is in its place", err))
		return false
	}
	if item.Name != "" {
		item.Path = api.Escape(rel)
		b.out.Items = append(b.out.Items, item)
	}
	return true
}

// named is a listed file, or folder, in words.
func named(rel, from, is string) api.BroughtItem {
	i := api.BroughtItem{Name: api.Escape(path.Base(rel))}
	if from != is {
		i.From = api.Escape(is)
	}
	return i
}
