package egress

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// ping opens a ping socket to d, through the guard like all that is dialled. It goes
// by no proxy: those know of no pings.
func (x *dialer) ping(ctx context.Context, d destination) (*pinger, error) {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(x.timeout, dialTimeout))
	defer cancel()
	addrs := []netip.Addr{d.addr}
	switch {
	case d.name == HostName:
		addrs = []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1})}
	case d.name != "":
		var err error
		if addrs, err = cmp.Or(x.resolver, net.DefaultResolver).LookupNetIP(ctx, "ip", d.name+"."); err != nil {
			return nil, err
		}
	}
	var first error
	for _, addr := range addrs {
		addr = addr.Unmap()
		err := x.guard.check(addr, d)
		if err == nil {
			var conn *net.UDPConn
			if conn, err = pingSocketTo(addr); err == nil {
				return &pinger{conn, addr}, nil
			}
		}
		first = cmp.Or(first, err)
	}
	return nil, cmp.Or(first, errors.New("no such host"))
}

// pingSocketTo connects a socket for echo requests, which needs no privilege where
// the host's administrator says so (icmp(7)).
func pingSocketTo(addr netip.Addr) (*net.UDPConn, error) {
	family, proto, to := unix.AF_INET6, unix.IPPROTO_ICMPV6, unix.Sockaddr(&unix.SockaddrInet6{Addr: addr.As16()})
	if addr.Is4() {
		family, proto, to = unix.AF_INET, unix.IPPROTO_ICMP, &unix.SockaddrInet4{Addr: addr.As4()}
	}
	fd, err := unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, proto)
	switch {
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		return nil, errNoPing
	case err != nil:
		return nil, fmt.Errorf("cannot make a ping socket: %w", err)
	}
	file := os.NewFile(uintptr(fd), "ping socket")
	defer file.Close()
	if err := unix.Connect(fd, to); err != nil {
		return nil, fmt.Errorf("cannot ping %s: %w", addr, err)
	}
	conn, err := net.FileConn(file)
	if err != nil {
		return nil, fmt.Errorf("cannot use a ping socket: %w", err)
	}
	return conn.(*net.UDPConn), nil // which Go takes any socket for datagrams for
}

// pingSocket is the inode of the sandbox's ping socket with t's identifier, 0 when it
// isn't found. The kernel tells of them in a table only, that of any process in the
// namespace (proc(5), /proc/pid/net).
func pingSocket(processes func() []int, t tuple) uint64 {
	if processes == nil {
		return 0
	}
	name := "icmp"
	if t.local.Addr().Is6() {
		name = "icmp6"
	}
	for _, pid := range processes() {
		f, err := os.Open("/proc/" + strconv.Itoa(pid) + "/net/" + name)
		if err != nil {
			continue // it ended
		}
		defer f.Close()
		return inodeByPort(bufio.NewScanner(f), t.local.Port())
	}
	return 0
}

// inodeByPort finds the socket with a local port in a table like /proc/net/icmp.
func inodeByPort(table *bufio.Scanner, port uint16) uint64 {
	want := fmt.Sprintf(":%04X", port)
	for lines := 0; lines < scanNow && table.Scan(); lines++ {
		f := strings.Fields(table.Text())
		if len(f) < 10 || !strings.HasSuffix(f[1], want) {
			continue
		}
		inode, _ := strconv.ParseUint(f[9], 10, 64)
		return inode
	}
	return 0
}
