// reach is an agent, and the programs that it starts: each tries to get hold
// of another process, and says in /tmp/results what came of it.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

// At the same place in every process of this program.
static volatile long word = 1;

static void say(const char *format, ...) {
	va_list list;
	char line[256];
	va_start(list, format);
	int n = vsnprintf(line, sizeof line, format, list);
	va_end(list);
	int fd = open("/tmp/results", O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
	write(fd, line, n);
	close(fd);
}

static const char *outcome(int ok) { return ok ? "done" : strerrorname_np(errno); }

// change writes to a traced process that stops and lets go of it.
static int change(pid_t pid) {
	waitpid(pid, NULL, __WALL);
	int ok = ptrace(PTRACE_POKEDATA, pid, &word, 2) == 0;
	ptrace(PTRACE_DETACH, pid, 0, 0);
	return ok;
}

static void reach(const char *who, pid_t pid) {
	long value = 2;
	struct iovec local = { &value, sizeof value }, remote = { (void *)&word, sizeof word };
	char path[64];
	int ok = ptrace(PTRACE_ATTACH, pid, 0, 0) == 0 && change(pid);
	say("%s attach: %s\n", who, outcome(ok));
	ok = ptrace(PTRACE_SEIZE, pid, 0, 0) == 0 && ptrace(PTRACE_INTERRUPT, pid, 0, 0) == 0 && change(pid);
	say("%s seize: %s\n", who, outcome(ok));
	ok = process_vm_writev(pid, &local, 1, &remote, 1, 0) == sizeof value;
	say("%s writev: %s\n", who, outcome(ok));
	ok = syscall(SYS_pidfd_getfd, syscall(SYS_pidfd_open, pid, 0), 0, 0) >= 0;
	say("%s getfd: %s\n", who, outcome(ok));
	snprintf(path, sizeof path, "/proc/%d/mem", pid);
	int fd = open(path, O_RDWR);
	ok = fd >= 0 && pwrite(fd, &value, sizeof value, (off_t)&word) == sizeof value;
	say("%s mem: %s\n", who, outcome(ok));
	close(fd);
}

static void share(const char *who) {
	long pid = syscall(SYS_clone, CLONE_FS | SIGCHLD, 0, 0, 0, 0);
	if (pid == 0)
		_exit(0);
	say("%s share: %s\n", who, outcome(pid > 0));
	waitpid(pid, NULL, 0);
}

static int until[2];  // what is started waits for its end
static pid_t inner;   // the process that a program said it has

static pid_t start(const char *part, pid_t other, int traced) {
	int ready[2];
	char number[16];
	pipe2(ready, O_CLOEXEC);
	snprintf(number, sizeof number, "%d", other);
	pid_t pid = fork();
	if (pid == 0) {
		dup2(ready[1], 3);
		dup2(until[0], 4);
		if (traced && ptrace(PTRACE_TRACEME, 0, 0, 0) != 0)
			_exit(98);
		execl("./command", "./command", part, number, NULL);
		int code = errno;
		say("starting a %s: %s\n", part, strerrorname_np(code));
		_exit(99);
	}
	close(ready[1]);
	if (!traced)
		read(ready[0], &inner, sizeof inner);
	close(ready[0]);
	return pid;
}

static int end(pid_t pid) {
	int status;
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + status;
}

static void prepare(void) {
	pipe(until);
	for (int i = 0; i < 2; i++) {
		int high = fcntl(until[i], F_DUPFD_CLOEXEC, 10 + i); // out of the way of 3 and 4
		close(until[i]);
		until[i] = high;
	}
}

// early reaches for an approved program from its own child, which was started
// before its parent became that program.
static void early(void) {
	int ready[2], over[2];
	char c;
	pipe2(ready, O_CLOEXEC);
	pipe2(over, O_CLOEXEC);
	pid_t pid = fork();
	if (pid == 0) {
		pid_t parent = getpid();
		if (fork() == 0) {
			close(until[1]);
			read(ready[0], &inner, sizeof inner);
			reach("early child to action", inner);
			reach("early child to its parent", parent);
			_exit(0);
		}
		dup2(ready[1], 3);
		dup2(until[0], 4);
		execl("./command", "./command", "victim", NULL);
		_exit(99);
	}
	close(over[1]);
	read(over[0], &c, 1);
	close(until[1]);
	say("the parent has %d\n", end(pid));
}

static void agent(void) {
	prepare();
	pid_t victim = start("victim", 0, 0);
	pid_t child = inner; // the gate itself may trace the other
	reach("agent to action", child);
	pid_t attacker = start("attacker", child, 0);
	end(attacker);
	close(until[1]);
	say("the victim has %d\n", end(victim));
	say("the agent has %ld\n", word);
	share("agent");
	prepare();
	early();
	prepare();
	end(start("debugger", 0, 0));
	pid_t traced = start("victim", 0, 1);
	say("the traced one ends with %d\n", end(traced));
	say("over\n");
}

static void debugger(void) {
	prepare();
	pid_t child = fork();
	if (child == 0) {
		close(until[1]);
		read(until[0], &child, 1);
		_exit(word);
	}
	reach("within an action", child);
	close(until[1]);
	say("the child has %d\n", end(child));
	share("action");
	pid_t traced = start("seven", 0, 1);
	int status;
	waitpid(traced, &status, 0);
	if (WIFSTOPPED(status)) {
		ptrace(PTRACE_POKEDATA, traced, &word, 7);
		ptrace(PTRACE_CONT, traced, 0, 0);
		say("the debugged one ends with %d\n", end(traced));
	} else {
		say("the debugged one ends with %d\n", WEXITSTATUS(status));
	}
}

int main(int argc, char **argv) {
	const char *part = argc > 1 ? argv[1] : "";
	char c;
	if (!strcmp(part, "agent"))
		agent();
	if (!strcmp(part, "attacker")) {
		reach("action to action", atoi(argv[2]));
		reach("action to agent", getppid());
	}
	if (!strcmp(part, "debugger"))
		debugger();
	if (!strcmp(part, "victim")) {
		pid_t child = fork();
		if (child == 0) {
			read(4, &c, 1);
			return word;
		}
		write(3, &child, sizeof child);
		return end(child);
	}
	close(3);
	return word;
}
