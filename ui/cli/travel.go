package cli

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"path"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"stepbox/session/api"
	"stepbox/ui/paint"
)

// maxShownFile bounds what of a file is shown on a terminal or as JSON, in bytes.
const maxShownFile = 16 << 20

func cat(connect Connect) *cobra.Command {
	var at, file string
	cmd := wrap(connect, "cat SESSION:PATH[@MOMENT]", "Print a file as it was at a moment of a session", cobra.ExactArgs(1), func(c command, args []string) error {
		s, path, m, err := c.fileAt(args[0], at)
		if err != nil {
			return err
		}
		if file != "" && file != "-" {
			return Save(c.ctx, c.client, s.ID, api.KeyOf(path), m, file)
		}
		r, err := c.client.File(c.ctx, s.ID, api.KeyOf(path), m)
		if err != nil {
			return err
		}
		defer r.Close()
		if !c.json && (file == "-" || !isTerminal(c.out)) {
			_, err = io.Copy(c.out, r)
			return err
		}
		b, err := io.ReadAll(io.LimitReader(r, maxShownFile+1))
		switch {
		case err != nil:
			return fmt.Errorf("cannot read %q: %w", api.Escape(path), err)
		case len(b) > maxShownFile:
			return fmt.Errorf("%q has more than %d bytes: have it written to a file with -o", api.Escape(path), maxShownFile)
		case c.json:
			return c.print(struct {
				Session string     `json:"session"`
				Path    string     `json:"path"`
				At      api.Moment `json:"at"`
				Data    []byte     `json:"data"` // in base64
			}{s.ID, api.Escape(path), m, b}, nil)
		case strings.IndexByte(string(b[:min(len(b), 8000)]), 0) >= 0 || !utf8.Valid(b):
			return fmt.Errorf("%q isn't text, and not fit for a terminal: have it written to a file with -o, or pipe it on", api.Escape(path))
		}
		out := bufio.NewWriter(c.out)
		for line := range strings.Lines(string(b)) {
			fmt.Fprintln(out, api.EscapeLine(line))
		}
		return out.Flush()
	})
	cmd.Long = "Print a file of the project as it was at a moment of a session: byte for byte, but on a terminal escaped.\n" +
		"PATH is from the project on. MOMENT is 12 for after action 12, 12^ for before it, +1h2m since the start,\n" +
		"start or end; a path that ends in such a word after an @ needs --at."
	cmd.Example = "  stepbox cat fix-tests:src/main.go@12^\n  stepbox cat 7:logo.png@start -o logo.png\n  stepbox cat :notes@3 --at end"
	cmd.Flags().StringVar(&at, "at", "", "the moment; all after the colon is the path then")
	cmd.Flags().StringVarP(&file, "output", "o", "", "write it to this file, which mustn't be there yet; - is standard output")
	return cmd
}

// Save writes a file as it was at a moment to one on the host that isn't there yet.
// Nothing is written over, and no link followed in the file's place; half of it
// never stays.
func Save(ctx context.Context, client *api.Client, id, key string, at api.Moment, name string) error {
	r, err := client.File(ctx, id, key, at)
	if err != nil {
		return err
	}
	defer r.Close()
	return toFile(name, false, func(w io.Writer) error {
		_, err := io.Copy(w, r)
		return err
	})
}

// stood is how a session stood at a moment.
type stood struct {
	At        api.At         `json:"at"`
	Session   api.Session    `json:"session"`
	Actions   []api.Action   `json:"action_list"`
	Questions []api.Question `json:"questions"` // held then
	Rollbacks []api.Rollback `json:"rollbacks,omitempty"`
	Applied   []api.Apply    `json:"apply_list,omitempty"`
	Changes   api.Changes    `json:"changes"` // from the project
}

// standing asks how a session stood.
func (c command) standing(s api.Session, m api.Moment) (out stood, err error) {
	out.Session, out.Actions, out.Questions = s, []api.Action{}, []api.Question{}
	out.Session.State, out.Session.Exit, out.Session.Unapplied = api.SessionStarting, nil, 0 // before its first event
	if out.At, err = c.client.At(c.ctx, s.ID, m); err != nil {
		return out, err
	}
	for e, err := range c.client.EventsAt(c.ctx, s.ID, out.At.Seq, math.MaxInt32) {
		switch {
		case err != nil:
			return out, err
		case e.Session != nil:
			out.Session = *e.Session
			out.Session.Name, out.Session.Parent = s.Name, s.Parent // as they are called
		case e.Action != nil:
			out.Actions = append(out.Actions, *e.Action)
		case e.Question != nil:
			out.Questions = append(out.Questions, *e.Question)
		case e.Rollback != nil:
			out.Rollbacks = append(out.Rollbacks, *e.Rollback)
		case e.Apply != nil:
			out.Applied = append(out.Applied, *e.Apply)
		}
	}
	out.Changes, err = c.client.Changes(c.ctx, s.ID, api.Scope{To: m}, 0)
	return out, err
}

// showAt prints how a session stood at a moment, or one of its actions.
func (c command) showAt(s api.Session, n int, m api.Moment, all bool, f filter) error {
	then, err := c.standing(s, m)
	if err != nil {
		return err
	}
	if n > 0 {
		for _, a := range then.Actions {
			if a.N == n {
				return c.print(a, func(w io.Writer) { fmt.Fprintln(w, actionLine(a, mostTitle)) })
			}
		}
		return api.Problemf(api.CodeNotFound, "there was no #%d yet; stepbox show %s lists those there are", n, s.ID)
	}
	return c.print(then, func(w io.Writer) {
		at := then.At
		row(w, "at", "%s, %s into the session (event %d)", at.Time.Local().Format("2006-01-02 15:04:05"), at.Offset.Round(1e6), at.Seq)
		printSession(w, then.Session, nil)
		printActions(w, c.actionList(all), f.actions(then.Actions), then.Questions)
		fmt.Fprintf(w, "\nchanged by then\t%s, %s added, %d removed\n", paint.Files(then.Changes.Total), paint.Count(then.Changes.Added, "line", "lines"), then.Changes.Removed)
		for _, f := range then.Changes.Files {
			if f.Group != "git" {
				fmt.Fprintf(w, "%s\t%s\n", f.Status, both(f))
			}
		}
	})
}

// isMoment says whether a word is a moment of a session's course; "" isn't.
func isMoment(word string) bool {
	_, err := api.Moment(word).Parse()
	return err == nil && word != ""
}

// isRange says whether a word is two moments, A..B, of which either may be left out.
func isRange(word string) bool {
	from, to := api.CutRange(word)
	return word != ".." && isMoment(string(from)) && (to == "" || isMoment(string(to)))
}

// cutMoment splits WORD@MOMENT, or WORD@A..B where ranges may be meant. What comes
// after the last @ and is neither belongs to the word.
func cutMoment(word string, ranges bool) (before, at string) {
	if i := strings.LastIndexByte(word, '@'); i >= 0 && (isMoment(word[i+1:]) || ranges && isRange(word[i+1:])) {
		return word[:i], word[i+1:]
	}
	return word, ""
}

// sessionAt is what SESSION[@MOMENT] names, or with ranges SESSION[@A..B]. A session
// that is named like all of the word goes first.
func (c command) sessionAt(word string, ranges bool) (api.Session, string, error) {
	return findAt(word, ranges, c.toRead)
}

// fileAt is what SESSION:PATH[@MOMENT] names; without a session before the colon it
// is the one that a command without any means. At is the moment that was given apart,
// and then all after the colon is the path.
func (c command) fileAt(word, at string) (s api.Session, file string, m api.Moment, err error) {
	if !strings.Contains(word, ":") {
		return s, "", "", usage("%q names no file of a session: use SESSION:PATH, or SESSION:PATH@12 for what it was after action 12", api.Escape(word))
	}
	var first error
	for i := range len(word) {
		if word[i] != ':' {
			continue
		}
		if s, err = c.toRead(word[:i]); err == nil {
			file, first = word[i+1:], nil
			break
		}
		first = cmp.Or(first, err)
	}
	if first != nil {
		return s, "", "", first
	}
	if at == "" {
		file, at = cutMoment(file, false)
	}
	file, err = inProject(file)
	return s, file, api.Moment(at), err
}

// inProject is a path below the project, as it is asked for.
func inProject(name string) (string, error) {
	clean := path.Clean(name)
	if name == "" || clean == "." || clean == ".." || strings.HasPrefix(clean, "/") || strings.HasPrefix(clean, "../") {
		return "", usage("%q is no file below the project: name it from there, as src/main.go", api.Escape(name))
	}
	return clean, nil
}

// scope reads [SESSION[@MOMENT|@A..B]] [ACTION|A..B] [PATH...].
func (c command) scope(args []string) (s api.Session, in api.Scope, paths []string, err error) {
	between := func(word string) { in.From, in.To = api.CutRange(word) }
	if len(args) > 0 && isRange(args[0]) {
		between(args[0])
		s, err = c.toRead("")
		return s, in, args[1:], err
	}
	if len(args) > 1 {
		n, bad := strconv.Atoi(args[1])
		switch {
		case isRange(args[1]):
			between(args[1])
		case bad == nil && n > 0:
			in.Action = n
		case bad == nil:
			return s, in, nil, usage("%q is no action number; stepbox show lists the actions", api.Escape(args[1]))
		}
	}
	s, at, err := c.sessionAt(optional(args), true)
	if err != nil {
		return s, in, nil, err
	}
	if at != "" {
		if in != (api.Scope{}) {
			return s, in, nil, errors.Join(ErrUsage, fmt.Errorf("name moments once: %s@%s or %s", s.Name, at, args[1]))
		}
		between(at)
	}
	if len(args) > 0 {
		paths = args[1:]
	}
	if len(paths) > 0 && at == "" && in != (api.Scope{}) {
		paths = paths[1:]
	}
	return s, in, paths, nil
}
