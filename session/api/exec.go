package api

import "time"

// Exec is one program start.
type Exec struct {
	ID      int64     `json:"id"`
	Action  int       `json:"action,omitempty"` // 0: a root, like the agent itself
	Pid     int       `json:"pid"`              // on the host
	Parent  int       `json:"parent"`
	Argv    []string  `json:"argv"` // escaped; bounded
	Program string    `json:"program"`
	Cwd     string    `json:"cwd"`
	Verdict Verdict   `json:"verdict"`
	Rule    string    `json:"rule,omitempty"`
	At      time.Time `json:"at"`
	EndedAt time.Time `json:"ended_at,omitzero"`
	Exit    *Exit     `json:"exit,omitempty"`
	Failure string    `json:"failure,omitempty"` // why it didn't run: not found, killed because the image changed, …
}

// Attempt is one network connection or datagram flow that the agent tried.
type Attempt struct {
	ID       int64         `json:"id"`
	At       time.Time     `json:"at"`
	Action   int           `json:"action,omitempty"`
	Pid      int           `json:"pid,omitempty"`
	Program  string        `json:"program,omitempty"`
	Protocol string        `json:"protocol"`       // tcp, udp, dns, icmp, multicast, …
	Name     string        `json:"name,omitempty"` // the host name that was asked for
	Address  string        `json:"address"`        // what the program connected to (synthetic when there is a name)
	Port     int           `json:"port,omitempty"`
	Resolved string        `json:"resolved,omitempty"` // what was really dialled
	Verdict  Verdict       `json:"verdict"`
	Rule     string        `json:"rule"`
	Sent     int64         `json:"sent"`     // bytes out of the sandbox
	Received int64         `json:"received"` // bytes into it
	Duration time.Duration `json:"duration"` // nanoseconds
	Open     bool          `json:"open"`
	Failure  string        `json:"failure,omitempty"` // why an allowed one didn't connect, or a refused one's guard
}
