// Package pid1 is the first process of a sandbox: it starts the agent under the
// exec gate, reaps every orphan, says how the agent ended, and ends everything
// once its supervisor is gone.
//
// It runs among hostile processes with nothing to steal: no capabilities, an
// empty environment, not dumpable (so that no process of the sandbox may trace
// it or open its descriptors), executed from a sealed memfd and static, so that
// nothing of the sandbox's root is ever loaded into it. It executes nothing but
// the agent. The kernel drops signals from inside a pid namespace that PID 1
// doesn't handle (pid_namespaces(7)), and it handles none: the Go runtime, which
// does, would take a queued SIGSEGV for a fault of its own and die of it.
//
// Concurrency: one locked thread installs the filter and forks the agent, since
// filters belong to a thread; one goroutine reads the control socket, one
// reaps. The supervisor is trusted; see Parse for how little it trusts back.
package pid1

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"unicode"

	"golang.org/x/sys/unix"

	"stepbox/runner/seqpacket"
)

// The descriptors that a supervisor hands over.
const (
	SelfFD    = 3 // the sealed memfd that PID 1 runs from
	ControlFD = 4 // its end of the control socket
)

// Main is PID 1. It never returns. install puts the gate's filter on the
// calling thread and gives the listener's descriptor.
func Main(install func() (int, error)) {
	// A lone thread can lock itself before anything else runs.
	runtime.LockOSThread()
	if os.Getpid() != 1 {
		fmt.Fprintln(os.Stderr, "stepbox: pid1 is what a sandbox runs first; it is of no use elsewhere")
		os.Exit(2)
	}
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		os.Exit(3)
	}
	deafen()
	unix.Close(SelfFD)
	control, err := seqpacket.New(ControlFD)
	if err != nil {
		os.Exit(3)
	}
	p := &process{control: control, began: make(chan struct{})}
	if err := p.run(install); err != nil {
		p.fail(err)
	}
	select {} // the other goroutines end the process
}

type process struct {
	control *seqpacket.Conn
	kept    []*os.File    // what shows others that this process lives
	began   chan struct{} // closed once told to go
}

func (p *process) run(install func() (int, error)) error {
	program, err := p.program()
	if err != nil {
		return err
	}
	path, err := Find(program)
	if err != nil {
		return err
	}
	sockets := listen(program.Sockets)
	listener, err := install()
	if err != nil {
		return fmt.Errorf("cannot install the exec gate: %w", err)
	}
	if err := guard(program.Common, program.Own); err != nil {
		return fmt.Errorf("cannot guard what processes share: %w", err)
	}
	file := os.NewFile(uintptr(listener), "listener")
	if err := p.say(Message{Kind: Ready}, append([]*os.File{file}, sockets...)...); err != nil {
		return err
	}
	// Whoever holds the listener approves; only the supervisor may. What comes to
	// the sockets is for the supervisor alone as well.
	file.Close()
	closeAll(sockets)
	go p.watch()
	<-p.began
	return p.start(program, path)
}

// program reads what to start from the supervisor.
func (p *process) program() (Program, error) {
	buffer := make([]byte, MessageLimit)
	n, files, err := p.control.Receive(buffer, 2)
	if err != nil {
		return Program{}, err
	}
	var m Message
	if err := json.Unmarshal(buffer[:n], &m); err != nil || m.Kind != Start || len(files) < 1 {
		return Program{}, errors.New("the supervisor didn't say what to start")
	}
	defer files[0].Close()
	p.kept = files[1:]
	var program Program
	// The offset belongs to the description, which the supervisor has written through.
	encoded, err := io.ReadAll(io.NewSectionReader(files[0], 0, ProgramLimit))
	if err != nil {
		return Program{}, err
	}
	if err := json.Unmarshal(encoded, &program); err != nil {
		return Program{}, fmt.Errorf("cannot read what to start: %w", err)
	}
	if len(program.Argv) == 0 {
		return Program{}, errors.New("the supervisor named no program")
	}
	return program, nil
}

// start forks the agent from the locked thread, reports whether its program
// runs, and begins to reap.
func (p *process) start(program Program, path string) error {
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
		return err
	}
	tty := -1
	if _, err := unix.IoctlGetTermios(0, unix.TCGETS); err == nil {
		tty = 0
	}
	pid, err := spawn(path, program, tty, pipe[1])
	unix.Close(pipe[1])
	if err != nil {
		return fmt.Errorf("cannot start %q: %w", program.Argv[0], err)
	}
	go func() {
		// Blocks for as long as the gate holds the first exec.
		var failure [4]byte
		n, _ := unix.Read(pipe[0], failure[:])
		unix.Close(pipe[0])
		if n == len(failure) {
			errno := unix.Errno(binary.NativeEndian.Uint32(failure[:]))
			p.fail(&startError{CannotRun, fmt.Sprintf("cannot start %q: %v", program.Argv[0], errno)})
		}
		if p.say(Message{Kind: Started}) != nil {
			p.end()
		}
		p.reap(pid)
	}()
	return nil
}

// reap collects every process that ends and reports the agent.
func (p *process) reap(agent int) {
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, unix.WALL, nil)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return // no child is left; the supervisor says when to end
		}
		if pid != agent || !(status.Exited() || status.Signaled()) {
			continue
		}
		m := Message{Kind: Exited}
		if status.Signaled() {
			m.Signal = int(status.Signal())
		} else {
			m.Code = status.ExitStatus()
		}
		if p.say(m) != nil {
			p.end()
		}
	}
}

// watch waits for the supervisor's word or its end, and ends everything at
// either.
func (p *process) watch() {
	buffer := make([]byte, MessageLimit)
	for {
		n, files, err := p.control.Receive(buffer, 0)
		for _, f := range files {
			f.Close()
		}
		var m Message
		if err != nil || json.Unmarshal(buffer[:n], &m) != nil {
			p.end()
		}
		switch m.Kind {
		case Go:
			close(p.began)
		default:
			p.end()
		}
	}
}

func (p *process) say(m Message, files ...*os.File) error {
	encoded, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return p.control.Send(encoded, files...)
}

// fail reports why the agent can't be started, and exits once the supervisor
// has read it.
func (p *process) fail(err error) {
	text := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, err.Error())
	if len(text) > MessageLimit/4 { // JSON may make a byte four times as long
		text = text[:MessageLimit/4]
	}
	text = strings.ToValidUTF8(text, "?")
	m := Message{Kind: Failed, Error: text}
	var start *startError
	if errors.As(err, &start) {
		m.Code = start.code
	}
	if p.say(m) == nil {
		// What was sent stays readable after this end is closed.
		p.control.Close()
	}
	p.end()
}

// end kills what is left. The kernel kills a pid namespace with its PID 1, but
// this doesn't have to wait for the runtime's own way out.
func (p *process) end() {
	_ = unix.Kill(-1, unix.SIGKILL)
	os.Exit(0)
}
