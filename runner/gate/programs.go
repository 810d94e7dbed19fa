package gate

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// program is what of a file's content matters before it runs.
type program struct {
	head     []byte // its first bytes, at most headSize
	linker   string // of an ELF program, its dynamic linker
	unsealed bool   // it is in memory and can be written at any time
	mapped   string // its name to whoever maps it, of an ELF program
}

// programs remembers programs on mounts that nobody in the sandbox can write to,
// as long as their times and sizes stay. Others are read each time.
type programs struct {
	mu     sync.Mutex
	mounts map[uint64]mount    // guarded by mu; a sandbox's mounts don't change
	own    map[uint64]bool     // guarded by mu: the sandbox's own
	known  map[placed]*program // guarded by mu
}

// mount is what is the same for all files of one.
type mount struct {
	flags int64
	kind  int64 // of file system
}

// placed names one state of one file by a mount.
type placed struct {
	mount uint64
	version
}

// maxPrograms is how many programs are remembered.
const maxPrograms = 4096

// stat fills in what a file is, and says on what kind of mount.
func (p *programs) stat(f *file) (mount, error) {
	var x unix.Statx_t
	if err := unix.Statx(f.fd, "", unix.AT_EMPTY_PATH, unix.STATX_BASIC_STATS|unix.STATX_MNT_ID, &x); err != nil {
		return mount{}, err
	}
	f.mount = x.Mnt_id
	f.stat = unix.Stat_t{
		Dev: unix.Mkdev(x.Dev_major, x.Dev_minor), Ino: x.Ino, Mode: uint32(x.Mode), Size: int64(x.Size),
		Ctim: unix.Timespec{Sec: x.Ctime.Sec, Nsec: int64(x.Ctime.Nsec)}, Mtim: unix.Timespec{Sec: x.Mtime.Sec, Nsec: int64(x.Mtime.Nsec)},
	}
	p.mu.Lock()
	on, ok := p.mounts[f.mount]
	p.mu.Unlock()
	if ok {
		return on, nil
	}
	var fs unix.Statfs_t
	if err := unix.Fstatfs(f.fd, &fs); err != nil {
		return mount{}, err
	}
	on = mount{fs.Flags, fs.Type}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mounts == nil || len(p.mounts) >= maxPrograms {
		p.mounts = map[uint64]mount{}
	}
	p.mounts[f.mount] = on
	return on, nil
}

// errForeign is of what somebody else's sandbox has, by a descriptor that came from there: its path says nothing here.
var errForeign = errors.New("it lies in no mount of this sandbox")

// belongs says that a mount is one of the sandbox's, as a thread of it sees them.
func (p *programs) belongs(thread procDir, id uint64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.own[id] {
		return nil
	}
	list, err := thread.readAll("mountinfo")
	if err != nil {
		return fmt.Errorf("cannot read the sandbox's mounts: %w", err)
	}
	p.own = make(map[uint64]bool)
	for line := range strings.Lines(string(list)) { // proc_pid_mountinfo(5): the first field
		first, _, _ := strings.Cut(line, " ")
		if n, err := strconv.ParseUint(first, 10, 64); err == nil {
			p.own[n] = true
		}
	}
	if !p.own[id] {
		return errForeign
	}
	return nil
}

// of reads a program, or remembers it.
func (p *programs) of(f *file, kind int64) (program, error) {
	at := placed{f.mount, versionOf(f)}
	if f.fixed {
		p.mu.Lock()
		known := p.known[at]
		p.mu.Unlock()
		if known != nil {
			return *known, nil
		}
	}
	read, err := readProgram(f, kind)
	if err != nil || !f.fixed {
		return read, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known == nil || len(p.known) >= maxPrograms {
		p.known = map[placed]*program{}
	}
	p.known[at] = &read
	return read, nil
}

func readProgram(f *file, kind int64) (p program, err error) {
	r, err := f.open()
	if err != nil {
		return p, err
	}
	defer unix.Close(r)
	if p.unsealed, err = unsealed(r, &f.stat, kind); err != nil {
		return p, fmt.Errorf("cannot check %q: %w", f.path, err)
	}
	head := make([]byte, headSize)
	n, err := unix.Pread(r, head, 0)
	if err != nil {
		return p, unreadable{f.path}
	}
	if p.head = head[:n]; headFormat(p.head) == formatELF {
		p.linker = dynamicLinker(r, p.head)
		p.mapped, err = mappedName(r)
	}
	return p, err
}
