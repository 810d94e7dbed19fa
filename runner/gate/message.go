package gate

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// maxMessage bounds a reason, so that the line goes into a pipe in one piece.
const maxMessage = 500

// How a line begins: with a reason for a denial, and with anything else.
const (
	front = "stepbox: denied: "
	plain = "stepbox: "
)

// message is the line that a denied program finds on its standard error.
func message(reason string) []byte { return lineOf(front, reason) }

func lineOf(front, reason string) []byte {
	clean := strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(reason, "?"))
	if len(clean) > maxMessage {
		cut := maxMessage
		for !utf8.RuneStart(clean[cut]) {
			cut--
		}
		clean = clean[:cut]
	}
	return []byte(front + strings.TrimSpace(clean) + "\n")
}

// say writes a reason to the standard error of the process.
func (e *Exec) say(reason string) error { return e.write(message(reason)) }

// write writes a line to the standard error of the process, if that is
// possible without waiting. What the descriptor is was chosen by the agent:
// nothing is written to files that act on what is written to them, and none
// is ever waited for.
func (e *Exec) write(line []byte) error {
	fd, err := unix.PidfdGetfd(e.pidfd, 2, 0)
	if err != nil {
		if errors.Is(err, unix.EBADF) || errors.Is(err, unix.ESRCH) {
			return nil // it has none, or is gone
		}
		return fmt.Errorf("cannot reach the standard error of process %d: %w", e.PID, err)
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		// Through the descriptor itself, for its offset.
		if !acts(fd) {
			_, _ = unix.Write(fd, line)
		}
	case unix.S_IFIFO:
		writeSoon(fd, line)
	case unix.S_IFCHR:
		if m := unix.Major(st.Rdev); m >= majorPTYs && m <= majorPTYsEnd {
			writeSoon(fd, line)
		}
	case unix.S_IFSOCK:
		_ = unix.Sendto(fd, line, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, nil)
	}
	return nil
}

// acts says whether a file belongs to a filesystem where writing is a command
// to the kernel, which would be given with our rights.
func acts(fd int) bool {
	var fs unix.Statfs_t
	if unix.Fstatfs(fd, &fs) != nil {
		return true
	}
	switch fs.Type {
	case unix.PROC_SUPER_MAGIC, unix.SYSFS_MAGIC, unix.CGROUP_SUPER_MAGIC, unix.CGROUP2_SUPER_MAGIC,
		unix.DEBUGFS_MAGIC, unix.TRACEFS_MAGIC, unix.SECURITYFS_MAGIC, unix.SELINUX_MAGIC, unix.SMACK_MAGIC,
		unix.BPF_FS_MAGIC, unix.EFIVARFS_MAGIC, unix.PSTOREFS_MAGIC, unix.NSFS_MAGIC, unix.BINFMTFS_MAGIC,
		unix.RDTGROUP_SUPER_MAGIC, unix.XENFS_SUPER_MAGIC, unix.BDEVFS_MAGIC:
		return true
	}
	return false
}

// writeSoon writes to a pipe or terminal if there is room now. The descriptor
// shares its flags with the program, so it is opened anew for ones of our own.
func writeSoon(fd int, line []byte) {
	own, err := unix.Open("/proc/self/fd/"+strconv.Itoa(fd), unix.O_WRONLY|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	defer unix.Close(own)
	_, _ = unix.Write(own, line)
}
