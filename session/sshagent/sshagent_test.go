package sshagent

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
	"golang.org/x/crypto/ssh/knownhosts"

	"stepbox/session/e2e/must"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a person's agent with one key, and what the sandbox's clients are told by.
type rig struct {
	t    *testing.T
	ring agent.Agent
	key  ssh.PublicKey
	sock string

	mu    sync.Mutex
	agent *Agent // as the next client is served
	uses  []Use
	say   error
}

// known changes which hosts the person knows.
func (r *rig) known(k *KnownHosts) {
	r.mu.Lock()
	defer r.mu.Unlock()
	next := *r.agent
	next.Hosts = k
	r.agent = &next
}

// says changes what the person says.
func (r *rig) says(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.say = err
}

func newRig(t *testing.T) *rig {
	r := &rig{t: t, ring: agent.NewKeyring()}
	_, private, err := ed25519.GenerateKey(nil)
	if err == nil {
		err = r.ring.Add(agent.AddedKey{PrivateKey: private, Comment: "me@laptop"})
	}
	must.OK(t, err)
	if r.key, err = ssh.NewPublicKey(private.Public()); err != nil {
		t.Fatal(err)
	}
	r.agent = &Agent{
		Dial: func(context.Context) (io.ReadWriteCloser, error) {
			ours, theirs := net.Pipe()
			go func() { _ = agent.ServeAgent(r.ring, theirs); theirs.Close() }()
			return ours, nil
		},
		Ask: func(_ context.Context, u Use) error {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.uses = append(r.uses, u)
			return r.say
		},
		Refused: func(error) {},
		Hosts:   &KnownHosts{},
	}
	r.sock = filepath.Join(t.TempDir(), "sock")
	l, err := net.Listen("unix", r.sock)
	must.OK(t, err)
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			r.mu.Lock()
			a := r.agent
			r.mu.Unlock()
			serving.Go(func() { _ = a.Serve(context.Background(), c) })
		}
	})
	t.Cleanup(func() { l.Close(); serving.Wait() })
	return r
}

func (r *rig) asked() []Use {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.uses
}

// run runs a real program of OpenSSH with our agent.
func (r *rig) run(stdin string, argv ...string) (string, error) {
	r.t.Helper()
	if _, err := exec.LookPath(argv[0]); err != nil {
		r.t.Skipf("%s isn't installed", argv[0])
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), "SSH_AUTH_SOCK="+r.sock)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// server is one that lets the rig's key in; its address, and its host key.
func (r *rig) server() (port string, host ssh.PublicKey) {
	_, private, err := ed25519.GenerateKey(nil)
	must.OK(r.t, err)
	signer, err := ssh.NewSignerFromKey(private)
	must.OK(r.t, err)
	config := &ssh.ServerConfig{PublicKeyCallback: func(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
		if !bytes.Equal(key.Marshal(), r.key.Marshal()) {
			return nil, errors.New("another key")
		}
		return nil, nil
	}}
	config.AddHostKey(signer)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.OK(r.t, err)
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { greet(c, config) })
		}
	})
	r.t.Cleanup(func() { l.Close(); serving.Wait() })
	_, port, _ = net.SplitHostPort(l.Addr().String())
	return port, signer.PublicKey()
}

// greet runs whatever command a client asks for as "welcome".
func greet(c net.Conn, config *ssh.ServerConfig) {
	defer c.Close()
	conn, channels, requests, err := ssh.NewServerConn(c, config)
	if err != nil {
		return
	}
	defer conn.Close()
	go ssh.DiscardRequests(requests)
	for n := range channels {
		ch, reqs, err := n.Accept()
		if err != nil {
			return
		}
		for q := range reqs {
			_ = q.Reply(q.Type == "exec", nil)
			if q.Type == "exec" {
				fmt.Fprintln(ch, "welcome")
				_, _ = ch.SendRequest("exit-status", false, make([]byte, 4))
				ch.Close()
			}
		}
	}
}

func (r *rig) ssh(port, hosts string, more ...string) (string, error) {
	argv := []string{"ssh", "-F", "none", "-p", port, "-o", "BatchMode=yes", "-o", "GlobalKnownHostsFile=" + hosts, "-o", "UserKnownHostsFile=/dev/null"}
	return r.run("", append(append(argv, more...), "git@127.0.0.1", "hello")...)
}

// A real client signs in by the person's key, and the person is told which server that is.
func TestSignIn(t *testing.T) {
	r := newRig(t)
	port, host := r.server()
	name := "[127.0.0.1]:" + port
	known := filepath.Join(t.TempDir(), "known")
	must.OK(t, os.WriteFile(known, []byte(knownhosts.Line([]string{name, "box.example"}, host)+"\n"), 0o600))
	hosts := ReadKnownHosts(known)
	r.known(hosts)
	hashed := filepath.Join(t.TempDir(), "hashed")
	must.OK(t, os.WriteFile(hashed, hosts.Hashed(), 0o600))
	if text := string(hosts.Hashed()); strings.Contains(text, "127.0.0.1") || strings.Contains(text, "box.example") {
		t.Errorf("the sandbox can read where the person signs in: %s", text)
	}
	out, err := r.ssh(port, hashed)
	if err != nil || !strings.Contains(out, "welcome") {
		t.Fatalf("%v: %s", err, out)
	}
	uses := r.asked()
	if len(uses) != 1 {
		t.Fatalf("asked %d times: %+v", len(uses), uses)
	}
	u := uses[0]
	if u.Key != "me@laptop" || u.Fingerprint != ssh.FingerprintSHA256(r.key) || u.User != "git" || u.Host != name+", box.example" || u.HostKey != ssh.FingerprintSHA256(host) || u.Forwarded || u.Namespace != "" {
		t.Errorf("asked about %+v", u)
	}
	r.says(errors.New("no"))
	if out, err := r.ssh(port, hashed); err == nil || !strings.Contains(out, "agent refused operation") {
		t.Errorf("denied: %v, %s", err, out)
	}
	// A server that nobody knows is told of as such.
	r.says(nil)
	r.known(&KnownHosts{})
	if out, err := r.ssh(port, hashed); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if u := r.asked()[2]; u.Host != "" || u.HostKey == "" {
		t.Errorf("an unknown server: %+v", u)
	}
	must.OK(t, os.WriteFile(known, []byte("@revoked * "+string(ssh.MarshalAuthorizedKey(host))), 0o600))
	r.known(ReadKnownHosts(known))
	if out, err := r.ssh(port, hashed); err == nil || len(r.asked()) != 3 {
		t.Errorf("a revoked host key: %v, %s, asked %d times", err, out, len(r.asked()))
	}
}

// What is signed says what for, and the signature is good.
func TestSignature(t *testing.T) {
	r := newRig(t)
	dir := t.TempDir()
	pub := filepath.Join(dir, "key.pub")
	must.OK(t, os.WriteFile(pub, ssh.MarshalAuthorizedKey(r.key), 0o600))
	out, err := r.run("a commit", "ssh-keygen", "-Y", "sign", "-n", "git", "-f", pub)
	if err != nil || !strings.Contains(out, "BEGIN SSH SIGNATURE") {
		t.Fatalf("%v: %s", err, out)
	}
	if uses := r.asked(); len(uses) != 1 || uses[0].Namespace != "git" || uses[0].User != "" || uses[0].Digest == "" {
		t.Errorf("asked about %+v", uses)
	}
	if out, err := r.run("", "ssh-add", "-l"); err != nil || !strings.Contains(out, "me@laptop") {
		t.Errorf("ssh-add -l: %v, %s", err, out)
	}
	for _, argv := range [][]string{{"ssh-add", "-D"}, {"ssh-add", "-d", pub}, {"ssh-add", "-X"}} {
		_, _ = r.run("", argv...)
	}
	if keys, err := r.ring.List(); err != nil || len(keys) != 1 {
		t.Errorf("the person's agent was changed: %v (%v)", keys, err)
	}
}

// signIn is what is signed to sign in, with what an attacker changes in it.
func signIn(session string, key ssh.PublicKey, change func(m *fields)) []byte {
	m := fields{Session: []byte(session), Type: 50, User: "git", For: "ssh-connection", Method: "publickey", Signed: true, Algorithm: key.Type(), Key: key.Marshal()}
	if change != nil {
		change(&m)
	}
	return ssh.Marshal(m)
}

type fields struct {
	Session           []byte
	Type              byte
	User, For, Method string
	Signed            bool
	Algorithm         string
	Key               []byte
	Rest              []byte `ssh:"rest"`
}

// What isn't known for certain isn't signed, and nobody is asked.
func TestWhatIsNotSigned(t *testing.T) {
	r := newRig(t)
	other := newRig(t).key
	_, private, _ := ed25519.GenerateKey(nil)
	host, err := ssh.NewSignerFromKey(private)
	must.OK(t, err)
	bind := func(session string, forward bool) []byte {
		sig, err := host.Sign(nil, []byte(session))
		must.OK(t, err)
		return ssh.Marshal(struct {
			Host, Session, Signature []byte
			Forward                  bool
		}{host.PublicKey().Marshal(), []byte(session), ssh.Marshal(sig), forward})
	}
	forged := bind("one", false)
	forged[len(forged)-8] ^= 1
	type step struct {
		extend []byte
		sign   []byte
		fails  bool
	}
	for name, c := range map[string][]step{
		"any bytes":         {{sign: []byte("anything"), fails: true}},
		"nothing":           {{sign: nil, fails: true}},
		"a signature cut":   {{sign: []byte("SSHSIG\x00\x00\x00\x03git"), fails: true}},
		"another key":       {{sign: signIn("one", other, nil), fails: true}},
		"another service":   {{sign: signIn("one", r.key, func(m *fields) { m.For = "other" }), fails: true}},
		"another message":   {{sign: signIn("one", r.key, func(m *fields) { m.Type = 51 }), fails: true}},
		"another method":    {{sign: signIn("one", r.key, func(m *fields) { m.Method = "password" }), fails: true}},
		"more behind it":    {{sign: signIn("one", r.key, func(m *fields) { m.Rest = []byte("x") }), fails: true}},
		"unproven":          {{sign: signIn("one", r.key, nil)}},
		"proven":            {{extend: bind("one", false)}, {sign: signIn("one", r.key, nil)}},
		"another session":   {{extend: bind("one", false)}, {sign: signIn("two", r.key, nil), fails: true}},
		"a forged proof":    {{extend: forged, fails: true}},
		"bound twice":       {{extend: bind("one", false)}, {extend: bind("two", false), fails: true}},
		"forwarded":         {{extend: bind("one", true)}, {sign: signIn("one", r.key, nil), fails: true}},
		"by way of another": {{extend: bind("one", true)}, {extend: bind("two", false)}, {sign: signIn("two", r.key, nil)}},
		"another host in it": {{extend: bind("one", false)}, {fails: true, sign: signIn("one", r.key, func(m *fields) {
			m.Method, m.Rest = boundMethod, ssh.Marshal(struct{ H []byte }{other.Marshal()})
		})}},
		"its host in it": {{extend: bind("one", false)}, {sign: signIn("one", r.key, func(m *fields) {
			m.Method, m.Rest = boundMethod, ssh.Marshal(struct{ H []byte }{host.PublicKey().Marshal()})
		})}},
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := net.Dial("unix", r.sock)
			must.OK(t, err)
			defer conn.Close()
			client, before := agent.NewClient(conn), len(r.asked())
			for i, s := range c {
				if s.extend != nil {
					_, err = client.Extension(bindType, s.extend)
				} else {
					_, err = client.Sign(r.key, s.sign)
				}
				if (err != nil) != s.fails {
					t.Errorf("step %d: %v", i, err)
				}
				if asked := len(r.asked()) - before; s.sign != nil && (asked == 0) != s.fails {
					t.Errorf("step %d: asked %d times", i, asked)
				}
			}
			if name == "by way of another" && !r.asked()[len(r.asked())-1].Forwarded {
				t.Error("a use by a server on the way isn't said to be one")
			}
		})
	}
}

// A client that goes away withdraws what it asked for.
func TestClientGoesAway(t *testing.T) {
	r := newRig(t)
	asked, ended := make(chan struct{}), make(chan error, 1)
	r.agent.Ask = func(ctx context.Context, _ Use) error {
		close(asked)
		<-ctx.Done()
		ended <- ctx.Err()
		return ctx.Err()
	}
	conn, err := net.Dial("unix", r.sock)
	must.OK(t, err)
	go func() { <-asked; conn.Close() }()
	if _, err := agent.NewClient(conn).Sign(r.key, signIn("one", r.key, nil)); err == nil {
		t.Error("signed")
	}
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// A client can't have room made for what it doesn't send.
func TestMessagesAreBounded(t *testing.T) {
	r := newRig(t)
	for _, size := range []uint32{0, maxMessage + 1, 1 << 31} {
		conn, err := net.Dial("unix", r.sock)
		must.OK(t, err)
		var b [4]byte
		binary.BigEndian.PutUint32(b[:], size)
		if _, err := conn.Write(b[:]); err != nil {
			t.Fatal(err)
		}
		if n, err := io.Copy(io.Discard, conn); n != 0 || err != nil && !errors.Is(err, io.EOF) {
			t.Errorf("%d: %d bytes, %v", size, n, err)
		}
		conn.Close()
	}
}

func FuzzUse(f *testing.F) {
	f.Add([]byte("SSHSIG\x00\x00\x00\x03git"))
	f.Add([]byte("\x00\x00\x00\x01x\x32\x00\x00\x00\x03git"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if r, err := requestOf(data); err == nil && (len(r.session) == 0 || bytes.HasPrefix(data, []byte("SSHSIG"))) {
			t.Errorf("%q is taken for signing in", data)
		}
		_, _ = signatureOf(data)
	})
}

func TestKnownHostsFiles(t *testing.T) {
	key := newRig(t).key
	line := string(ssh.MarshalAuthorizedKey(key))
	dir := t.TempDir()
	for text, want := range map[string]string{
		"a.example " + line: "a.example",
		"a.example,192.0.2.1 " + line + "b.example " + line: "a.example, 192.0.2.1, b.example",
		"*.example,!x.example " + line:                      "",
		knownhosts.HashHostname("a.example") + " " + line:   "a known host whose name is hashed",
		"garbage\n\n# comment\na.example " + line:           "a.example",
		"@cert-authority *.example " + line:                 "",
		"a ssh-ed25519 broken\nb.example " + line:           "b.example",
		"a,b,c,d,e,f " + line:                               "a, b, c, d, 2 more",
	} {
		file := filepath.Join(dir, "known")
		must.OK(t, os.WriteFile(file, []byte(text), 0o600))
		if got, err := ReadKnownHosts(filepath.Join(dir, "none"), dir, "/dev/zero", file).Names(key); got != want || err != nil {
			t.Errorf("%q: %q (%v), want %q", text, got, err, want)
		}
	}
}
