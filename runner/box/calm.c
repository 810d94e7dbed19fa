// As long as a process does anything, the Go runtime's monitor wakes up to see to
// it, and asks for 20 µs between. The kernel gives it 70, since it may be late by
// the slack of a thread's timers: 50 µs. A start is several processes, and that
// was a tenth of what it cost. This is before the runtime, whose threads have it
// from this one. What is started by this program has it too, but for the agent:
// see stepbox_spawn.

#include <sys/prctl.h>

__attribute__((constructor)) static void calm(void) {
	prctl(PR_SET_TIMERSLACK, 1000000ul, 0, 0, 0); // nanoseconds
}
