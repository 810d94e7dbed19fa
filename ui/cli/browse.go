package cli

import (
	"context"
	"fmt"
	"os/exec"
	"syscall"
	"time"

	"stepbox/session/api"
)

// browserTime is how long xdg-open may take to fail; with some browsers it lasts until
// they are closed.
const browserTime = 3 * time.Second

// Browser is what opens a page in the person's own browser, nil where there is none.
func Browser(getenv func(string) string) func(ctx context.Context, url string) error {
	program, err := exec.LookPath("xdg-open")
	if err != nil || getenv("DISPLAY")+getenv("WAYLAND_DISPLAY")+getenv("BROWSER") == "" {
		return nil
	}
	return func(ctx context.Context, url string) error {
		p, err := api.ParseWebPage(url)
		if err != nil {
			return fmt.Errorf("cannot open the page: %w", err)
		}
		cmd := exec.Command(program, p.URL)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // it outlives the screens, and hasn't their terminal
		if err := cmd.Start(); err != nil {
			return fmt.Errorf("cannot open the page: %w", err)
		}
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		select {
		case err = <-ended:
		case <-time.After(browserTime):
		case <-ctx.Done():
		}
		if err != nil {
			return fmt.Errorf("cannot open the page: xdg-open: %w", err)
		}
		return nil
	}
}
