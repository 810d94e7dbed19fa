package outfit

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"stepbox/runner"
	"stepbox/runner/overlay/manifest"
)

// Expand is a mount's path in full.
func Expand(path, home string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		return filepath.Join(home, rest)
	}
	return path
}

// ownFolders are folders of the host that a sandbox has of its own, or shows as they
// are: nothing is mounted there, nor shown from there.
var ownFolders = []string{"/proc", "/sys", "/dev", "/run", "/boot", "/etc", "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/var/run", "/var/lib/docker"}

// wholeFolders hold what is other people's or other programs'.
var wholeFolders = []string{"/", "/home", "/root", "/var", "/var/lib", "/opt", "/srv", "/mnt", "/media", "/nix", "/tmp", "/var/tmp"}

// Refused says why a path isn't mounted, whatever a policy says of it; "" when it may be.
// Private are folders that are never shown besides those of the home folder.
func Refused(path, home string, private ...string) string {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "it isn't there"
	}
	info, err := os.Lstat(real)
	switch {
	case err != nil:
		return "it isn't there"
	case !info.IsDir() && !info.Mode().IsRegular():
		return "it is neither a folder nor a file: a socket or a device leads out of the sandbox"
	}
	resolved := func(p string) string {
		if r, err := filepath.EvalSymlinks(p); err == nil {
			return r
		}
		return p
	}
	for _, p := range []string{path, real} {
		if slices.Contains(wholeFolders, p) {
			return "it is a folder of the whole system's"
		}
		if i := slices.IndexFunc(ownFolders, func(o string) bool { return manifest.Within(p, o) }); i >= 0 {
			return "the sandbox has its own " + ownFolders[i]
		}
		if manifest.Within(home, p) || manifest.Within(resolved(home), p) {
			return "it is your home folder, or holds it"
		}
		for _, s := range append(Secret(home), private...) {
			for _, s := range []string{s, resolved(s)} {
				if manifest.Within(s, p) || manifest.Within(p, s) {
					return fmt.Sprintf("it is, holds or is in %s, which is never shown", s)
				}
			}
		}
	}
	return ""
}

// mounts are a policy's, ready to be shown. What is written to one is kept in a folder
// of the session's: what is mounted stays as it is.
func mounts(n Needs) (out []runner.Bind, err error) {
	for _, m := range n.Rules.With(n.Extras.layer()).Mounts() {
		path := Expand(m.Path, n.Home)
		where := m.File
		if m.Line > 0 {
			where = fmt.Sprintf("%s, line %d", m.File, m.Line)
		}
		if why := Refused(path, n.Home, n.Workspace, n.DataDir); why != "" {
			return nil, &runner.StartError{Reason: fmt.Sprintf("cannot mount %q (%s): %s", m.Path, where, why)}
		}
		b := runner.Bind{Source: path, Target: path}
		if m.Write {
			if !isDir(path) {
				return nil, &runner.StartError{Reason: fmt.Sprintf("cannot mount %q to be written (%s): only folders can", m.Path, where)}
			}
			b.Upper = upperOf(n.StateDir, path)
			if err := os.MkdirAll(filepath.Dir(b.Upper), 0o700); err != nil {
				return nil, fmt.Errorf("cannot make the session's folder: %w", err)
			}
		}
		out = append(out, b)
	}
	return out, nil
}

// upperOf is the folder of the session's that takes what is written to a mounted one:
// named after it, so that it is the same one's when a policy has others by then.
func upperOf(stateDir, path string) string {
	sum := sha256.Sum256([]byte(path))
	return filepath.Join(stateDir, "mounts", hex.EncodeToString(sum[:8]))
}

// withMounts puts what a policy mounts in the place of what is shown there anyway.
func withMounts(binds, more []runner.Bind) []runner.Bind {
	binds = slices.DeleteFunc(binds, func(b runner.Bind) bool {
		return slices.ContainsFunc(more, func(m runner.Bind) bool { return m.Target == b.Target })
	})
	return append(binds, more...)
}
