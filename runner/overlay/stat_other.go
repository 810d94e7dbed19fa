//go:build !amd64 && !arm64 && !riscv64

package overlay

import "golang.org/x/sys/unix"

func lstatRaw(dirfd int, name []byte, st *unix.Stat_t) error { return lstatAt(dirfd, string(name), st) }
