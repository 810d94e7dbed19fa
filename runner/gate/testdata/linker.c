// A dynamic linker that starts nothing and says what it is.

// Before Linux 6.7 the kernel fills the last page of a linker with zeros, and kills a program whose linker has none to write there.
int writable = 1;

static long call(long nr, long a, long b, long c) {
	long r;
#ifdef __aarch64__
	register long x8 __asm__("x8") = nr, x0 __asm__("x0") = a, x1 __asm__("x1") = b, x2 __asm__("x2") = c;
	__asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2) : "memory");
	r = x0;
#else
	__asm__ volatile("syscall" : "=a"(r) : "a"(nr), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
#endif
	return r;
}

void _start(void) {
#ifdef __aarch64__
	call(64, 1, (long)"it is evil\n", 11);
	call(94, 0, 0, 0);
#else
	call(1, 1, (long)"it is evil\n", 11);
	call(231, 0, 0, 0);
#endif
}
