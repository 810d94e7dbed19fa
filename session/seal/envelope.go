package seal

import (
	"context"
	"crypto/rand"
	"fmt"

	"golang.org/x/crypto/ssh"
)

// Sign signs a message with the key that signs now, as Ed25519 does (RFC 8032), for
// forms that have their own envelope. Key is the fingerprint of the public one.
func (r Ring) Sign(ctx context.Context, message []byte) (signature []byte, key string, err error) {
	signer, done, err := r.signer(ctx, true)
	if err != nil {
		return nil, "", err
	}
	defer done()
	key = ssh.FingerprintSHA256(signer.PublicKey())
	if t := signer.PublicKey().Type(); t != ssh.KeyAlgoED25519 {
		return nil, key, fmt.Errorf("cannot sign with the key %s: it is of type %s, and only %s can", key, t, ssh.KeyAlgoED25519)
	}
	sig, err := signer.Sign(rand.Reader, message)
	if err != nil {
		return nil, key, fmt.Errorf("cannot sign with the key %s: %w", key, err)
	}
	return sig.Blob, key, nil
}
