package box

// The binary is static: PID 1 of a sandbox is this program too, and a dynamic
// one would load its libraries from the sandbox's root, which is the agent's to
// write in part. libcontainer's nsenter needs cgo, so that a pure Go build,
// static by itself, isn't to be had. static.c keeps a static glibc from loading
// what it is used to load all the same.

// #cgo LDFLAGS: -static -Wl,--wrap=dlopen
import "C"
