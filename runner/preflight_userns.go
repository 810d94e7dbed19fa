package runner

import (
	"context"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"stepbox/runner/apparmor"
	"stepbox/runner/holder"
)

// checkUserNamespaces makes one, with capabilities in it.
func checkUserNamespaces(ctx context.Context) Finding {
	f := Finding{Name: "user namespaces", Fatal: true, Why: "the sandbox needs no root because it is root of a namespace of its own"}
	h, err := probeHolder(ctx)
	if err != nil {
		f.Detail, f.Fix = err.Error(), usernsFix(err)
		return f
	}
	defer h.Close()
	f.OK, f.Detail = true, "allowed"
	return f
}

// probeHolder makes a holder that is good for nothing but probes.
func probeHolder(ctx context.Context) (*holder.Holder, error) {
	command, err := Command("holder")
	if err != nil {
		return nil, err
	}
	lock, err := os.Open("/dev/null")
	if err != nil {
		return nil, err
	}
	defer lock.Close()
	h, err := holder.Start(command, lock, nil)
	if err != nil {
		return nil, err
	}
	if err := h.Ready(ctx); err != nil {
		h.Close()
		return nil, err
	}
	return h, nil
}

// usernsFix finds which of the known switches forbids user namespaces.
func usernsFix(err error) string {
	const persist = "; to keep it, put the setting into /etc/sysctl.d/60-stepbox.conf"
	if value, ok := sysctl("kernel/unprivileged_userns_clone"); ok && value == "0" {
		return "sudo sysctl -w kernel.unprivileged_userns_clone=1" + persist
	}
	if value, ok := sysctl("user/max_user_namespaces"); ok && value == "0" {
		return "sudo sysctl -w user.max_user_namespaces=15000" + persist
	}
	if value, ok := sysctl("kernel/apparmor_restrict_unprivileged_userns"); ok && value == "1" {
		return apparmor.Advice()
	}
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EUSERS) {
		return "too many user namespaces are in use: sudo sysctl -w user.max_user_namespaces=15000" + persist
	}
	return refusedFix()
}

// refusedFix is what lifts the refusal of whoever started this, where no switch of the kernel's is in the way.
func refusedFix() string {
	switch {
	case inContainer():
		return containerFix()
	case filtered():
		return "a seccomp filter that this runs under refuses them: start it outside of the sandbox that has put it there, or of the systemd unit that says RestrictNamespaces="
	}
	return "this kernel may lack CONFIG_USER_NS, or a security module forbids user namespaces"
}

// explain adds what mends it to a start that the host forbids.
func explain(err error) error {
	if fix := usernsFix(err); fix != "" && (errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) || errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EUSERS)) {
		return fmt.Errorf("%w\nto mend it: %s", err, fix)
	}
	return err
}
