package cli

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"stepbox/session/api"
)

func label(connect Connect) *cobra.Command {
	var name, note string
	var tags, untags []string
	var pin, unpin, trash, untrash bool
	cmd := wrap(connect, "label SESSION", "Name, tag, note or pin a session, or say what it is labelled with", cobra.ExactArgs(1), func(c command, args []string) error {
		s, err := c.session(args[0])
		if err != nil {
			return err
		}
		var l api.Label
		if c.given("name") {
			l.Name = &name
		}
		if c.given("note") {
			l.Note = &note
		}
		if c.given("tag") || c.given("untag") {
			all := slices.DeleteFunc(slices.Concat(s.Tags, tags), func(t string) bool { return slices.Contains(untags, t) })
			l.Tags = &all
		}
		if pin || unpin {
			l.Pinned = &pin
		}
		if trash || untrash {
			l.Trashed = &trash
		}
		if l != (api.Label{}) {
			if s, err = c.client.Label(c.ctx, s.ID, l); err != nil {
				return err
			}
		}
		return c.say(s, nil, "%s (%d)%s", s.Name, s.Number, labelWords(s, "\n  "))
	})
	f := cmd.Flags()
	f.StringVar(&name, "name", "", `call it so ("" takes the name back that it began with)`)
	f.StringArrayVar(&tags, "tag", nil, "add a tag (repeatable)")
	f.StringArrayVar(&untags, "untag", nil, "take a tag away (repeatable)")
	f.StringVar(&note, "note", "", `say this of it ("" says nothing)`)
	f.BoolVar(&pin, "pin", false, "keep it, whatever is cleaned up")
	f.BoolVar(&unpin, "unpin", false, "don't any more")
	f.BoolVar(&trash, "trash", false, "put it into the trash: list it no more, until stepbox rm or gc removes it")
	f.BoolVar(&untrash, "untrash", false, "take it out of the trash")
	cmd.MarkFlagsMutuallyExclusive("pin", "unpin")
	cmd.MarkFlagsMutuallyExclusive("trash", "untrash")
	return cmd
}

// labelWords are a session's tags and its note, each with something before it.
func labelWords(s api.Session, before string) (out string) {
	if s.Pinned {
		out += before + "pinned"
	}
	if !s.Trashed.IsZero() {
		out += before + "in the trash"
	}
	for _, t := range s.Tags {
		out += before + "#" + t
	}
	if s.Note != "" {
		out += fmt.Sprintf("%s%s", before, s.Note)
	}
	return out
}
