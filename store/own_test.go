package store

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"stepbox/session/e2e/must"
)

// One process at a time has a session, however many stores it has open.
func TestOwn(t *testing.T) {
	s := open(t)
	id := session(t, s, "aaaaaaaa")
	release, err := s.Own(id)
	must.OK(t, err)
	if _, err := s.Own(id); !errors.Is(err, ErrOwned) {
		t.Errorf("a second owner: %v", err)
	}
	if !s.Owned(id) {
		t.Error("nobody has it")
	}
	must.OK(t, release())
	if s.Owned(id) || s.Owned("bbbbbbbb") {
		t.Error("somebody has it")
	}
	release, err = s.Own(id)
	must.OK(t, err)
	must.OK(t, release())
	if _, err := s.Own("../x"); err == nil {
		t.Error("a name that is no session's was taken")
	}
}

func TestUnsettled(t *testing.T) {
	s := open(t)
	for id, state := range map[string]string{"aaaaaaaa": "open", "bbbbbbbb": "done", "cccccccc": "undoing", "dddddddd": "failed"} {
		session(t, s, id)
		appendFacts(t, s, id, Fact{Kind: KindApply, Key: 1, Event: "apply.x", Doc: json.RawMessage(`{"id":1,"state":"` + state + `"}`)})
	}
	got, err := s.Unsettled(t.Context())
	slices.Sort(got)
	if err != nil || !slices.Equal(got, []string{"aaaaaaaa", "cccccccc"}) {
		t.Errorf("%v, %v", got, err)
	}
}

// What was just forked has the files as well until it starts its program.
func TestLocksEndBeforeWhatWasForked(t *testing.T) {
	s := open(t)
	session(t, s, "eeeeeeee")
	j := openJournal(t, s, "eeeeeeee")
	kept, err := unix.FcntlInt(j.lock.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	must.OK(t, err)
	defer unix.Close(kept)
	must.OK(t, j.Close())
	release, err := s.Own("eeeeeeee")
	must.OK(t, err, openJournal(t, s, "eeeeeeee").Close(), release())
}
