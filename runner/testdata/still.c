// still runs programs that a freeze has to stop. Each of them counts in the file
// "count", which all share, for as long as it runs.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile uint64_t *count;

static void handled(int s) {}

// wakes has a timer of the process's own send it CONT each millisecond.
static void wakes(void) {
	struct sigevent e = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGCONT};
	struct itimerspec each = {{0, 1000000}, {0, 1000000}};
	timer_t t;
	signal(SIGCONT, handled);
	if (timer_create(CLOCK_MONOTONIC, &e, &t) || timer_settime(t, 0, &each, 0))
		exit(1);
}

static void *counts(void *of) {
	for (;;) {
		count[(long)of]++;
		usleep(1000);
	}
}

// waker counts, and wakes its neighbours if wanted.
static void waker(int i, int n, int *all, int wake) {
	signal(SIGCONT, handled);
	for (;;) {
		count[i]++;
		if (wake) {
			kill(all[(i + 1) % n], SIGCONT);
			kill(all[(i + n - 1) % n], SIGCONT);
		}
		usleep(1000 * n * (wake ? 10 : 1)); // each call goes through the gate
	}
}

// tracer traces a child that counts and wakes itself, and lets it go on at each stop.
static void tracer(void) {
	int status, child = fork();
	if (!child) {
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		raise(SIGSTOP);
		wakes();
		for (;;) {
			count[1]++;
			raise(SIGWINCH); // the timer's next is lost where a STOP takes one away
			usleep(1000);
		}
	}
	while (waitpid(child, &status, 0) == child && WIFSTOPPED(status)) {
		count[0]++;
		ptrace(PTRACE_CONT, child, 0, WSTOPSIG(status) == SIGSTOP ? 0 : WSTOPSIG(status));
	}
}

// parent says what it hears of its child.
static void parent(void) {
	sigset_t set;
	int s, child;
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, 0);
	if (!(child = fork()))
		counts(0);
	for (;;) {
		struct timespec t = {0, 1000000};
		count[1]++;
		if (sigtimedwait(&set, 0, &t) == SIGCHLD)
			puts("it hears of its child");
		if (waitpid(child, &s, WUNTRACED | WCONTINUED | WNOHANG))
			printf("its child has status %x\n", s);
		fflush(stdout);
	}
}

int main(int argc, char **argv) {
	int n = atoi(argv[2]), fd = open("count", O_RDWR | O_CREAT, 0644);
	ftruncate(fd, n * 8);
	count = mmap(0, n * 8, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (!strcmp(argv[1], "timer")) {
		wakes();
		counts(0);
	} else if (!strcmp(argv[1], "threads")) {
		pthread_t t;
		wakes();
		for (long i = 1; i < n; i++)
			pthread_create(&t, 0, counts, (void *)i);
		counts(0);
	} else if (!strcmp(argv[1], "undumpable")) {
		prctl(PR_SET_DUMPABLE, 0);
		counts(0);
	} else if (!strcmp(argv[1], "tracer")) {
		tracer();
	} else if (!strcmp(argv[1], "parent")) {
		parent();
	} else if (!strcmp(argv[1], "wakers") || !strcmp(argv[1], "sleepers")) {
		int *all = mmap(0, n * sizeof *all, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
		int wake = !strcmp(argv[1], "wakers");
		all[0] = getpid();
		for (int i = 1; i < n; i++) {
			int child = fork();
			if (!child) {
				while (!all[n - 1]) usleep(10000);
				waker(i, n, all, wake);
			}
			all[i] = child;
		}
		waker(0, n, all, wake);
	} else if (!strcmp(argv[1], "forks")) {
		// Children that live for no longer than it takes to have been there.
		for (;;) {
			int child = fork();
			if (!child) {
				count[1]++;
				_exit(0);
			}
			count[0]++;
			waitpid(child, 0, 0);
		}
	}
}
