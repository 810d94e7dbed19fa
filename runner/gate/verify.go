package gate

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"golang.org/x/sys/unix"
)

// verify checks the image that a process has just got, before it runs, and lets
// the Exec's owner know that it stands. What it says goes to a person.
func (e *Exec) verify() error {
	if err := e.verifyImage(); err != nil {
		return err
	}
	if err := e.begins(); err != nil {
		return err
	}
	return unarranged(e) // from here on who signals it signals what it is now
}

// verifyImage compares the image with what was shown.
func (e *Exec) verifyImage() error {
	var st unix.Stat_t
	if err := unix.Fstatat(int(e.leader), "exe", &st, 0); err != nil {
		return fmt.Errorf("cannot tell which program was loaded: %w", err)
	}
	if !same(&st, &e.image.loaded().stat) {
		return fmt.Errorf("another program was loaded than %q", e.image.loaded().path)
	}
	if err := e.verifyStrings(); err != nil {
		return err
	}
	if err := verifyMapped(e); err != nil {
		return err
	}
	if len(e.image.files) > 1 {
		if err := e.sameFiles(); err != nil {
			return err
		}
	}
	if err := e.sameFolder(); err != nil {
		return err
	}
	if err := sameInput(e); err != nil {
		return err
	}
	if err := unarranged(e); err != nil {
		return err
	}
	return e.Unchanged()
}

// verifyMapped compares the files that a new image consists of: its program and
// the dynamic linker, which the kernel names nowhere else.
func verifyMapped(e *Exec) error {
	loaded, err := e.leader.readAll("maps")
	if err != nil {
		return fmt.Errorf("cannot read what was loaded: %w", err)
	}
	program, linker := e.image.loaded().mapped, e.image.linker
	linked := linker == nil || linker.mapped == program
	for line := range strings.Lines(string(loaded)) {
		switch name, ok := mappedFile(line); {
		case !ok || name == program:
		case linker != nil && name == linker.mapped:
			linked = true
		default:
			return fmt.Errorf("another dynamic linker was loaded than was shown: %q", name)
		}
	}
	if !linked {
		return fmt.Errorf("the dynamic linker %q wasn't loaded", linker.path)
	}
	return nil
}

var errName = errors.New("another name was executed than was shown")

// verifyStrings compares the strings that a new image was given, which the kernel
// has put on its stack: arguments, environment, and the path that it was called
// by, which getauxval(3) gives as AT_EXECFN (fs/exec.c, bprm_execve and
// create_elf_tables). Where a script is run, its interpreter and path stand in
// the first argument's place.
func (e *Exec) verifyStrings() error {
	s, err := e.leader.state()
	if err != nil {
		return fmt.Errorf("cannot find what was executed: %w", err)
	}
	m := openMemory(e.PID)
	defer m.close()
	if err := verifyWords(m, s.argStart, s.argEnd, newComparer(&e.argv, e.image.prefix)); err != nil {
		return err
	}
	if err := verifyWords(m, s.envStart, s.envEnd, newComparer(&e.env, nil)); err != nil {
		return err
	}
	if name, err := m.path(s.envEnd); err != nil || name != e.place.name {
		return errName
	}
	return nil
}

// verifyWords compares a list of strings in memory with those that were shown.
func verifyWords(m *memory, from, to uint64, with *comparer) error {
	for from < to {
		b, err := m.at(from)
		if err != nil {
			return fmt.Errorf("cannot read what was executed: %w", err)
		}
		b = b[:min(uint64(len(b)), to-from)]
		if _, err := with.Write(b); err != nil {
			return err
		}
		from += uint64(len(b))
	}
	return with.done()
}

var errWords = errors.New("other arguments or another environment were executed than were shown")

// comparer takes in strings with their ends and tells whether they are the
// ones that were digested.
type comparer struct {
	want   *words
	prefix []byte // still to be met
	d      *digest
	size   int
}

func newComparer(want *words, prefix []string) *comparer {
	c := &comparer{want: want, d: newDigest()}
	for _, p := range prefix {
		c.prefix = append(append(c.prefix, p...), 0)
	}
	if len(prefix) > 0 {
		// The first string was taken out.
		c.d.first = nil
		c.d.count = 1
	}
	return c
}

// Write takes in more of the strings.
func (c *comparer) Write(p []byte) (int, error) {
	all := len(p)
	if n := min(len(p), len(c.prefix)); n > 0 {
		if !bytes.Equal(p[:n], c.prefix[:n]) {
			return 0, errWords
		}
		p, c.prefix = p[n:], c.prefix[n:]
	}
	if c.size += len(p); c.size > c.want.size {
		return 0, errWords
	}
	for len(p) > 0 {
		if c.d.count > 0 { // what follows on the first is digested with its ends
			c.d.rest.Write(p)
			c.d.count += bytes.Count(p, zero)
			break
		}
		end := bytes.IndexByte(p, 0)
		if end < 0 {
			c.d.part(p)
			break
		}
		c.d.part(p[:end])
		c.d.end()
		p = p[end+1:]
	}
	return all, nil
}

var _ io.Writer = (*comparer)(nil)

// done says whether all of it was what was shown.
func (c *comparer) done() error {
	count := c.want.count
	if c.d.first == nil {
		count = max(count, 1)
	} else {
		var first [32]byte
		c.d.first.Sum(first[:0])
		if first != c.want.first {
			return errWords
		}
	}
	var rest [32]byte
	c.d.rest.Sum(rest[:0])
	if len(c.prefix) > 0 || rest != c.want.rest || c.d.count != count {
		return errWords
	}
	return nil
}

// sameFiles looks the program, scripts and interpreters up again. Of scripts the
// kernel leaves no trace in the new image. An interpreter opens its script once
// more by its path, later, which nobody can look at.
func (e *Exec) sameFiles() error {
	again, err := e.view.resolve(e.place)
	if err != nil {
		return fmt.Errorf("cannot find the file %q again: %w", e.image.named().path, err)
	}
	defer again.close()
	if len(again.files) != len(e.image.files) || (again.linker == nil) != (e.image.linker == nil) {
		return fmt.Errorf("the file %q has changed", e.image.named().path)
	}
	for i := range again.files {
		if !same(&again.files[i].stat, &e.image.files[i].stat) {
			return fmt.Errorf("the file %q has changed", e.image.files[i].path)
		}
	}
	if l := again.linker; l != nil && !same(&l.stat, &e.image.linker.stat) {
		return fmt.Errorf("the file %q has changed", e.image.linker.path)
	}
	return nil
}

// Stands says that the path of the program leads to the file that was loaded, and that of its dynamic linker. It is for OnBegin.
func (e *Exec) Stands() error {
	again, err := e.view.resolve(e.place)
	if err != nil {
		return fmt.Errorf("cannot find the file %q again: %w", e.image.named().path, err)
	}
	defer again.close()
	if !same(&again.loaded().stat, &e.image.loaded().stat) || (again.linker == nil) != (e.image.linker == nil) ||
		again.linker != nil && !same(&again.linker.stat, &e.image.linker.stat) {
		return fmt.Errorf("the file %q has changed", e.image.named().path)
	}
	return nil
}
