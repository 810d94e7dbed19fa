// Package egress is a sandbox's only way to the network: a gateway that judges
// every connection and datagram flow before anything leaves, and logs each of
// them.
//
// MakeLink runs in the holder, inside the sandbox's network namespace. It
// leaves the sandbox one interface, whose other end is a packet socket that
// the supervisor's Gateway reads with a TCP/IP stack of its own (gVisor's
// netstack). There is no route but through that stack: when the gateway goes,
// so does the interface.
//
// How an attempt passes:
//
//   - DNS is answered here, whatever server was asked, with one synthetic
//     address per name. Nothing is sent upstream for a question. The address
//     of a connection is therefore its name, and a rule on a name is exact.
//   - TCP: a connection that waits for its verdict is a SYN without an answer.
//     Denied: RST at once. Allowed: the gateway dials first and completes the
//     handshake when the far side has accepted.
//   - UDP: one attempt per flow; the first datagrams wait with the verdict.
//     Denied: ICMP port unreachable.
//   - Ping: one attempt per socket and address; the first requests wait. Denied:
//     administratively prohibited. Allowed: the gateway sends requests of its
//     own, where the host lets its user do so.
//   - All else (multicast, broadcast, other protocols, forged sources) is logged
//     and dropped.
//
// Every socket that carries a sandbox's bytes is dialled through one guard,
// which looks at the address after resolution, just before connect(2): names
// that resolve to loopback, private, link-local or metadata addresses, to
// addresses that embed IPv4 ones, or to this host itself are refused, unless
// the verdict says that its rule named such a place. The sockets on which the
// host's resolver asks the host's own name servers, and those to the upstream
// proxy that the person's environment names, aren't guarded: no byte of the
// sandbox chooses where they go.
//
// Connections to hosts that a credential is for end here, and begin anew: see package
// intercept. All others are carried as they are.
//
// # Trust
//
// Frames, names and bytes from the sandbox are hostile, and so are the
// answers of the outside. What is kept because of either is bounded; see the
// Max constants. The kernel, the Options and the environment are trusted.
//
// # Concurrency
//
// A Gateway is safe for concurrent use. Its callbacks come from its own
// goroutines: Judge from one per attempt, Log from a single one, in order.
package egress
