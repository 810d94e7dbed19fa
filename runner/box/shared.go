package box

import (
	"bufio"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// unnamed are how the kernel calls shared memory that no filesystem of a box holds and
// that ends with who has it: of memfd_create, and of mappings that are shared and have no
// file. System V's is the namespace's.
var unnamed = []string{"/memfd:", "/dev/zero (deleted)"}

func isUnnamed(path string) bool {
	return slices.ContainsFunc(unnamed, func(name string) bool { return strings.HasPrefix(path, name) })
}

// SharedMemory is how many bytes of shared memory processes have open or mapped, each
// piece once: no resource limit counts it. What is in /dev/shm
// isn't counted, nor System V's.
func SharedMemory(pids []int) (bytes int64) {
	pieces := make(map[uint64]int64) // by inode, all of the kernel's own filesystem
	for _, pid := range pids {
		dir := filepath.Join("/proc", strconv.Itoa(pid))
		entries, _ := os.ReadDir(filepath.Join(dir, "fd")) // it is gone, perhaps
		for _, entry := range entries {
			fd := filepath.Join(dir, "fd", entry.Name())
			var st unix.Stat_t
			if name, err := os.Readlink(fd); err == nil && isUnnamed(name) && unix.Stat(fd, &st) == nil {
				pieces[st.Ino] = st.Blocks * 512
			}
		}
		for inode, n := range mappedMemory(dir) {
			pieces[inode] = max(pieces[inode], n)
		}
	}
	for _, n := range pieces {
		bytes += n
	}
	return bytes
}

// mappedMemory is how much one process has mapped of each piece and is there.
func mappedMemory(dir string) map[uint64]int64 {
	status, _ := readShort(filepath.Join(dir, "status"))
	if !strings.Contains(string(status), "\nRssShmem:") || strings.Contains(string(status), "\nRssShmem:\t       0 kB") {
		return nil // which most have: the rest isn't cheap
	}
	maps, err := os.Open(filepath.Join(dir, "smaps"))
	if err != nil {
		return nil
	}
	defer maps.Close()
	found := make(map[uint64]int64)
	var inode uint64 // of the mapping that the lines are about; 0: another's
	for lines := bufio.NewScanner(maps); lines.Scan(); {
		// address perms offset dev inode path, and then Rss: 4 kB; proc_pid_smaps(5)
		fields := strings.SplitN(strings.Join(strings.Fields(lines.Text()), " "), " ", 6)
		number := func(i int) uint64 {
			n, _ := strconv.ParseUint(fields[i], 10, 64)
			return n
		}
		switch {
		case fields[0] == "Rss:":
			found[inode] += int64(number(1)) << 10
		case strings.HasSuffix(fields[0], ":"):
		case len(fields) == 6 && isUnnamed(fields[5]):
			inode = number(4)
		default:
			inode = 0
		}
	}
	delete(found, 0)
	return found
}
