//go:build cgo

package box

// C code that joins namespaces before the Go runtime starts.
import _ "github.com/opencontainers/runc/libcontainer/nsenter"
