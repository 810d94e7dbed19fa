package egress

import (
	"fmt"
	"net"
	"os"
	"time"
)

// asClient is a program of the sandbox, in a process of its own.
func asClient(args []string) int {
	if args[0] == "stay" {
		time.Sleep(10 * time.Minute) // until it is killed
		return 0
	}
	c, err := (&net.Dialer{Timeout: time.Minute}).Dial(args[0], args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer c.Close()
	buf := make([]byte, 64)
	n, _ := c.Read(buf)
	fmt.Print(string(buf[:n]))
	return 0
}
