package files

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stepbox/runner/overlay/scan"
	"stepbox/session/api"
	"stepbox/store"
)

// A record from before both sides of changes were kept opens, though the project
// isn't there, and says what it doesn't have.
func TestRecordWithoutBothSidesOpens(t *testing.T) {
	upper := filepath.Join(t.TempDir(), "upper")
	for name, text := range map[string]string{"a.txt": "agent\n", "dir/b.txt": "agent\n"} {
		p := filepath.Join(upper, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	opened, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "data"))
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	plain, err := scan.New(upper, Bodies{Store: opened}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	m, _, err := plain.Scan(t.Context(), scan.Options{})
	if err != nil {
		t.Fatal(err)
	}
	root, err := m.Save(t.Context(), Bodies{Store: opened})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := opened.CreateSession(t.Context(), "test", []byte(`{"id":"test","state":"ended"}`)); err != nil {
		t.Fatal(err)
	}
	doc := fmt.Appendf(nil, `{"id":1,"at":"2026-01-02T03:04:05Z","root":%q}`, root)
	if _, err := opened.Append(t.Context(), "test", store.Fact{Kind: store.KindCheckpoint, Event: "checkpoint", Key: 1, Doc: doc}); err != nil {
		t.Fatal(err)
	}
	h := NewHistory(opened, func(string) bool { return false })
	got, err := h.Changes(t.Context(), "test", api.Scope{}, api.Page{})
	if err != nil || len(got.Files) != 2 || !got.Final {
		t.Fatalf("the changes are %+v (%v)", got, err)
	}
	for _, c := range got.Files {
		d, err := h.Diff(t.Context(), "test", c.Key, api.Scope{})
		if err != nil || d.Note == "" || len(d.Hunks) > 0 || !strings.HasPrefix(c.Words, "not kept: ") || c.Counted || c.Binary {
			t.Errorf("%+v: %+v (%v)", c, d, err)
		}
	}
}
