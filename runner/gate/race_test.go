package gate

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"stepbox/session/e2e/must"
)

// TestSwapped is the classic attack on a supervisor that reads what it judges:
// another thread swaps the path, an argument, a variable, the working directory or the file itself
// after it was read and before the kernel reads it again. The owner denies
// what is evil and allows all else. What is evil says so when it runs.
func TestSwapped(t *testing.T) {
	const rounds, repeats = 30, 40 // until it was seen
	for _, what := range []string{"path", "argument", "variable", "file", "folder", "linker"} {
		t.Run(what, func(t *testing.T) {
			dir := t.TempDir()
			must.OK(t, os.Mkdir(filepath.Join(dir, "bin"), 0o755))
			for name, text := range map[string]string{
				"good": "#!/bin/sh\n", "evil": "#!/bin/sh\necho it is evil\n",
				"echo": "#!/bin/sh\necho it is $1$V\n",
				"here": "#!/bin/sh\necho it is ${PWD##*/}\n",
			} {
				must.OK(t, os.WriteFile(filepath.Join(dir, "bin", name), []byte(text), 0o755))
			}
			for _, name := range []string{"good", "evil"} {
				must.OK(t, os.Mkdir(filepath.Join(dir, name), 0o755))
			}
			copyFile(t, filepath.Join(dir, "bin", "one"), "/bin/true")
			copyFile(t, filepath.Join(dir, "bin", "two"), "/bin/echo")
			if what == "linker" {
				linker := compiled(t, dir, "gcc", "linker.c", "-nostdlib", "-static", "-fno-stack-protector")
				copyFile(t, filepath.Join(dir, "bin", "three"), linkerOf(t, "/bin/echo"))
				copyFile(t, filepath.Join(dir, "bin", "four"), linker)
				compiled(t, dir, "gcc", "hello.c", "-Wl,--dynamic-linker=bin/linker")
				must.OK(t, os.Rename(linker, filepath.Join(dir, "bin", "prog")))
				for link, to := range map[string]string{"linker": "three", "other": "four"} {
					must.OK(t, os.Symlink(to, filepath.Join(dir, "bin", link)))
				}
			}
			var two unix.Stat_t
			must.OK(t, unix.Stat(filepath.Join(dir, "bin", "two"), &two))
			isEvil := func(e *Exec) bool {
				return filepath.Base(e.Path) == "evil" || len(e.Argv) > 1 && e.Argv[1] == "evil" ||
					len(e.Env) > 0 && e.Env[0] == "V=evil" || e.Program.Ino == two.Ino || filepath.Base(e.Linker) == "four" || filepath.Base(e.Cwd) == "evil"
			}
			attack := func(with ...Allowance) (evil, killed, denied int) {
				b := start(t, setup{
					role: "flip", args: []string{strconv.Itoa(rounds), what}, dir: dir,
					decide: func(e *Exec) {
						switch {
						case isEvil(e):
							e.Deny("evil")
						case strings.Contains("/"+e.Path, "/bin/") && !filepath.IsAbs(e.Path):
							e.Allow(with...)
						default:
							e.Allow()
						}
					},
				})
				b.wait()
				for _, why := range b.failures() {
					if strings.HasPrefix(why, "killed before it ran") {
						killed++
					}
				}
				return strings.Count(b.out.String(), "it is evil"), killed, strings.Count(b.out.String(), "EACCES")
			}
			t.Run("unchecked", func(t *testing.T) {
				for range repeats {
					evil, _, denied := attack(Unverified)
					t.Logf("of %d attempts %d were denied and %d ran what was denied", rounds, denied, evil)
					if evil > 0 {
						return
					}
				}
				t.Error("the attack never worked, so that this test shows nothing")
			})
			t.Run("checked", func(t *testing.T) {
				reached := 0
				for range repeats {
					evil, killed, denied := attack()
					t.Logf("of %d attempts %d were denied, %d ran what was denied, %d were killed", rounds, denied, evil, killed)
					if evil > 0 {
						t.Fatal("what was denied has run")
					}
					if reached += killed; reached > 0 {
						return
					}
				}
				t.Error("the attack never got as far as the check, so that this test shows nothing")
			})
		})
	}
}
