package export_test

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ed25519"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/charmbracelet/x/exp/golden"
	statementv1 "github.com/in-toto/attestation/go/v1"
	"github.com/secure-systems-lab/go-securesystemslib/dsse"
	"github.com/zeebo/blake3"
	"google.golang.org/protobuf/encoding/protojson"

	"stepbox/session/api"
	"stepbox/session/e2e/must"
	"stepbox/session/export"
	"stepbox/session/files"
	"stepbox/session/screen"
	"stepbox/store"
	"stepbox/store/storetest"
)

const id = "abcd2345"

var began = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// secret is put together here, so that nobody's scanner takes this file for a leak.
var secret = "ghp_" + strings.Repeat("aB3x", 9)

// recorded makes an exporter and a session of two commands, one of them denied, an
// edit's decision, a connection, and output that has a secret over two frames.
func recorded(t *testing.T) *export.Exporter {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	synctest.Test(t, func(t *testing.T) { record(t, dir) }) // where only what waits takes time
	st := storetest.Open(t, dir)
	return &export.Exporter{Store: st, History: files.NewHistory(st, func(string) bool { return false })}
}

func record(t *testing.T, dir string) {
	time.Sleep(time.Until(began))
	st := storetest.Open(t, dir)
	doc := func(v any) json.RawMessage {
		b, err := json.Marshal(v)
		must.OK(t, err)
		return b
	}
	s := api.Session{
		ID: id, Name: "work", Agent: "claude", Command: "claude --token " + secret, Workspace: "/home/u/<b>", Folder: "/home/u/<b>", Mode: api.ModeStep, Unapplied: 4, Unreviewed: 1,
		State: api.SessionEnded, StartedAt: began, EndedAt: began.Add(90 * time.Second), Exit: &api.Exit{Code: 3}, Cols: 20, Rows: 4,
	}
	storetest.Begin(t, st, id, doc(s))
	ran := api.Action{N: 1, Kind: api.KindCommand, State: api.ActionEnded, Title: "cat </script>", Verdict: api.Allow, Rule: "step mode", By: "cli", StartedAt: began.Add(time.Second),
		EndedAt: began.Add(2 * time.Second), Exit: &api.Exit{Code: 1}, Files: 1, Added: 2, Review: api.ReviewOpen}
	denied := api.Action{N: 2, Kind: api.KindCommand, State: api.ActionDenied, Title: "curl -H 'Authorization: Bearer abcdef0123456789'", Verdict: api.Deny, By: "tui", Reason: "not that", StartedAt: began.Add(3 * time.Second)}
	upkeep := api.Action{N: 3, Kind: api.KindCommand, State: api.ActionEnded, Title: "uname -a", Housekeeping: true, StartedAt: began.Add(6 * time.Second)}
	decision := api.Decision{Question: 1, Action: 2, Answer: api.AnswerDeny, By: "tui", Reason: "not that", At: began.Add(4 * time.Second)}
	attempt := api.Attempt{ID: 1, At: began.Add(1500 * time.Millisecond), Action: 1, Program: "/usr/bin/curl", Protocol: "tcp", Name: "example.org", Address: "198.18.0.1", Port: 443,
		Resolved: "192.0.2.1:443", Verdict: api.Allow, Rule: "host example.org", Sent: 100, Received: 2000, Duration: 250 * time.Millisecond}
	refused := api.Attempt{ID: 2, At: began.Add(5 * time.Second), Protocol: "udp", Address: "2001:db8::1", Port: 53, Verdict: api.Deny, Rule: "no rule allows it"}
	if _, err := st.Append(t.Context(), id,
		store.Fact{Kind: store.KindAction, Key: 1, Event: "action.ended", Doc: doc(ran)},
		store.Fact{Kind: store.KindAction, Key: 2, Event: "action.denied", Doc: doc(denied)},
		store.Fact{Kind: store.KindAction, Key: 3, Event: "action.ended", Doc: doc(upkeep)},
		store.Fact{Kind: store.KindQuestion, Key: 1, Event: "question.answered", Doc: doc(api.Question{ID: 1, Action: 2, Title: denied.Title})},
		store.Fact{Kind: store.KindDecision, Key: 1, Event: "decision", Doc: doc(decision)},
		store.Fact{Kind: store.KindAttempt, Key: 1, Event: "attempt.closed", Doc: doc(attempt)},
		store.Fact{Kind: store.KindAttempt, Key: 2, Event: "attempt.closed", Doc: doc(refused)},
	); err != nil {
		t.Fatal(err)
	}
	j, err := st.Journal(id)
	must.OK(t, err)
	printed := []string{"\x1b[1mhi\x1b[m \xe6", "\xbc\xa2\r\n", secret[:7], "\x1b[31m" + secret[7:] + "\r\n", "</script>\x1b]52;c;QQ==\x07\x1b[c\r\n"}
	err = j.Resize(20, 4)
	for i, p := range printed {
		time.Sleep(time.Until(began.Add(time.Duration(i+1) * 700 * time.Millisecond)))
		err = errors.Join(err, j.Output([]byte(p)))
	}
	time.Sleep(time.Until(began.Add(5 * time.Second)))
	must.OK(t, err, j.Resize(30, 5), j.Output([]byte("end")), j.Close())
}

// TestDamage: of a terminal whose record is damaged all that can be read is exported,
// and where something is missing it is said.
func TestDamage(t *testing.T) {
	e := recorded(t)
	sc := screen.New(80, 24)
	storetest.Begin(t, e.Store, "long2345", json.RawMessage(`{"id":"long2345","state":"ended","cols":80,"rows":24,"started_at":"2026-01-02T03:04:05Z","ended_at":"2026-01-02T03:14:05Z"}`))
	j, err := e.Store.Journal("long2345")
	for i := 0; i < 5<<10 && err == nil; i++ {
		if j.Fresh() {
			err = j.Keyframe(80, 24, sc.Keyframe())
		}
		line := fmt.Appendf(nil, "%s\r\nline %d.\r\n", strings.Repeat("x", 1000), i)
		_, _ = sc.Write(line)
		err = errors.Join(err, j.Output(line))
	}
	dir := filepath.Join(e.Store.SessionDir("long2345"), "terminal")
	must.OK(t, err, j.Close(), os.WriteFile(filepath.Join(dir, "000002.zst"), []byte("none"), 0o600), os.Remove(filepath.Join(dir, "000005.zst")))
	for format, said := range map[string]string{api.ExportCast: `"m","what was printed here can't be shown`, api.ExportJSONL: `"note":"what was printed here can't be shown`, api.ExportHTML: "in 2 parts of the record that are damaged"} {
		var out bytes.Buffer
		must.OK(t, e.Export(t.Context(), "long2345", api.ExportRequest{Format: format, Output: true}, changed, &out))
		want := 2
		if format == api.ExportHTML {
			want = 1
		}
		if n := strings.Count(out.String(), said); n != want {
			t.Errorf("%s says %d times that something is missing", format, n)
		}
		for _, line := range []string{"line 1000.", "line 2100.", "line 4000."} {
			if format != api.ExportHTML && !strings.Contains(out.String(), line) {
				t.Errorf("%s hasn't %q", format, line)
			}
		}
	}
}

// changed stands for the session's patch.
func changed(w io.Writer) error {
	_, err := io.WriteString(w, "diff --git a/k b/k\n--- a/k\n+++ b/k\n@@ -1 +1,4 @@\n-old\n+-----BEGIN RSA "+"PRIVATE KEY-----\n+QUJDRA==\n+-----END RSA "+"PRIVATE KEY-----\n+new\n"+
		"diff --git a/b b/b\nGIT binary patch\nliteral 4\nLc${token=hunter22}\n\n")
	return err
}

func exported(t *testing.T, e *export.Exporter, r api.ExportRequest) []byte {
	t.Helper()
	var out bytes.Buffer
	must.OK(t, e.Export(t.Context(), id, r, changed, &out))
	return out.Bytes()
}

// Of what is recorded when it is recorded, golden files have none.
var passing = regexp.MustCompile(`[0-9a-f]{64}|"time":"[^"]+"|^\[[0-9.]+,"m"|\[[0-9.]+,"x"|sha256-(?:&#43;|[^'&])+|(?s:<style>.*?</style>|<script>.*?</script>)|Written by .*`)

// TestFormats: each form of the session is as in its golden file, and has no secret.
func TestFormats(t *testing.T) {
	e := recorded(t)
	for _, format := range api.ExportFormats {
		t.Run(format, func(t *testing.T) {
			b := exported(t, e, api.ExportRequest{Format: format, Output: true, Unsigned: true})
			for _, bad := range []string{secret, secret[8:], "abcdef0123456789", "QUJDRA", "52;c", "</script>\r", "<b>"} {
				if bytes.Contains(b, []byte(bad)) && !(bad == "<b>" && format != api.ExportHTML) {
					t.Errorf("it has %q", bad)
				}
			}
			var lines []string
			for line := range strings.Lines(passing.ReplaceAllString(string(b), "…")) {
				lines = append(lines, passing.ReplaceAllString(line, "…"))
			}
			golden.RequireEqual(t, strings.Join(lines, ""))
		})
	}
}

// TestSecretAnywhere: a secret in any text of the record leaves in no format.
func TestSecretAnywhere(t *testing.T) {
	e := recorded(t)
	one, s := 1, "x "+secret
	for kind, v := range map[store.Kind]any{
		store.KindSession:  api.Session{ID: id, Name: s, Agent: s, Command: s, Workspace: s, Branch: s, Commit: "c", Reason: s, Warnings: []string{s}, State: api.SessionEnded, StartedAt: began, EndedAt: began},
		store.KindAction:   api.Action{N: one, State: api.ActionDenied, By: "rule", Title: strings.Repeat("x ", 90) + secret, Rule: s, Reason: s, StartedAt: began, Claim: &api.Claimed{Text: s}, Effects: &api.Effects{Words: []string{s}, Committed: s}},
		store.KindDecision: api.Decision{Question: 1, By: s, Reason: s},
		store.KindAttempt:  api.Attempt{ID: 1, Protocol: "tcp", Program: s, Name: s, Address: s, Rule: s, Failure: s, Verdict: api.Deny},
	} {
		doc, err := json.Marshal(v)
		key := int64(1)
		if kind == store.KindSession {
			key = 0
		}
		if err == nil {
			_, err = e.Store.Append(t.Context(), id, store.Fact{Kind: kind, Key: key, Event: "changed", Doc: doc})
		}
		must.OK(t, err)
	}
	for _, format := range api.ExportFormats {
		b := exported(t, e, api.ExportRequest{Format: format, Output: true, Unsigned: true})
		if i := bytes.Index(b, []byte(secret[:12])); i >= 0 {
			t.Errorf("%s has it: %s", format, b[max(0, i-100):i])
		}
	}
}

// TestPlan: what will be redacted is said before, and nothing with --no-redact.
func TestPlan(t *testing.T) {
	e := recorded(t)
	plan, err := e.Plan(t.Context(), id, api.ExportRequest{Format: api.ExportCast}, changed)
	must.OK(t, err)
	want := []api.Secret{{Kind: "Authorization header", Where: "the record's actions", Count: 2}, {Kind: "GitHub token", Where: "the session", Count: 1}, {Kind: "GitHub token", Where: "the terminal's output", Count: 1}}
	if len(plan.Secrets) != len(want) {
		t.Fatalf("planned %v", plan.Secrets)
	}
	for i, s := range want {
		if plan.Secrets[i] != s {
			t.Errorf("planned %v, not %v", plan.Secrets[i], s)
		}
	}
	if b := exported(t, e, api.ExportRequest{Format: api.ExportCast, NoRedact: true}); !bytes.Contains(b, []byte(secret[8:])) {
		t.Error("what wasn't to be redacted is gone")
	}
}

// TestChain works out the hashes of an export as docs/export.md tells, from it alone.
func TestChain(t *testing.T) {
	b := exported(t, recorded(t), api.ExportRequest{Format: api.ExportJSONL, NoRedact: true})
	prev, n := strings.Repeat("0", 64), 0
	for line := range bytes.Lines(b) {
		var e struct {
			Seq                     uint64
			Time                    time.Time
			Kind, Event, Prev, Hash string
			Key                     int64
			Resource                json.RawMessage
		}
		must.OK(t, json.Unmarshal(line, &e))
		if e.Seq == 0 {
			continue
		}
		var h []byte
		text := func(s string) { h = append(binary.BigEndian.AppendUint32(h, uint32(len(s))), s...) }
		text("stepbox event 1")
		text(id)
		h = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(h, e.Seq), uint64(e.Time.UnixNano()))
		text(e.Kind)
		text(e.Event)
		h = binary.BigEndian.AppendUint64(h, uint64(e.Key))
		text(string(e.Resource))
		before, err := hex.DecodeString(e.Prev)
		if err != nil || e.Prev != prev {
			t.Fatalf("event %d goes on from %s, not %s: %v", e.Seq, e.Prev, prev, err)
		}
		if sum := blake3.Sum256(append(h, before...)); hex.EncodeToString(sum[:]) != e.Hash {
			t.Fatalf("event %d has another hash than what is in it", e.Seq)
		}
		prev, n = e.Hash, n+1
	}
	if n < 6 || !bytes.Contains(b, []byte(`"head":"`+prev+`"`)) {
		t.Errorf("%d events, and another end", n)
	}
}

type verifier struct{ ed25519.PublicKey }

func (v verifier) KeyID() (string, error)   { return "mine", nil }
func (v verifier) Public() crypto.PublicKey { return v.PublicKey }
func (v verifier) Verify(_ context.Context, data, sig []byte) error {
	if !ed25519.Verify(v.PublicKey, data, sig) {
		return errors.New("another signature")
	}
	return nil
}

// TestStatement: in-toto's own types take the statement, and DSSE's verifier the
// envelope; unsigned is only what was asked for so.
func TestStatement(t *testing.T) {
	e := recorded(t)
	if err := e.Export(t.Context(), id, api.ExportRequest{Format: api.ExportInToto}, changed, io.Discard); err == nil {
		t.Error("without a key it was exported all the same")
	}
	public, key, err := ed25519.GenerateKey(nil)
	must.OK(t, err)
	signed := 0
	e.Sign = func(_ context.Context, m []byte) ([]byte, string, error) {
		signed++
		return ed25519.Sign(key, m), "mine", nil
	}
	if _, err := e.Plan(t.Context(), id, api.ExportRequest{Format: api.ExportInToto}, changed); err != nil || signed != 0 {
		t.Errorf("a plan signed %d times: %v", signed, err)
	}
	var env dsse.Envelope
	must.OK(t, json.Unmarshal(exported(t, e, api.ExportRequest{Format: api.ExportInToto}), &env))
	v, err := dsse.NewEnvelopeVerifier(verifier{public})
	must.OK(t, err)
	if _, err := v.Verify(t.Context(), &env); err != nil {
		t.Error(err)
	}
	body, err := env.DecodeB64Payload()
	must.OK(t, err)
	var s statementv1.Statement
	must.OK(t, protojson.Unmarshal(body, &s))
	if err := s.Validate(); err != nil {
		t.Error(err)
	}
}
