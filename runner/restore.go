package runner

import (
	"context"
	"fmt"
	"os"

	"stepbox/runner/overlay/restore"
)

// Restore carries a plan out on the project as the agent sees it, through the
// merged mount. Freeze the sandbox first: a running agent would race with it.
// The contents are read from source, in this process.
func (s *Sandbox) Restore(ctx context.Context, plan *restore.Plan, source restore.Source) (restore.Report, error) {
	return s.restore(ctx, s.spec.Workspace, plan, source)
}

// restore is Restore on a folder inside, the root of an overlay.
func (s *Sandbox) restore(ctx context.Context, folder string, plan *restore.Plan, source restore.Source) (restore.Report, error) {
	var report restore.Report
	encoded, err := plan.MarshalBinary()
	if err != nil {
		return report, err
	}
	contents, w, err := os.Pipe()
	if err != nil {
		return report, fmt.Errorf("cannot restore %q: %w", folder, err)
	}
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		defer w.Close()
		// An error is the holder's to tell: it lacks what couldn't be sent.
		_ = restore.SendContents(ctx, w, plan, source)
	}()
	err = s.holder.Restore(ctx, folder, encoded, contents, &report)
	contents.Close()
	w.Close() // ends a write to a holder that doesn't read any more
	<-sent
	if err != nil {
		return report, fmt.Errorf("cannot restore %q: %w", folder, err)
	}
	return report, nil
}

// carryOut is the holder's part.
func carryOut(ctx context.Context, project *os.File, encoded []byte, contents *os.File) (any, error) {
	plan := new(restore.Plan)
	if err := plan.UnmarshalBinary(encoded); err != nil {
		return nil, err
	}
	return restore.Execute(ctx, project, plan, restore.ReceiveContents(contents))
}
