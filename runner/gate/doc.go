// Package gate holds every program start of a sandbox until its owner has
// said yes or no, and makes sure that what then runs is what was judged.
//
// It has two halves. Inside the sandbox, [Install] puts a seccomp filter on
// the thread that starts the agent: execve and execveat become notifications
// (seccomp_unotify(2)), and what would let a process leave the sandbox or the
// filter is refused. Outside, a [Gate] owned by the supervisor receives the
// notifications, reads who wants to run what ([Exec]), and answers.
//
// An approval is checked: the caller is seized with ptrace(2) before it goes
// on, and its new image is compared with what was judged (file, arguments,
// environment, script and interpreter) before its first instruction runs. A
// thread that swaps the path or the arguments after they were read gets its
// process killed. Whatever can't be checked is refused. A denied program looks
// like one that ran and failed: its exec happens, and the new image exits
// before its first instruction. From the verdict to the check a process dies
// with the gate's own, so that nothing runs unchecked. What a program does
// once it runs is not the gate's matter: interpreters, built-in commands and
// mapped code start nothing that it sees.
//
// An approval is worth nothing where another process can change the program
// once it runs, so the calls with which one gets hold of another are
// notifications too, and the owner says whether it may ([Reach]). What no
// filter can tell, writing to /proc/PID/mem, package pid1 takes care of.
//
// Everything read from the sandbox is hostile: all sizes are bounded, nothing
// is opened that could block, and identity is a process's pid together with
// its start time. The gate trusts the kernel and its caller.
//
// What depends on the processor is in arch_amd64.go and arch_arm64.go, and in the
// filter's numbers of calls:
//
//	                              amd64                   arm64
//	number of a call, entered     orig_rax                NT_ARM_SYSTEM_CALL (x8 has no effect then)
//	number of the next call       rax                     x8
//	first argument                rdi                     x0
//	what a call returned          rax                     x0; a call to be made again shows its argument
//	instruction of a call         0f 05 (syscall)         01 00 00 d4 (svc #0)
//	registers are got by          PTRACE_GETREGS          PTRACE_GETREGSET, NT_PRSTATUS
//	pointers                      whole                   without their top byte, which is the program's
//	other calls on the machine    i386: killed;           aarch32: killed
//	                              x32: ENOSYS
//	only there                    fork, vfork, open, …    none: clone, openat, …
//
// Programs for the other kind of calls are no programs: their exec fails with
// ENOEXEC. Where fork and vfork exist they pass, as nothing of theirs is judged.
//
// All exported methods may be called from any goroutine. Callbacks run on the
// gate's own goroutines, several at once; they may call any method but Close,
// and must not block for long. If a sandbox's gate goes away, its execs fail,
// and processes that it traces are killed.
package gate
