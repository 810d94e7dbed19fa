//go:build !amd64

package gate

import "errors"

// int80 is a call that only amd64 has.
func int80() error { return errors.New("there is no such call here") }
