package pid1

/*
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <linux/close_range.h>

// stepbox_deafen gives every signal back its default action, which the Go
// runtime took over: the kernel drops those for a namespace's first process.
static void stepbox_deafen(void) {
	struct sigaction plain = { .sa_handler = SIG_DFL };
	for (int sig = 1; sig < NSIG; sig++)
		sigaction(sig, &plain, NULL);
}

// stepbox_spawn forks and executes in its own foreground process group. It is C
// because Go can't fork without its own executor, which leaves a caller that
// shares its memory stopped for as long as the gate holds the exec, and has no
// way to ignore SIGTTOU for the child's tcsetpgrp alone. Between fork and exec
// only what signal-safety(7) allows is called. It returns the child's pid or a
// negative errno; a failure in the child is an int written to report, which
// closes when the program runs.
static pid_t stepbox_spawn(const char *path, char **argv, char **envp, const char *dir,
		const int *resources, const unsigned long *limits, int count, int tty, int report) {
	sigset_t all, old;
	sigfillset(&all);
	if (sigprocmask(SIG_SETMASK, &all, &old) != 0)
		return -errno;
	pid_t pid = fork();
	if (pid != 0) {
		int saved = errno;
		sigprocmask(SIG_SETMASK, &old, NULL);
		return pid < 0 ? -saved : pid;
	}
	int failure = 0;
	if (setpgid(0, 0) != 0)
		failure = errno;
	prctl(PR_SET_TIMERSLACK, 50000ul, 0, 0, 0); // the kernel's own, which this program's isn't
	if (!failure && tty >= 0) {
		// All signals are blocked, so a background group may do this.
		if (tcsetpgrp(tty, getpid()) != 0)
			failure = errno;
	}
	if (!failure && chdir(dir) != 0)
		failure = errno;
	for (int i = 0; i < count && !failure; i++) {
		struct rlimit limit;
		if (getrlimit(resources[i], &limit) != 0) {
			failure = errno;
			break;
		}
		if (limit.rlim_max > limits[i])
			limit.rlim_max = limits[i];
		if (limit.rlim_cur > limits[i])
			limit.rlim_cur = limits[i];
		if (setrlimit(resources[i], &limit) != 0)
			failure = errno;
	}
	if (!failure) {
		// The report closes on exec; nothing else above the standard three survives.
		syscall(SYS_close_range, 3u, ~0u, CLOSE_RANGE_CLOEXEC);
		sigset_t none;
		sigemptyset(&none);
		sigprocmask(SIG_SETMASK, &none, NULL);
		execve(path, argv, envp);
		failure = errno;
	}
	ssize_t ignored = write(report, &failure, sizeof failure);
	(void)ignored;
	_exit(127);
}
*/
import "C"

import (
	"syscall"
	"unsafe"
)

// deafen keeps the sandbox's signals from ever reaching this process, and from
// being ignored or handled in what it starts.
func deafen() { C.stepbox_deafen() }

// spawn starts a program from the calling thread, whose filters it inherits,
// and says its pid. Its terminal is tty when that isn't negative.
func spawn(path string, program Program, tty, report int) (int, error) {
	cpath, cdir := C.CString(path), C.CString(program.Cwd)
	defer C.free(unsafe.Pointer(cpath))
	defer C.free(unsafe.Pointer(cdir))
	argv, freeArgv := vector(program.Argv)
	defer freeArgv()
	env, freeEnv := vector(program.Env)
	defer freeEnv()
	resources := make([]C.int, len(program.Rlimits)+1) // never empty, so that it has an address
	limits := make([]C.ulong, len(program.Rlimits)+1)
	for i, rlimit := range program.Rlimits {
		resources[i], limits[i] = C.int(rlimit.Resource), C.ulong(rlimit.Value)
	}
	pid := C.stepbox_spawn(cpath, argv, env, cdir, &resources[0], &limits[0], C.int(len(program.Rlimits)), C.int(tty), C.int(report))
	if pid < 0 {
		return 0, syscall.Errno(-pid)
	}
	return int(pid), nil
}

// vector copies strings into C memory as execve takes them.
func vector(strings []string) (**C.char, func()) {
	memory := (**C.char)(C.calloc(C.size_t(len(strings)+1), C.size_t(unsafe.Sizeof(uintptr(0)))))
	slots := unsafe.Slice(memory, len(strings)+1)
	for i, s := range strings {
		slots[i] = C.CString(s)
	}
	return memory, func() {
		for _, s := range slots[:len(strings)] {
			C.free(unsafe.Pointer(s))
		}
		C.free(unsafe.Pointer(memory))
	}
}
