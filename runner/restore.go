package runner

import (
	"context"
	"fmt"
	"io"
	"os"

	"stepbox/runner/holder"
	"stepbox/runner/overlay"
)

// Restore carries a plan out on the project as the agent sees it, through the
// merged mount. Freeze the sandbox first: a running agent would race with it.
// The contents are read from source, in this process.
func (s *Sandbox) Restore(ctx context.Context, plan *overlay.Plan, source overlay.Source) (overlay.Report, error) {
	var report overlay.Report
	encoded, err := plan.MarshalBinary()
	if err != nil {
		return report, err
	}
	err = s.holder.Restore(ctx, s.spec.Workspace, encoded, func(ctx context.Context, step int) (io.ReadCloser, error) {
		if step < 0 || step >= len(plan.Ops) {
			return nil, fmt.Errorf("the plan has no step %d", step)
		}
		return source.Open(ctx, plan, step)
	}, &report)
	if err != nil {
		return report, fmt.Errorf("cannot restore the project: %w", err)
	}
	return report, nil
}

// restore is the holder's part.
func restore(ctx context.Context, project *os.File, encoded []byte, contents holder.Contents) (any, error) {
	plan := new(overlay.Plan)
	if err := plan.UnmarshalBinary(encoded); err != nil {
		return nil, err
	}
	return overlay.Execute(ctx, project, plan, remote(contents))
}

// remote is a source whose contents are in the supervisor.
type remote holder.Contents

func (r remote) Open(ctx context.Context, _ *overlay.Plan, i int) (io.ReadCloser, error) {
	return r(ctx, i)
}
