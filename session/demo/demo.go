// Package demo is a scripted agent in a small project: it shows in two minutes
// what Stepbox does, without an account or a network. Auto decides in a
// person's place, for scripts and tests.
package demo

import (
	"bytes"
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"stepbox/session/api"
)

//go:embed project
var project embed.FS

//go:embed agent.sh
var agent []byte

// script is the agent's file in the project.
const script = "agent.sh"

// Argv is the command that runs the agent in its project.
func Argv() []string { return []string{"bash", script} }

// Project makes the demo's project, called demo, in a new folder, which remove
// removes.
func Project() (dir string, remove func() error, err error) {
	parent, err := os.MkdirTemp("", "stepbox-demo-")
	if err != nil {
		return "", nil, fmt.Errorf("cannot make the demo's project: %w", err)
	}
	dir = filepath.Join(parent, "demo")
	err = os.Mkdir(dir, 0o700)
	if err == nil {
		err = fs.WalkDir(project, "project", func(p string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			b, err := project.ReadFile(p)
			if err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(dir, filepath.Base(p)), b, 0o644)
		})
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, script), agent, 0o644)
	}
	if err != nil {
		os.RemoveAll(parent)
		return "", nil, fmt.Errorf("cannot make the demo's project: %w", err)
	}
	return dir, func() error { return os.RemoveAll(parent) }, nil
}

// Reason is what Auto tells the agent with its denial.
const Reason = "the project is not clutter"

// Auto supervises the demo's session until it ends and prints what happens. It
// approves what the agent does, but for deleting the project and phoning home, and
// takes the tidying back. The error says which promise wasn't kept.
func Auto(ctx context.Context, c *api.Client, id, dir string, out io.Writer) error {
	seen := make(map[string]bool) // what was shown to work
	attempts := make(map[int64]bool)
	var waiting []api.Question
	for e, err := range c.Events(ctx, id, 0) {
		if err != nil {
			return err
		}
		switch {
		case e.Question != nil && e.Question.Open():
			waiting = slices.Insert(waiting, 0, *e.Question) // the agent's own changes come before a command that was held already
			waiting = slices.DeleteFunc(waiting, func(q api.Question) bool {
				d := answer(q)
				_, failed := c.Decide(ctx, id, d)
				var p *api.Problem
				known := errors.As(failed, &p)
				switch {
				case failed == nil:
					n := "-" // a connection of the agent's own
					if q.Action != 0 {
						n = strconv.Itoa(q.Action)
					}
					fmt.Fprintf(out, "held      %s  %s\n", n, q.Title)
					fmt.Fprintf(out, "%-9s %s  %s\n", d.Answer, n, d.Reason)
					seen[string(d.Answer)] = true
				case known && p.Code == api.CodeBusy:
					return false // another is to be answered first
				case !known || p.Code != api.CodeGone && p.Code != api.CodeDecided: // the roll back of an action closes what it covers
					err = fmt.Errorf("cannot answer %q: %w", q.Title, failed)
				}
				return true
			})
			if err != nil {
				return err
			}
		case e.Kind == "action.ended" && !e.Action.Housekeeping:
			fmt.Fprintf(out, "ended     %d  %s: %s, %d files changed\n", e.Action.N, e.Action.Title, cmp.Or(e.Action.Exit.Words(), "ended"), e.Action.Files)
		case e.Kind == "action.denied":
			fmt.Fprintf(out, "denied    %d  %s\n", e.Action.N, e.Action.Title)
			seen["denied"] = true
		case e.Kind == "rollback.done":
			fmt.Fprintf(out, "rollback  to before %d: %d files\n", e.Rollback.ToBefore, e.Rollback.Files)
			seen["rolled back"] = true
		case e.Attempt != nil && e.Attempt.Protocol == "tcp" && e.Attempt.Verdict != api.Ask && !attempts[e.Attempt.ID]:
			attempts[e.Attempt.ID] = true
			fmt.Fprintf(out, "network   %s:%d  %s\n", e.Attempt.Name, e.Attempt.Port, e.Attempt.Verdict)
			seen["network "+string(e.Attempt.Verdict)] = true
		case e.Kind == "session.ended":
			fmt.Fprintf(out, "session   ended: %s\n", cmp.Or(e.Session.Exit.Words(), "ended"))
			seen["ended"] = true
		}
	}
	if err := check(ctx, c, id, dir, seen); err != nil {
		return err
	}
	fmt.Fprintln(out, "the project folder on the host is as it was; stepbox show has the whole record")
	return nil
}

// answer decides in a person's place.
func answer(q api.Question) api.Decision {
	d := api.Decision{Question: q.ID, Hash: q.Hash, By: "demo"}
	switch {
	case q.Subject == api.SubjectConnection:
		d.Answer = api.AnswerDeny
	case q.Subject == api.SubjectEdit && strings.Contains(q.Title, "tidy"):
		d.Answer = api.AnswerRollback
	case q.Subject == api.SubjectEdit:
		d.Answer = api.AnswerKeep
	case strings.HasPrefix(q.Title, "rm "):
		d.Answer, d.Reason = api.AnswerDeny, Reason
	default:
		d.Answer = api.AnswerApprove
	}
	return d
}

// check says whether the demo showed what it is there to show.
func check(ctx context.Context, c *api.Client, id, dir string, seen map[string]bool) error {
	for _, s := range []string{"approve", "keep", "deny", "denied", "rolled back", "network deny", "ended"} {
		if !seen[s] {
			return fmt.Errorf("the demo ended without %q", s)
		}
	}
	if seen["network allow"] {
		return errors.New("the demo reached the network")
	}
	err := fs.WalkDir(project, "project", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		want, err := project.ReadFile(p)
		if err != nil {
			return err
		}
		got, err := os.ReadFile(filepath.Join(dir, filepath.Base(p)))
		if err == nil && !bytes.Equal(got, want) {
			err = fmt.Errorf("%s changed on the host", filepath.Base(p))
		}
		return err
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	changes, err := c.Changes(ctx, id, api.Scope{}, 0)
	if err != nil {
		return err
	}
	var paths []string
	for _, f := range changes.Files {
		paths = append(paths, f.Status+" "+f.Path)
	}
	if got, want := strings.Join(paths, ", "), "M greet.sh, M notes.txt"; got != want {
		return fmt.Errorf("the session's changes are %q, want %q: the roll back isn't exact", got, want)
	}
	return nil
}
