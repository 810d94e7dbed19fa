package session

import (
	"cmp"
	"log/slog"
	"maps"
	"slices"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"stepbox/policy"
	"stepbox/runner"
	"stepbox/runner/gate"
	"stepbox/session/api"
	"stepbox/session/files"
	"stepbox/session/judge"
)

// proc names one process for good: a pid alone is used again.
type proc struct {
	pid   int
	start uint64 // clock ticks since boot, proc(5)
}

func procOf(x *judge.Exec) proc { return proc{x.PID, x.Start} }

// forked compares when two processes were forked.
func (p proc) forked(q proc) int {
	return cmp.Or(cmp.Compare(p.start, q.start), cmp.Compare(p.pid, q.pid))
}

// process is a living one in which a program began that the gate let start.
type process struct {
	proc
	pgid     int
	exec     api.Exec
	sends    []string        // what it was seen to send as it started
	kin      *kin            // nil: a root, which belongs to no action
	action   *action         // the kin's
	profile  *policy.Profile // a root's
	leader   bool            // the action ends with it
	approved bool            // within its action, by a person
	agent    bool            // an agent's main process: what it starts is judged by itself
	main     bool            // of the agent that the session was started for: see isMain
	starter  bool            // the agent's own program, but only to become a command
	shell    bool            // what runs there is called as a shell is
	jobs     bool            // and is one, where the agent can't put another: it has jobs
	busy     bool            // it has started a program
	next     *judge.Chain    // the interpreter that its script still has to start
	is       *judge.Identity // which agent; nil: none
}

// kin are the processes that descend by fork from program starts that were
// judged together, and what the verdict on those covers. A process is known to
// be of a kin by its mark, which fork hands down and the agent can't change
// (runner/gate/mark.go). Process groups, sessions, pipes and names never tell.
type kin struct {
	action   *action
	mark     uint64 // 0: it has none
	person   bool   // a person approved it, and it covers what it starts
	children bool   // a rule allows what it starts
	joined   bool   // it joined the action, which was approved without it
	over     bool   // the person lets all from the first on start what it likes
	first    *kin   // from which it descends by programs of one action, or itself
	next     *kin   // of those that it starts which cover something, if it doesn't, or nothing, if it does; nil: there are none
	empty    bool   // at the last look nobody was of it
}

// released is a process that becomes a program of an action.
type released struct {
	n     int         // the action's number
	began atomic.Bool // it has: set before its first instruction
}

// begins notes that it has; nil is one of no action.
func (r *released) begins() {
	if r != nil {
		r.began.Store(true)
	}
}

// marks is what a roster needs of the sandbox; see runner.Sandbox.
type marks interface {
	Marks() map[uint64]int
	Marked(wanted func(mark uint64) bool) ([]runner.Process, error)
	Alive(pid int, start uint64) bool
}

// roster knows the processes in which programs began that the gate let start,
// and whose each is. It is owned by the session's loop.
type roster struct {
	box      marks // set before anything but the agent is let start
	log      *slog.Logger
	procs    map[proc]*process
	starting map[*gate.Exec]*process // let happen, and not begun yet
	released map[proc]*released      // held still, and let start once it is known whose the changes until then are
	kins     map[uint64]*kin         // by mark
	over     []*kin                  // of them, those that may be forgotten once nobody is of them
	marked   uint64                  // the last mark that was given
	execs    int64                   // program starts recorded so far
	first    proc                    // in which the session's agent was started
}

func newRoster() roster {
	return roster{
		released: make(map[proc]*released), procs: make(map[proc]*process), starting: make(map[*gate.Exec]*process), kins: make(map[uint64]*kin), marked: gate.OwnMark,
	}
}

// newKin makes a kin of an action. What an agent's own process becomes is told
// by its parents alone, as it covers nothing.
func (r *roster) newKin(a *action) *kin {
	k := r.give(&kin{action: a})
	k.first = k
	a.kins = append(a.kins, k)
	return k
}

// give gives a kin a mark, if it is to have one.
func (r *roster) give(k *kin) *kin {
	if !k.action.becomes {
		r.marked++
		k.mark = r.marked
		r.kins[k.mark] = k
	}
	return k
}

// kinFor is the kin of a program that one of a kin starts. A person's approval, of what began the kin or of this very program, covers
// what it starts only if that follows from what was shown: else it gets a mark that covers nothing. A mark can only become a later one.
func (r *roster) kinFor(k *kin, x *judge.Exec) *kin {
	a, covers := k.action, !x.Obeys && (k.person || k.action.approved(x))
	if k.person == covers || k.freed() || a.apart() {
		return k
	}
	if k.next == nil || r.kins[k.next.mark] != k.next { // or nobody was of it any more
		k.next = r.give(&kin{action: a, person: covers, children: k.children, joined: k.joined, first: k.first})
		if a.State == api.ActionRunning {
			a.kins = append(a.kins, k.next)
		} else {
			r.over = append(r.over, k.next)
		}
	}
	return k.next
}

// freed says whether the person lets a kin start what it likes.
func (k *kin) freed() bool { return k.first.over || k.action.over && !k.joined }

// ownerOf is files.Owner: whose the changes of a process are. One that is held, and has no other thread, runs nothing
// until it is the program that is let start.
func (r *roster) ownerOf(p runner.Activity) (n int, became func() bool) {
	if k := r.kins[p.Mark]; k != nil && !k.action.apart() {
		return k.action.N, nil
	}
	if x := r.released[proc{p.PID, p.Start}]; x != nil && len(p.Threads) == 1 {
		return x.n, x.began.Load
	}
	return files.Agent, nil
}

// of is the process in which an exec is to happen; nil when nothing began in it.
func (r *roster) of(x *judge.Exec) *process { return r.procs[procOf(x)] }

// belongs finds the process that an exec descends from, as far as that is
// known, and the kin that it is of. When there is none though it looks like
// one's, doubt says why in words.
func (r *roster) belongs(x *judge.Exec) (p *process, k *kin, doubt string) {
	return r.descends(gate.Party{Process: gate.Process{PID: x.PID, Start: x.Start}, Ancestors: x.Ancestors, Mark: x.Mark})
}

// led says whether a program start is below a program that was approved in an action, or in its process: else who has it start
// something may be anyone that reaches what was left running.
func (r *roster) led(k *kin, x *judge.Exec) bool {
	leads := func(at proc) bool {
		p := r.procs[at]
		return p != nil && (p.leader || p.approved) && p.action == k.action
	}
	return leads(procOf(x)) || slices.ContainsFunc(x.Ancestors, func(a gate.Process) bool { return leads(proc{a.PID, a.Start}) })
}

// starter is the root that is no shell, as an agent's own program, and starts a program itself; nil: something
// else starts it.
func (r *roster) starter(x *judge.Exec) *process {
	if len(x.Ancestors) == 0 || x.Shell() {
		return nil
	}
	p := r.procs[proc{x.Ancestors[0].PID, x.Ancestors[0].Start}]
	if p == nil || p.kin != nil && !p.agent || p.shell {
		return nil
	}
	return p
}

// launches says whether a program is what this process is the launcher of: the first that it starts, with
// its own arguments, at its terminal. Taking one for the agent makes what that starts be judged, so a guess
// does no harm.
func (p *process) launches(x *judge.Exec) bool {
	args, own := x.Command.Argv[min(1, len(x.Argv)):], p.exec.Argv
	n := len(own) - len(args) // its name, and that of its script
	return !p.busy && x.Own && n > 0 && n <= 2 && slices.Equal(own[n:], args)
}

// descends is belongs for any process.
func (r *roster) descends(of gate.Party) (p *process, k *kin, doubt string) {
	p = r.procs[proc{of.PID, of.Start}]
	own := p != nil
	for _, a := range of.Ancestors {
		if p != nil {
			break
		}
		p = r.procs[proc{a.PID, a.Start}]
	}
	switch k = r.kins[of.Mark]; { // of one that is about to begin as well, which isn't on the list yet
	case k != nil:
		return p, k, ""
	case own:
		return p, p.kin, ""
	}
	if p != nil && p.kin != nil && p.kin.mark != 0 {
		doubt = "its parent became what was judged only after it had started this"
	}
	return p, nil, doubt
}

// covering is the kin whose verdict covers a process; nil if none's does.
func (r *roster) covering(p gate.Party) *kin {
	if _, k, _ := r.descends(p); k != nil && k.action.agent == nil {
		return k
	}
	return nil
}

// mayReach decides whether a process of the sandbox may get hold of another.
// It may among what one verdict covers: nothing in there wasn't judged with it.
// What belongs to no action, the agent too, gets hold of nothing, since it
// could change a program after that was approved; and no action of another,
// nor of the agent. A signal that it could take for an order reaches what was approved only from what
// was approved, too, but that a shell has its own jobs go on: one that it stopped the kernel would hang up when the
// shell ends. Watched says that all is let pass.
func (r *roster) mayReach(q gate.Reach, mode api.Mode) bool {
	k, of := r.covering(q.Caller), r.covering(q.Target)
	step, watched := mode == api.ModeStep, mode == api.ModeWatch
	switch {
	case q.Kind == gate.ReachSignal:
		return !step || of == nil || of == k || !q.Orders || k != nil && k.person || r.resumes(q)
	case k == nil, q.Kind != gate.ReachShare && !k.reaches(of):
		return false
	}
	// Who obeys others moves, and gets hold of, none that was shown: not even one that was its own when it asked.
	free := !step || k.freed()
	switch q.Kind {
	case gate.ReachShare:
		return free
	case gate.ReachTrace:
		return free || k.person
	case gate.ReachTraced: // by its parent, which needn't know
		return free || k == of
	default: // ReachStart, by a debugger, which can have another program started than was judged: it takes an approval of any
		return k.person || k.freed() || k.children && !step || watched
	}
}

// reaches says whether another kin is this, or nothing but what it covers has started the programs of that.
func (k *kin) reaches(of *kin) bool {
	return of == k || of != nil && of.first == k.first && k.person && of.mark > k.mark
}

// resumes says whether a shell has a job of its own go on.
func (r *roster) resumes(q gate.Reach) bool {
	p := r.procs[proc{q.Caller.PID, q.Caller.Start}]
	return q.Leads && q.Signal == unix.SIGCONT && p != nil && p.jobs
}

// let puts a process on the list of those that are being let start a program. It
// gets its place when the program begins, and not before: the kernel may still
// refuse it, and then the process stays what it was. The mark is what it has to
// be given by then; 0: it has that already, or needs none.
func (r *roster) let(x *judge.Exec, p *process) (mark uint64) {
	r.starting[x.Exec] = p
	p.main = r.isMain(x, p)
	if p.kin != nil && p.kin.mark != x.Mark {
		return p.kin.mark
	}
	return 0
}

// begins notes that a program stands in its process now. Before is what that was.
func (r *roster) begins(e *gate.Exec) (now, before *process) {
	now = r.starting[e]
	if now == nil {
		return nil, nil
	}
	delete(r.starting, e)
	delete(r.released, now.proc)
	before = r.procs[now.proc]
	now.approved = now.approved || before != nil && before.approved && before.action == now.action
	r.procs[now.proc] = now
	return now, before
}

// fails notes that an exec that was let happen didn't, and says in what; nil: it
// wasn't let. The process, if it lives, is what it was before.
func (r *roster) fails(e *gate.Exec) *process {
	p := r.starting[e]
	delete(r.starting, e)
	delete(r.released, proc{e.PID, e.Start})
	return p
}

// ends takes a process off that is gone; nil when nothing began in it.
func (r *roster) ends(pid int, began uint64) *process {
	p := r.procs[proc{pid, began}]
	if p != nil {
		delete(r.procs, p.proc)
	}
	return p
}

// mostLooked bounds how many kins are looked at each time for being empty.
const mostLooked = 64

// forget drops kins of actions that are over once nobody was found to be of
// them twice in a row: a process may have been forked while they were looked for.
// Of those that are left the ones that weren't looked at longest come first. A
// look at which a process went away before its mark was read says nothing: that
// is how one that forks and ends all the time is seen.
func (r *roster) forget(a *action) {
	r.over = append(r.over, a.kins...)
	a.kins = nil
	living := r.box.Marks()
	if living[0] > 0 {
		return
	}
	n := min(len(r.over), mostLooked)
	looked := r.over[:n]
	r.over = slices.Clone(r.over[n:])
	begin := slices.Collect(maps.Values(r.starting))
	for _, k := range looked {
		empty := living[k.mark] == 0 && !slices.ContainsFunc(begin, func(p *process) bool { return p.kin == k })
		if empty && k.empty {
			delete(r.kins, k.mark)
			continue
		}
		k.empty = empty
		r.over = append(r.over, k)
	}
}

// tree lists the living processes of an action: those that began a program, and
// those of its kins.
func (r *roster) tree(a *action) (out []proc) {
	list, err := r.box.Marked(func(mark uint64) bool { return r.kins[mark] != nil && r.kins[mark].action == a })
	if err != nil {
		r.log.Warn("cannot list the sandbox's processes", "error", err)
	}
	for _, p := range list {
		out = append(out, proc{p.PID, p.Start})
	}
	for _, p := range r.procs {
		if p.action == a && !slices.Contains(out, p.proc) && r.box.Alive(p.pid, p.start) {
			out = append(out, p.proc)
		}
	}
	return out
}

// byPID is the action that a process which began a program belongs to; 0 for none.
func (r *roster) byPID(pid int) int {
	if p := r.pid(pid); p != nil && p.action != nil {
		return p.action.N
	}
	return 0
}

// pid is the living process of a number in which a program began; nil for none.
func (r *roster) pid(pid int) *process {
	for _, p := range r.procs {
		if p.pid == pid {
			return p
		}
	}
	return nil
}

// maxAbove bounds how far up is looked for who sends something.
const maxAbove = 32

// sends is what a process was seen to send as it started, or else the nearest above it that
// was: git has others connect for it. A shell's line is none that it starts.
func (r *roster) sends(pid int) []string {
	first := pid
	for range maxAbove {
		p := r.pid(pid)
		switch {
		case p == nil:
			return nil
		case len(p.sends) > 0 && (!p.shell || pid == first):
			return p.sends
		case p.shell:
			return nil
		}
		pid = p.exec.Parent
	}
	return nil
}

// isMain says whether what starts in a process is the session's own agent: what the person had started, and by
// its lineage what that became, started again of itself, or was the launcher of. What only looks like an agent,
// within a command or in the agent's place, has what it starts judged, but is none. It is noted in order.
func (r *roster) isMain(x *judge.Exec, p *process) bool {
	if p.agent && r.first == (proc{}) {
		r.first = procOf(x)
		return true
	}
	of, k, _ := r.belongs(x)
	switch {
	case !p.agent || of == nil || k != nil && k.action.agent == nil:
		return false
	case x.Self: // by its file, which this session didn't write
		return of.main || procOf(x) == r.first
	case procOf(x) == of.proc && p.action == of.action: // its script's interpreter
		return of.main
	}
	return of.main && p.action.launched && !x.Command.Written && len(policy.Scripts(x.Argv, x.Program.Path)) == 0
}

// own says whether a process is the session's own agent, and no other program.
func (r *roster) own(pid int) bool {
	p := r.pid(pid)
	return p != nil && p.main
}
