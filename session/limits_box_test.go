package session_test

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"stepbox/session"
	"stepbox/session/api"
	"stepbox/session/e2e/must"
	"stepbox/session/rules"
)

// sink is a service of this machine that takes all and says how much of each connection.
func sink(t *testing.T) (port int, got chan int64) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.OK(t, err)
	t.Cleanup(func() { l.Close() })
	got = make(chan int64, 100)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				n, _ := io.Copy(io.Discard, c)
				c.Close()
				got <- n
			}()
		}
	}()
	return l.Addr().(*net.TCPAddr).Port, got
}

// limited starts a session in which a policy of the person's holds; PORT in it and in
// the script is that of a sink.
func limited(t *testing.T, policy, script string) (*world, chan int64) {
	t.Helper()
	port, got := sink(t)
	fill := strings.NewReplacer("PORT", strconv.Itoa(port), "HERE", fmt.Sprintf("/dev/tcp/host.stepbox.internal/%d", port))
	w := startWith(t, api.ModePolicy, fill.Replace(script), func(project string) {
		file := rules.User(filepath.Join(filepath.Dir(project), "home"), "")
		must.OK(t, os.MkdirAll(filepath.Dir(file), 0o755))
		must.OK(t, os.WriteFile(file, []byte(fill.Replace(policy)), 0o644))
	})
	return w, got
}

// noted waits for a word to the person.
func (w *world) noted(part string) string {
	w.Helper()
	return w.happened(part, func(e api.Event) bool { return e.Note != nil && strings.Contains(e.Note.Text, part) }).Note.Text
}

// What is sent beyond a limit waits for a person, and goes out once more as much may.
func TestASendingLimitIsAskedAbout(t *testing.T) {
	t.Parallel()
	w, got := limited(t, "network:\n  - allow: host.stepbox.internal:PORT\n    limit: {sent: 64K}\n",
		`head -c 100000 /dev/zero > HERE; read x; head -c 100000 /dev/zero > HERE; read x`)
	q := w.held(0)
	if q.Connection == nil || q.Connection.Limit != "sent 64K" || !strings.Contains(q.Rule, "policy.yaml:3") || !strings.Contains(q.Title, "beyond a limit") {
		t.Fatalf("asked %s: %s: %+v", q.Title, q.Rule, q.Connection)
	}
	if err := w.answer(q, api.AnswerApprove, api.ExtentAlways, ""); code(err) != api.CodeUsage {
		t.Errorf("it was made a rule: %v", err)
	}
	w.must(w.decide(q, api.AnswerApprove))
	if n := <-got; n != 100_000 {
		t.Errorf("%d bytes came", n)
	}
	v := w.Terminal().Join()
	defer v.Close()
	v.Input([]byte("\n")) // both at once would share what may leave
	q = w.held(q.ID)
	w.must(w.decide(q, api.AnswerDeny))
	a := w.happened("the end of it", func(e api.Event) bool {
		return e.Attempt != nil && !e.Attempt.Open && strings.Contains(e.Attempt.Failure, "denied by")
	}).Attempt
	if a.Sent != 2*64<<10-100_000 || !strings.Contains(a.Failure, "sent 64K") {
		t.Errorf("%d were sent: %s", a.Sent, a.Failure)
	}
}

// Whatever was answered before, no rule is offered where something is used up: none can say
// that there is more.
func TestALimitOffersNoRule(t *testing.T) {
	t.Parallel()
	w, _ := limited(t, "network:\n  - allow: host.stepbox.internal:PORT\n    limit: {sent: 64K}\n",
		`head -c 400000 /dev/zero > HERE; read x`)
	var q api.Question
	for range 5 {
		if q = w.held(q.ID); q.Connection == nil || q.Connection.Limit == "" || q.Offer != nil {
			t.Fatalf("asked %s: %+v, offered %+v", q.Title, q.Connection, q.Offer)
		}
		w.must(w.decide(q, api.AnswerApprove))
	}
}

// A limit that denies ends what goes beyond it at once, and says so.
func TestASendingLimitDenies(t *testing.T) {
	t.Parallel()
	w, got := limited(t, "network:\n  - allow: host.stepbox.internal:PORT\nlimits: {sent: 64K, at: deny}\n",
		`head -c 1000000 /dev/zero > HERE; read x; echo x > HERE; read x`)
	if text := w.noted("is used up"); !strings.Contains(text, "the limit of this session") || !strings.Contains(text, "policy.yaml:3") {
		t.Errorf("told %q", text)
	}
	a := w.happened("the end of it", func(e api.Event) bool {
		return e.Attempt != nil && !e.Attempt.Open && strings.HasPrefix(e.Attempt.Failure, "stopped: ")
	}).Attempt
	if a.Sent != 64<<10 {
		t.Errorf("%d were sent", a.Sent)
	}
	if n := <-got; n > 64<<10 {
		t.Errorf("%d bytes came", n)
	}
	v := w.Terminal().Join()
	defer v.Close()
	v.Input([]byte("\n"))
	a = w.happened("the next", func(e api.Event) bool { return e.Attempt != nil && e.Attempt.Verdict == api.Deny }).Attempt
	if !strings.Contains(a.Rule, "sent 64K") {
		t.Errorf("it is denied by %q", a.Rule)
	}
}

// More connections in a minute than may be are one question; a denial holds for the
// action's next ones.
func TestAConnectionLimitIsAskedAbout(t *testing.T) {
	t.Parallel()
	w, _ := limited(t, "network:\n  - allow: host.stepbox.internal:PORT\n    limit: {connections: 3/min}\n",
		`cat > c.sh <<'E'
for i in 1 2 3 4 5 6 7 8; do echo > HERE && echo $i >> went; done
E
bash c.sh; read x`)
	q := w.held(0)
	if q.Connection == nil || q.Connection.Limit != "connections 3/min" {
		t.Fatalf("asked %s: %+v", q.Title, q.Connection)
	}
	w.must(w.decide(q, api.AnswerApprove))
	q = w.held(q.ID)
	w.must(w.decide(q, api.AnswerDeny))
	w.happened("its end", func(e api.Event) bool { return e.Kind == "action.ended" && e.Action.Title == "bash c.sh" })
	if went, err := os.ReadFile(filepath.Join(w.store.SessionDir(w.ID()), "upper", "went")); err != nil || string(went) != "1\n2\n3\n4\n5\n6\n" {
		t.Errorf("%q went through: %v", went, err)
	}
}

// spin burns processor time, in a child that the action waits for.
const spin = `bash -c 'while :; do :; done'`

// An action that takes too much processor time stands still until a person lets it go on,
// or ends.
func TestAnActionsProcessorTimeIsAskedAbout(t *testing.T) {
	t.Parallel()
	w, _ := limited(t, "limits:\n  action: {cpu-time: 1s}\n", spin+`; echo over >> said; git status; read x`)
	q := w.held(0)
	if q.Subject != api.SubjectLimit || q.Action == 0 || !strings.Contains(q.Rule, "of processor time, which is its limit: cpu-time 1s of one action") || !strings.Contains(q.Rule, "policy.yaml:2") {
		t.Fatalf("asked about %s %q: %s", q.Subject, q.Title, q.Rule)
	}
	if err := w.decide(q, api.AnswerKeep); code(err) != api.CodeInvalid {
		t.Errorf("it was kept: %v", err)
	}
	if err := w.answer(q, api.AnswerApprove, api.ExtentSession, ""); code(err) != api.CodeUsage {
		t.Errorf("it was made a rule: %v", err)
	}
	w.must(w.decide(q, api.AnswerApprove))
	next := w.held(q.ID)
	if next.Action != q.Action || next.Subject != api.SubjectLimit {
		t.Fatalf("asked about %s %q", next.Subject, next.Title)
	}
	w.must(w.decide(next, api.AnswerDeny))
	a := w.happened("its end", func(e api.Event) bool { return e.Kind == "action.ended" && e.Action.N == q.Action }).Action
	if a.Exit == nil || a.Exit.Signal != "SIGKILL" || !strings.HasPrefix(a.Reason, "ended at a limit: it took ") {
		t.Errorf("it ended with %+v: %s", a.Exit, a.Reason)
	}
	w.happened("what comes after", func(e api.Event) bool { return e.Kind == "action.ended" && e.Action.Title == "git status" })
}

func TestAnActionsLimitsDeny(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ limit, script, want string }{
		"wall time": {"wall-time: 1s", "sleep 1000", "it ran for "},
		"cpu time":  {"cpu-time: 1s", spin, "of processor time"},
		"memory":    {"memory: 64M", `bash -c 'x=$(head -c 100000000 /dev/zero | tr "\0" x); read y'`, "MiB of memory"},
		"files":     {"files: 20", `bash -c 'for i in $(seq 30); do echo $i > f$i; done; read y'`, "it changed 30 files"},
		"written":   {"written: 1M", `bash -c 'head -c 3000000 /dev/zero > big; read y'`, "it wrote 2929 KiB"},
	} {
		t.Run(name, func(t *testing.T) {
			w, _ := limited(t, "limits:\n  action: {"+c.limit+"}\n  at: deny\n", c.script+"; git status; read x")
			if text := w.noted("is ended: "); !strings.Contains(text, c.want) || !strings.Contains(text, "policy.yaml:2") {
				t.Errorf("told %q", text)
			}
			a := w.happened("its end", func(e api.Event) bool {
				return e.Kind == "action.ended" && strings.HasPrefix(e.Action.Reason, "ended at a limit: ")
			}).Action
			if a.Exit == nil || a.Exit.Signal != "SIGKILL" {
				t.Errorf("%s ended with %+v", a.Title, a.Exit)
			}
			w.happened("what comes after", func(e api.Event) bool { return e.Kind == "action.ended" && e.Action.Title == "git status" })
		})
	}
}

// What the kernel kills for want of memory says so, and so does a session whose agent
// that was.
func TestWantOfMemoryIsTold(t *testing.T) {
	t.Parallel()
	// Of less, PID 1 of a program that looks for races is the most.
	const much = `bash -c 'x=$(head -c 500000000 /dev/zero | tr "\0" x)'`
	for name, script := range map[string]string{"an action": much + "; git status; read x", "the agent": "x=$(head -c 500000000 /dev/zero | tr '\\0' x)"} {
		t.Run(name, func(t *testing.T) {
			w := startConfigured(t, func(string) {}, func(c *session.Config) { c.Limits.Memory = 160 << 20 }, "bash", "-c", script)
			s := *w.happened("its start", func(e api.Event) bool { return e.Kind == "session.started" }).Session
			if !strings.HasPrefix(s.Limits.Source, "cgroup") {
				t.Skipf("the limit is kept by %s", s.Limits.Source)
			}
			const want = "the kernel killed it for want of memory: the session may have 160 MiB"
			if name == "the agent" {
				<-w.Done()
				if s := w.over(); s.EndedBy != api.ByLimit || s.Reason != want {
					t.Errorf("it was ended by %s: %s", s.EndedBy, s.Reason)
				}
				return
			}
			if text := w.noted("is ended: "); !strings.Contains(text, want) {
				t.Errorf("told %q", text)
			}
			a := w.happened("its end", func(e api.Event) bool {
				return e.Kind == "action.ended" && strings.HasPrefix(e.Action.Reason, "ended at a limit: ")
			}).Action
			if !strings.Contains(a.Reason, want) {
				t.Errorf("%s: %q", a.Title, a.Reason)
			}
			w.happened("what comes after", func(e api.Event) bool { return e.Kind == "action.ended" && e.Action.Title == "git status" })
		})
	}
}

// An agent that crashes says that rlimits may have been too narrow for it, where they
// are what bounds its memory.
func TestACrashUnderRlimitsSaysSo(t *testing.T) {
	t.Parallel()
	w := startConfigured(t, func(string) {}, func(c *session.Config) { c.Limits.Memory = 512 << 20 }, "bash", "-c", "kill -ILL $$")
	s := *w.happened("its start", func(e api.Event) bool { return e.Kind == "session.started" }).Session
	<-w.Done()
	o := w.over()
	said := strings.Contains(o.Reason, "without cgroups each program may have 512 MiB")
	if o.EndedBy != api.ByAgent || o.Exit.Signal != "SIGILL" || said != strings.Contains(s.Limits.Source, "rlimits") {
		t.Errorf("kept by %s; ended by %s, %+v: %q", s.Limits.Source, o.EndedBy, o.Exit, o.Reason)
	}
}

// Where nothing bounds shared memory, what has too much is paused.
func TestTooMuchSharedMemoryPauses(t *testing.T) {
	t.Parallel()
	w := startConfigured(t, func(string) {}, func(c *session.Config) { c.Limits.Memory = 128 << 20 }, "python3", "-c",
		"import os; fd = os.memfd_create('x'); [os.write(fd, bytes(1 << 20)) for i in range(150)]; input()")
	s := *w.happened("its start", func(e api.Event) bool { return e.Kind == "session.started" }).Session
	if s.Limits.Source != "rlimits" {
		t.Skipf("memory is bounded by %s", s.Limits.Source)
	}
	if text := w.noted("the session is paused"); !strings.Contains(text, "its programs have 150 MiB of shared memory, and may have 128 MiB") {
		t.Errorf("told %q", text)
	}
	_, err := w.Continue(t.Context())
	w.must(err)
}

// A System V segment stays when nobody has it attached: an agent that makes one after the
// other and lets go of each has what no look at its processes finds.
func TestTooManySegmentsPause(t *testing.T) {
	t.Parallel()
	w := startConfigured(t, func(string) {}, func(c *session.Config) { c.Limits.Memory = 128 << 20 }, "python3", "-c", `
import ctypes
c = ctypes.CDLL(None)
c.shmat.restype, c.shmat.argtypes = ctypes.c_void_p, [ctypes.c_int, ctypes.c_void_p, ctypes.c_int]
c.shmdt.argtypes = [ctypes.c_void_p]
for i in range(3):
    n = c.shmget(0, 50 << 20, 0o1600)
    if n == -1: print("no room"); break
    p = c.shmat(n, None, 0)
    ctypes.memset(p, 1, 50 << 20)
    c.shmdt(p)
input()`)
	s := *w.happened("its start", func(e api.Event) bool { return e.Kind == "session.started" }).Session
	if s.Limits.Source != "rlimits" {
		t.Skipf("memory is bounded by %s", s.Limits.Source)
	}
	if slices.ContainsFunc(s.Warnings, func(text string) bool { return strings.Contains(text, "and System V's may") }) {
		t.Skip("the kernel bounds it")
	}
	if text := w.noted("the session is paused"); !strings.Contains(text, "its programs have 150 MiB of shared memory, and may have 128 MiB") {
		t.Errorf("told %q", text)
	}
	_, err := w.Continue(t.Context())
	w.must(err)
}

// A session says which limits policies set, and where they stand.
func TestASessionSaysItsLimits(t *testing.T) {
	t.Parallel()
	w, _ := limited(t, "limits: {pids: 77, disk: 1G, wall-time: 1h, sent: 5M}\n", "read x")
	s := *w.happened("its start", func(e api.Event) bool { return e.Kind == "session.started" }).Session
	all := strings.Join(s.Limits.Rules, "\n")
	for _, want := range []string{"pids 77", "disk 1G", "wall-time 1h", "sent 5M"} {
		if !strings.Contains(all, want) || !strings.Contains(all, "policy.yaml:1") {
			t.Errorf("%s isn't among %s", want, all)
		}
	}
}
