// mem tries each way to write a process's memory through /proc and says what
// came of it. Its child has the same memory layout, so that it is also the
// address to write to that is known.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile long word = 1;

static void say(const char *what, int ok) {
	printf("%s: %s\n", what, ok ? "written" : strerrorname_np(errno));
	fflush(stdout);
}

static int put(int fd) {
	long value = 2;
	if (fd < 0)
		return 0;
	int saved = pwrite(fd, &value, sizeof value, (off_t)&word) == sizeof value ? 0 : errno;
	close(fd);
	errno = saved;
	return saved == 0;
}

static int again(int fd, int flags) {
	char path[64];
	if (fd < 0)
		return -1;
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	int other = open(path, flags);
	int saved = errno;
	close(fd);
	errno = saved;
	return other;
}

// The child sends a descriptor of its own memory, as a victim that was fooled
// into it would.
static void give(int socket) {
	int fd = open("/proc/self/mem", O_RDWR);
	char code = fd < 0 ? errno : 0;
	struct iovec v = { &code, 1 };
	union { struct cmsghdr h; char b[CMSG_SPACE(sizeof fd)]; } c = { 0 };
	struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1 };
	if (fd >= 0) {
		m.msg_control = &c;
		m.msg_controllen = sizeof c;
		c.h = (struct cmsghdr){ .cmsg_len = CMSG_LEN(sizeof fd), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS };
		memcpy(CMSG_DATA(&c.h), &fd, sizeof fd);
	}
	sendmsg(socket, &m, 0);
}

static int take(int socket) {
	char code;
	int fd = -1;
	struct iovec v = { &code, 1 };
	union { struct cmsghdr h; char b[CMSG_SPACE(sizeof fd)]; } c = { 0 };
	struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1, .msg_control = &c, .msg_controllen = sizeof c };
	if (recvmsg(socket, &m, 0) != 1)
		return -1;
	if (code) {
		errno = code;
		return -1;
	}
	memcpy(&fd, CMSG_DATA(&c.h), sizeof fd);
	return fd;
}

int main(void) {
	int pair[2];
	char path[64];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) != 0)
		return 1;
	pid_t pid = fork();
	if (pid == 0) {
		close(pair[0]);
		give(pair[1]);
		read(pair[1], path, 1);
		printf("the child has %ld\n", word);
		fflush(stdout);
		_exit(0);
	}
	close(pair[1]);
	snprintf(path, sizeof path, "/proc/%d/mem", pid);
	say("mem", put(open(path, O_RDWR)));
	say("write only", put(open(path, O_WRONLY)));
	say("path then write", put(again(open(path, O_PATH), O_WRONLY)));
	say("read then write", put(again(open(path, O_RDONLY), O_RDWR)));
	snprintf(path, sizeof path, "/proc/%d/task/%d/mem", pid, pid);
	say("task", put(open(path, O_WRONLY)));
	snprintf(path, sizeof path, "/proc/%d", pid);
	say("from its folder", put(openat(open(path, O_PATH | O_DIRECTORY), "mem", O_WRONLY)));
	say("through our root", put(open("/proc/self/root/proc/self/mem", O_WRONLY)));
	say("self", put(open("/proc/self/mem", O_RDWR)));
	say("thread-self", put(open("/proc/thread-self/mem", O_RDWR)));
	say("given", put(take(pair[0])));
	write(pair[0], "", 1);
	waitpid(pid, NULL, 0);
	return 0;
}
