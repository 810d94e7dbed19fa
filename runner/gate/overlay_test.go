package gate

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"stepbox/session/e2e/must"
)

func init() {
	prepare["overlay"] = prepareOverlay
	prepare["overlays"] = prepareOverlays
}

// prepare are things that the first process of a sandbox does before the
// filter is on it, by name.
var prepare = map[string]func(dir string) error{}

// prepareOverlay puts an overlay over lower at merged, and a place where
// nothing may be run.
func prepareOverlay(dir string) error {
	at := func(n string) string { return filepath.Join(dir, n) }
	for _, d := range []string{"upper", "work", "merged", "noexec"} {
		if err := os.MkdirAll(at(d), 0o755); err != nil {
			return err
		}
	}
	if err := unix.Mount("tmpfs", at("noexec"), "tmpfs", unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("noexec: %w", err)
	}
	b, err := os.ReadFile("/bin/echo")
	if err != nil {
		return err
	}
	if err := os.WriteFile(at("noexec/prog"), b, 0o755); err != nil {
		return err
	}
	data := "lowerdir=" + at("lower") + ",upperdir=" + at("upper") + ",workdir=" + at("work") + ",userxattr"
	return unix.Mount("overlay", at("merged"), "overlay", unix.MS_NODEV|unix.MS_NOSUID, data)
}

// prepareOverlays is prepareOverlay with another overlay over all of it, as in a
// container whose root is one.
func prepareOverlays(dir string) error {
	if err := prepareOverlay(dir); err != nil {
		return err
	}
	merged := filepath.Join(dir, "merged")
	return unix.Mount("overlay", merged, "overlay", unix.MS_RDONLY|unix.MS_NODEV|unix.MS_NOSUID, "userxattr,lowerdir="+merged+":"+dir)
}

// TestOverlayOnOverlay: there a mapped file has another device, number and path than
// the file that was opened.
func TestOverlayOnOverlay(t *testing.T) {
	dir := t.TempDir()
	lower := filepath.Join(dir, "lower")
	must.OK(t, os.Mkdir(lower, 0o755))
	copyFile(t, filepath.Join(lower, "linker"), linkerOf(t, "/bin/echo"))
	hello := compiled(t, dir, "gcc", "hello.c", "-Wl,--dynamic-linker="+filepath.Join(dir, "merged", "linker"))
	must.OK(t, os.Rename(hello, filepath.Join(lower, "prog")))
	b := start(t, setup{
		args: []string{"sh", "-c", "merged/prog; /bin/echo b"}, // the second is no stacked one
		env:  []string{prepareEnv + "=overlays"}, dir: dir,
	})
	b.wait()
	if got := b.out.String(); !strings.HasSuffix(got, "b\n") || got == "b\n" {
		t.Errorf("it said %q", got)
	}
	if f := b.failures(); len(f) > 0 {
		t.Errorf("failures: %q", f)
	}
}

// Programs in an overlay, from below, above, and copied up between.
func TestOverlay(t *testing.T) {
	dir := t.TempDir()
	lower := filepath.Join(dir, "lower")
	must.OK(t, os.Mkdir(lower, 0o755))
	copyFile(t, filepath.Join(lower, "prog"), "/bin/echo")
	must.OK(t, os.WriteFile(filepath.Join(lower, "script"), []byte("#!/bin/sh\necho b\n"), 0o755))
	b := start(t, setup{
		args: []string{"sh", "-c", "cd merged; ./prog a; ./script; cp prog up; ./up c; touch prog script; ./prog d; ./script; mv prog moved; ./moved e; ../noexec/prog f; echo $?"},
		env:  []string{prepareEnv + "=overlay"}, dir: dir,
	})
	b.wait()
	if got := b.out.String(); got != "a\nb\nc\nd\nb\ne\n126\n" {
		t.Errorf("it said %q", got)
	}
	if f := b.failures(); len(f) > 0 {
		t.Errorf("failures: %q", f)
	}
}
