// Package apparmor lets this program make user namespaces where AppArmor keeps
// them from programs that have no profile, as on Ubuntu since 23.10: a profile
// for the one path that it is installed at, instead of the switch for all.
//
// It has no state. Paths come from the person who runs it as root.
package apparmor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"unicode"
	"unicode/utf8"
)

// file is where distributions keep profiles, and what they load when they start.
const file = "/etc/apparmor.d/stepbox"

// Program is a program that a profile can be for.
type Program struct {
	Path    string // of the file itself, links followed
	Warning string // who else could put another program there; "" for root alone
}

// Look finds out whether a profile can be for the program at path, and says why
// if it can't: the profile is root's word that whatever is there may make user
// namespaces, so that it has to be a lasting place, and not everybody's.
func Look(path string) (Program, error) {
	refuse := func(format string, args ...any) (Program, error) {
		return Program{}, fmt.Errorf("cannot make an AppArmor profile for %q: %w", path, fmt.Errorf(format, args...))
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return refuse("%w", err)
	}
	if !filepath.IsAbs(real) {
		return refuse("it isn't an absolute path")
	}
	if _, err := quote(real); err != nil {
		return refuse("%w", err)
	}
	if strings.Contains(real, "/go-build") {
		return refuse("it is go run's temporary file; build it and install it first: go build -o stepbox . && sudo install stepbox /usr/local/bin/")
	}
	p := Program{Path: real}
	for at := real; ; at = filepath.Dir(at) {
		info, err := os.Lstat(at)
		if err != nil {
			return refuse("%w", err)
		}
		switch mode := info.Mode(); {
		case at == real && (!mode.IsRegular() || mode&0o111 == 0):
			return refuse("it isn't a program")
		case mode&0o002 != 0:
			return refuse("anybody can write %q; install it elsewhere first: sudo install stepbox /usr/local/bin/", at)
		}
		if st, ok := info.Sys().(*syscall.Stat_t); ok && p.Warning == "" {
			switch {
			case st.Uid != 0:
				p.Warning = fmt.Sprintf("%q belongs to uid %d, who can put any program there, and that one may make user namespaces too", at, st.Uid)
			case st.Gid != 0 && info.Mode()&0o020 != 0:
				p.Warning = fmt.Sprintf("the group %d can write %q and put any program there, and that one may make user namespaces too", st.Gid, at)
			}
		}
		if at == "/" {
			return p, nil
		}
	}
}

// quote writes a path as the profile language has it. Most of what means
// something there is refused rather than escaped: no program is called so.
func quote(path string) (string, error) {
	if !utf8.ValidString(path) || strings.ContainsFunc(path, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return "", errors.New("its name can't be written in a profile")
	}
	if i := strings.IndexAny(path, `*?[]{}^"\@`); i >= 0 {
		return "", fmt.Errorf("%q in its name means something else in a profile", path[i:i+1])
	}
	return `"` + path + `"`, nil
}

// Text is the program's profile. See apparmor.d(5).
func (p Program) Text() string {
	quoted, _ := quote(p.Path) // which Look has tried
	return `# Lets Stepbox make user namespaces; written by stepbox doctor --install-profile.
abi <abi/4.0>,
include <tunables/global>

profile stepbox ` + quoted + ` flags=(unconfined) {
  userns,

  include if exists <local/stepbox>
}
`
}

// Install loads the program's profile and keeps it for the next start. It takes
// root and says what it did.
func (p Program) Install(ctx context.Context) (string, error) {
	if on, err := os.ReadFile("/sys/module/apparmor/parameters/enabled"); err != nil || strings.TrimSpace(string(on)) != "Y" {
		return "", errors.New("AppArmor is off on this machine: no profile is needed")
	}
	if os.Geteuid() != 0 {
		return "", fmt.Errorf("loading a profile takes root: sudo %s doctor --install-profile", shell(p.Path))
	}
	parser, err := exec.LookPath("apparmor_parser")
	if err != nil {
		return "", errors.New("there is no apparmor_parser to load a profile with: install the package apparmor")
	}
	// What can't be loaded isn't kept either.
	load := exec.CommandContext(ctx, parser, "--replace")
	load.Stdin = strings.NewReader(p.Text())
	if out, err := load.CombinedOutput(); err != nil {
		return "", fmt.Errorf("cannot load the profile: %w\n%s", err, bytes.TrimSpace(out))
	}
	if err := keep(p.Text()); err != nil {
		return "", fmt.Errorf("the profile is loaded, but not for the next start: %w", err)
	}
	return fmt.Sprintf("%s may make user namespaces now; the profile is %s, and gone with: sudo apparmor_parser --remove %[2]s && sudo rm %[2]s", p.Path, file), nil
}

func keep(text string) error {
	temporary, err := os.CreateTemp(filepath.Dir(file), ".stepbox-") // what begins with a dot isn't loaded
	if err != nil {
		return err
	}
	_, err = temporary.WriteString(text)
	err = errors.Join(err, temporary.Chmod(0o644), temporary.Close())
	if err == nil {
		err = os.Rename(temporary.Name(), file)
	}
	if err != nil {
		return errors.Join(err, os.Remove(temporary.Name()))
	}
	return nil
}

// Advice is the one command that has this program's profile installed.
func Advice() string {
	path, err := os.Executable()
	if err == nil {
		var p Program
		if p, err = Look(path); err == nil {
			return fmt.Sprintf("sudo %s doctor --install-profile (an AppArmor profile for that path; --print shows it)", shell(p.Path))
		}
	}
	if errors.Is(err, fs.ErrNotExist) { // a supervisor runs from memory
		return "sudo stepbox doctor --install-profile (an AppArmor profile for the path that it is installed at; --print shows it)"
	}
	return err.Error() + "\nthen: sudo stepbox doctor --install-profile (or, for all programs: sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0)"
}

// shell quotes a path for a shell where that is needed.
func shell(path string) string {
	if strings.ContainsFunc(path, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("/._-+", r)
	}) {
		return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
	}
	return path
}
