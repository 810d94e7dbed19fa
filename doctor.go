package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"stepbox/runner"
	"stepbox/runner/apparmor"
	"stepbox/store"
	"stepbox/ui/cli"
)

// preflight looks at what sandboxes need of this host.
func preflight(ctx context.Context) ([]runner.Finding, error) {
	dir, err := store.Dir()
	if err != nil {
		return nil, err
	}
	record := runner.Finding{
		Name: "record", OK: true, Fatal: true, Detail: dir,
		Why: "what sessions do is recorded there, for you alone",
	}
	if err := store.Check(dir); err != nil {
		record.OK, record.Detail, record.Fix = false, err.Error(), "mend that, or set STEPBOX_DATA to another folder"
	}
	return append(runner.Preflight(ctx, filepath.Join(dir, "sessions")), record), nil
}

func doctorCommand() *cobra.Command {
	var install, show bool
	cmd := &cobra.Command{
		Use: "doctor", Short: "Check what this host offers, and say how to mend what is missing", Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if install || show {
				return profile(cmd, show)
			}
			var rows []cli.Check
			fatal := false
			findings, err := preflight(cmd.Context())
			if err != nil {
				return err
			}
			for _, f := range findings {
				rows = append(rows, cli.Check(f))
				fatal = fatal || !f.OK && f.Fatal
			}
			asJSON, err := cmd.Flags().GetBool("json")
			if err != nil {
				return err
			}
			if err := cli.PrintChecks(cmd.OutOrStdout(), rows, asJSON); err != nil {
				return err
			}
			if fatal {
				return fmt.Errorf("this host can't run a sandbox yet (%w)", cli.ErrSaid)
			}
			return nil
		},
	}
	cmd.Flags().Bool("json", false, "print JSON")
	cmd.Flags().BoolVar(&install, "install-profile", false, "as root: let AppArmor allow user namespaces to stepbox, at the path where it is")
	cmd.Flags().BoolVar(&show, "print", false, "only print the profile that --install-profile installs")
	return cmd
}

// profile installs the AppArmor profile for this program, or only shows it.
func profile(cmd *cobra.Command, show bool) error {
	path, err := os.Executable()
	if err != nil {
		return fmt.Errorf("cannot tell where this program is: %w", err)
	}
	program, err := apparmor.Look(path)
	if err != nil {
		return err
	}
	if program.Warning != "" {
		fmt.Fprintln(cmd.ErrOrStderr(), "stepbox: beware:", program.Warning)
	}
	done := program.Text()
	if !show {
		if done, err = program.Install(cmd.Context()); err != nil {
			return err
		}
		done += "\n"
	}
	_, err = fmt.Fprint(cmd.OutOrStdout(), done)
	return err
}
