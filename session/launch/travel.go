package launch

import (
	"context"
	"io"

	"stepbox/runner/overlay/content"
	"stepbox/runner/overlay/manifest"
	"stepbox/session/api"
	"stepbox/session/files"
)

// traveller shows what files were, from the record.
type traveller struct{ *files.History }

// File is server.Traveller's.
func (t traveller) File(ctx context.Context, id, path string, at api.Moment) (io.ReadCloser, error) {
	then, err := t.Scope(ctx, id, api.Scope{To: at})
	if err != nil {
		return nil, err
	}
	now, err := t.Scope(ctx, id, api.Scope{To: "end"})
	if err != nil {
		return nil, err
	}
	base := manifest.LaterBase(then.To, now.To)
	e := then.To.Has(base, path)
	switch {
	case e == nil && !then.To.Knows(base, path):
		return nil, api.Problemf(api.CodeNotFound, "the session never changed %q, so the record hasn't what it was", api.Escape(path))
	case e == nil:
		return nil, api.Problemf(api.CodeNotFound, "there was no %q then", api.Escape(path))
	case e.Kind == manifest.KindSymlink:
		return nil, api.Problemf(api.CodeInvalid, "%q was a link to %q then", api.Escape(path), api.Escape(e.Target))
	case e.Kind != manifest.KindFile:
		return nil, api.Problemf(api.CodeInvalid, "%q was a %s then, not a file", api.Escape(path), e.Kind)
	case e.Unsaved != "":
		return nil, api.Problemf(api.CodeNotFound, "what was in %q isn't in the record: %s", api.Escape(path), api.Escape(e.Unsaved))
	}
	return content.Open(ctx, files.Bodies{Store: t.Store}, e.Hash, e.Size)
}
