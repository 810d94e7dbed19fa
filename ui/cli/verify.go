package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"stepbox/session/api"
	"stepbox/ui/paint"
)

func verify(connect Connect) *cobra.Command {
	var all, head bool
	var save string
	var r api.VerifyRequest
	cmd := wrap(connect, "verify [SESSION]", "Check that a session's record is whole and as it was signed", cobra.MaximumNArgs(1), func(c command, args []string) error {
		if all && (len(args) > 0 || r.Head != "" || head || save != "") {
			return usage("--all goes with --repair alone")
		}
		if !all {
			s, err := c.toRead(optional(args))
			if err != nil {
				return err
			}
			r.Session = s.ID
		}
		switch {
		case head:
			return c.head(r)
		case save != "":
			return c.saveSeal(r, save)
		}
		return c.verify(r)
	})
	cmd.Long = "Check that a session's record is whole: that no event was changed, removed, added or reordered since, that\n" +
		"all contents are there and are what they were, and that your key signed it. Without a session it is the one\n" +
		"that runs, or the newest of this folder. Ends with 1 if anything is wrong. See docs/integrity.md."
	f := cmd.Flags()
	f.BoolVar(&all, "all", false, "check all sessions, and the database itself")
	f.StringVar(&r.Head, "head", "", "the hash of an event, kept elsewhere, that the record must have")
	f.BoolVar(&r.Repair, "repair", false, "make tables again that don't say what the events say, and have an end signed that couldn't be; events are never changed")
	f.BoolVar(&head, "print-head", false, "print the hash of the last event, to be kept elsewhere")
	f.StringVar(&save, "save-seal", "", "write the last seal to `FILE` and its signature to FILE.sig, for ssh-keygen")
	return cmd
}

// verifying reads outcomes of a verification as they come.
func (c command) verifying(r api.VerifyRequest, each func(api.Verified) error) error {
	show, done := progressOn(os.Stderr)
	defer done()
	for v, err := range c.client.Verify(c.ctx, r) {
		switch {
		case err != nil:
			return err
		case v.Problem != nil:
			return v.Problem
		case v.Done == nil:
			show(fmt.Sprintf("%s: %d events, %s", v.Session, v.Events, paint.Bytes(v.Bytes)))
			continue
		}
		done()
		if err := each(*v.Done); err != nil {
			return err
		}
	}
	return nil
}

// progressOn writes lines over each other, if there is a person to see them.
func progressOn(f *os.File) (show func(string), done func()) {
	shown := false
	var last time.Time
	if !term.IsTerminal(int(f.Fd())) {
		return func(string) {}, func() {}
	}
	return func(line string) {
			if time.Since(last) > 100*time.Millisecond {
				last, shown = time.Now(), true
				fmt.Fprintf(f, "\r\x1b[K%s", line)
			}
		}, func() {
			if shown {
				shown = false
				fmt.Fprint(f, "\r\x1b[K")
			}
		}
}

var errNotWhole = errors.New("not whole")

func (c command) verify(r api.VerifyRequest) error {
	wrong, checked := 0, 0
	var found []api.Verified
	begun, read := time.Now(), int64(0)
	err := c.verifying(r, func(v api.Verified) error {
		checked++
		read += v.Bytes
		if !v.Whole() {
			wrong++
		}
		if c.json {
			found = append(found, v)
			return nil
		}
		return c.print(v, func(w io.Writer) { printVerified(w, v, r.Repair) })
	})
	if err == nil && c.json {
		err = c.print(found, nil)
	}
	if err == nil && r.Session == "" && !c.json {
		_, err = fmt.Fprintf(c.out, "%s read in %s\n", paint.Bytes(read), time.Since(begun).Round(time.Millisecond))
	}
	if err == nil && wrong > 0 {
		err = fmt.Errorf("what was checked is %w: see above", errNotWhole)
	}
	return err
}

func printVerified(w io.Writer, v api.Verified, repair bool) {
	name := "the database"
	if v.Session != "" {
		name = v.Session
		if v.Number != 0 {
			name = fmt.Sprintf("%s (%d)", v.Name, v.Number)
		}
	}
	state := "whole"
	switch {
	case !v.Whole():
		state = "NOT WHOLE"
	case v.Repaired:
		state = "repaired"
	}
	fmt.Fprintf(w, "%s: %s", name, state)
	if v.Events > 0 {
		fmt.Fprintf(w, ", %s, %s, %s", paint.Count(int(v.Events), "event", "events"), paint.Count(v.Contents, "content", "contents"), paint.Bytes(v.Bytes))
	}
	fmt.Fprintln(w)
	mends := false
	for _, f := range v.Findings {
		fmt.Fprintf(w, "  ! %s\n", f.Text)
		mends = mends || f.Table && !repair
	}
	if v.More > 0 {
		fmt.Fprintf(w, "  ! and %d more\n", v.More)
	}
	if mends {
		fmt.Fprintln(w, "  --repair makes tables, views, indexes and triggers again where it can, unless the events are wrong too")
	}
	if v.Seal != nil {
		fmt.Fprintf(w, "  signed up to event %d at %s by %s\n", v.Seal.Of, v.Seal.At.Local().Format(time.DateTime), v.Seal.Signer)
	}
	for _, text := range v.Remarks {
		fmt.Fprintf(w, "  %s\n", text)
	}
}

// head prints a session's head, if its record is whole.
func (c command) head(r api.VerifyRequest) error {
	return c.verifying(r, func(v api.Verified) error {
		if !v.Whole() {
			return fmt.Errorf("cannot give the head of session %s: its record is %w; stepbox verify %s says why", v.Session, errNotWhole, v.Session)
		}
		return c.print(v, func(w io.Writer) { fmt.Fprintln(w, v.Head) })
	})
}

// saveSeal writes what the last seal signs, and the signature beside it.
func (c command) saveSeal(r api.VerifyRequest, file string) error {
	return c.verifying(r, func(v api.Verified) error {
		if !v.Whole() {
			return fmt.Errorf("cannot write a seal of session %s: its record is %w; stepbox verify %s says why", v.Session, errNotWhole, v.Session)
		}
		if v.Seal == nil {
			return fmt.Errorf("cannot write a seal of session %s: no good one signs it", v.Session)
		}
		save := func(name, text string) error {
			return toFile(name, false, func(w io.Writer) error { _, err := io.WriteString(w, text); return err })
		}
		if err := save(file, v.Message); err != nil {
			return err
		}
		if err := save(file+".sig", v.Seal.Signature); err != nil {
			return errors.Join(err, os.Remove(file))
		}
		return c.print(v.Seal, func(w io.Writer) {
			fmt.Fprintf(w, "wrote %s and %s.sig; to check them: stepbox key --allowed-signers > allowed; ssh-keygen -Y verify -f allowed -I stepbox -n stepbox -O verify-time=%s -s %s.sig < %s\n",
				file, file, v.Seal.At.UTC().Format(signedAt), file, file)
		})
	})
}

// signedAt is how ssh-keygen(1) takes times, in UTC.
const signedAt = "20060102150405Z"

func key(connect Connect) *cobra.Command {
	var allowed bool
	cmd := wrap(connect, "key", "Show the key that signs the record", cobra.NoArgs, func(c command, _ []string) error {
		k, err := c.client.Key(c.ctx)
		if err != nil {
			return err
		}
		if allowed {
			if k.Public != "" {
				fmt.Fprintln(c.out, allowedSigner(k))
			}
			return nil
		}
		return c.print(k, func(w io.Writer) {
			if k.Public == "" {
				fmt.Fprintln(w, "there is no key yet: the first session makes one")
				return
			}
			fmt.Fprintf(w, "%s\tfrom %s\n%s\n", k.Fingerprint, k.From.Local().Format(time.DateTime), k.Public)
		})
	})
	cmd.Long = "Show the key that signs the record. The first session makes it, in the data folder."
	cmd.Flags().BoolVar(&allowed, "allowed-signers", false, "print it as ssh-keygen -Y verify -f takes it")
	return cmd
}

// allowedSigner is a key's line in a file of allowed signers, see ssh-keygen(1).
func allowedSigner(k api.Key) string {
	return fmt.Sprintf(`stepbox namespaces="stepbox",valid-after="%s" %s`, k.From.UTC().Format(signedAt), k.Public)
}
