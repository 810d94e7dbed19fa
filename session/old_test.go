package session

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"stepbox/runner/overlay/scan"
	"stepbox/session/api"
	"stepbox/store"
)

// A record from before both sides of changes were kept opens, whether the
// project is there or not, and says what it doesn't have.
func TestRecordWithoutBothSidesOpens(t *testing.T) {
	u := newUppers(t)
	u.write(u.project, "a.txt", "the person's\n")
	u.write(u.upper, "a.txt", "agent\n")
	u.write(u.upper, "dir/b.txt", "agent\n")
	plain, err := scan.New(u.upper, bodies{u.opened}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	m, _, err := plain.Scan(t.Context(), scan.Options{})
	if err != nil {
		t.Fatal(err)
	}
	root, err := u.save(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := u.opened.CreateSession(t.Context(), "test", []byte(`{"id":"test","state":"ended"}`)); err != nil {
		t.Fatal(err)
	}
	doc := fmt.Appendf(nil, `{"id":1,"at":"2026-01-02T03:04:05Z","root":%q}`, root)
	if _, err := u.opened.Append(t.Context(), "test", store.Fact{Kind: store.KindCheckpoint, Event: "checkpoint", Key: 1, Doc: doc}); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(u.project); err != nil {
		t.Fatal(err)
	}
	h := NewHistory(u.opened, func(string) bool { return false })
	got, err := h.Changes(t.Context(), "test", 0, api.Page{})
	if err != nil || len(got.Files) != 2 || !got.Final {
		t.Fatalf("the changes are %+v (%v)", got, err)
	}
	for _, c := range got.Files {
		d, err := h.Diff(t.Context(), "test", c.Key, 0)
		if err != nil || d.Note == "" || len(d.Hunks) > 0 || !strings.HasPrefix(c.Words, "not kept: ") || c.Counted || c.Binary {
			t.Errorf("%+v: %+v (%v)", c, d, err)
		}
	}
}
