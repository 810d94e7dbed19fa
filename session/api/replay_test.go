package api

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"
)

// frames are a terminal's connection, which ends like a broken one.
type frames []Frame

func (f *frames) Read() (Frame, error) {
	if len(*f) == 0 {
		return Frame{}, io.EOF
	}
	next := (*f)[0]
	*f = (*f)[1:]
	return next, nil
}

// Events come before what was printed in the same moment, and all of them although the
// terminal's record breaks off, which is told at last.
func TestInOrder(t *testing.T) {
	began := time.Unix(1000, 0)
	events := func(fail error) iter.Seq2[Event, error] {
		return func(yield func(Event, error) bool) {
			for i, s := range []int{0, 2, 3, 9} {
				if !yield(Event{Seq: uint64(i + 1), At: began.Add(time.Duration(s) * time.Second)}, nil) {
					return
				}
			}
			if fail != nil {
				yield(Event{}, fail)
			}
		}
	}
	out := func(s string) Frame { return Frame{Kind: FrameOutput, Data: []byte(s)} }
	at := func(s int) Frame { return TimeFrame(time.Duration(s) * time.Second) }
	printed := []Frame{at(1), out("a"), at(3), out("b"), at(2), out("c")} // a time that goes back is none
	broken := errors.New("no more events")
	for _, c := range []struct {
		end  []Frame
		fail error
		want string
		err  error
	}{
		{[]Frame{{Kind: FrameEnd}}, nil, "1s:1 1s:a 2s:2 3s:3 3s:b 3s:c 9s:4", nil},
		{nil, nil, "1s:1 1s:a 2s:2 3s:3 3s:b 3s:c 9s:4", io.ErrUnexpectedEOF},
		{[]Frame{{Kind: FrameEnd}}, broken, "1s:1 1s:a 2s:2 3s:3 3s:b 3s:c 9s:4", broken},
	} {
		conn := frames(slices.Concat(printed, c.end))
		var got []string
		var last error
		for p, err := range InOrder(events(c.fail), began, Printed(&conn, time.Second)) {
			switch {
			case err != nil:
				last = err
			case p.Event != nil:
				got = append(got, fmt.Sprint(max(p.At, time.Second), ":", p.Event.Seq))
			default:
				got = append(got, fmt.Sprintf("%s:%s", p.At, p.Frame.Data))
			}
		}
		if s := strings.Join(got, " "); s != c.want || !errors.Is(last, c.err) {
			t.Errorf("it was %q (%v), want %q (%v)", s, last, c.want, c.err)
		}
	}
}
