package box

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	systemd "github.com/coreos/go-systemd/v22/dbus"
	"github.com/godbus/dbus/v5"
)

// scopePrefix begins the names of scopes that are asked for.
const scopePrefix = "stepbox-"

// systemdWait bounds how long systemd may take to answer, and scopeWait how long to make a scope once it has said that it
// will: by whoever doesn't wait for that this process would be moved later, away from the cgroups that were looked at.
const (
	systemdWait = 3 * time.Second
	scopeWait   = 20 * time.Second
)

// askForScope has the user's systemd (the system's, for root) put this process
// into a scope of its own with the subtree below it delegated, and gives the
// scope's cgroup. See org.freedesktop.systemd1(5) and systemd's
// CGROUP_DELEGATION document.
func askForScope(start context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(start, systemdWait)
	defer cancel()
	address := "unix:path=/run/systemd/private"
	if os.Getuid() != 0 {
		runtime := cmp.Or(os.Getenv("XDG_RUNTIME_DIR"), "/run/user/"+strconv.Itoa(os.Getuid()))
		address = "unix:path=" + dbus.EscapeBusAddressValue(filepath.Join(runtime, "systemd/private"))
	}
	conn, err := systemd.NewConnection(func() (*dbus.Conn, error) { return dialPrivate(ctx, address) })
	if err != nil {
		return "", fmt.Errorf("cannot reach systemd: %w", err)
	}
	defer conn.Close()
	name := scopePrefix + strconv.Itoa(os.Getpid()) + "-" + strconv.FormatInt(time.Now().UnixMilli(), 36) + ".scope"
	done := make(chan string, 1)
	_, err = conn.StartTransientUnitContext(ctx, name, "fail", []systemd.Property{
		systemd.PropDescription("Stepbox session"),
		systemd.PropPids(uint32(os.Getpid())),
		{Name: "Delegate", Value: dbus.MakeVariant(true)},
		{Name: "CollectMode", Value: dbus.MakeVariant("inactive-or-failed")},
	}, done)
	if err != nil {
		return "", fmt.Errorf("cannot ask systemd for a scope: %w", err)
	}
	select {
	case result := <-done:
		if result != "done" {
			return "", fmt.Errorf("cannot ask systemd for a scope: the job ended as %q", result)
		}
	case <-start.Done():
		return "", fmt.Errorf("cannot ask systemd for a scope: %w", start.Err())
	case <-time.After(scopeWait):
		return "", errors.New("cannot ask systemd for a scope: it promised one, and made none")
	}
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(text)) {
		if path, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok && strings.HasSuffix(path, "/"+name) {
			return path, nil
		}
	}
	return "", errors.New("cannot ask systemd for a scope: this process wasn't moved")
}

// dialPrivate connects to a systemd instance itself rather than over a bus.
func dialPrivate(ctx context.Context, address string) (*dbus.Conn, error) {
	conn, err := dbus.Dial(address, dbus.WithContext(ctx))
	if err != nil {
		return nil, err
	}
	if err := conn.Auth([]dbus.Auth{dbus.AuthExternal(strconv.Itoa(os.Getuid()))}); err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}
