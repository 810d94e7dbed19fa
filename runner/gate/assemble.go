package gate

import (
	"slices"

	"golang.org/x/sys/unix"
)

// Offsets in struct seccomp_data, linux/seccomp.h.
const (
	offsetNumber = 0
	offsetArch   = 4
	offsetArgs   = 16 // eight bytes each; the low half first
)

func load(offset int) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: uint32(offset)}
}

func give(answer uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: answer}
}

// unless skips the next instructions if the loaded value isn't v.
func unless(v uint32, skip int) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: uint8(skip), K: v}
}

// assemble makes the program of some guards. Bounded adds the answer to calls
// that are too new or x32. It is written out here, as PID 1 has to do it
// before an agent can start, and the library that could takes milliseconds.
//
// Calls that depend on their arguments come first. The rest could come in any
// order: the kernel runs the program once for each of them and remembers which
// are let pass (kernel/seccomp.c, seccomp_cache_prepare).
func assemble(list []guard, bounded bool) []unix.SockFilter {
	var order []uintptr
	byCall := map[uintptr][]rule{}
	for _, g := range list {
		for _, r := range g.rules {
			for _, c := range r.calls {
				if byCall[c] == nil {
					order = append(order, c)
				}
				byCall[c] = append(byCall[c], r)
			}
		}
	}
	slices.SortStableFunc(order, func(a, b uintptr) int {
		return boolInt(byCall[a][0].when == nil) - boolInt(byCall[b][0].when == nil)
	})
	program := []unix.SockFilter{
		load(offsetArch),
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: 1, K: nativeArch},
		give(kill),
		load(offsetNumber),
	}
	if bounded {
		program = append(program,
			unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JGT | unix.BPF_K, Jf: 1, K: newestSyscall},
			give(errno(unix.ENOSYS)))
	}
	for _, c := range order {
		block := answerCall(byCall[c])
		if len(block) > 0xff { // farther than a conditional jump goes
			program = append(program,
				unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: 1, K: uint32(c)},
				unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JA, K: uint32(len(block))})
		} else {
			program = append(program, unless(uint32(c), len(block)))
		}
		program = append(program, block...)
	}
	return append(program, give(pass))
}

// answerCall is the part of the program for one call. It ends with an answer.
func answerCall(rules []rule) []unix.SockFilter {
	var block []unix.SockFilter
	for _, r := range rules {
		var tests []unix.SockFilter
		for i := len(r.when) - 1; i >= 0; i-- { // from the end, to know how far to skip
			c := r.when[i]
			test := []unix.SockFilter{load(offsetArgs + 8*(c.arg&^high) + c.arg&high/2)}
			if c.mask != whole {
				test = append(test, unix.SockFilter{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: c.mask})
			}
			test = append(test, unless(c.value, len(tests)+1))
			tests = append(test, tests...)
		}
		block = append(append(block, tests...), give(r.answer))
		if len(r.when) == 0 {
			return block // nothing gets past it
		}
	}
	return append(block, give(pass))
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}
