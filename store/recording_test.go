package store

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"stepbox/session/e2e/must"
)

// seen says what is read from a time on, with the keyframes.
func seen(t testing.TB, s *Store, id string, at time.Duration) string {
	t.Helper()
	r, err := s.Recording(t.Context(), id)
	must.OK(t, err)
	var out []string
	for f, err := range r.From(at) {
		switch {
		case errors.Is(err, io.ErrUnexpectedEOF):
			out = append(out, "damage")
		case err != nil:
			t.Fatal(err)
		case f.Kind == FrameKey:
			out = append(out, fmt.Sprintf("%d×%d=%s", f.Cols, f.Rows, f.Data))
		default:
			out = append(out, string(f.Data))
		}
	}
	return strings.Join(out, " ")
}

// keyed writes a journal of one file for each word, which begins with a keyframe
// unless the word is in capitals. It returns when the
// words were written.
func keyed(t testing.TB, s *Store, id string, words ...string) (at []time.Duration) {
	t.Helper()
	for i, w := range words {
		j := openJournal(t, s, id)
		if !j.Fresh() {
			t.Fatal("a new file isn't fresh")
		}
		if strings.ToUpper(w) != w {
			must.OK(t, j.Keyframe(80+i, 24, []byte(strings.Join(words[:i], ""))))
		}
		if err := j.Output([]byte(w)); err != nil || j.Fresh() {
			t.Fatalf("fresh after output: %v", err)
		}
		must.OK(t, j.Close())
		fs := frames(t, s, id)
		if len(fs) != i+1 || string(fs[i].Data) != w { // keyframes are no output
			t.Fatalf("%d frames after %d words", len(fs), i+1)
		}
		at = append(at, fs[i].At)
		<-time.After(2 * time.Millisecond) // the next file is of another time
	}
	return at
}

// Reading from a time on begins with the newest keyframe by then, and goes on over
// what can't be read with the next one.
func TestRecordingFrom(t *testing.T) {
	s := open(t)
	id := session(t, s, "aaaaaaaa")
	at := keyed(t, s, id, "a", "b", "C", "d", "e")
	verify(t, s, id)
	j := &Journal{dir: s.SessionDir(id) + "/" + terminal}
	check := func(when string, want ...string) {
		t.Helper()
		for i, w := range want {
			if got := seen(t, s, id, at[i]); got != w {
				t.Errorf("%s, from word %d on: %q, want %q", when, i, got, w)
			}
		}
	}
	all := "80×24= a b C d e"
	check("whole", all, "81×24=a b C d e", "81×24=a b C d e", "83×24=abC d e", "84×24=abCd e")
	if got := seen(t, s, id, -time.Second); got != all {
		t.Errorf("from before the start: %q", got)
	}
	// What is in a file's beginning is of its time, not of the time before.
	if got := seen(t, s, id, at[4]-time.Millisecond); got != "83×24=abC d e" && got != "84×24=abCd e" {
		t.Errorf("before the last word: %q", got)
	}
	two := must.Get(os.ReadFile(j.chunk(2)))
	must.OK(t, os.Remove(j.chunk(2)))
	lost := "80×24= a damage 83×24=abC d e"
	check("a file missing", lost, lost, lost, "83×24=abC d e")
	two[len(two)/2] ^= 1
	write(t, j.chunk(2), two)
	check("a file changed", lost, lost, lost, "83×24=abC d e")
	must.OK(t, os.Remove(j.chunk(1)))
	check("two files lost", "damage damage 83×24=abC d e", "damage damage 83×24=abC d e")
	r, err := s.Recording(t.Context(), id)
	must.OK(t, err)
	if l := r.Lost(); len(l) != 1 || l[0].From > at[0] || l[0].To != at[0] || l[0].Why != "file 1 is missing" {
		t.Errorf("lost are %+v", l)
	}
	if n := r.Length(); n != at[4] {
		t.Errorf("its length is %v, want %v", n, at[4])
	}
}

// A recording of a killed writer begins like any other, packed or not.
func TestRecordingOfAKilledWriter(t *testing.T) {
	s := open(t)
	id := session(t, s, "aaaaaaaa")
	at := keyed(t, s, id, "a")
	j := openJournal(t, s, id)
	must.OK(t, j.Keyframe(90, 30, []byte("x")), j.Output([]byte("b")), j.Output([]byte("torn")))
	raw := must.Get(os.ReadFile(j.raw(2)))
	must.OK(t, j.Close())
	began := must.Get(s.Recording(t.Context(), id)).Lead(time.Unix(0, 0))
	// Another session's folder is made to look like a killed one's.
	id2 := session(t, s, "bbbbbbbb")
	left := &Journal{dir: s.SessionDir(id2) + "/" + terminal}
	must.OK(t, os.MkdirAll(left.dir, 0o700))
	write(t, left.chunk(1), must.Get(os.ReadFile(j.chunk(1))))
	write(t, left.raw(2), raw[:len(raw)-2])
	if got := seen(t, s, id2, time.Hour); got != "90×30=x b" {
		t.Errorf("from its end on: %q", got)
	}
	if got := seen(t, s, id2, at[0]); got != "80×24= a b" {
		t.Errorf("from its start on: %q", got)
	}
	if r := must.Get(s.Recording(t.Context(), id2)); r.Lead(time.Unix(0, 0)) != began || began == 0 {
		t.Errorf("it begins after %v, not %v", r.Lead(time.Unix(0, 0)), began)
	}
	write(t, left.raw(2), raw[:headerSize-2])
	if got := seen(t, s, id2, time.Hour); got != "80×24= a" {
		t.Errorf("without a first frame: %q", got)
	}
}

// A file is as long as its output has it, however large its keyframe is, and one
// that is too large is left out.
func TestKeyframesDontFillFiles(t *testing.T) {
	s := open(t)
	id := session(t, s, "aaaaaaaa")
	j := openJournal(t, s, id)
	must.OK(t, j.Keyframe(80, 24, make([]byte, KeyMost)), j.Output([]byte("a")), j.Output(make([]byte, rotateAt-100)))
	if j.Fresh() {
		t.Error("the keyframe filled the file")
	}
	if err := j.Output(make([]byte, frameMost)); err != nil || !j.Fresh() { // the largest there can be
		t.Errorf("the file isn't full: %v", err)
	}
	if err := j.Keyframe(80, 24, make([]byte, KeyMost+1)); err != nil || !j.Fresh() {
		t.Errorf("a keyframe that is too large: %v", err)
	}
	if err := j.Keyframe(-1, 24, nil); err == nil {
		t.Error("nonsense was recorded")
	}
	must.OK(t, j.Output([]byte("z")), j.Close())
	verify(t, s, id)
	fs := frames(t, s, id)
	if len(fs) != 4 || !bytes.Equal(fs[3].Data, []byte("z")) {
		t.Errorf("%d frames", len(fs))
	}
}
