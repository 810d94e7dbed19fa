package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"stepbox/session/api"
	"stepbox/session/ledger"
	"stepbox/store"
)

// killsEnv says at how many moments supervisors are killed: 1000 takes most of an hour.
const killsEnv = "STEPBOX_TEST_KILLS"

// busy is an agent that starts programs, writes files and prints as fast as it can.
const busy = `i=0; while :; do i=$((i+1)); echo "line $i"; echo $i > f$((i%20)); cat f* | tr 1 2 > g$((i%7)); rm -f g3; mkdir -p d/$i; done`

// TestKilledAtAnyMoment kills the supervisor of a busy session at random moments, its
// start included. Each time the database is sound, the record is whole to the last
// event that a client was told and has all of those and all the output, as they were
// told, and nothing of the sandbox is left once another command has run.
func TestKilledAtAnyMoment(t *testing.T) {
	kills, _ := strconv.Atoi(os.Getenv(killsEnv)) // else the default
	if kills == 0 {
		kills = 20
	}
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	t.Logf("%d kills, seed %d", kills, seed)
	var mu sync.Mutex
	met := map[string]int{}
	t.Cleanup(func() { t.Logf("what clients had been told when it came: %v", met) })
	for n := range kills {
		after := time.Duration(random.Int64N(int64(1500 * time.Millisecond)))
		t.Run(strconv.Itoa(n), func(t *testing.T) {
			if n%2 == 1 { // two at a time
				t.Parallel()
			}
			k := &killed{T: t, work: t.TempDir()}
			k.run(after)
			k.check()
			mu.Lock()
			defer mu.Unlock()
			met[k.summary()]++
		})
	}
}

// killed is one session whose supervisor is killed.
type killed struct {
	*testing.T
	work string
	env  []string

	// Below: what a client was told, complete when it has ended.
	id     string
	told   []api.Event
	output []byte
}

func (k *killed) data() string { return filepath.Join(k.work, "data") }

// run starts a session and kills its supervisor so long after that began to run.
func (k *killed) run(after time.Duration) {
	k.Helper()
	k.prepare()
	var said bytes.Buffer
	start := k.stepbox("run", "--mode", "watch", "--detach", "--", "sh", "-c", busy)
	start.Stderr = &said
	if err := start.Start(); err != nil {
		k.Fatal(err)
	}
	supervisor, _ := k.supervisor(start)
	defer unix.Close(supervisor)
	moment := time.After(after)
	ctx, cancel := context.WithCancel(k.Context())
	var client sync.WaitGroup
	client.Go(func() { k.follow(ctx) })
	<-moment
	if err := unix.PidfdSendSignal(supervisor, unix.SIGKILL, nil, 0); err != nil {
		k.Errorf("the supervisor had ended before: %v; it said %s", err, &said)
	}
	_ = start.Wait() // it may have been told that it runs, or that it doesn't
	poll := []unix.PollFd{{Fd: int32(supervisor), Events: unix.POLLIN}}
	for err := error(unix.EINTR); err == unix.EINTR; {
		_, err = unix.Poll(poll, int(patience.Milliseconds()))
	}
	cancel()
	client.Wait()
}

// prepare makes the folders of a person.
func (k *killed) prepare() {
	k.Helper()
	k.env = append(os.Environ(), "STEPBOX_DATA="+k.data(), "SHELL=/bin/sh", "TERM=dumb")
	for _, dir := range []string{"home", "project", "run"} {
		if err := os.Mkdir(filepath.Join(k.work, dir), 0o700); err != nil {
			k.Fatal(err)
		}
	}
	k.env = append(k.env, "HOME="+filepath.Join(k.work, "home"), "XDG_RUNTIME_DIR="+filepath.Join(k.work, "run"))
}

func (k *killed) stepbox(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(k.Context(), "stepbox", args...)
	cmd.Env, cmd.Dir = k.env, filepath.Join(k.work, "project")
	return cmd
}

// supervisor waits for the session's supervisor and holds on to it.
func (k *killed) supervisor(start *exec.Cmd) (fd, pid int) {
	k.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); <-time.After(time.Millisecond) {
		var children []byte
		tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", start.Process.Pid)) // any of its threads may have started it
		for _, t := range tasks {
			b, _ := os.ReadFile(t) // it may be gone
			children = append(children, b...)
		}
		for _, child := range strings.Fields(string(children)) {
			line, _ := os.ReadFile("/proc/" + child + "/cmdline")
			if strings.Contains(string(line), "\x00supervise") {
				n, err := strconv.Atoi(child)
				if err == nil {
					fd, err = unix.PidfdOpen(n, 0)
				}
				if err != nil {
					k.Fatal(err)
				}
				return fd, n
			}
		}
	}
	k.Fatal("no supervisor was started")
	return -1, 0
}

// follow reads the events and the output of the session as soon as it can, until its
// supervisor is gone.
func (k *killed) follow(ctx context.Context) {
	var note struct{ Socket string }
	for note.Socket == "" {
		select {
		case <-ctx.Done():
			return
		case <-time.After(2 * time.Millisecond):
		}
		notes, _ := filepath.Glob(filepath.Join(k.data(), "live/*.json")) // a pattern that is well-formed
		if len(notes) == 0 {
			continue
		}
		b, err := os.ReadFile(notes[0])
		if err != nil || json.Unmarshal(b, &note) != nil {
			note.Socket = ""
			continue
		}
		if _, err := os.Stat(note.Socket); err != nil {
			note.Socket = ""
		}
		k.id = strings.TrimSuffix(filepath.Base(notes[0]), ".json")
	}
	c := api.NewClientFunc(func(ctx context.Context) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", note.Socket)
	})
	defer c.Close()
	var output sync.WaitGroup
	defer output.Wait()
	output.Go(func() {
		conn, err := c.Output(ctx, k.id)
		if err != nil {
			return // it is killed already
		}
		defer conn.Close()
		for f, err := conn.Read(); err == nil; f, err = conn.Read() {
			k.output = append(k.output, f.Data...)
		}
	})
	for e, err := range c.Events(ctx, k.id, 0) {
		if err != nil {
			return
		}
		if e.Seq > 0 {
			k.told = append(k.told, e)
		}
	}
}

// check looks at what is left.
func (k *killed) check() {
	k.Helper()
	out, err := k.stepbox("verify", "--all").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "the database: whole") {
		k.Errorf("verify: %v\n%s", err, out)
	}
	// Before there is a holder nobody sees to that but the next command.
	left := traces(k.work)
	for end := time.Now().Add(patience); len(left) > 0 && time.Now().Before(end); left = traces(k.work) {
		if out, err := k.stepbox("ls").CombinedOutput(); err != nil {
			k.Fatalf("ls: %v\n%s", err, out)
		}
	}
	if len(left) > 0 {
		k.Errorf("it left behind:\n  %s", strings.Join(left, "\n  "))
	}
	if k.id == "" || len(k.told) == 0 {
		return
	}
	st, err := store.OpenReadOnly(k.Context(), k.data())
	if err != nil {
		k.Fatal(err)
	}
	defer st.Close()
	h := &ledger.History{Store: st, Live: func(string) bool { return false }}
	i := 0
	for e, err := range h.Recorded(k.Context(), k.id, 0) {
		if err != nil {
			k.Fatal(err)
		}
		if i == len(k.told) {
			break
		}
		if !reflect.DeepEqual(e, k.told[i]) {
			k.Fatalf("event %d was told as\n%+v\nand is in the record as\n%+v", e.Seq, k.told[i], e)
		}
		i++
	}
	if i < len(k.told) {
		k.Errorf("%d events were told and %d of them are in the record", len(k.told), i)
	}
	var recorded []byte
	for f, err := range h.Output(k.Context(), k.id) {
		if err != nil {
			k.Fatal(err)
		}
		recorded = append(recorded, f.Data...)
	}
	if !bytes.HasPrefix(recorded, k.output) {
		k.Errorf("%d bytes of output were told that aren't the first of the %d in the record", len(k.output), len(recorded))
	}
}

// summary says when it was killed, in what a client had seen by then.
func (k *killed) summary() string {
	switch n := len(k.told); {
	case k.id == "":
		return "no session"
	case n == 0:
		return "no event"
	case n < 100:
		return "some events"
	default:
		return "100 events and more"
	}
}
