// Stepbox runs a terminal agent in a rootless sandbox and puts a person in
// charge of each thing it does. See README.md.
package main

import (
	"os"
	"path/filepath"

	"stepbox/runner"
	"stepbox/session/tell"
	"stepbox/ui/command"
)

func main() {
	runner.Reexec()                               // the sandbox's own processes are this program too
	if filepath.Base(os.Args[0]) == tell.Opener { // agents run it, in their sandbox
		os.Exit(tell.RunOpen(os.Args[1:], os.Stderr, runner.SocketPath(tell.Socket)))
	}
	go func() { os.Exit(command.Run(os.Args[1:])) }()
	select {}
}
