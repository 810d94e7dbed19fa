package policy

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Names of limits. Those of one action apart, the session as a whole is meant, or all
// connections of a rule.
const (
	LimitMemory   = "memory"    // bytes
	LimitCPUs     = "cpus"      // processors
	LimitPids     = "pids"      // processes and threads
	LimitDisk     = "disk"      // bytes
	LimitWallTime = "wall-time" // seconds

	LimitSent        = "sent"        // bytes
	LimitReceived    = "received"    // bytes
	LimitConnections = "connections" // a minute
	LimitRequests    = "requests"    // a minute
	LimitTokens      = "tokens"      // of models

	LimitActionWall    = "action.wall-time" // seconds
	LimitActionCPU     = "action.cpu-time"  // seconds
	LimitActionMemory  = "action.memory"    // bytes
	LimitActionFiles   = "action.files"     // files
	LimitActionWritten = "action.written"   // bytes
)

// Limit is one bound: on what a session may use, on what one action of it may, or on
// what the connections of a rule may carry.
type Limit struct {
	Name   string  // one of those above
	Amount float64 // in the unit of its name
	Text   string  // as it is written
	// At is what happens there: Ask whether it may go on, or Deny. It isn't said of
	// memory, cpus, pids, disk and wall-time of a session, which the kernel enforces, or
	// which pause or end it.
	At Verdict
	Where
}

// String is the limit in words.
func (l Limit) String() string {
	s := l.Name + " " + l.Text
	if name, ok := strings.CutPrefix(l.Name, "action."); ok {
		s = name + " " + l.Text + " of one action"
	}
	return s
}

// From is the limit, and where it stands.
func (l Limit) From() string { return l.after(l.String()) }

// limitsFile are the limits of a session that can be set.
type limitsFile struct {
	Memory      *setting   `yaml:"memory" doc:"Memory of all programs together, as 512M or 4G."`
	CPUs        *setting   `yaml:"cpus" doc:"Processors' worth of time, as 2 or 0.5."`
	Pids        *setting   `yaml:"pids" doc:"Processes and threads."`
	Disk        *setting   `yaml:"disk" doc:"What the session may write, as 10G."`
	WallTime    *setting   `yaml:"wall-time" doc:"How long the session may take, as 2h."`
	Sent        *setting   `yaml:"sent" doc:"Bytes that leave by the network, as 500M."`
	Received    *setting   `yaml:"received" doc:"Bytes that come by the network, as 10G."`
	Connections *setting   `yaml:"connections" doc:"New connections, as 600/min."`
	Requests    *setting   `yaml:"requests" doc:"HTTP requests where a credential is put in, elsewhere connections, as 600/min."`
	Tokens      *setting   `yaml:"tokens" doc:"Tokens of models in one session, as 2M, where a credential lets them be counted."`
	Action      actionFile `yaml:"action" doc:"What one action may use: a command with all that it starts."`
	At          *text      `yaml:"at" doc:"ask: beyond a limit of the network or of an action a person is asked. deny: it ends there." enum:"ask,deny"`
}

// actionFile are the limits of one action.
type actionFile struct {
	WallTime *setting `yaml:"wall-time" doc:"How long it may take, as 10m. Time in which it waits for a person isn't counted."`
	CPUTime  *setting `yaml:"cpu-time" doc:"Processor time, as 5m."`
	Memory   *setting `yaml:"memory" doc:"Resident memory of its programs added up, as 1G."`
	Files    *setting `yaml:"files" doc:"Files of the project that it may change, as 1000."`
	Written  *setting `yaml:"written" doc:"Size of the files of the project that it changes, as 500M."`
}

// budgetFile are the limits of a rule on connections, for all of them together.
type budgetFile struct {
	Sent        *setting `yaml:"sent" doc:"Bytes that leave in one session, as 50M."`
	Received    *setting `yaml:"received" doc:"Bytes that come in one session, as 1G."`
	Connections *setting `yaml:"connections" doc:"New connections, as 100/min."`
	Requests    *setting `yaml:"requests" doc:"HTTP requests where a credential is put in, elsewhere connections, as 60/min."`
	At          *text    `yaml:"at" doc:"ask: beyond the limit a person is asked. deny: connections end there." enum:"ask,deny"`
}

// limitText is a limit as it is written, and how it is read.
type limitText struct {
	name  string
	value *setting
	read  func(string) (float64, error)
}

// texts are all of them, in the order in which they are written.
func (f *limitsFile) texts() []limitText {
	return []limitText{
		{LimitMemory, f.Memory, memory}, {LimitCPUs, f.CPUs, cpus}, {LimitPids, f.Pids, whole}, {LimitDisk, f.Disk, size},
		{LimitWallTime, f.WallTime, seconds},
		{LimitSent, f.Sent, size}, {LimitReceived, f.Received, size}, {LimitConnections, f.Connections, rate}, {LimitRequests, f.Requests, rate},
		{LimitTokens, f.Tokens, tokens},
		{LimitActionWall, f.Action.WallTime, seconds}, {LimitActionCPU, f.Action.CPUTime, seconds}, {LimitActionMemory, f.Action.Memory, size},
		{LimitActionFiles, f.Action.Files, whole}, {LimitActionWritten, f.Action.Written, size},
	}
}

// LimitNames are the names of all limits, in the order in which they are written.
func LimitNames() (names []string) {
	for _, t := range (&limitsFile{}).texts() {
		names = append(names, t.name)
	}
	return names
}

func (f *budgetFile) limits(l *Layer) ([]Limit, Problems) {
	return readLimits(l, f.At, []limitText{
		{LimitSent, f.Sent, size}, {LimitReceived, f.Received, size}, {LimitConnections, f.Connections, rate}, {LimitRequests, f.Requests, rate},
	})
}

func readLimits(in *Layer, at *text, texts []limitText) (out []Limit, all Problems) {
	then := Ask
	if at != nil {
		if then = Verdict(at.s); then != Ask && then != Deny {
			return nil, at.bad("at a limit it is asked or ends: use ask or deny, not %q", at.s)
		}
	}
	for _, l := range texts {
		if l.value == nil {
			continue
		}
		n, err := l.read(l.value.s)
		if err != nil {
			all = append(all, l.value.bad("%s: %w", l.name, err)...)
			continue
		}
		out = append(out, Limit{Name: l.name, Amount: n, Text: l.value.s, At: then, Where: l.value.where(in)})
	}
	return out, all
}

// size reads bytes, with an optional K, M, G or T in powers of 1024.
func size(s string) (float64, error) {
	digits, factor := strings.TrimSuffix(strings.TrimSuffix(strings.ToUpper(s), "B"), "I"), 1.0
	if digits != "" {
		if i := strings.IndexByte("KMGT", digits[len(digits)-1]); i >= 0 {
			digits, factor = digits[:len(digits)-1], math.Pow(1024, float64(i+1))
		}
	}
	n, err := number(digits)
	if n *= factor; err != nil || n < 1 || n > 1<<53 {
		return 0, fmt.Errorf("%q is no size: use a number with K, M, G or T, like 512M", s)
	}
	return math.Floor(n), nil
}

// tokens reads how many, with an optional K, M or G in powers of 1000.
func tokens(s string) (float64, error) {
	digits, factor := strings.ToUpper(s), 1.0
	if digits != "" {
		if i := strings.IndexByte("KMG", digits[len(digits)-1]); i >= 0 {
			digits, factor = digits[:len(digits)-1], math.Pow(1000, float64(i+1))
		}
	}
	n, err := number(digits)
	if n *= factor; err != nil || n < 1 || n > 1<<53 {
		return 0, fmt.Errorf("%q says not how many: use a number with K, M or G, like 500K", s)
	}
	return math.Floor(n), nil
}

// ParseTokens is the limit on tokens that a person names when a session is started.
func ParseTokens(s string) (Limit, error) {
	n, err := tokens(s)
	return Limit{Name: LimitTokens, Amount: n, Text: s, At: Ask, Where: Where{Layer: "--tokens"}}, err
}

// The least that an agent can be started with.
const (
	LeastMemory = 16 << 20 // below it not even the sandbox's own first process comes up
	LeastCPUs   = 0.01     // a millisecond in every tenth of a second, the kernel's least (cgroups(7))
	mostCPUs    = 100_000
)

// memory is a size that a sandbox can be started with.
func memory(s string) (float64, error) {
	n, err := size(s)
	if err == nil && n < LeastMemory {
		return 0, fmt.Errorf("%q is too little for a sandbox: use at least %dM", s, LeastMemory>>20)
	}
	return n, err
}

func cpus(s string) (float64, error) {
	n, err := number(s)
	if err == nil && !(n >= LeastCPUs && n <= mostCPUs) {
		return 0, fmt.Errorf("%q is no share of processors: use a number from %g on, like 1.5", s, LeastCPUs)
	}
	return n, err
}

func number(s string) (float64, error) {
	n, err := strconv.ParseFloat(s, 64)
	if err != nil || !(n > 0) || math.IsInf(n, 0) || strings.ContainsAny(s, "xXpP_") {
		return 0, fmt.Errorf("%q isn't a number above zero", s)
	}
	return n, nil
}

func whole(s string) (float64, error) {
	n, err := strconv.ParseUint(s, 10, 31)
	if err != nil || n == 0 {
		return 0, fmt.Errorf("%q isn't a whole number above zero", s)
	}
	return float64(n), nil
}

// rate reads how often something may happen in a minute.
func rate(s string) (float64, error) {
	digits, ok := strings.CutSuffix(s, "/min")
	n, err := whole(digits)
	if !ok || err != nil {
		return 0, fmt.Errorf("%q says not how often: use a whole number with /min, like 100/min", s)
	}
	return n, nil
}

func seconds(s string) (float64, error) {
	d, err := time.ParseDuration(s)
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("%q is no time: use a number with s, m or h, like 90s or 1h30m", s)
	}
	return d.Seconds(), nil
}
