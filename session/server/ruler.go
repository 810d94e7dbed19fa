package server

import (
	"cmp"
	"context"
	"net/http"

	"stepbox/session/api"
)

// Ruler puts rules into files and takes them out, where no session does.
type Ruler interface {
	KeepRule(ctx context.Context, r api.FolderRule) (api.RuleKept, error)
	ForgetRule(ctx context.Context, r api.FolderRule) (api.RuleKept, error)
}

// ruler adds the routes on it.
func ruler(mux *http.ServeMux, to Ruler) {
	mux.HandleFunc("POST /v1/policy/rules", answer(asked(func(ctx context.Context, _ string, r api.FolderRule) (api.RuleKept, error) {
		r.Rule.By = cmp.Or(api.Person(ctx), r.Rule.By)
		return to.KeepRule(ctx, r)
	})))
	mux.HandleFunc("DELETE /v1/policy/rules", answer(asked(func(ctx context.Context, _ string, r api.FolderRule) (api.RuleKept, error) {
		return to.ForgetRule(ctx, r)
	})))
}
