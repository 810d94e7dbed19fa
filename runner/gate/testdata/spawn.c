// Starts a program in one of the ways that C programs have, and says how it
// ended and what it wrote to its standard error.
//
// spawn WAY PROGRAM [ARGUMENT...]
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
static char **args;
static int errors[2];

// child is what a forked process does.
static int child(void *unused) {
	dup2(errors[1], 2);
	execve(args[0], args, environ);
	fprintf(stderr, "execve: %s\n", strerror(errno));
	_exit(99);
}

static void *thread(void *pid) {
	if ((*(pid_t *)pid = fork()) == 0)
		child(NULL);
	return NULL;
}

// threaded execs from a thread that isn't its process's first.
static void *exec_here(void *unused) { return child(unused), NULL; }

static pid_t start(const char *way) {
	pid_t pid = -1;
	if (!strcmp(way, "fork")) {
		if ((pid = fork()) == 0)
			child(NULL);
	} else if (!strcmp(way, "vfork")) {
		if ((pid = vfork()) == 0) {
			execve(args[0], args, environ);
			_exit(99);
		}
	} else if (!strcmp(way, "spawn")) {
		posix_spawn_file_actions_t actions;
		posix_spawn_file_actions_init(&actions);
		posix_spawn_file_actions_adddup2(&actions, errors[1], 2);
		int e = posix_spawnp(&pid, args[0], &actions, NULL, args, environ);
		if (e)
			printf("posix_spawn: %s\n", strerror(e));
	} else if (!strcmp(way, "clone")) {
		static char stack[1 << 16];
		pid = clone(child, stack + sizeof stack, CLONE_VM | CLONE_VFORK | SIGCHLD, NULL);
	} else if (!strcmp(way, "thread")) { // forks from a thread
		pthread_t t;
		pthread_create(&t, NULL, thread, &pid);
		pthread_join(t, NULL);
	} else if (!strcmp(way, "threads")) { // forks, makes threads, and execs from one
		if ((pid = fork()) == 0) {
			pthread_t t, u;
			pthread_create(&u, NULL, (void *(*)(void *))pause, NULL);
			pthread_create(&t, NULL, exec_here, NULL);
			pause();
		}
	} else if (!strcmp(way, "fexecve")) {
		if ((pid = fork()) == 0) {
			dup2(errors[1], 2);
			fexecve(open(args[0], O_RDONLY), args, environ);
			_exit(99);
		}
	} else if (!strcmp(way, "execvp")) { // tries what has no format as a script
		if ((pid = fork()) == 0) {
			dup2(errors[1], 2);
			execvp(args[0], args);
			_exit(99);
		}
	} else if (!strcmp(way, "signals")) { // as many as can be are on their way
		if ((pid = fork()) == 0) {
			sigset_t all;
			sigfillset(&all);
			sigprocmask(SIG_SETMASK, &all, NULL);
			signal(SIGPIPE, SIG_IGN);
			for (int s = 1; s < 32; s++)
				if (s != SIGKILL && s != SIGSTOP)
					raise(s);
			child(NULL);
		}
	}
	return pid;
}

int main(int argc, char **argv) {
	args = argv + 2;
	int status = 0;
	char text[4096];
	ssize_t n = 0, all = 0;
	if (!strcmp(argv[1], "system")) {
		status = system(args[0]);
	} else if (!strcmp(argv[1], "popen")) {
		FILE *f = popen(args[0], "r");
		all = fread(text, 1, sizeof text, f);
		status = pclose(f);
	} else {
		if (pipe2(errors, O_CLOEXEC))
			return 98;
		if (!strcmp(argv[1], "vfork")) // nothing between vfork and execve
			dup2(errors[1], 2);
		pid_t pid = start(argv[1]);
		close(errors[1]);
		if (!strcmp(argv[1], "vfork"))
			close(2);
		while ((n = read(errors[0], text + all, sizeof text - all)) > 0)
			all += n;
		waitpid(pid, &status, 0);
	}
	if (WIFSIGNALED(status))
		printf("signal %d\n", WTERMSIG(status));
	else
		printf("code %d\n", WEXITSTATUS(status));
	printf("%.*s", (int)all, text);
	return 0;
}
