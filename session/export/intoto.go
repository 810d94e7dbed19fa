package export

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/secure-systems-lab/go-securesystemslib/dsse"

	"stepbox/session/api"
	"stepbox/store"
)

// What is attested: an in-toto statement
// (https://github.com/in-toto/attestation/blob/main/spec/v1/statement.md) with the
// agent-attestation predicate, whose schema allows no other fields. The generated Go
// types would run protobuf's registry in each of the sandbox's processes; tests read
// what is written with them.
const (
	statementType = "https://in-toto.io/Statement/v1"
	agentType     = "https://github.com/occasiolabs/occasio/spec/agent-attestation/v1"
	payloadType   = "application/vnd.in-toto+json"
)

// maxSubjects bounds the changed files, and the blocked events, that a statement names.
const maxSubjects = 10000

type (
	statement struct {
		Type          string    `json:"_type"`
		Subject       []subject `json:"subject"`
		PredicateType string    `json:"predicateType"`
		Predicate     predicate `json:"predicate"`
	}
	subject struct {
		Name        string            `json:"name"`
		Digest      map[string]string `json:"digest"`
		Annotations map[string]any    `json:"annotations,omitempty"`
	}
	predicate struct {
		Version string      `json:"schema_version"`
		Type    string      `json:"predicate_type"`
		Subject attested    `json:"subject"`
		Agent   attestAgent `json:"agent"`
		Policy  attestRules `json:"policy"`
		Summary attestDeeds `json:"execution_summary"`
		Chain   attestChain `json:"audit_chain"`
		Signed  *struct{}   `json:"signature"` // the envelope has it
	}
	attested struct {
		Run    string   `json:"run_id"`
		Commit *string  `json:"git_commit"`
		Files  []string `json:"files_changed"`
	}
	attestAgent struct {
		Platform string    `json:"platform"`
		Model    *string   `json:"model"`
		Session  string    `json:"session_id"`
		Started  time.Time `json:"started_at"`
		Ended    time.Time `json:"ended_at"`
		Seconds  int64     `json:"wall_time_s"`
	}
	attestRules struct {
		Hash    string         `json:"file_hash"`
		Path    *string        `json:"file_path"`
		Source  string         `json:"source"`
		Version *int           `json:"version"`
		Digest  map[string]any `json:"rules_digest"`
	}
	attestDeeds struct {
		Calls       int       `json:"tool_calls"`
		Local       int       `json:"local"`
		Passed      int       `json:"passed"`
		Blocked     int       `json:"blocked"`
		Transformed int       `json:"transformed"`
		Redacted    int       `json:"secrets_redacted"`
		Events      []blocked `json:"blocked_events"`
	}
	blocked struct {
		Tool   string `json:"tool"`
		Target string `json:"target"`
		Rule   string `json:"rule"`
		Offset int64  `json:"at_offset_s"`
	}
	attestChain struct {
		Genesis  string `json:"genesis"`
		First    string `json:"first_hash"`
		Last     string `json:"last_hash"`
		Events   uint64 `json:"event_count"`
		File     string `json:"chain_file"`
		Verifier string `json:"verifier_url"`
	}
)

// intoto writes what the session did and made as a statement, signed in a DSSE
// envelope, or bare if that was asked for.
func (r *run) intoto() error {
	st, err := r.statement()
	if err != nil {
		return err
	}
	if r.req.Unsigned {
		return r.json(st)
	}
	if r.planning {
		return nil
	}
	var body bytes.Buffer
	enc := json.NewEncoder(&body)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(st); err != nil {
		return err
	}
	if r.Sign == nil {
		return errors.New("cannot sign the statement: there is no key")
	}
	sig, key, err := r.Sign(r.ctx, dsse.PAE(payloadType, body.Bytes()))
	if err != nil {
		return err
	}
	type signature struct {
		Key string `json:"keyid"`
		Sig []byte `json:"sig"`
	}
	return r.json(struct {
		Type       string      `json:"payloadType"`
		Payload    []byte      `json:"payload"`
		Signatures []signature `json:"signatures"`
	}{payloadType, body.Bytes(), []signature{{key, sig}}})
}

func (r *run) statement() (*statement, error) {
	last, err := r.last()
	if err != nil {
		return nil, err
	}
	first, err := r.Store.Events(r.ctx, r.s.ID, 1, 1)
	if err != nil || len(first) == 0 {
		return nil, errors.Join(err, fmt.Errorf("cannot read the first event of session %s", r.s.ID))
	}
	end := r.s.EndedAt
	if end.IsZero() {
		end = last.At
	}
	zero := strings.Repeat("0", 64)
	st := &statement{
		Type: statementType, PredicateType: agentType,
		Subject: []subject{{Name: "stepbox:session:" + r.s.ID, Digest: map[string]string{"blake3": last.Hash.String()}}},
		Predicate: predicate{
			Version: "1.0.0", Type: agentType,
			Subject: attested{Run: r.s.ID, Files: []string{}},
			Agent:   attestAgent{Platform: r.s.Agent, Session: r.s.ID, Started: r.s.StartedAt, Ended: end, Seconds: int64(max(0, end.Sub(r.s.StartedAt)).Seconds())},
			Policy:  attestRules{Hash: zero, Source: "inferred", Digest: map[string]any{}},
			Summary: attestDeeds{Events: []blocked{}},
			Chain:   attestChain{Genesis: zero, First: first[0].Hash.String(), Last: last.Hash.String(), Events: last.Seq, File: r.s.ID + ".jsonl", Verifier: "urn:stepbox:verify"},
		},
	}
	if r.s.Commit != "" {
		st.Predicate.Subject.Commit = &r.s.Commit
	}
	if err := r.subjects(st); err != nil {
		return nil, err
	}
	if err := r.deeds(&st.Predicate.Summary); err != nil {
		return nil, err
	}
	st.Predicate.Summary.Redacted = r.redacted()
	return st, nil
}

// subjects adds the patch and the changed files, with what they are after it.
func (r *run) subjects(st *statement) error {
	digest := func(read func(io.Writer) error) (map[string]string, error) {
		h := sha256.New()
		err := read(h)
		return map[string]string{"sha256": hex.EncodeToString(h.Sum(nil))}, err
	}
	d, err := digest(r.patch)
	if err != nil {
		return err
	}
	st.Subject = append(st.Subject, subject{Name: r.s.ID + ".patch", Digest: d})
	more := 0
	err = r.History.Contents(r.ctx, r.s.ID, api.Scope{}, func(path string, applied bool, c io.Reader) error {
		if strings.HasPrefix(path, ".git/") || strings.Contains(path, "/.git/") {
			return nil
		}
		if len(st.Predicate.Subject.Files) == maxSubjects {
			more++
			return nil
		}
		d, err := digest(func(w io.Writer) error { _, err := io.Copy(w, c); return err })
		if err != nil {
			return fmt.Errorf("cannot read %q: %w", path, err)
		}
		name := api.Escape(r.text(path, "names of files"))
		st.Subject = append(st.Subject, subject{Name: name, Digest: d, Annotations: map[string]any{"applied": applied}})
		st.Predicate.Subject.Files = append(st.Predicate.Subject.Files, name)
		return nil
	})
	if more > 0 {
		st.Subject[1].Annotations = map[string]any{"files_not_listed": more}
	}
	return err
}

// deeds counts what was done and what was blocked: actions and network attempts.
func (r *run) deeds(d *attestDeeds) error {
	count := func(denied bool, tool, target, rule string, at time.Time) {
		d.Calls++
		if !denied {
			d.Passed++
			return
		}
		d.Blocked++
		if len(d.Events) < maxSubjects {
			d.Events = append(d.Events, blocked{tool, api.Escape(target), api.Escape(rule), int64(max(0, at.Sub(r.s.StartedAt)).Seconds())})
		}
	}
	err := each(r, store.KindAction, func(a api.Action) int64 { return int64(a.N) }, func(a api.Action) error {
		count(a.State == api.ActionDenied, string(a.Kind), a.Title, verdictWords(a), a.StartedAt)
		return nil
	})
	if err != nil {
		return err
	}
	return each(r, store.KindAttempt, func(a api.Attempt) int64 { return a.ID }, func(a api.Attempt) error {
		count(a.Verdict == api.Deny, "network", urlOf(a), a.Rule, a.At)
		return nil
	})
}
