package sshagent

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
)

// use says what a signature would be for. What isn't known for certain is refused: a
// signature of other bytes may be for anything.
func (s *served) use(k *agent.Key, key ssh.PublicKey, data []byte) (Use, error) {
	sum := sha256.Sum256(data)
	u := Use{Key: k.Comment, Fingerprint: ssh.FingerprintSHA256(key), Digest: hex.EncodeToString(sum[:])}
	if namespace, ok := signatureOf(data); ok {
		u.Namespace = namespace
		return u, nil
	}
	r, err := requestOf(data)
	if err != nil {
		return Use{}, err
	}
	if !bytes.Equal(r.key, key.Marshal()) {
		return Use{}, errors.New("the key that is to sign isn't the one that signs in")
	}
	u.User = r.user
	for _, b := range s.bound {
		u.Forwarded = u.Forwarded || b.forward
	}
	if len(s.bound) == 0 {
		return u, nil // as clients before OpenSSH 8.9: unproven
	}
	last := s.bound[len(s.bound)-1]
	switch {
	case last.forward:
		return Use{}, errors.New("a server on the way asks that the agent was forwarded to, and doesn't say for whom")
	case !bytes.Equal(last.session, r.session):
		return Use{}, errors.New("the session that is signed in to isn't the one that was proven")
	case r.host != nil && !bytes.Equal(r.host, last.host.Marshal()):
		return Use{}, errors.New("the host that is signed in to isn't the one that was proven")
	}
	u.HostKey = ssh.FingerprintSHA256(last.host)
	u.Host, err = s.Hosts.Names(last.host)
	return u, err
}

// request is what a client signs to sign in to a server.
type request struct {
	session, key []byte
	host         []byte // the server's key, of newer clients; else nil
	user         string
}

// The ways in which a client signs in with a key: RFC 4252, section 7, and OpenSSH's
// own that names the server's key as well (PROTOCOL, section 3.1).
const (
	plainMethod = "publickey"
	boundMethod = "publickey-hostbound-v00@openssh.com"
)

var errUnknown = errors.New("only signing in to a server, and signatures as ssh-keygen -Y makes them, are known: anything else isn't signed")

// requestOf parses what a client signs to sign in.
func requestOf(data []byte) (request, error) {
	var m struct {
		Session           []byte
		Type              byte // SSH_MSG_USERAUTH_REQUEST
		User, For, Method string
		Signed            bool
		Algorithm         string
		Key               []byte
		Rest              []byte `ssh:"rest"`
	}
	if err := ssh.Unmarshal(data, &m); err != nil {
		return request{}, errUnknown
	}
	r := request{session: m.Session, key: m.Key, user: m.User}
	switch {
	case m.Type != 50 || m.For != "ssh-connection" || !m.Signed || len(m.Session) == 0:
		return request{}, errUnknown
	case m.Method == plainMethod && len(m.Rest) == 0:
		return r, nil
	case m.Method == boundMethod:
		var h struct{ Host []byte }
		if err := ssh.Unmarshal(m.Rest, &h); err != nil || len(h.Host) == 0 {
			return request{}, errUnknown
		}
		r.host = h.Host
		return r, nil
	}
	return request{}, errUnknown
}

// signatureOf is the namespace of a signature as ssh-keygen -Y makes it (OpenSSH's
// PROTOCOL.sshsig, section 3).
func signatureOf(data []byte) (namespace string, ok bool) {
	rest, ok := bytes.CutPrefix(data, []byte("SSHSIG"))
	if !ok {
		return "", false
	}
	var m struct {
		Namespace, Reserved, Algorithm string
		Hash                           []byte
	}
	err := ssh.Unmarshal(rest, &m)
	return m.Namespace, err == nil && m.Namespace != "" && (m.Algorithm == "sha256" && len(m.Hash) == 32 || m.Algorithm == "sha512" && len(m.Hash) == 64)
}
