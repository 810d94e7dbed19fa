package api

import "testing"

func TestParsePort(t *testing.T) {
	for text, want := range map[string]Publishing{
		"3000": {Port: 3000, At: 3000}, "8080:3000": {Port: 3000, At: 8080}, "": {}, "x": {}, "3000:": {}, ":3000": {}, "0": {}, "70000": {}, "-1": {}, "1:2:3": {}, "3000 ": {}, "80x": {}, "1:0": {},
	} {
		got, err := ParsePort(text, false)
		if (err == nil) != (want.Port != 0) || err == nil && got != want {
			t.Errorf("%q is %+v, %v", text, got, err)
		}
	}
	if got, err := ParsePort("3000:8080", true); err != nil || got.Port != 3000 || got.At != 8080 {
		t.Errorf("%+v, %v", got, err)
	}
}
