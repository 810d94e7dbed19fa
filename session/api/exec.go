package api

import (
	"cmp"
	"net"
	"strconv"
	"strings"
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
	Basis   *Basis    `json:"basis,omitempty"`
}

// Basis is what a program start was judged on besides what is shown of it, so that it
// can be judged by other rules later.
type Basis struct {
	// Leads says that its action ends with it: it begins or joins that, and isn't a part.
	Leads bool `json:"leads,omitempty"`
	// Exact is Argv as it is, where it isn't what Argv shows; nothing of it is escaped.
	Exact []string `json:"exact,omitempty"`
	// Cut says that the arguments weren't kept whole.
	Cut bool `json:"cut,omitempty"`
	// Started is the path that it was started by, where that is called neither as it calls
	// itself nor as its file; escaped. Posing says that rules which allow weren't asked
	// about what it calls itself, as the agent may have chosen that.
	Started string `json:"started,omitempty"`
	Posing  bool   `json:"posing,omitempty"`
	// Interpreter is what the kernel runs a script with, in place of the first
	// argument, and Loaded the file of that; escaped.
	Interpreter []string `json:"interpreter,omitempty"`
	Loaded      string   `json:"loaded,omitempty"`
	// Doubt is why it is asked about where rules would let it run; "": there is none.
	Doubt string `json:"doubt,omitempty"`
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

// WatchMode is the rule of what only that mode let through.
const WatchMode = "watch mode"

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

	// Of a connection that is looked into, since a credential is put into its requests.
	Credential string    `json:"credential,omitempty"`
	Requests   int       `json:"requests,omitempty"` // that were passed on
	Refused    int       `json:"refused,omitempty"`  // that weren't
	Refusals   []Refusal `json:"refusals,omitempty"` // the first of these
}

// AttemptGaveUp is the Failure of an attempt whose program didn't wait for an answer.
const AttemptGaveUp = "the program gave up while it waited"

// GaveUp says whether nobody denied a refused attempt: its program didn't wait for the answer.
func (a Attempt) GaveUp() bool { return a.Verdict == Deny && a.Failure == AttemptGaveUp }

// Refusal is a request that wasn't passed on.
type Refusal struct {
	At     time.Time `json:"at"`
	Method string    `json:"method"` // escaped
	Path   string    `json:"path"`   // escaped, without a query
	Why    string    `json:"why"`
}

// DeniedByPerson says whether a person said no, and not a rule.
func (a Attempt) DeniedByPerson() bool {
	return a.Verdict == Deny && strings.HasPrefix(a.Rule, "denied by ")
}

// AllowedWithoutRule says whether a person let it through for once, or watch mode did: the
// next time it may be asked about.
func (a Attempt) AllowedWithoutRule() bool {
	return a.Verdict == Allow && (a.Rule == WatchMode || strings.HasPrefix(a.Rule, "approved by "))
}

// Host is where it went: the name if there was one, else the address.
func (a Attempt) Host() string { return cmp.Or(a.Name, a.Address) }

// Pattern is the rule on exactly what it was for; "" where there can be none.
func (a Attempt) Pattern() string {
	host := a.Host()
	switch a.Protocol {
	case "tcp", "udp":
		if a.Port == 0 || host == "" {
			return ""
		}
		host = net.JoinHostPort(host, strconv.Itoa(a.Port))
	case "icmp":
	default:
		return ""
	}
	if a.Protocol != "tcp" {
		host += "/" + a.Protocol
	}
	return host
}
