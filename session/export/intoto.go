package export

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
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

// intoto writes what the session did and made as a statement, signed in a DSSE
// envelope, or bare if that was asked for.
func (r *run) intoto() error {
	if r.Whole != nil && !r.planning {
		if err := r.Whole(r.ctx, r.s.ID); err != nil {
			return err
		}
	}
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
	encoded := base64.StdEncoding.EncodeToString
	return r.json(dsse.Envelope{PayloadType: payloadType, Payload: encoded(body.Bytes()), Signatures: []dsse.Signature{{KeyID: key, Sig: encoded(sig)}}})
}

// obj is an object of JSON in a form that others define.
type obj = map[string]any

func (r *run) statement() (obj, error) {
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
	var commit any
	if r.s.Commit != "" {
		commit = r.s.Commit
	}
	subjects, files, err := r.subjects()
	if err != nil {
		return nil, err
	}
	deeds, err := r.deeds()
	if err != nil {
		return nil, err
	}
	deeds["secrets_redacted"] = r.redacted()
	zero := strings.Repeat("0", 64)
	return obj{
		"_type": statementType, "predicateType": agentType,
		"subject": append([]obj{{"name": "stepbox:session:" + r.s.ID, "digest": obj{"blake3": last.Hash.String()}}}, subjects...),
		"predicate": obj{
			"schema_version": "1.0.0", "predicate_type": agentType, "execution_summary": deeds, "signature": nil, // the envelope has it
			"subject": obj{"run_id": r.s.ID, "git_commit": commit, "files_changed": files},
			"agent": obj{"platform": r.s.Agent, "model": nil, "session_id": r.s.ID, "started_at": r.s.StartedAt, "ended_at": end,
				"wall_time_s": int64(max(0, end.Sub(r.s.StartedAt)).Seconds())},
			"policy": obj{"file_hash": zero, "file_path": nil, "source": "inferred", "version": nil, "rules_digest": obj{}},
			"audit_chain": obj{"genesis": zero, "first_hash": first[0].Hash.String(), "last_hash": last.Hash.String(), "event_count": last.Seq,
				"chain_file": r.s.ID + ".jsonl", "verifier_url": "urn:stepbox:verify"},
		},
	}, nil
}

// subjects are the patch and the changed files, with what they are after it, and the
// names of these.
func (r *run) subjects() (out []obj, files []string, err error) {
	digest := func(read func(io.Writer) error) (obj, error) {
		h := sha256.New()
		err := read(h)
		return obj{"sha256": hex.EncodeToString(h.Sum(nil))}, err
	}
	d, err := digest(r.patch)
	if err != nil {
		return nil, nil, err
	}
	out, files = []obj{{"name": r.s.ID + ".patch", "digest": d}}, []string{}
	more := 0
	err = r.History.Contents(r.ctx, r.s.ID, api.Scope{}, func(path string, applied bool, c io.Reader) error {
		if strings.HasPrefix(path, ".git/") || strings.Contains(path, "/.git/") {
			return nil
		}
		if len(files) == maxSubjects {
			more++
			return nil
		}
		d, err := digest(func(w io.Writer) error { _, err := io.Copy(w, c); return err })
		if err != nil {
			return fmt.Errorf("cannot read %q: %w", path, err)
		}
		name := api.Escape(r.text(path, "names of files"))
		out = append(out, obj{"name": name, "digest": d, "annotations": obj{"applied": applied}})
		files = append(files, name)
		return nil
	})
	if more > 0 {
		out[0]["annotations"] = obj{"files_not_listed": more}
	}
	return out, files, err
}

// deeds count what was done and what was blocked: actions and network attempts.
func (r *run) deeds() (obj, error) {
	passed, blocked, events := 0, 0, []obj{}
	count := func(denied bool, tool, target, rule string, at time.Time) {
		if !denied {
			passed++
			return
		}
		blocked++
		if len(events) < maxSubjects {
			events = append(events, obj{"tool": tool, "target": api.Escape(target), "rule": api.Escape(rule), "at_offset_s": int64(max(0, at.Sub(r.s.StartedAt)).Seconds())})
		}
	}
	err := each(r, store.KindAction, func(a api.Action) int64 { return int64(a.N) }, func(a api.Action) error {
		count(a.State == api.ActionDenied, string(a.Kind), a.Title, verdictWords(a), a.StartedAt)
		return nil
	})
	if err == nil {
		err = each(r, store.KindAttempt, func(a api.Attempt) int64 { return a.ID }, func(a api.Attempt) error {
			count(a.Verdict == api.Deny, "network", a.Protocol+"://"+net.JoinHostPort(a.Host(), strconv.Itoa(a.Port)), a.Rule, a.At)
			return nil
		})
	}
	return obj{"tool_calls": passed + blocked, "local": 0, "passed": passed, "blocked": blocked, "transformed": 0, "blocked_events": events}, err
}
