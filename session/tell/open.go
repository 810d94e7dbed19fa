package tell

import (
	"context"
	"fmt"
	"io"
)

// Opener is what this program is called in a sandbox where others have it open pages.
const Opener = "xdg-open"

// RunOpen is `xdg-open URL`: it has the supervisor offer a page to the person. What it
// returns is how it exits, as xdg-open(1) has it.
func RunOpen(args []string, said io.Writer, socket string) int {
	if len(args) != 1 {
		fmt.Fprintln(said, "usage: xdg-open URL; a person is asked whether to open it outside of the sandbox")
		return 1
	}
	ctx, cancel := context.WithTimeout(context.Background(), Wait)
	defer cancel()
	reply, err := Say(ctx, socket, Message{Open: &Open{URL: args[0]}})
	if err == nil && !reply.Failed {
		return 0
	}
	words := reply.Text
	if err != nil {
		words = err.Error()
	}
	fmt.Fprintln(said, "xdg-open: cannot open it: "+words)
	return 4
}
