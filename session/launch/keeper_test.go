package launch

import (
	"database/sql"
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"testing"

	_ "github.com/mattn/go-sqlite3"

	"stepbox/session/api"
	"stepbox/session/e2e/must"
	"stepbox/session/files"
	"stepbox/store"
	"stepbox/store/storetest"
)

// Of a session that someone else removes meanwhile it isn't said that it stays.
func TestCollectBesideAnother(t *testing.T) {
	st := storetest.New(t)
	for _, id := range []string{"aaaaaaaa", "bbbbbbbb"} {
		storetest.Begin(t, st, id, json.RawMessage(`{"state":"ended"}`))
	}
	live := registryIn(t.TempDir())
	k := keeper{store: st, live: live, history: files.NewHistory(st, live.live)}
	var said []string
	got, err := k.Collect(t.Context(), api.CollectRequest{Keep: new(0)}, func(c api.Collecting) {
		if c.Dropped == nil && c.Weighed == 0 {
			if err := k.Remove(t.Context(), "bbbbbbbb"); err != nil {
				t.Error(err)
			}
		} else if c.Dropped != nil {
			said = append(said, c.Dropped.ID+c.Dropped.Stays)
		}
	})
	if err != nil || got.Sessions != 1 || got.Left != 0 || !slices.Equal(said, []string{"aaaaaaaa"}) {
		t.Errorf("it says %q, %+v, %v", said, got, err)
	}
}

// An apply that can't be read doesn't keep its session from being removed.
func TestJournalsOfDamaged(t *testing.T) {
	st := storetest.New(t)
	const id = "aaaaaaaa"
	storetest.Begin(t, st, id, json.RawMessage(`{}`))
	for n, doc := range []string{`{"journal":7}`, `{"journal":"one"}`} {
		if _, err := st.Append(t.Context(), id, store.Fact{Kind: store.KindApply, Key: int64(n), Event: "apply.ended", Doc: json.RawMessage(doc)}); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := (keeper{store: st}).journalsOf(t.Context(), id); err != nil || !slices.Equal(got, []string{"one"}) {
		t.Errorf("its journals are %v, %v", got, err)
	}
}

// Where a session's row is gone and its events are wrong, so that it isn't made again, the
// session can be removed, and then gc goes on.
func TestRemoveWithoutRow(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	st := storetest.Open(t, dir)
	const id = "aaaaaaaa"
	storetest.Begin(t, st, id, json.RawMessage(`{"state":"ended"}`))
	db, err := sql.Open("sqlite3", "file:"+filepath.Join(dir, "stepbox.db")+"?_busy_timeout=5000")
	must.OK(t, err)
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), `DELETE FROM sessions`); err != nil {
		t.Fatal(err)
	}
	if err := st.Sane(t.Context()); err == nil {
		t.Error("the record is sane")
	}
	k := keeper{store: st, live: registryIn(t.TempDir())}
	if err := k.Remove(t.Context(), id); err != nil {
		t.Error(err)
	}
	if err := st.Sane(t.Context()); err != nil {
		t.Error(err)
	}
	var none *api.Problem
	if err := k.Remove(t.Context(), id); !errors.As(err, &none) || none.Code != api.CodeNotFound {
		t.Errorf("a session that isn't there: %v", err)
	}
}
