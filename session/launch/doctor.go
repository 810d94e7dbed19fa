package launch

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"stepbox/runner"
	"stepbox/runner/apparmor"
	"stepbox/store"
)

// Preflight looks at what sandboxes and their record need of this host.
func Preflight(ctx context.Context) ([]runner.Finding, error) {
	dir, err := store.Dir()
	if err != nil {
		return nil, err
	}
	record := runner.Finding{
		Name: "record", OK: true, Fatal: true, Detail: dir,
		Why: "what sessions do is recorded there, for you alone",
	}
	if err := store.Check(ctx, dir); err != nil {
		record.OK, record.Detail, record.Fix = false, err.Error(), "mend that, or set STEPBOX_DATA to another folder"
	}
	return append(runner.Preflight(ctx, filepath.Join(dir, "sessions")), record), nil
}

// Profile installs the AppArmor profile that allows this program user
// namespaces, which takes root, and says what was done. With show it only gives
// the profile's text. The warning says who else could change what it allows.
func Profile(ctx context.Context, show bool) (done, warning string, err error) {
	path, err := os.Executable()
	if err != nil {
		return "", "", fmt.Errorf("cannot tell where this program is: %w", err)
	}
	program, err := apparmor.Look(path)
	if err != nil {
		return "", "", err
	}
	if show {
		return program.Text(), program.Warning, nil
	}
	done, err = program.Install(ctx)
	return done + "\n", program.Warning, err
}

// missing says what this host lacks and how that is mended, if it is why nothing started.
func missing(ctx context.Context, why *Error) string {
	if !why.Host {
		return ""
	}
	findings, err := Preflight(ctx)
	if err != nil {
		return ""
	}
	var b strings.Builder
	for _, f := range findings {
		if !f.OK && f.Fatal && !strings.Contains(why.Message, f.Detail) { // else it is what was said
			fmt.Fprintf(&b, "\n\n  %s: %s\n  why: %s\n  do:  %s", f.Name, f.Detail, f.Why, f.Fix)
		}
	}
	if b.Len() == 0 {
		return ""
	}
	return "\nthis host can't run a sandbox yet:" + b.String()
}
