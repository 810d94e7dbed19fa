package sshagent

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"stepbox/policy/git"
)

// Bounds on what is read of known_hosts files.
const (
	maxHostsFile = 4 << 20
	maxHosts     = 50_000
	maxNames     = 4 // of one host, that a person is shown
)

// KnownHosts are the servers that a person knows, see sshd(8), "SSH_KNOWN_HOSTS FILE
// FORMAT". They don't change.
type KnownHosts struct {
	lines []hostLine
}

type hostLine struct {
	names   []string
	key     ssh.PublicKey
	revoked bool
}

// ReadKnownHosts reads files; those that aren't there are none. Lines that can't be
// read are passed over, as ssh(1) does.
func ReadKnownHosts(files ...string) *KnownHosts {
	k := &KnownHosts{}
	for _, file := range files {
		real, err := filepath.EvalSymlinks(file)
		if err != nil {
			continue
		}
		data, _ := git.ReadFile(real, maxHostsFile) // what can't be read is known by nobody
		for len(data) > 0 && len(k.lines) < maxHosts {
			var line []byte
			line, data, _ = bytes.Cut(data, []byte("\n"))
			marker, names, key, _, _, err := ssh.ParseKnownHosts(append(line, '\n'))
			if err == nil && (marker == "" || marker == "revoked") {
				k.lines = append(k.lines, hostLine{names, key, marker == "revoked"})
			}
		}
	}
	return k
}

// ErrRevoked is of a host key that the person has marked so.
var ErrRevoked = errors.New("known_hosts says that this server's key is revoked")

// Names are the names under which a host key is known, as a person reads them; "" when it
// isn't. Names that known_hosts has hashed can't be told: such a host is said to be one.
func (k *KnownHosts) Names(key ssh.PublicKey) (string, error) {
	blob := key.Marshal()
	var names []string
	hashed := false
	for _, l := range k.lines {
		if !bytes.Equal(l.key.Marshal(), blob) {
			continue
		}
		if l.revoked {
			return "", ErrRevoked
		}
		for _, n := range l.names {
			switch {
			case strings.HasPrefix(n, "|"):
				hashed = true
			case !strings.ContainsAny(n, "*?!") && !slices.Contains(names, n):
				names = append(names, n)
			}
		}
	}
	if more := len(names) - maxNames; more > 0 {
		names = append(names[:maxNames], fmt.Sprintf("%d more", more))
	}
	if len(names) == 0 && hashed {
		return "a known host whose name is hashed", nil
	}
	return strings.Join(names, ", "), nil
}

// Hashed is a known_hosts file with the same servers, for the sandbox: its ssh can check
// them, and nothing there can read which they are. Patterns stay out, which can't be hashed.
func (k *KnownHosts) Hashed() []byte {
	var out bytes.Buffer
	for _, l := range k.lines {
		for _, n := range l.names {
			switch {
			case l.revoked:
				n = "@revoked *"
			case strings.ContainsAny(n, "*?!"):
				continue
			case !strings.HasPrefix(n, "|"):
				n = knownhosts.HashHostname(n)
			}
			fmt.Fprintf(&out, "%s %s", n, ssh.MarshalAuthorizedKey(l.key))
		}
	}
	return out.Bytes()
}
