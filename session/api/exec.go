package api

import (
	"cmp"
	"time"
)

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

// Ends tells of programs that ended, many at a time: a build starts thousands.
type Ends struct {
	ID   int64   `json:"id"`
	List []Ended `json:"list"` // in the order of their ends
}

// Ended is the end of an Exec.
type Ended struct {
	Exec int64         `json:"exec"`
	Ran  time.Duration `json:"ran"` // since Exec.At, in nanoseconds
	Exit *Exit         `json:"exit,omitempty"`
}

// On puts the end into the start that it is of.
func (e Ended) On(x *Exec) { x.EndedAt, x.Exit = x.At.Add(e.Ran), e.Exit }

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

// Host is where it went: the name if there was one, else the address.
func (a Attempt) Host() string { return cmp.Or(a.Name, a.Address) }
