// With "run", starts the file that follows in a child whose calls of
// exit_group(2) do nothing and come back. As that file, makes the file that
// is its argument. It begins with instructions that aren't missed.
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef __x86_64__
#define JUMP "jmp"
#else
#define JUMP "b"
#endif
__asm__(".globl begin\nbegin:\nnop\nnop\nnop\nnop\nnop\nnop\nnop\nnop\n" JUMP " _start\n");

int main(int argc, char **argv) {
	if (argc < 4 || strcmp(argv[1], "run") != 0) {
		close(open(argv[1], O_CREAT | O_WRONLY, 0644));
		return 0;
	}
	pid_t child = fork();
	if (child == 0) {
		struct sock_filter f[] = {
			{BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(struct seccomp_data, nr)},
			{BPF_JMP | BPF_JEQ | BPF_K, 0, 1, SYS_exit_group},
			{BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO},
			{BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW},
		};
		struct sock_fprog p = {4, f};
		if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &p) != 0) {
			perror("filter");
		}
		execv(argv[2], argv + 2);
		perror(argv[2]);
		syscall(SYS_exit, 1);
	}
	int status;
	waitpid(child, &status, 0);
	printf("signal %d\n", WIFSIGNALED(status) ? WTERMSIG(status) : 0);
	return 0;
}
