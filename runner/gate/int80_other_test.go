//go:build !amd64

package gate

func int80() error { return errNoInt80 }
