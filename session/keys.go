package session

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/time/rate"

	"stepbox/runner"
	"stepbox/runner/socket"
	"stepbox/session/api"
	"stepbox/session/loop"
	"stepbox/session/outfit"
	"stepbox/session/sshagent"
)

// keySocket is the socket at which the sandbox's programs find an ssh-agent.
const keySocket = "ssh-agent"

// keyLimits bound what the sandbox may have of it: a git push is one connection.
var keyLimits = socket.Limits{Conns: 8, PerSecond: 20}

// globalKnownHosts is where ssh(1) looks, below /etc.
const globalKnownHosts = "ssh/ssh_known_hosts"

// serveKeys lets the sandbox use the person's ssh-agent, if there is one. Each use is
// asked about. It is called before the sandbox is made.
func (s *Session) serveKeys(spec *runner.Spec, sockets map[string]socket.Service) {
	theirs := outfit.Variable(s.cfg.Env, "SSH_AUTH_SOCK")
	if info, err := os.Stat(theirs); theirs == "" || err != nil || info.Mode().Type() != os.ModeSocket {
		return
	}
	hosts := sshagent.ReadKnownHosts(filepath.Join(s.cfg.Home, ".ssh/known_hosts"), filepath.Join(s.cfg.Home, ".ssh/known_hosts2"),
		filepath.Join("/etc", globalKnownHosts), "/etc/ssh/ssh_known_hosts2")
	refusals := rate.NewLimiter(callRate, callBurst) // a program can have one refused thousands of times a second
	sockets[keySocket] = socket.Service{Limits: keyLimits, Serve: func(ctx context.Context, c *socket.Conn) {
		a := &sshagent.Agent{
			Dial: func(ctx context.Context) (io.ReadWriteCloser, error) {
				return (&net.Dialer{}).DialContext(ctx, "unix", theirs)
			},
			Ask: func(ctx context.Context, u sshagent.Use) error { return s.request(ctx, useOfKey(u, c.PID)) },
			Refused: func(why error) {
				if refusals.Allow() {
					s.warn("%v", why)
				}
			},
			Hosts: hosts,
		}
		if err := a.Serve(ctx, c); err != nil {
			s.log.Info("a client of the ssh-agent is gone", "error", err)
		}
	}}
	spec.Env = slices.DeleteFunc(spec.Env, func(e string) bool { return strings.HasPrefix(e, "SSH_AUTH_SOCK=") })
	spec.Env = append(spec.Env, "SSH_AUTH_SOCK="+runner.SocketPath(keySocket))
	if known := hosts.Hashed(); len(known) > 0 {
		if spec.Etc == nil {
			spec.Etc = make(map[string][]byte)
		}
		spec.Etc[globalKnownHosts] = known
	}
}

// warn tells the person of what was seen outside of the loop.
func (s *Session) warn(format string, args ...any) {
	text := api.Escape(api.Trim(fmt.Sprintf(format, args...), maxReason))
	s.loop.WhenStarted(func() {
		if s.loop.Now() < loop.Stopping {
			s.note(true, "%s", text)
		}
	})
}

// useOfKey is what a person is asked about a use of a key.
func useOfKey(u sshagent.Use, pid int) request {
	key, user := cmp.Or(u.Key, u.Fingerprint), plainName(u.User)
	r := request{Request: api.Request{Pid: pid, Program: programOf(pid)}}
	fact := func(name, value string) {
		if value != "" {
			r.Facts = append(r.Facts, api.Fact{Name: name, Value: api.Escape(api.Trim(value, maxReason))})
		}
	}
	switch {
	case u.Namespace == "git":
		r.title = "sign a git commit or tag with your key " + key
		fact("signs", "a commit or tag; what is in it isn't known, only its digest")
		r.Lasts = true
	case u.Namespace != "":
		r.title = fmt.Sprintf("sign something for %q with your key %s", api.Trim(u.Namespace, maxUser), key)
		fact("signs", fmt.Sprintf("something for the namespace %q; what it is isn't known, only its digest", u.Namespace))
	case u.Host != "":
		r.title = fmt.Sprintf("sign in to %s@%s with your key %s", user, u.Host, key)
		fact("host", u.Host+", as your known_hosts and the server's own key prove")
		r.Lasts = !u.Forwarded
	default:
		r.title = fmt.Sprintf("sign in as %s, to a host that isn't known, with your key %s", user, key)
		why := "the program proves none"
		if u.HostKey != "" {
			why = "your known_hosts hasn't its key"
		}
		fact("host", "unknown: "+why)
		r.Warn = append(r.Warn, "nobody can tell to which host this signs in")
	}
	if u.Forwarded {
		r.Warn = append(r.Warn, "a server asks for this that the agent was forwarded to, and no program in the sandbox")
	}
	fact("user", u.User)
	fact("host key", u.HostKey)
	fact("key", strings.TrimSpace(u.Key+" "+u.Fingerprint))
	fact("digest", "SHA-256 "+u.Digest)
	r.title = api.Escape(api.Trim(r.title, maxReason))
	r.same = strings.Join([]string{"key", u.Fingerprint, u.User, u.Host, u.HostKey, u.Namespace}, "\x00")
	return r
}

// maxUser is how much of a name that the sandbox says stands in a title, in bytes.
const maxUser = 64

// plainName is a user's name for a title. One that is more than a name could say there what
// the title doesn't, as another host, or push that out: it is cut, and in quotes.
func plainName(user string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-+$", r)
	}
	if user != "" && len(user) <= maxUser && !strings.ContainsFunc(user, func(r rune) bool { return !plain(r) }) {
		return user
	}
	return strconv.Quote(api.Trim(user, maxUser))
}

// programOf is the program that a process runs; "" isn't known.
func programOf(pid int) string {
	path, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	if err != nil {
		return ""
	}
	return api.Escape(path)
}
