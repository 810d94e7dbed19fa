package session_test

import (
	"context"
	"strings"
	"testing"

	"stepbox/session/api"
	"stepbox/session/e2e/must"
	"stepbox/session/ledger"
)

// The ends of a loop's programs are told together, and each is still known.
func TestEndsAreToldTogether(t *testing.T) {
	t.Parallel()
	w := start(t, api.ModePolicy, `sh -c 'i=0; while [ $i -lt 300 ]; do /bin/true $i; i=$((i+1)); done; /bin/false'; true`)
	w.over()
	h := ledger.History{Store: w.store, Live: func(string) bool { return false }}
	told := 0
	for ev, err := range h.Recorded(context.Background(), w.ID(), 0) {
		must.OK(t, err)
		if ev.Ends != nil {
			told++
		}
	}
	if told < 3 || told > 100 {
		t.Errorf("%d events told of the ends", told)
	}
	execs, err := h.Execs(context.Background(), w.ID(), 1)
	must.OK(t, err)
	n := 0
	for _, x := range execs {
		want := 0
		if strings.HasSuffix(x.Argv[0], "/false") {
			want = 1
		} else if !strings.HasSuffix(x.Argv[0], "/true") {
			continue
		}
		n++
		if x.Exit == nil || x.Exit.Code != want || x.EndedAt.Before(x.At) {
			t.Errorf("%v ended at %v with %+v", x.Argv, x.EndedAt, x.Exit)
		}
	}
	if n != 301 {
		t.Errorf("%d programs are known", n)
	}
}
