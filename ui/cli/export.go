package cli

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"stepbox/session/api"
)

// exporting is one stepbox export.
type exporting struct {
	command
	s       api.Session
	request api.ExportRequest
	file    string
	force   bool
	yes     bool
}

func export(connect Connect) *cobra.Command {
	var e exporting
	cmd := onSession(connect, command.toRead, "export [SESSION]", "Write a session in another form: its changes as a patch, its terminal, a report, all events", func(c command, s api.Session) error {
		e.command, e.s = c, s
		return e.run()
	})
	f := cmd.Flags()
	f.StringVar(&e.request.Format, "format", api.ExportPatch, "what is written: "+strings.Join(api.ExportFormats, ", "))
	f.StringVarP(&e.file, "output", "o", "", "the file to write; - is standard output")
	f.BoolVar(&e.force, "force", false, "write over a file that is there")
	f.BoolVarP(&e.yes, "yes", "y", false, "redact what looks like a secret without asking")
	f.BoolVar(&e.request.NoRedact, "no-redact", false, "leave secrets as they are")
	f.BoolVar(&e.request.Unsigned, "unsigned", false, "the bare statement, not signed (intoto)")
	f.BoolVar(&e.request.Output, "terminal", false, "with the terminal's output (jsonl)")
	f.IntSliceVar(&e.request.Actions, "action", nil, "only what this action changed (patch); may be repeated")
	f.IntSliceVar(&e.request.Without, "without", nil, "not what this action changed (patch); may be repeated")
	f.StringArrayVar(&e.request.Globs, "path", nil, "only paths that match this pattern, as src/** (patch); may be repeated")
	return cmd
}

func (e *exporting) run() error {
	r := e.request
	toOut := e.file == "" || e.file == "-"
	switch {
	case !slices.Contains(api.ExportFormats, r.Format):
		return usage("%q is no format; there are: %s", api.Escape(r.Format), strings.Join(api.ExportFormats, ", "))
	case r.Format != api.ExportPatch && !r.Selection.All():
		return usage("--action, --without and --path choose what a patch has, and %s has all of the session", r.Format)
	case r.Format != api.ExportJSONL && r.Output:
		return usage("--terminal is for --format jsonl")
	case r.Format != api.ExportInToto && r.Unsigned:
		return usage("--unsigned is for --format intoto: nothing else is signed")
	case toOut && isTerminal(e.out):
		return usage("an export may not be fit for a terminal; name a file with -o")
	}
	if !toOut && !e.force {
		if _, err := os.Lstat(e.file); err == nil {
			return fmt.Errorf("cannot write %q: it is there already; use another name, or --force", e.file)
		}
	}
	if !r.NoRedact {
		if err := e.look(); err != nil {
			return err
		}
	}
	if err := e.whole(); err != nil {
		return err
	}
	write := func(w io.Writer) error {
		p, err := e.client.Export(e.ctx, e.s.ID, r)
		if err != nil {
			return err
		}
		return copyLines(p, w)
	}
	if toOut {
		return write(e.out)
	}
	return toFile(e.file, e.force, write)
}

// whole says what is exported of a record that isn't what was recorded.
func (e *exporting) whole() error {
	if e.request.Format == api.ExportInToto { // it is refused
		return nil
	}
	return e.verifying(api.VerifyRequest{Session: e.s.ID, Quick: true}, func(v api.Verified) error {
		if !v.Whole() {
			fmt.Fprintf(e.stderr(), "stepbox: the record of session %s isn't whole: stepbox verify %s says why\n", e.s.ID, e.s.ID)
		}
		return nil
	})
}

// look shows what will be redacted, and asks.
func (e *exporting) look() error {
	plan, err := e.client.ExportPlan(e.ctx, e.s.ID, e.request)
	if err != nil || len(plan.Secrets) == 0 {
		return err
	}
	n := 0
	fmt.Fprintln(e.stderr(), "What looks like a secret is redacted:")
	for _, s := range plan.Secrets {
		n += s.Count
		fmt.Fprintf(e.stderr(), "  %4d  %s in %s\n", s.Count, api.Escape(s.Kind), api.Escape(s.Where))
	}
	if e.request.Format == api.ExportPatch {
		fmt.Fprintln(e.stderr(), "A file that has one, or had one before, is only a remark in the patch: git apply leaves it as it is.")
	}
	switch {
	case e.yes:
		return nil
	case !isTerminal(e.cmd.InOrStdin()) || !isTerminal(e.stderr()):
		return usage("nothing was written: use --yes to export it redacted, or --no-redact to export the secrets too")
	}
	return e.ask("Export it so? (--no-redact leaves all as it is)")
}

// ToPatch writes all that a session changed as a patch, to a new file.
func ToPatch(ctx context.Context, client *api.Client, id, file string) error {
	p, err := client.Patch(ctx, id, api.PatchRequest{})
	if err != nil {
		return err
	}
	defer p.Close()
	in := bufio.NewReader(p)
	if _, err := in.Peek(1); errors.Is(err, io.EOF) {
		return errors.New("nothing differs from the project")
	}
	return toFile(file, false, func(w io.Writer) error {
		return copyLines(struct {
			io.Reader
			io.Closer
		}{in, p}, w)
	})
}

// toFile has a file written whole or not at all, but for what the record lost, for
// its owner alone. One that is there is written over only with force.
func toFile(name string, force bool, write func(io.Writer) error) error {
	f, err := os.CreateTemp(filepath.Dir(name), ".stepbox-*") // 0600
	var of *fs.PathError                                      // it names a file that nobody asked for
	if errors.As(err, &of) {
		return fmt.Errorf("cannot write %q: %w; the folder has to be there, and yours to write", name, of.Err)
	} else if err != nil {
		return fmt.Errorf("cannot write %q: %w", name, err)
	}
	defer os.Remove(f.Name()) // renamed by then, if all went well
	defer f.Close()
	out := bufio.NewWriter(f)
	err = write(out)
	if lost := lostError(""); err != nil && !errors.As(err, &lost) {
		return err
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("cannot write %q: %w", name, err)
	}
	if !force {
		linked := os.Link(f.Name(), name) // fails when someone made the name meanwhile
		if linked == nil {
			return err
		} else if errors.Is(linked, fs.ErrExist) {
			return fmt.Errorf("cannot write %q: it is there already, and stays as it is; use another name", name)
		}
		if _, there := os.Lstat(name); !errors.Is(there, fs.ErrNotExist) { // where there are no links
			return fmt.Errorf("cannot write %q: %w", name, cmp.Or(there, linked))
		}
	}
	if err := os.Rename(f.Name(), name); err != nil {
		return fmt.Errorf("cannot write %q: %w", name, err)
	}
	return err
}
