package export

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

func readAll(in string) (got []string, c castReader, err error) {
	err = c.read(strings.NewReader(in), func(t take) error {
		if t.kind == resize {
			got = append(got, fmt.Sprintf("%v %dx%d", t.at, t.cols, t.rows))
		} else {
			got = append(got, fmt.Sprintf("%v %q", t.at, t.data))
		}
		return nil
	})
	return got, c, err
}

func TestReadCast(t *testing.T) {
	const head = `{"version":3,"term":{"cols":80,"rows":24}}` + "\n"
	for name, c := range map[string]struct {
		in      string
		want    []string
		skipped string
	}{
		"v3 counts from the event before": {head + "# a comment\n[0.5,\"o\",\"a\"]\n[1,\"o\",\"b\"]\n[1,\"x\",\"3\"]\n",
			[]string{"0s 80x24", `500ms "a"`, `1.5s "b"`}, ""},
		"v2 counts from the start, and never backwards": {`{"version":2,"width":9,"height":8}` + "\n[2,\"o\",\"a\"]\n[1,\"o\",\"b\"]\n",
			[]string{"0s 9x8", `2s "a"`, `2s "b"`}, "line 3: a time that can't be, which stands still"},
		"sizes and times are bounded": {`{"version":2,"width":-1,"height":1e5}` + "\n" + `{"version":2}`, []string{"0s 1x1000"}, "line 2: it is cut off"},
		"odd times":                   {head + "[-5,\"o\",\"a\"]\n[1e300,\"o\",\"b\"]\n[1,\"r\",\"0x99999\"]\n[1,\"r\",\"wide\"]\n", []string{"0s 80x24", `0s "a"`, `10000h0m0s "b"`, "10000h0m0s 1x1000"}, "line 2: a time that can't be, which stands still; line 4: a time that can't be, which stands still; line 5: a time that can't be, which stands still; line 5: a size that is none"},
		"cut off":                     {head + "[0.5,\"o\",\"a\"]\n[1,\"o\",\"b", []string{"0s 80x24", `500ms "a"`}, "line 3: it is cut off"},
		"a long line":                 {head + `[0,"o","` + strings.Repeat("a", maxCastLine) + "\"]\n[1,\"o\",\"b\"]\n", []string{"0s 80x24", `1s "b"`}, "line 2: longer than 10 MB"},
		"odd events":                  {head + "[0,\"q\",\"a\"]\n[0,1,2]\n{}\nnull\n[]\n[1,\"o\",\"b\"]\n", []string{"0s 80x24", `1s "b"`}, "line 3: no event; line 4: no event; line 5: no event; line 6: no event; events of kind \"q\", which aren't of the screen: 1"},
		"too many sizes": {head + "[0,\"r\",\"1000x9999\"]\n" + strings.Repeat("[0,\"r\",\"1000x1000\"]\n", 100) + "[1,\"o\",\"b\"]\n",
			append(append([]string{"0s 80x24"}, slices.Repeat([]string{"0s 1000x1000"}, 100)...), `1s "b"`), "line 102: a size after too many others"},
		"a header of another program": {"\ufeff\n \n" + `{"version":3.0,"term":{"cols":80.0,"rows":"?"},"env":{"N":1},"title":5,"timestamp":1.5}` + "\n[1,\"o\",\"b\"]\n", []string{"0s 80x24", `1s "b"`}, ""},
		"compressed":                  {"\x1f\x8b\x08", nil, "refused"},
		"none":                        {"", nil, "refused"},
		"another program's":           {`{"version":4}` + "\n", nil, "refused"},
	} {
		t.Run(name, func(t *testing.T) {
			got, r, err := readAll(c.in)
			if c.skipped == "refused" {
				if err == nil {
					t.Fatalf("it was read: %q", got)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if strings.Join(got, "|") != strings.Join(c.want, "|") {
				t.Errorf("read %.300q", got)
			}
			if said := strings.Join(r.said(), "; "); said != c.skipped {
				t.Errorf("said %q", said)
			}
		})
	}
}

// Many odd lines are counted, not kept.
func TestReadCastSkips(t *testing.T) {
	_, c, err := readAll(`{"version":2,"width":9,"height":8}` + "\n" + strings.Repeat("x\n", 1000))
	if err != nil {
		t.Fatal(err)
	}
	if said := c.said(); len(said) != maxSkips+1 || said[maxSkips] != fmt.Sprintf("and %d lines more", 1000-maxSkips) {
		t.Errorf("said %q", said)
	}
}

func FuzzReadCast(f *testing.F) {
	f.Add(`{"version":3,"term":{"cols":80,"rows":24}}` + "\n[0.5,\"o\",\"a\"]\n[1,\"r\",\"3x4\"]\n")
	f.Add(`{"version":1,"width":80,"height":24,"stdout":[[1,"a"],[2],"x"]}`)
	f.Add(`{"version":2,"width":0,"height":24}` + "\n[-1,\"o\",\"\\ud800\"]\n[1e308,\"x\",\"9999999999999\"]")
	f.Fuzz(func(t *testing.T, in string) {
		var c castReader
		last := time.Duration(0)
		_ = c.read(strings.NewReader(in), func(e take) error { // what is refused is refused
			if e.at < last || e.at > maxCastTime {
				t.Fatalf("at %v after %v", e.at, last)
			}
			last = e.at
			if e.kind == resize && (e.cols < 1 || e.rows < 1 || e.cols > 1000 || e.rows > 1000) {
				t.Fatalf("a size of %dx%d", e.cols, e.rows)
			}
			return nil
		})
		if len(c.said()) > 3*maxSkips {
			t.Fatalf("%d words", len(c.said()))
		}
	})
}
