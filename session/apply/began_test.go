package apply

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"stepbox/runner/overlay/content"
	"stepbox/runner/overlay/manifest"
	"stepbox/session/api"
	"stepbox/session/base"
	"stepbox/session/files"
	"stepbox/session/ledger"
)

// based records that the project had these when the agent started: names that git tracks,
// and others.
func (r *rig) based(tracked []string, others ...base.Entry) {
	r.Helper()
	rec := &base.Record{Repositories: []base.Repository{{}}, Entries: others}
	for _, path := range tracked {
		rec.Repositories[0].Tracked = append(rec.Repositories[0].Tracked, base.Tracked{Path: path, Mode: 0o100644, Hash: make([]byte, 20)})
	}
	h, err := rec.Save(r.Context(), files.Bodies{Store: r.Store}, content.Hash{})
	r.must(err)
	r.info.Base = &api.Base{Hash: h.String()}
	r.must(ledger.Append(r.Context(), r.Store, sessionID, nil, api.Event{Kind: "session.based", Session: &r.info}))
}

// What the person deleted or renamed before the session first touched it is theirs to
// decide about when the agent writes it.
func TestDeletedMeanwhile(t *testing.T) {
	r := newRig(t, map[string]string{"kept": "1\n"})
	r.based([]string{"renamed", "tracked and gone"}, base.Entry{Path: "beside", Entry: manifest.Entry{Kind: manifest.KindFile}}, base.Entry{Path: "tracked and gone", Entry: manifest.Entry{Kind: manifest.KindWhiteout}})
	r.host("moved", "1\n2\n3\n")
	for _, name := range []string{"renamed", "beside", "tracked and gone", "new"} {
		r.agent(name, "of the agent\n")
	}
	r.action(api.ReviewKept)
	same(t, words(r.plan(api.ApplyRequest{})), []string{
		"A new", "A tracked and gone", "conflict beside: it was deleted in the project since", "conflict renamed: it was deleted in the project since",
	})
	if _, err := r.apply(api.ApplyRequest{Resolve: []api.Resolution{{Key: api.KeyOf("beside"), Way: api.WayWanted}}}); err != nil {
		t.Fatal(err)
	}
	if has := r.has(); has["beside"] != "of the agent\n" || has["renamed"] != "" {
		t.Errorf("the project has %q", has)
	}
}

// What is no file, folder or link stays, and nobody is said to have changed it.
func TestSpecialStays(t *testing.T) {
	r := newRig(t, map[string]string{"a": "1\n"})
	for _, name := range []string{"replaced", "removed"} {
		r.must(unix.Mkfifo(filepath.Join(r.project, name), 0o600))
	}
	r.agent("replaced", "x\n")
	r.gone("removed")
	r.action(api.ReviewKept)
	why := ": the fifo in the project stays: only files, folders and links are taken away or replaced"
	same(t, words(r.plan(api.ApplyRequest{})), []string{"left removed" + why, "left replaced" + why})
	r.must(os.Remove(filepath.Join(r.project, "replaced")))
	same(t, words(r.plan(api.ApplyRequest{})), []string{"conflict replaced: it was deleted in the project since", "left removed" + why})
}
