package egress

import (
	"bufio"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// asClient is a program of the sandbox, in a process of its own.
func asClient(args []string) int {
	switch args[0] {
	case "stay":
		time.Sleep(10 * time.Minute) // until it is killed
		return 0
	case "hangup":
		return hangUp()
	case "connect":
		return connectInTurns(netip.MustParseAddrPort(args[1]))
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

// hangUp closes each connection that it gets, at the port that it prints.
func hangUp() int {
	l, err := net.Listen("tcp", publicAddr+":0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println(l.Addr())
	for {
		c, err := l.Accept()
		if err != nil {
			return 1
		}
		c.Close()
	}
}

// connectInTurns prints for each line of its input how long a connect(2) took, in
// nanoseconds: the median of a hundred, one after the other.
func connectInTurns(at netip.AddrPort) int {
	turns := bufio.NewScanner(os.Stdin)
	for turns.Scan() {
		took := make([]time.Duration, 100)
		buf := make([]byte, 1)
		for i := range took {
			start := time.Now()
			fd, err := connectBlocking(at)
			took[i] = time.Since(start)
			if err != nil {
				fmt.Fprintln(os.Stderr, err)
				return 1
			}
			unix.Read(fd, buf) // the server closes
			unix.Close(fd)
		}
		slices.Sort(took)
		fmt.Println(int64(took[len(took)/2]))
	}
	return 0
}
