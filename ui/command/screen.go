package command

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"stepbox/session/api"
	"stepbox/session/demo"
	"stepbox/session/launch"
	"stepbox/session/screen"
	"stepbox/themes"
	"stepbox/ui"
	"stepbox/ui/cli"
	"stepbox/ui/config"
	"stepbox/ui/link"
	"stepbox/ui/looked"
)

// attach shows a session, or without one the home screen, until the person leaves.
func attach(ctx context.Context, id string) error { return screenOf(ctx, id, ui.Options{}) }

// screenOf shows a session, with options of the caller's.
func screenOf(ctx context.Context, id string, o ui.Options) error {
	hub := launch.Hub
	if o.Watching {
		hub = launch.Watch
	}
	if !cli.Terminal() {
		return fmt.Errorf("%w: this needs a terminal; stepbox ls, show and log work without one", cli.ErrUsage)
	}
	client, done, err := hub(ctx)
	if err != nil {
		return err
	}
	defer done()
	return screenBy(ctx, client, id, o)
}

// screenBy shows a session by a client that is there already.
func screenBy(ctx context.Context, client *api.Client, id string, o ui.Options) (err error) {
	o.Client, o.Session, o.Version, o.ThemeDir = link.FromAPI(client), id, api.Build(), themes.Dir()
	o.Config, o.Reload = settings(), func() *config.Config { return config.Load(os.Getenv) }
	if o.Folders, err = launch.Folders(); err != nil {
		return err
	}
	if here, err := os.Getwd(); err == nil {
		o.Here, _ = filepath.EvalSymlinks(here) // as sessions name theirs; "" where it is gone
	}
	o.Looked = looked.Folder(filepath.Join(o.Folders[0], "looked"))
	o.Save = func(ctx context.Context, id, key string, at api.Moment, name string) error {
		return cli.Save(ctx, client, id, key, at, name)
	}
	o.NewTerminal = func(cols, rows int) link.Emulator { return screen.New(cols, rows) }
	if o.Watching {
		return ui.Run(ctx, o)
	}
	o.Browse = cli.Browser(os.Getenv)
	o.Export = func(ctx context.Context, id string) (string, error) {
		s, err := client.Session(ctx, id)
		if err != nil {
			return "", err
		}
		return cli.ToPatch(ctx, client, s)
	}
	o.Start = func(ctx context.Context) (string, error) {
		req, err := runSettings().request(nil)
		if err != nil {
			return "", err
		}
		s, err := start(ctx, req)
		return s.ID, err
	}
	o.Resume = func(ctx context.Context, id string) (string, error) {
		s, err := startOn(ctx, launch.Request{Resume: id}, true, true)
		return s.ID, err
	}
	o.Fork = func(ctx context.Context, id string, at api.Moment) (string, error) {
		s, err := startOn(ctx, launch.Request{Fork: &launch.Fork{Session: id, At: at}}, true, true)
		return s.ID, err
	}
	return ui.Run(ctx, o)
}

func attachCommand() *cobra.Command {
	var watching bool
	cmd := &cobra.Command{
		Use: "attach [SESSION]", Short: "Show a session: live to decide on, past to look at", Args: cli.Args(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			all, err := sessions(cmd.Context())
			if err != nil {
				return err
			}
			word := ""
			if len(args) == 1 {
				word = args[0]
			}
			s, err := cli.Find(all, word)
			if err != nil {
				return err
			}
			return screenOf(cmd.Context(), s.ID, ui.Options{Watching: watching})
		},
	}
	cmd.Flags().BoolVar(&watching, "read-only", false, "only watch: nothing is decided, typed or changed from here")
	return cmd
}

// sessions are all that are recorded.
func sessions(ctx context.Context) ([]api.Session, error) {
	client, done, err := launch.Hub(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	return client.Sessions(ctx)
}

func replayCommand() *cobra.Command {
	return cli.Replay(cli.Player{
		Connect: launch.Hub,
		Emulator: func(cols, rows int, keyframe []byte, line func(string)) cli.Emulator {
			return screen.NewLines(cols, rows, keyframe, line)
		},
		Screen: func(ctx context.Context, id string, at api.Moment, speed float64) error {
			return screenOf(ctx, id, ui.Options{Replay: &ui.Replay{At: at, Speed: speed}})
		},
	})
}

func demoCommand() *cobra.Command {
	var auto bool
	cmd := &cobra.Command{
		Use: "demo", Short: "A scripted agent that shows everything in two minutes: no account, no network", Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			if !auto && !cli.Terminal() {
				return fmt.Errorf("%w: the demo needs a terminal; demo --auto decides by itself and prints what happens", cli.ErrUsage)
			}
			dir, remove, err := demo.Project()
			if err != nil {
				return err
			}
			defer remove()
			f := runFlags{mode: string(api.ModeStep), workspace: dir, memory: "512M", pids: 256, disk: defaultDisk}
			req, err := f.request(demo.Argv())
			if err != nil {
				return err
			}
			client, done, err := launch.Hub(context.WithoutCancel(ctx))
			if err != nil {
				return err
			}
			defer done()
			demoed, err := start(ctx, req)
			if err != nil {
				return err
			}
			id := demoed.ID
			if auto {
				return demo.Auto(ctx, client, id, dir, cmd.OutOrStdout())
			}
			err = screenOf(ctx, id, ui.Options{NoFarewell: true})
			if s, ok := cli.StoppedBy(ctx); ok {
				err = s
			}
			// Its project goes with the demo, after a signal too.
			end, cancel := context.WithTimeout(context.WithoutCancel(ctx), endWait)
			defer cancel()
			if s, failed := client.Session(end, id); failed == nil && s.Live() {
				_, failed = client.Kill(end, id)
				err = cmp.Or(err, failed)
			}
			err = cmp.Or(err, remove())
			if err == nil {
				fmt.Fprintf(cmd.OutOrStdout(), "The demo is over, and its folder gone; stepbox attach %s looks back at it.\n", id)
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&auto, "auto", false, "decide without a person, print what happens, fail if a promise isn't kept")
	return cmd
}
