package cli

import (
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"stepbox/session/api"
	"stepbox/ui/paint"
)

// printHome tells of the agent's home, and what came along to it.
func printHome(w io.Writer, s api.Session) {
	if s.Home != "" {
		row(w, "home", "%s", s.Home.Words())
	}
	if l := s.HomeLeft; l != nil {
		row(w, "changed there", "%s: stepbox diff --home %s", paint.Files(l.Changed), s.ID)
	}
	fact(w, "beware", s.HomeLeft.Traps())
	if s.Brought == nil {
		return
	}
	facts(w, "brought", each(s.Brought.Items, func(i api.BroughtItem) string {
		words := i.Path
		if i.Count > 0 {
			words += fmt.Sprintf("/ (%d)", i.Count)
		}
		if i.Name == "git identity" || i.Name == "git settings" {
			words += " (" + i.Name + ")"
		}
		if i.From != "" {
			words += ", from " + i.From
		}
		return words
	}))
	left := each(s.Brought.Left, func(l api.LeftOut) string { return fmt.Sprintf("%s: %s (%s)", l.Kind, l.What, l.Why) })
	if s.Brought.More > 0 {
		left = append(left, fmt.Sprintf("and %d more", s.Brought.More))
	}
	facts(w, "left out", left)
}

// sayBrought tells in a line what came along of the person's, and in another what is for
// the person to decide once, where a person reads it.
func sayBrought(diag io.Writer, s api.Session) {
	f, ok := diag.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return
	}
	for _, line := range []string{s.Brought.Line(), s.Undecided()} {
		if line != "" {
			fmt.Fprintf(diag, "stepbox: %s\n", line)
		}
	}
}

// diffHome lists what a session changed in its home.
func diffHome(c command, args []string) error {
	if len(args) > 1 {
		return usage("--home takes one session")
	}
	s, err := c.toRead(optional(args))
	if err != nil {
		return err
	}
	changes, err := c.client.HomeChanges(c.ctx, s.ID)
	if err != nil {
		return err
	}
	return c.print(changes, func(w io.Writer) {
		printHomeChanges(w, changes)
		switch {
		case len(changes.Files) == 0:
		case s.Home != api.HomeSession:
			fmt.Fprintf(w, "\nOther sessions of this home have it, too. While this one runs it goes back: stepbox rollback --home %s [PATH...]\n", s.ID)
		default:
			fmt.Fprintf(w, "\nIt stays in this session. To take it into the home of %s: stepbox keep --home %s [PATH...]\n", s.Agent, s.ID)
		}
	})
}

// keepHome takes it over.
func keepHome(c command, args []string) error {
	s, err := c.session(args[0])
	if err != nil {
		return err
	}
	var r api.KeepHome
	r.Paths = homePaths(args[1:])
	changes, err := c.client.KeepHome(c.ctx, s.ID, r)
	if err == nil && len(changes.Files) == 0 && len(r.Paths) > 0 {
		err = fmt.Errorf("nothing that session %s changed in its home is there: stepbox diff --home %s lists it", s.Name, s.ID)
	}
	return printed(c, changes, err, printHomeChanges)
}

// homePaths are paths below the home as a person names them: from there on, or as a shell
// makes them of ~.
func homePaths(args []string) (out [][]byte) {
	home, _ := os.UserHomeDir()
	for _, p := range args {
		if rel, ok := strings.CutPrefix(p, home+"/"); ok && home != "" {
			p = rel
		}
		out = append(out, []byte(strings.TrimPrefix(p, "~/")))
	}
	return out
}

func printHomeChanges(w io.Writer, changes api.HomeChanges) {
	for _, f := range changes.Files {
		words := strings.Join(f.Beware, "; ")
		switch {
		case f.Why != "":
			words = "not kept: " + f.Why
		case f.Kept:
			words = strings.TrimSuffix("kept; "+words, "; ")
		}
		// The path comes last: an agent could otherwise push what is said of all out of sight.
		fmt.Fprintf(w, "%s\t%s\t%s\t~/%s\n", f.Kind, paint.Bytes(f.Size), words, api.Escape(string(f.Path)))
	}
	if changes.More > 0 {
		fmt.Fprintln(w, "and more, which isn't listed")
	}
	if len(changes.Files) == 0 {
		fmt.Fprintln(w, "nothing in the home differs from the profile's")
	}
}
