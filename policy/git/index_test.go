package git

import (
	"bytes"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// In version 4 a path begins with the one before it, so that a file of n entries
// can stand for n*n/2 bytes of paths.
func TestIndexOfLongNames(t *testing.T) {
	index := func(count int) []byte {
		data := binary.BigEndian.AppendUint32([]byte("DIRC"), 4)
		data = binary.BigEndian.AppendUint32(data, uint32(count))
		for i := range count {
			data = append(data, make([]byte, indexStat+20)...)
			data = binary.BigEndian.AppendUint16(data, uint16(min(i+1, nameMask)))
			data = append(data, 0, 'a', 0) // drops nothing, adds a letter
		}
		return append(data, make([]byte, 20)...)
	}
	for count, fine := range map[int]bool{100: true, 5000: true, 20_000: false} {
		entries, err := ParseIndex(index(count))
		if (err == nil) != fine || fine && len(entries[count-1].Path) != count {
			t.Errorf("%d entries: %d, %v", count, len(entries), err)
		}
	}
}

// What git notes as it looks is no change of what it has; all else that commands go by is.
func TestRefreshed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	run := func(args ...string) {
		c := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=a", "-c", "user.email=a@b"}, args...)...)
		c.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%q: %v\n%s", args, err, out)
		}
	}
	index := func() []byte {
		b, err := os.ReadFile(filepath.Join(dir, ".git/index"))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run("init", "-q")
	write("a", "1")
	write("b", "1")
	run("add", ".")
	run("commit", "-q", "-m", "x")
	was := index()
	for i := range int64(2) {
		then := time.Unix(1_700_000_000+i, 0)
		if err := os.Chtimes(filepath.Join(dir, "a"), then, then); err != nil {
			t.Fatal(err)
		}
		run("update-index", "--refresh")
		if is := index(); bytes.Equal(was, is) || !Refreshed(was, is) {
			t.Error("a refresh is a change, or was none")
		}
	}
	cut := bytes.LastIndex(was, []byte("TREE")) + 12
	if tree := slices.Concat(was[:cut], []byte{was[cut] ^ 1}, was[cut+1:]); cut < 12 || Refreshed(was, tree) {
		t.Error("another tree to be committed is none")
	}
	for _, change := range [][]string{{"update-index", "--assume-unchanged", "b"}, {"update-index", "--chmod=+x", "a"}, {"rm", "-q", "-f", "--cached", "a"}} {
		before := index()
		run(change...)
		if Refreshed(before, index()) {
			t.Errorf("%q is none", change)
		}
	}
	write("c", "2")
	before := index()
	run("add", "c")
	if Refreshed(before, index()) {
		t.Error("what was staged is none")
	}
	if Refreshed(before, before[:len(before)-1]) || Refreshed(nil, before) {
		t.Error("what can't be read is none")
	}
}

func TestIsLoose(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, format := range []string{"sha1", "sha256"} {
		repo := filepath.Join(dir, format)
		if out, err := exec.Command("git", "init", "-q", "--object-format="+format, repo).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		c := exec.Command("git", "-C", repo, "hash-object", "-w", "--stdin")
		c.Stdin = bytes.NewReader([]byte("text"))
		out, err := c.Output()
		if err != nil {
			t.Fatal(err)
		}
		name := string(bytes.TrimSpace(out))
		data, err := os.ReadFile(filepath.Join(repo, ".git/objects", name[:2], name[2:]))
		if err != nil || !IsLoose(name, data) {
			t.Errorf("%s isn't one (%v)", name, err)
		}
		if IsLoose("00"+name[2:], data) || IsLoose(name, data[:len(data)-1]) || IsLoose(name, nil) {
			t.Error("something else is one")
		}
	}
}
