package files

import (
	"context"
	"encoding/json"

	"stepbox/runner/overlay/content"
	"stepbox/runner/overlay/manifest"
	"stepbox/session/api"
	"stepbox/session/base"
	"stepbox/store"
)

// References finds the bodies that checkpoints and bases lead to; see
// store.References. It remembers which objects it has seen, so that what many
// checkpoints share is read once. One goroutine may call what it gives.
func References(st *store.Store) store.References {
	seen := make(map[content.Hash]bool)
	return func(ctx context.Context, _ string, kind store.Kind, doc json.RawMessage) (out []store.Hash, err error) {
		switch kind {
		case store.KindCheckpoint:
			var cp api.Checkpoint
			if err := json.Unmarshal(doc, &cp); err != nil {
				return nil, err
			}
			root, err := ParseHash(cp.Root)
			if err != nil || seen[root] {
				return nil, err
			}
			seen[root] = true
			m, err := manifest.Load(ctx, Bodies{st}, root)
			if err != nil {
				return nil, err
			}
			for h, err := range m.Refs(ctx, Bodies{st}, seen) {
				if err != nil {
					return nil, err
				}
				out = append(out, store.Hash(h))
			}
		case store.KindSession:
			var s api.Session
			if err := json.Unmarshal(doc, &s); err != nil {
				return nil, err
			}
			all := s.Bases
			if s.Base != nil {
				all = append(all, *s.Base)
			}
			for _, b := range all {
				h, err := ParseHash(b.Hash)
				if err != nil {
					return nil, err
				}
				r, err := base.Load(ctx, Bodies{st}, h)
				if err != nil {
					return nil, err
				}
				needs, err := r.Refs(ctx, Bodies{st})
				if err != nil {
					return nil, err
				}
				out = append(append(out, store.Hash(h)), hashesAs[store.Hash](needs)...)
			}
		}
		return out, nil
	}
}
