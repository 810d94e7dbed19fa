// Package topics has the pages that explain Stepbox by subject. There is one text of
// each: stepbox help prints it, the screens' help shows it, and docs/help.md is made of
// it. A page names keys by what they do, so that it has those in force.
package topics

import (
	"embed"
	"fmt"
	"strings"

	"stepbox/ui/keys"
)

//go:embed pages/*.txt
var pages embed.FS

// Topic is a page.
type Topic struct {
	Name  string // one word
	Title string
}

// All are the pages, in the order in which a newcomer may read them.
var All = []Topic{
	{"keys", "Keys, the leader, and where each goes"},
	{"deciding", "Answering what is held"},
	{"modes", "step, policy and watch"},
	{"rollback", "Rolling back, keeping, applying"},
	{"network", "Connections and hosts"},
	{"rules", "Answers that stick"},
	{"replay", "Looking at what was"},
	{"home", "The list of sessions"},
	{"terminal", "The agent's own screen"},
	{"themes", "Colours"},
}

// Find is the page of that name.
func Find(name string) (Topic, bool) {
	for _, t := range All {
		if t.Name == name {
			return t, true
		}
	}
	return Topic{}, false
}

// Text is the page as it reads with the keys in force, in lines of at most 78 columns.
func (t Topic) Text() string {
	raw, err := pages.ReadFile("pages/" + t.Name + ".txt")
	if err != nil {
		return err.Error() // the embedded pages are tested to be there
	}
	var b strings.Builder
	for i, part := range strings.Split(string(raw), "{{") {
		if call, text, ok := strings.Cut(part, "}}"); i > 0 && ok {
			k, err := called(strings.Split(call, `"`))
			if err != nil {
				return err.Error()
			}
			part = k + text
		}
		b.WriteString(part)
	}
	return b.String()
}

// called is what stands in braces, taken apart at its quotes.
func called(words []string) (string, error) {
	switch {
	case len(words) == 5 && words[0] == "key ":
		return key(words[1], words[3])
	case len(words) == 3 && words[0] == "leader ":
		return leader(words[1])
	}
	return "", fmt.Errorf("%q is called nowhere", words)
}

// key is the key in a place of what has that name there, or is called so in its last line.
func key(place, name string) (string, error) {
	scope, ok := keys.Named(place)
	for _, b := range keys.In(scope) {
		if ok && (b.Name == name || b.Name == "" && b.Short == name) {
			return b.First(), nil
		}
	}
	return "", fmt.Errorf("nothing in %q is called %q", place, name)
}

// leader is what has that name after the leader, with it; "" is the leader alone.
func leader(name string) (string, error) {
	if name == "" {
		return keys.LeaderKey(), nil
	}
	k, err := key("leader", name)
	return keys.LeaderKey() + " " + k, err
}
