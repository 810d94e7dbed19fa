package pid1

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"stepbox/session/e2e/must"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestParse(t *testing.T) {
	for text, ok := range map[string]bool{
		`{"kind":"ready"}`:                               true,
		`{"kind":"started"}`:                             true,
		`{"kind":"exited","code":255}`:                   true,
		`{"kind":"exited","signal":9}`:                   true,
		`{"kind":"exited"}`:                              true,
		`{"kind":"failed","error":"no such program"}`:    true,
		`{"kind":"failed"}`:                              false,
		`{"kind":"failed","error":"two\nlines"}`:         false,
		`{"kind":"failed","error":"\u001b[31m"}`:         false,
		`{"kind":"exited","code":256}`:                   false,
		`{"kind":"exited","code":-1}`:                    false,
		`{"kind":"exited","code":1,"signal":9}`:          false,
		`{"kind":"exited","signal":65}`:                  false,
		`{"kind":"ready","code":1}`:                      false,
		`{"kind":"go"}`:                                  false,
		`{"kind":"start"}`:                               false,
		`{"kind":"ready","extra":1}`:                     false,
		`{"kind":"ready"}{"kind":"ready"}`:               false,
		`{"kind":"ready"} x`:                             false,
		`{}`:                                             false,
		``:                                               false,
		`null`:                                           false,
		`[]`:                                             false,
		`{"kind":"` + strings.Repeat("x", 5000) + `"}`:   false,
		"{\"kind\":\"failed\",\"error\":\"\xff\xfe x\"}": true, // becomes valid text
	} {
		if m, err := Parse([]byte(text)); (err == nil) != ok {
			t.Errorf("%.60q: %+v, %v", text, m, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"kind":"exited","code":3}`))
	f.Add([]byte(`{"kind":"failed","error":"x"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := Parse(text)
		if err != nil {
			return
		}
		if len(text) > MessageLimit || !printable(m.Error) || m.Code < 0 || m.Code > 255 || m.Signal < 0 || m.Signal > 64 {
			t.Errorf("%q is taken as %+v", text, m)
		}
		again, err := json.Marshal(m)
		must.OK(t, err)
		if n, err := Parse(again); err != nil || n != m {
			t.Errorf("%+v comes back as %+v, %v", m, n, err)
		}
	})
}

func TestVariable(t *testing.T) {
	env := []string{"A=1", "PATHS=x", "PATH=/a", "PATH=/b", "broken"}
	if got := variable(env, "PATH"); got != "/a" {
		t.Errorf("PATH is %q", got)
	}
	if got := variable(env, "B"); got != "" {
		t.Errorf("B is %q", got)
	}
}

func TestProgramKeepsBytes(t *testing.T) {
	p := Program{Argv: []string{"a", "\xff\n"}, Env: []string{"A=\xfe"}, Cwd: "/\xfd", Sockets: []string{"tell"}}
	b, err := json.Marshal(p)
	must.OK(t, err)
	var got Program
	if err := json.Unmarshal(b, &got); err != nil || !slices.Equal(got.Argv, p.Argv) || !slices.Equal(got.Env, p.Env) || got.Cwd != p.Cwd || !slices.Equal(got.Sockets, p.Sockets) {
		t.Errorf("%+v became %+v: %v", p, got, err)
	}
}
