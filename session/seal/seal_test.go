package seal

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	_ "github.com/mattn/go-sqlite3"
	"golang.org/x/sys/unix"

	"stepbox/session/api"
	"stepbox/session/e2e/must"
	"stepbox/store"
	"stepbox/store/storetest"
)

const id = "aaaaaaaa"

// rig is a record of one session that isn't sealed yet, and a ring.
type rig struct {
	*testing.T
	dir  string
	st   *store.Store
	key  Key
	live bool
}

func newRig(t *testing.T) *rig {
	r := &rig{T: t, dir: filepath.Join(t.TempDir(), "data")}
	r.key.Dir = filepath.Join(r.dir, "keys")
	r.st = r.record(r.dir, "is")
	return r
}

// record makes a record of the session, of five events.
func (r *rig) record(dir, what string) *store.Store {
	r.Helper()
	st := storetest.Open(r, dir)
	storetest.Begin(r, st, id, json.RawMessage(`{"name":"it"}`))
	for n := range int64(4) {
		if _, err := st.Append(r.Context(), id, store.Fact{Kind: store.KindNote, Key: n, Event: "note", Doc: fmt.Appendf(nil, `{"id":%d,"text":%q}`, n, what)}); err != nil {
			r.Fatal(err)
		}
	}
	return st
}

// private is the file of the key.
func (r *rig) private() string { return filepath.Join(r.key.Dir, privateName) }

// made makes the key, so long before or after now.
func (r *rig) made(d time.Duration) {
	r.Helper()
	if _, err := r.key.signer(r.Context(), true); err != nil {
		r.Fatal(err)
	}
	t, err := r.key.told()
	private, rerr := os.ReadFile(r.private())
	t.From = t.From.Add(d)
	if _, werr := r.key.write(t, private); errors.Join(err, rerr, werr) != nil {
		r.Fatal(err, rerr, werr)
	}
}

func (r *rig) seal(by string) {
	r.Helper()
	if _, err := Seal(r.Context(), r.st, r.key, id, by); err != nil {
		r.Fatal(err)
	}
}

func (r *rig) add(k store.Kind, key int64, event, doc string) {
	r.Helper()
	if _, err := r.st.Append(r.Context(), id, store.Fact{Kind: k, Key: key, Event: event, Doc: []byte(doc)}); err != nil {
		r.Fatal(err)
	}
}

// own is add by the owner of a session that is over.
func (r *rig) own(k store.Kind, key int64, event, doc string) {
	r.Helper()
	_, err := r.st.AppendForetold(r.Context(), id, r.foretell, store.Fact{Kind: k, Key: key, Event: event, Doc: []byte(doc)})
	must.OK(r, err)
}

func (r *rig) foretell(events []store.Event) error { return Foretell(r.Context(), r.st, id, events) }

// later seals it as who comes later; words are why it isn't.
func (r *rig) later(words string) {
	r.Helper()
	if err := Later(r.Context(), r.st, r.key, id, false); (err != nil) != (words != "") || err != nil && !strings.Contains(err.Error(), words) {
		r.Errorf("Later = %v", err)
	}
}

func (r *rig) verifier() Verifier {
	return Verifier{Store: r.st, Key: r.key, Live: func(string) bool { return r.live }, References: func() store.References {
		return func(context.Context, string, store.Kind, json.RawMessage) ([]store.Hash, error) { return nil, nil }
	}}
}

// verify is what verifying one session, or all, finds.
func (r *rig) verify(ask api.VerifyRequest) (all []api.Verified) {
	r.Helper()
	if err := r.verifier().Verify(r.Context(), ask, func(p api.Verifying) {
		if p.Done != nil {
			all = append(all, *p.Done)
		}
	}); err != nil {
		r.Fatal(err)
	}
	return all
}

// one verifies the session, and says all that was found.
func (r *rig) one() (api.Verified, string) {
	r.Helper()
	v := r.verify(api.VerifyRequest{Session: id})[0]
	text := strings.Join(v.Remarks, "\n")
	for _, f := range v.Findings {
		text += "\n" + f.Text
	}
	return v, text
}

// found checks what verifying the session says.
func (r *rig) found(whole bool, words ...string) {
	r.Helper()
	v, text := r.one()
	if v.Whole() != whole {
		r.Errorf("whole is %v: %s", v.Whole(), text)
	}
	for _, w := range words {
		if !strings.Contains(text, w) {
			r.Errorf("%q isn't said: %s", w, text)
		}
	}
}

func (r *rig) raw(statements ...string) {
	r.Helper()
	db, err := sql.Open("sqlite3", "file:"+filepath.Join(r.dir, "stepbox.db")+"?_busy_timeout=5000")
	must.OK(r, err)
	defer db.Close()
	for _, s := range statements {
		if _, err := db.Exec(s); err != nil {
			r.Fatal(err)
		}
	}
}

// A seal covers what came before it; what came after the last one, and that none is of
// the end, is said.
func TestSealed(t *testing.T) {
	r := newRig(t)
	r.found(true, "no seal signs it")
	r.seal(Going)
	r.found(true, "no seal signs its end")
	r.seal(Final)
	v, text := r.one()
	if !v.Whole() || text != "" || v.Seals != 2 || v.Seal.Of != 6 || v.Seal.By != Final || v.Events != 7 {
		t.Errorf("%+v: %s", v, text)
	}
	must.OK(t, r.st.Label(t.Context(), id, func(json.RawMessage) (json.RawMessage, error) { return []byte(`{"name":"that"}`), nil }))
	if v, _ := r.one(); v.Name != "that" {
		t.Errorf("it is called %s", v.Name)
	}
	r.own(store.KindApply, 1, "apply.done", `{}`)
	r.own(store.KindSession, 0, "session.counted", `{"name":"it","applies":1,"unapplied":2}`)
	r.found(true, "events after the last seal: 2")
	r.later("")
	if v, text := r.one(); !v.Whole() || text != "" || v.Seal.By != After {
		t.Errorf("%+v: %s", v, text)
	}
	r.later("")
	if v, _ := r.one(); v.Seals != 3 {
		t.Errorf("%d seals", v.Seals)
	}
	r.own(store.KindNote, 9, "note", `{}`)
	r.found(false, "events after its end that aren't of an apply: 1")
	r.later("events after its end")
	r.add(store.KindSession, 0, "session.resumed", `{"state":"running"}`)
	r.add(store.KindNote, 9, "note", `{}`)
	r.found(false, "events after its end that aren't of an apply: 1", "no seal signs its end")
	if st, err := os.Stat(r.private()); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("the private key: %v, %v", st, err)
	}
}

// Who comes later vouches for what was killed, and says so; not for what ended without
// a seal, nor by a key that is made for it.
func TestLater(t *testing.T) {
	r := newRig(t)
	r.later("there is no key")
	if key, err := r.key.Told(t.Context()); err != nil || key.Public != "" {
		t.Errorf("there is %v, %v", key, err)
	}
	r.made(0)
	r.later("")
	r.found(true, "nothing signed it while it went on", "none of the terminal's output")
	r.own(store.KindSession, 0, "session.resumed", `{"state":"running"}`)
	r.seal(Going)
	r.found(true, "nothing signed it while it went on")
	r.add(store.KindSession, 0, "session.ended", `{"state":"ended"}`)
	must.OK(t, os.Remove(noteOf(r.st, id)))
	r.found(false, "it ended, and no seal signs its end")
	r.later("no seal signs its end")
	r.seal(After)
	r.found(false, "it ended, and no seal signs its end")
	r.seal(Final)
	r.found(true)
	must.OK(t, os.RemoveAll(r.key.Dir))
	r.key.Used = func(ctx context.Context) (bool, error) { return r.st.Any(ctx, store.KindSeal) }
	if _, err := Seal(t.Context(), r.st, r.key, id, Going); err == nil || !strings.Contains(err.Error(), "there is no key") {
		t.Errorf("Seal = %v", err)
	}
	r.found(false, "isn't yours")
	if key, err := r.key.Told(t.Context()); err == nil || key.Public != "" {
		t.Errorf("there is %v, %v", key, err)
	}
}

// An end that couldn't be signed, as its folder knows, is signed when the key is back, which
// stays told; not one that was stripped of its seal, changed, or followed by something else.
func TestOwed(t *testing.T) {
	ended := func(t *testing.T) *rig {
		r := newRig(t)
		r.seal(Going)
		r.add(store.KindSession, 0, "session.ended", `{"state":"ended"}`)
		gone := r.key.Dir + ".gone"
		must.OK(t, os.Rename(r.private(), gone))
		if _, err := Seal(t.Context(), r.st, r.key, id, Final); err == nil {
			t.Fatal("it was sealed without a key")
		}
		r.found(false, "no seal signs its end, which its folder knows")
		r.live = true // its supervisor is still leaving
		r.found(true, "no seal signs its end yet")
		r.live = false
		if v := r.verify(api.VerifyRequest{Session: id, Repair: true})[0]; v.Whole() || len(v.Remarks) != 1 || !strings.Contains(v.Remarks[0], "cannot read the key") {
			t.Errorf("without a key: %+v", v)
		}
		must.OK(t, os.Rename(gone, r.private()))
		r.found(false, "--repair has it signed")
		return r
	}
	repaired := func(r *rig, whole bool, words string) {
		r.Helper()
		for _, v := range [2]api.Verified{r.verify(api.VerifyRequest{Session: id, Repair: true})[0], r.verify(api.VerifyRequest{Session: id})[0]} {
			if text := fmt.Sprint(v.Findings, v.Remarks); v.Whole() != whole || !strings.Contains(text, words) {
				r.Errorf("whole is %v: %s", v.Whole(), text)
			}
		}
	}
	t.Run("as it was", func(t *testing.T) {
		r := ended(t)
		r.own(store.KindApply, 1, "apply.done", `{}`)
		repaired(r, true, "signed only later")
		r.own(store.KindApply, 1, "apply.undone", `{}`)
		r.later("")
		r.found(true, "signed only later")
		r.own(store.KindSession, 0, "session.resumed", `{"state":"running"}`)
		r.add(store.KindSession, 0, "session.ended", `{"state":"ended"}`)
		r.found(false, "no seal signs its end")
		r.seal(Final)
		if v, text := r.one(); !v.Whole() || !strings.Contains(text, "signed only later") || len(v.Remarks) > 1 {
			t.Error(text)
		}
	})
	t.Run("never signed before", func(t *testing.T) {
		r := newRig(t)
		r.made(0)
		r.add(store.KindSession, 0, "session.ended", `{"state":"ended"}`)
		end, err := r.st.Events(t.Context(), id, 6, 1)
		if err != nil || know(r.st, id, end[0].Hash.String()) != nil {
			t.Fatal(err)
		}
		r.later("")
		r.found(true, "nothing signed it while it went on", "signed only later")
	})
	t.Run("by an apply", func(t *testing.T) {
		r := ended(t)
		r.own(store.KindApply, 1, "apply.done", `{}`)
		r.later("")
		repaired(r, true, "signed only later")
	})
	t.Run("while it goes on", func(t *testing.T) {
		r := ended(t)
		release, err := r.st.Own(id)
		must.OK(t, err)
		repaired(r, false, "its folder knows")
		must.OK(t, release())
		repaired(r, true, "signed only later")
	})
	t.Run("with more behind it", func(t *testing.T) {
		r := ended(t)
		r.add(store.KindSession, 0, "session.counted", `{"state":"ended","command":"other"}`)
		r.add(store.KindApply, 1, "apply.done", `{}`)
		r.own(store.KindApply, 2, "apply.done", `{}`)
		repaired(r, false, "its owner didn't record: 3")
	})
	t.Run("killed before its folder knew", func(t *testing.T) {
		r := newRig(t)
		r.seal(Going)
		r.add(store.KindSession, 0, "session.ended", `{"state":"ended"}`)
		repaired(r, false, "no seal signs its end")
		r.later("no seal signs its end")
		if err := Later(t.Context(), r.st, r.key, id, true); err != nil {
			t.Error(err)
		}
		r.found(true, "signed only later")
	})
	t.Run("gone on with, and its folder never knew", func(t *testing.T) {
		r := newRig(t)
		r.seal(Going)
		r.add(store.KindSession, 0, "session.ended", `{"state":"ended"}`)
		r.own(store.KindSession, 0, "session.resumed", `{"state":"running"}`)
		r.add(store.KindSession, 0, "session.ended", `{"state":"ended"}`)
		r.seal(Final)
		r.found(true, "signed only later")
	})
	t.Run("another end", func(t *testing.T) {
		r := ended(t)
		r.raw(`DROP TRIGGER events_remain`, `DELETE FROM events WHERE seq = 7`, `UPDATE sessions SET seq = 1`)
		r.add(store.KindSession, 0, "session.ended", `{"state":"ended","name":"other"}`)
		repaired(r, false, "it lacks the seal or the end")
	})
	t.Run("stripped of its seal", func(t *testing.T) {
		r := ended(t)
		r.seal(Final)
		r.found(true)
		r.raw(`DROP TRIGGER events_remain`, `DELETE FROM events WHERE seq = 8`, `DELETE FROM seals WHERE seq = 8`)
		repaired(r, false, "it lacks the seal or the end")
	})
}

// What is written into the database alone once a session is at rest, each hash worked out as
// it should be, is found, and stays so: nobody who has the session signs it.
func TestAddedAtRest(t *testing.T) {
	resume := func(r *rig) {
		r.add(store.KindSession, 0, "session.resumed", `{"name":"it","state":"running"}`)
		r.add(store.KindAction, 3, "action.ended", `{"n":3}`)
	}
	for name, c := range map[string]struct {
		forge func(r *rig)
		words string
	}{
		"other facts": {func(r *rig) {
			r.add(store.KindSession, 0, "session.counted", `{"name":"it","state":"ended","command":"other"}`)
		}, "aren't of an apply: 1"},
		"an apply": {func(r *rig) { r.add(store.KindApply, 1, "apply.done", `{}`) }, "its owner didn't record: 1"},
		"behind an apply": {func(r *rig) {
			r.own(store.KindApply, 1, "apply.done", `{}`)
			r.add(store.KindApply, 1, "apply.undone", `{}`)
		}, "its owner didn't record: 1"},
		"as resumed": {resume, "its owner didn't record: 2"},
		"with the seal of its end again": {func(r *rig) {
			resume(r)
			r.add(store.KindSession, 0, "session.ended", `{"name":"it","state":"ended"}`)
			r.again()
		}, "put there again"},
		"in an event before": {func(r *rig) {
			r.raw(`DROP TRIGGER events_stay`, `UPDATE events SET doc = '{"id":1,"text":"no"}' WHERE seq = 3`, `UPDATE notes SET doc = '{"id":1,"text":"no"}' WHERE seq = 3`)
		}, "it was changed"},
		"with nothing but that seal": {(*rig).again, "which the one before it signs already"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.seal(Going)
			r.add(store.KindSession, 0, "session.ended", `{"name":"it","state":"ended"}`)
			r.seal(Final)
			killed := errors.New("killed") // before what was foretold was committed
			if _, err := r.st.AppendForetold(t.Context(), id, func(events []store.Event) error {
				return errors.Join(r.foretell(events), killed)
			}, store.Fact{Kind: store.KindApply, Key: 1, Event: "apply.started", Doc: []byte(`{}`)}); !errors.Is(err, killed) {
				t.Fatal(err)
			}
			r.found(true)
			if err := r.verifier().Sound(t.Context(), id); err != nil {
				t.Error(err)
			}
			if err := r.verifier().Whole(t.Context(), id); err != nil {
				t.Error(err)
			}
			c.forge(r)
			r.found(false, c.words)
			if r.verifier().Whole(t.Context(), id) == nil {
				t.Error("it is attested to")
			}
			if r.verifier().Sound(t.Context(), id) == nil {
				t.Error("it is gone on with")
			}
			r.own(store.KindApply, 9, "apply.done", `{}`)
			if err := Later(t.Context(), r.st, r.key, id, true); err == nil {
				t.Error("it is signed")
			}
			r.found(false, c.words[:len(c.words)-1])
		})
	}
}

// again puts the newest seal behind the newest event.
func (r *rig) again() {
	r.Helper()
	docs, err := r.st.Newest(r.Context(), id, store.KindSeal, 1)
	must.OK(r, err)
	r.add(store.KindSeal, 9, "sealed", string(docs[0]))
}

// A session that its owner goes on with is vouched for by its next seal, and nothing but the
// counts of an apply may be told anew of one that has ended.
func TestGoneOnWith(t *testing.T) {
	r := newRig(t)
	r.add(store.KindSession, 0, "session.ended", `{"name":"it","state":"ended"}`)
	r.seal(Final)
	r.own(store.KindSession, 0, "session.resumed", `{"name":"it","state":"running"}`)
	r.add(store.KindNote, 9, "note", `{}`)
	r.found(true, "no seal signs its end")
	r.later("")
	r.own(store.KindApply, 1, "apply.done", `{}`)
	r.own(store.KindSession, 0, "session.counted", `{"name":"it","state":"running","applies":1,"command":"other"}`)
	r.found(false, "aren't of an apply: 1")
}

// A name that nobody can have given doesn't read as if it were the outcome.
func TestNameAsOutcome(t *testing.T) {
	r := newRig(t)
	r.raw(`UPDATE sessions SET doc = json_set(doc, '$.name', 'it (1): whole' || char(10) || char(27) || '[8m')`)
	if v, _ := r.one(); v.Whole() || v.Name != id {
		t.Errorf("it is called %q", v.Name)
	}
}

// A session that is removed while all are verified isn't found to be wrong.
func TestRemovedMeanwhile(t *testing.T) {
	r := newRig(t)
	r.seal(Final)
	v := Verifier{Store: r.st, Key: r.key, Live: func(string) bool {
		if err := r.st.Remove(t.Context(), id); err != nil && !errors.Is(err, store.ErrNotFound) {
			t.Error(err)
		}
		return false
	}, References: func() store.References { return nil }}
	if err := v.Verify(t.Context(), api.VerifyRequest{}, func(p api.Verifying) {
		if p.Done != nil && p.Session != "" {
			t.Errorf("%+v", p.Done)
		}
	}); err != nil {
		t.Error(err)
	}
}

// The record of one session is written anew with other words, each hash worked out as
// it should be: what was signed doesn't fit, and a signature of one's own isn't yours.
func TestRewritten(t *testing.T) {
	for name, c := range map[string]struct {
		forge func(r *rig, doc []byte) *store.Store
		words string
	}{
		"with the seal that there was": {func(r *rig, doc []byte) *store.Store {
			st := r.record(filepath.Join(r.TempDir(), "data"), "was")
			_, err := st.Append(r.Context(), id, store.Fact{Kind: store.KindSeal, Key: 1, Event: "sealed", Doc: doc})
			must.OK(r, err)
			return st
		}, "another event"},
		"with a seal whose hash fits": {func(r *rig, doc []byte) *store.Store {
			st := r.record(filepath.Join(r.TempDir(), "data"), "was")
			head, err := st.Events(r.Context(), id, 5, 1)
			var s api.Seal
			must.OK(r, err, json.Unmarshal(doc, &s))
			s.Hash = head[0].Hash.String()
			forged, err := json.Marshal(s)
			if err == nil {
				_, err = st.Append(r.Context(), id, store.Fact{Kind: store.KindSeal, Key: 1, Event: "sealed", Doc: forged})
			}
			must.OK(r, err)
			return st
		}, "its signature isn't good"},
		"with another key": {func(r *rig, _ []byte) *store.Store {
			st := r.record(filepath.Join(r.TempDir(), "data"), "was")
			if _, err := Seal(r.Context(), st, Key{Dir: filepath.Join(r.TempDir(), "other")}, id, Final); err != nil {
				r.Fatal(err)
			}
			return st
		}, "isn't yours"},
		"with one that names your key": {func(r *rig, doc []byte) *store.Store {
			st := r.record(filepath.Join(r.TempDir(), "data"), "was")
			head, err := st.Events(r.Context(), id, 5, 1)
			var s api.Seal
			must.OK(r, err, json.Unmarshal(doc, &s))
			s.Hash = head[0].Hash.String()
			other, err := Key{Dir: filepath.Join(r.TempDir(), "other")}.signer(r.Context(), true)
			must.OK(r, err)
			s.Signature, err = sign(other, Message(id, s))
			forged, merr := json.Marshal(s)
			must.OK(r, err, merr)
			if _, err := st.Append(r.Context(), id, store.Fact{Kind: store.KindSeal, Key: 1, Event: "sealed", Doc: forged}); err != nil {
				r.Fatal(err)
			}
			return st
		}, "signed it"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.seal(Final)
			docs, err := r.st.Docs(t.Context(), id, store.KindSeal, 0, 0)
			must.OK(t, err)
			r.st = c.forge(r, docs[0])
			r.found(false, c.words)
		})
	}
}

// A record that was cut off agrees with itself: a head that was kept shows it.
func TestCutOff(t *testing.T) {
	r := newRig(t)
	v, _ := r.one()
	r.raw(`DROP TRIGGER events_remain`, `DELETE FROM events WHERE seq = 5`, `DELETE FROM notes WHERE key = 3`)
	r.found(true)
	if cut := r.verify(api.VerifyRequest{Session: id, Head: v.Head})[0]; cut.Whole() || !strings.Contains(cut.Findings[0].Text, "cut off") {
		t.Errorf("a head that it hasn't got: %+v", cut)
	}
	all := r.verify(api.VerifyRequest{})
	if i := slices.IndexFunc(all, func(v api.Verified) bool { return v.Session == "" }); i < 0 || !strings.Contains(all[i].Findings[0].Text, "events_remain") {
		t.Errorf("of the database it is said %+v", all)
	}
}

// Cut back to an older end that was sealed, or to none at all, it isn't what its folder knows of.
func TestCutBack(t *testing.T) {
	for name, cut := range map[string]string{
		"to an older end": `seq > 7`, "to no seal": `kind = 'seal'`,
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.add(store.KindSession, 0, "session.ended", `{"state":"ended"}`)
			r.seal(Final)
			r.found(true)
			r.add(store.KindSession, 0, "session.resumed", `{"state":"running"}`)
			r.seal(Final)
			r.found(true)
			r.raw(`DROP TRIGGER events_remain`, `DELETE FROM events WHERE `+cut)
			r.found(false, "it lacks the seal or the end that its folder knows", "put back the newest")
		})
	}
}

// What stands in the place of the file that knows the newest seal holds nobody up.
func TestNote(t *testing.T) {
	r := newRig(t)
	r.seal(Final)
	note := noteOf(r.st, id)
	is, err := os.ReadFile(note)
	if err == nil {
		err = os.WriteFile(note, append(is, '\n'), 0o600)
	}
	must.OK(t, err)
	r.found(true)
	must.OK(t, os.WriteFile(note, []byte("no hash"), 0o600))
	r.found(false, "can't be read", "without "+note)
	must.OK(t, os.WriteFile(note, nil, 0o600))
	r.found(true, "doesn't know its newest seal")
	must.OK(t, os.Remove(note))
	r.found(true, "doesn't know its newest seal")
	must.OK(t, unix.Mkfifo(note, 0o600))
	r.found(false, "no regular file")
}

// What ended before there was a key is unsealed without fault; what ended later isn't.
func TestUnsealed(t *testing.T) {
	r := newRig(t)
	r.add(store.KindSession, 0, "session.ended", `{"state":"ended","stepbox":"v0"}`)
	r.found(true, "no seal signs it")
	r.made(0)
	r.found(true, "no seal signs it")
	r.made(-time.Hour)
	r.found(false, "it ended, and no seal signs its end")
}

// What the tables say and the events don't is made again, and said before.
func TestRepair(t *testing.T) {
	r := newRig(t)
	r.raw(`UPDATE notes SET doc = '{}'`, `DELETE FROM sessions`)
	v, text := r.one()
	if v.Whole() || !v.Findings[0].Table {
		t.Fatalf("%+v: %s", v, text)
	}
	mended := r.verify(api.VerifyRequest{Session: id, Repair: true})[0]
	if !mended.Whole() || !mended.Repaired || len(mended.Findings) != 5 {
		t.Errorf("%+v", mended)
	}
	r.found(true)
	// Not when the events are wrong too: then it would hide what shows that.
	r.raw(`UPDATE notes SET doc = '{}'`, `DROP TRIGGER events_stay`, `UPDATE events SET doc = '{"id":1,"text":"no"}' WHERE seq = 3`)
	if v := r.verify(api.VerifyRequest{Session: id, Repair: true})[0]; v.Whole() || v.Repaired {
		t.Errorf("%+v", v)
	}
	// Guards are made again although no session is wrong without them, beside what can't be.
	r = newRig(t)
	r.raw(`DROP TRIGGER events_remain`, `CREATE TABLE theirs (x)`)
	database := func(repair bool) api.Verified {
		all := r.verify(api.VerifyRequest{Repair: repair})
		return all[slices.IndexFunc(all, func(v api.Verified) bool { return v.Session == "" })]
	}
	if v := database(true); v.Whole() || len(v.Findings) != 2 || v.Findings[0].Table || !v.Findings[1].Table {
		t.Errorf("%+v", v)
	}
	r.raw(`DROP TABLE theirs`)
	if v := database(false); !v.Whole() {
		t.Errorf("%+v", v)
	}
	r.raw(`DROP TRIGGER events_remain`)
	if v := database(true); !v.Whole() || !v.Repaired {
		t.Errorf("%+v", v)
	}
	// What can't be made again keeps nothing else from it: a table of somebody's, and one that is gone.
	r = newRig(t)
	r.raw(`CREATE TABLE theirs (x PRIMARY KEY)`, `UPDATE notes SET doc = '{}'`)
	if v := r.verify(api.VerifyRequest{Session: id, Repair: true})[0]; v.Whole() || !v.Repaired {
		t.Errorf("%+v", v)
	}
	if _, text := r.one(); strings.Contains(text, "note") || !strings.Contains(text, "theirs") {
		t.Errorf("it has %s", text)
	}
	r.raw(`DROP TABLE theirs`, `DROP TABLE labels`, `DROP TABLE sessions`)
	if all := r.verify(api.VerifyRequest{Repair: true}); len(all) != 2 || !all[0].Whole() || !all[0].Repaired || !all[1].Whole() {
		t.Errorf("%+v", all)
	}
	r.found(true)
	// Sessions that can't be made again are said, and others are gone on with.
	r = newRig(t)
	r.raw(`INSERT INTO notes (session, key, seq, doc) VALUES ('`+id+`', 9, 77, '{}')`, `INSERT INTO notes (session, key, seq, doc) VALUES ('zzzzzzzz', 1, 1, '{}')`)
	if all := r.verify(api.VerifyRequest{Repair: true}); len(all) != 3 || !strings.Contains(fmt.Sprint(all), "cannot rebuild") {
		t.Errorf("%+v", all)
	}
}

// Sessions that no row tells of any more are met when all are verified.
func TestLostSessions(t *testing.T) {
	r := newRig(t)
	r.raw(`DROP TRIGGER events_remain`, `DELETE FROM events`)
	all := r.verify(api.VerifyRequest{})
	if i := slices.IndexFunc(all, func(v api.Verified) bool { return v.Session == id }); i < 0 || all[i].Whole() {
		t.Errorf("%+v", all)
	}
}

// What a key's file was changed to isn't used.
func TestKeySwapped(t *testing.T) {
	r := newRig(t)
	r.seal(Going)
	other := Key{Dir: filepath.Join(t.TempDir(), "other")}
	_, err := other.make()
	if err == nil {
		err = os.Rename(filepath.Join(other.Dir, privateName), r.private())
	}
	must.OK(t, err)
	if _, err := Seal(t.Context(), r.st, r.key, id, Final); err == nil || !strings.Contains(err.Error(), "isn't the one of seal.json") {
		t.Errorf("Seal = %v", err)
	}
}

// Many that need the first key at once make one.
func TestFirstKeyOnce(t *testing.T) {
	r := newRig(t)
	lines := make(chan string)
	for range 8 {
		go func() {
			s, err := r.key.signer(t.Context(), true)
			if err != nil {
				lines <- err.Error()
				return
			}
			lines <- line(s.PublicKey())
		}()
	}
	first := <-lines
	for range 7 {
		if l := <-lines; l != first {
			t.Errorf("there are %s and %s", first, l)
		}
	}
}

// ssh-keygen takes the message, the signature and the list of keys.
func TestSSHKeygen(t *testing.T) {
	if _, err := exec.LookPath("ssh-keygen"); err != nil {
		t.Skip("there is no ssh-keygen here")
	}
	r := newRig(t)
	r.seal(Final)
	v, _ := r.one()
	dir := t.TempDir()
	sig, allowed := filepath.Join(dir, "m.sig"), filepath.Join(dir, "allowed")
	err := errors.Join(os.WriteFile(sig, []byte(v.Seal.Signature), 0o600),
		os.WriteFile(allowed, fmt.Appendf(nil, "stepbox namespaces=\"stepbox\" %s\n", line(must.Get(r.key.signer(t.Context(), true)).PublicKey())), 0o600))
	must.OK(t, err)
	check := func(message string) error {
		cmd := exec.CommandContext(t.Context(), "ssh-keygen", "-Y", "verify", "-f", allowed, "-I", "stepbox", "-n", Namespace, "-s", sig)
		cmd.Stdin = strings.NewReader(message)
		out, err := cmd.CombinedOutput()
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	}
	if err := check(v.Message); err != nil {
		t.Error(err)
	}
	if check(strings.Replace(v.Message, "event 5", "event 4", 1)) == nil {
		t.Error("another message is taken")
	}
}
