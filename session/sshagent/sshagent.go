// Package sshagent stands between a sandbox and the person's ssh-agent: it lists
// the person's keys, and has the person asked about each use of one. Private keys
// stay where they are.
//
// What is asked about is what would be signed, which is parsed here: signing in to
// a server, or a signature of a file or a commit. Anything else is refused. The
// server's name is known when the client proved with session-bind@openssh.com
// whose host key the session has (OpenSSH's PROTOCOL.agent, section 1) and the
// person's known_hosts has that key.
//
// An Agent may serve several connections at once. Clients are hostile; the
// upstream agent is trusted.
package sshagent

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
)

// Bounds on what a client sends and gets.
const (
	maxMessage  = 256 << 10 // OpenSSH's own agent takes as much, AGENT_MAX_LEN
	maxBindings = 16        // as OpenSSH's agent, AGENT_MAX_SESSION_IDS
	maxKeys     = 200
)

// Use is one use of a key that a client wants.
type Use struct {
	Key         string // the key's comment, as the person named it
	Fingerprint string // SHA256:…, as ssh-keygen -l prints it

	// Of signing in to a server.
	User    string
	Host    string // the names under which known_hosts has the proven host key, or ""
	HostKey string // the proven host key's fingerprint; "" is unproven
	// Forwarded says that a server on the way asks, and not a program of the sandbox.
	Forwarded bool

	// Of a signature: what it is for, as "git" or "file" (OpenSSH's PROTOCOL.sshsig).
	Namespace string

	Digest string // SHA-256 of all that would be signed, in hexadecimal
}

// Agent serves clients. Its fields are set before the first one and not changed.
type Agent struct {
	// Dial connects to the person's own agent, once for each client.
	Dial func(ctx context.Context) (io.ReadWriteCloser, error)
	// Ask returns nil when the use is allowed. It may take as long as a person does;
	// ctx ends when the client is gone.
	Ask func(ctx context.Context, u Use) error
	// Refused is told why a use was refused without asking.
	Refused func(why error)
	// Hosts are the person's known ones.
	Hosts *KnownHosts
}

// Serve answers one client until it is gone, and closes the connection.
func (a *Agent) Serve(ctx context.Context, client io.ReadWriteCloser) error {
	defer client.Close()
	upstream, err := a.Dial(ctx)
	if err != nil {
		return fmt.Errorf("cannot reach your ssh-agent: %w", err)
	}
	defer upstream.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { client.Close(); upstream.Close() })
	defer stop()
	f := &frames{Reader: client, Writer: client, next: make(chan []byte)}
	var reading sync.WaitGroup
	reading.Go(func() {
		defer cancel() // what the client asked for is asked no more
		f.readAll(ctx)
	})
	s := &served{Agent: a, ctx: ctx, keys: agent.NewClient(upstream)}
	err = agent.ServeAgent(s, f)
	cancel()
	reading.Wait()
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// frames lets whole messages of a bounded size through, as the library makes room for
// whatever length it is told. It reads one ahead while a request is answered, so that
// it is seen when a client goes away.
type frames struct {
	io.Reader
	io.Writer

	next chan []byte
	err  error // set before next is closed
	rest []byte
}

func (f *frames) Read(p []byte) (int, error) {
	if len(f.rest) == 0 {
		message, ok := <-f.next
		if !ok {
			return 0, f.err
		}
		f.rest = message
	}
	n := copy(p, f.rest)
	f.rest = f.rest[n:]
	return n, nil
}

func (f *frames) readAll(ctx context.Context) {
	defer close(f.next)
	for {
		var size [4]byte
		if _, f.err = io.ReadFull(f.Reader, size[:]); f.err != nil {
			return
		}
		n := binary.BigEndian.Uint32(size[:])
		if n == 0 || n > maxMessage {
			f.err = fmt.Errorf("a message of %d bytes to the ssh-agent is refused: at most %d", n, maxMessage)
			return
		}
		message := make([]byte, 4+n)
		copy(message, size[:])
		if _, f.err = io.ReadFull(f.Reader, message[4:]); f.err != nil {
			return
		}
		select {
		case f.next <- message:
		case <-ctx.Done():
			f.err = io.EOF
			return
		}
	}
}

// served is one client's view of the person's keys.
type served struct {
	*Agent
	ctx   context.Context
	keys  agent.ExtendedAgent
	bound []binding
}

// binding is a session that a client has proven to be with the owner of a host key.
type binding struct {
	session []byte
	host    ssh.PublicKey
	forward bool
}

var errRefused = errors.New("the sandbox's ssh-agent only lists keys and signs with them")

func (s *served) List() ([]*agent.Key, error) {
	all, err := s.keys.List()
	return all[:min(len(all), maxKeys)], err
}

// Sign is SignWithFlags.
func (s *served) Sign(key ssh.PublicKey, data []byte) (*ssh.Signature, error) {
	return s.SignWithFlags(key, data, 0)
}

// SignWithFlags asks, and then has the person's agent sign.
func (s *served) SignWithFlags(key ssh.PublicKey, data []byte, flags agent.SignatureFlags) (*ssh.Signature, error) {
	all, err := s.List()
	if err != nil {
		return nil, err
	}
	for _, k := range all {
		if !bytes.Equal(k.Marshal(), key.Marshal()) {
			continue
		}
		u, err := s.use(k, key, data)
		if err != nil {
			s.Refused(fmt.Errorf("a use of the key %q was refused: %w", k.Comment, err))
			return nil, err
		}
		if err := s.Ask(s.ctx, u); err != nil {
			return nil, err
		}
		return s.keys.SignWithFlags(key, data, flags)
	}
	return nil, errors.New("there is no such key")
}

// bindType is the extension by which a client proves whose session it signs in to.
const bindType = "session-bind@openssh.com"

// Extension takes the proof of whose host key a session has.
func (s *served) Extension(kind string, contents []byte) ([]byte, error) {
	if kind != bindType {
		return nil, agent.ErrExtensionUnsupported
	}
	var m struct {
		HostKey, Session, Signature []byte
		Forwarding                  bool
	}
	if err := ssh.Unmarshal(contents, &m); err != nil {
		return nil, err
	}
	host, err := ssh.ParsePublicKey(m.HostKey)
	if err != nil {
		return nil, err
	}
	var signature ssh.Signature
	if err := ssh.Unmarshal(m.Signature, &signature); err != nil {
		return nil, err
	}
	if err := host.Verify(m.Session, &signature); err != nil {
		return nil, err
	}
	if len(s.bound) >= maxBindings {
		return nil, errors.New("too many sessions are bound to this connection")
	}
	if n := len(s.bound); n > 0 && !s.bound[n-1].forward {
		return nil, errors.New("this connection is bound to a session already")
	}
	s.bound = append(s.bound, binding{m.Session, host, m.Forwarding})
	return nil, nil
}

// What follows changes a person's agent, which nothing in a sandbox may.

func (s *served) Add(agent.AddedKey) error       { return errRefused }
func (s *served) Remove(ssh.PublicKey) error     { return errRefused }
func (s *served) RemoveAll() error               { return errRefused }
func (s *served) Lock([]byte) error              { return errRefused }
func (s *served) Unlock([]byte) error            { return errRefused }
func (s *served) Signers() ([]ssh.Signer, error) { return nil, errRefused }
