package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/spf13/cobra"

	"stepbox/session/api"
	"stepbox/ui/config"
)

// Config is the command on a person's settings.
func Config() *cobra.Command {
	cmd := &cobra.Command{
		Use: "config", Short: "Show or edit your settings: theme, keys, limits, notifications", Args: NoArgs,
		Long: "Show or edit your settings: theme, leader and keys, mode, limits, notifications, editor and pager.\n" +
			"Where ] needs AltGr, ctrl+5 is the leader too; leader: ctrl+g makes it another key.",
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(showConfig(), editConfig(), &cobra.Command{
		Use: "path", Short: "Print the settings' file", Args: NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c := config.Load(os.Getenv)
			if c.File == "" {
				return errNoConfig
			}
			_, err := fmt.Fprintln(cmd.OutOrStdout(), c.File)
			return err
		},
	})
	return cmd
}

var errNoConfig = errors.New("cannot tell where your settings are: set HOME, XDG_CONFIG_HOME or STEPBOX_CONFIG")

func showConfig() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "show", Short: "List every setting in force, and where it came from", Args: NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c := config.Load(os.Getenv)
			if !asJSON {
				Warnings(cmd.ErrOrStderr(), c)
			}
			all := struct {
				File     string           `json:"file"`
				Settings []config.Value   `json:"settings"`
				Warnings []config.Warning `json:"warnings"`
			}{c.File, c.Values(), append([]config.Warning{}, c.Warnings...)}
			return write(cmd.OutOrStdout(), asJSON, all, func(w io.Writer) {
				for _, v := range all.Settings {
					fmt.Fprintf(w, "%s\t%s\t%s\n", api.Escape(v.Name), api.Escape(v.Value), api.Escape(v.Origin()))
				}
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// Warnings says what is wrong in a person's settings.
func Warnings(w io.Writer, c *config.Config) {
	for _, x := range c.Warnings {
		fmt.Fprintln(w, "stepbox:", x)
	}
}

func editConfig() *cobra.Command {
	return &cobra.Command{
		Use: "edit", Short: "Open the settings' file in your editor, and check it afterwards", Args: NoArgs,
		Long: "Open the settings' file in your editor: the one in your settings, $VISUAL, $EDITOR or vi.\nWhere there is no file yet, one is made that names all settings in comments.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			c := config.Load(os.Getenv)
			if c.File == "" {
				return errNoConfig
			}
			if err := template(c.File); err != nil {
				return fmt.Errorf("cannot make %q: %w", c.File, err)
			}
			editor := exec.CommandContext(cmd.Context(), "/bin/sh", "-c", c.Editor+` "$@"`, c.Editor, c.File) // as git runs one
			editor.Stdin, editor.Stdout, editor.Stderr = os.Stdin, terminal(cmd.OutOrStdout()), terminal(cmd.ErrOrStderr())
			if err := editor.Run(); err != nil {
				return fmt.Errorf("the editor %q failed: %w; editor in %q names another, or else VISUAL or EDITOR", c.Editor, err, c.File)
			}
			c = config.Load(os.Getenv)
			Warnings(cmd.ErrOrStderr(), c)
			if n := len(c.Warnings); n > 0 {
				return fmt.Errorf("all else in %s holds; stepbox config edit mends it", c.File)
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s: all of it holds\n", c.File)
			return err
		},
	}
}

// template makes the file where there is none.
func template(file string) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, os.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = f.WriteString(config.Template())
	if err = errors.Join(err, f.Close()); err != nil {
		os.Remove(file) // half of it would stay for good
	}
	return err
}
