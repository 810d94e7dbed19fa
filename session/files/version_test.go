package files

import "testing"

// An answer may only claim the version that was there before it looked.
func TestAnswersClaimNoMoreThanTheySaw(t *testing.T) {
	u := newUppers(t)
	var told int64
	u.told = func(v int64) { told = max(told, v) }
	u.look()

	since := u.AsOf()
	u.write(u.upper, "a", "1\n")
	_, v, err := u.ScanSince(t.Context(), since)
	if err != nil || v != told || v == since {
		t.Errorf("what only this scan found is of version %d (%v), told was %d, begun at %d", v, err, told, since)
	}
	if _, again, _ := u.ScanSince(t.Context(), u.AsOf()); again != v || told != v {
		t.Errorf("nothing moved and the version went from %d to %d, told %d", v, again, told)
	}

	// A file is deleted and said to be while an answer is worked out: whatever
	// that answer contains, it is older than the newest version.
	since = u.AsOf()
	u.write(u.upper, "b", "2\n")
	u.Bump()
	if _, v, err = u.ScanSince(t.Context(), since); err != nil || v >= told {
		t.Errorf("an answer that was begun before version %d claims %d (%v)", told, v, err)
	}
	if _, v, _ = u.ScanSince(t.Context(), u.AsOf()); v != told {
		t.Errorf("fetched again it claims %d, want %d", v, told)
	}

	// Checkpoints are news too.
	before := told
	u.Remember(&Checkpoint{ID: 1, Manifest: u.Scanned()})
	if told <= before {
		t.Error("a checkpoint made no version")
	}
}
