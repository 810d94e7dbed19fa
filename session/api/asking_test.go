package api

import (
	"testing"
	"time"
)

// Of two the stricter holds, whichever comes first, and says where it stands.
func TestStricterAsking(t *testing.T) {
	deny := Asking{On: OnAskDeny, By: "deny"}
	for _, c := range []struct{ a, b, want Asking }{
		{Asking{}, Asking{}, Asking{}},
		{Asking{}, Asking{On: OnAskWait, By: "b"}, Asking{}},
		{Asking{}, deny, deny},
		{deny, Asking{On: OnAskWait, By: "b"}, deny},
		{deny, Asking{Timeout: time.Minute, By: "b"}, Asking{OnAskDeny, time.Minute, "deny"}},
		{Asking{Timeout: time.Hour, By: "a"}, Asking{Timeout: time.Minute, By: "b"}, Asking{Timeout: time.Minute, By: "b"}},
		{Asking{Timeout: time.Minute, By: "a"}, Asking{Timeout: time.Hour, By: "b"}, Asking{Timeout: time.Minute, By: "a"}},
		{Asking{Timeout: time.Minute, By: "a"}, deny, Asking{OnAskDeny, time.Minute, "deny"}},
		{deny, Asking{On: OnAskDeny, By: "b"}, deny},
	} {
		if got := c.a.Stricter(c.b); got != c.want {
			t.Errorf("%+v and %+v: %+v, want %+v", c.a, c.b, got, c.want)
		}
	}
}
