package export

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"stepbox/session/api"
	"stepbox/store"
)

// Spans are written as OTLP/JSON has them: identifiers in hexadecimal, 64-bit numbers as
// text (https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding). The generated
// Go types would run protobuf's registry in each of the sandbox's processes; tests
// read what is written with them.

// Kinds of spans, and the status of one that failed.
const (
	spanInternal = 1
	spanClient   = 3
	spanFailed   = 2
)

// conventions is the version of OpenTelemetry's that the names are from.
const conventions = "https://opentelemetry.io/schemas/1.41.0"

// provider is the GenAI conventions' name of who serves an agent's model, by
// profile; "" when that isn't known.
func provider(agent string) string {
	return map[string]string{"claude": "anthropic", "codex": "openai", "gemini": "gcp.gemini"}[agent]
}

func attr(list []obj, key string, value any) []obj {
	switch v := value.(type) {
	case string:
		if v == "" {
			return list
		}
		return append(list, obj{"key": key, "value": obj{"stringValue": v}})
	case bool:
		return append(list, obj{"key": key, "value": obj{"boolValue": v}})
	case int64:
		return append(list, obj{"key": key, "value": obj{"intValue": strconv.FormatInt(v, 10)}})
	case int:
		return attr(list, key, int64(v))
	}
	return list
}

// spanner makes spans of one trace.
type spanner struct {
	r     *run
	trace string
	root  string
	end   time.Time // of what has none
}

// id names a span: the same in each export of the session.
func (s *spanner) id(kind string, n int64) string {
	h := sha256.Sum256(fmt.Appendf(nil, "%s %s %d", s.trace, kind, n))
	return hex.EncodeToString(h[:8])
}

// span is one from a time to another, below a parent if there is one. It failed with
// some words, or didn't.
func (s *spanner) span(id, parent, name string, kind int, from, to time.Time, failed string, attributes []obj) obj {
	if to.IsZero() {
		to = s.end
	}
	if to.Before(from) {
		to = from
	}
	v := obj{
		"traceId": s.trace, "spanId": id, "name": name, "kind": kind, "attributes": attributes, "status": obj{},
		"startTimeUnixNano": strconv.FormatInt(from.UnixNano(), 10), "endTimeUnixNano": strconv.FormatInt(to.UnixNano(), 10),
	}
	if parent != "" {
		v["parentSpanId"] = parent
	}
	if failed != "" {
		v["status"] = obj{"code": spanFailed, "message": failed}
	}
	return v
}

// otlp writes one span for the agent, one below it for each of its actions, and one
// for each network attempt, after OpenTelemetry's conventions for GenAI agents.
func (r *run) otlp() error {
	h := sha256.Sum256(fmt.Appendf(nil, "stepbox session %s %d", r.s.ID, r.s.StartedAt.UnixNano()))
	s := &spanner{r: r, trace: hex.EncodeToString(h[:16]), end: r.s.EndedAt}
	s.root = s.id("agent", 0)
	if s.end.IsZero() {
		last, err := r.last()
		if err != nil {
			return err
		}
		s.end = last.At
	}
	resource := attr(attr(nil, "service.name", "stepbox"), "service.version", r.s.Stepbox)
	head, err := json.Marshal(resource)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(r.out, `{"resourceSpans":[{"resource":{"attributes":%s},"scopeSpans":[{"scope":{"name":"stepbox"},"schemaUrl":%q,"spans":[`+"\n", head, conventions); err != nil {
		return err
	}
	if err := r.json(s.agent()); err != nil {
		return err
	}
	one := func(v obj) error {
		if err := r.out.WriteByte(','); err != nil {
			return err
		}
		return r.json(v)
	}
	err = each(r, store.KindAction, func(a api.Action) int64 { return int64(a.N) }, func(a api.Action) error { return one(s.tool(a)) })
	if err == nil {
		err = each(r, store.KindAttempt, func(a api.Attempt) int64 { return a.ID }, func(a api.Attempt) error { return one(s.attempt(a)) })
	}
	if err == nil {
		_, err = r.out.WriteString("]}]}]}\n")
	}
	return err
}

func (s *spanner) agent() obj {
	info, failed := s.r.s, ""
	a := attr(nil, "gen_ai.operation.name", "invoke_agent")
	a = attr(a, "gen_ai.provider.name", provider(info.Agent))
	a = attr(a, "gen_ai.agent.name", info.Agent)
	a = attr(a, "gen_ai.conversation.id", info.ID)
	a = attr(a, "process.command_line", info.Command)
	a = attr(a, "stepbox.session.name", info.Name)
	a = attr(a, "stepbox.session.mode", string(info.Mode))
	a = attr(a, "stepbox.session.state", string(info.State))
	if e := info.Exit; e != nil && (e.Code != 0 || e.Signal != "") {
		failed = e.Words()
		a = attr(a, "error.type", failed)
	}
	return s.span(s.root, "", "invoke_agent "+info.Agent, spanInternal, info.StartedAt, info.EndedAt, failed, a)
}

func (s *spanner) tool(t api.Action) obj {
	failed := ""
	a := attr(nil, "gen_ai.operation.name", "execute_tool")
	a = attr(a, "gen_ai.tool.name", string(t.Kind))
	a = attr(a, "gen_ai.tool.type", "function")
	a = attr(a, "gen_ai.tool.call.id", strconv.Itoa(t.N))
	if b, err := json.Marshal(map[string]string{string(t.Kind): t.Title}); err == nil {
		a = attr(a, "gen_ai.tool.call.arguments", string(b))
	}
	a = attr(a, "stepbox.action.state", string(t.State))
	a = attr(a, "stepbox.action.verdict", string(t.Verdict))
	a = attr(a, "stepbox.action.rule", t.Rule)
	a = attr(a, "stepbox.action.by", t.By)
	a = attr(a, "stepbox.action.review", string(t.Review))
	a = attr(a, "stepbox.action.housekeeping", t.Housekeeping)
	a = attr(a, "stepbox.action.files", t.Files)
	a = attr(a, "stepbox.action.lines_added", t.Added)
	a = attr(a, "stepbox.action.lines_removed", t.Removed)
	switch {
	case t.State == api.ActionDenied:
		a = attr(a, "error.type", "denied")
		failed, t.EndedAt = "denied: "+t.Reason, t.StartedAt // it never ran
	case t.Exit != nil:
		a = attr(a, "process.exit.code", t.Exit.Code)
		if t.Exit.Code != 0 || t.Exit.Signal != "" {
			failed = t.Exit.Words()
			a = attr(a, "error.type", failed)
		}
	}
	return s.span(s.id("action", int64(t.N)), s.root, "execute_tool "+string(t.Kind), spanInternal, t.StartedAt, t.EndedAt, failed, a)
}

func (s *spanner) attempt(t api.Attempt) obj {
	parent, failed := s.root, ""
	if t.Action != 0 {
		parent = s.id("action", int64(t.Action))
	}
	a := attr(nil, "network.transport", t.Protocol)
	a = attr(a, "server.address", t.Host())
	if t.Port > 0 {
		a = attr(a, "server.port", t.Port)
	}
	a = attr(a, "process.executable.path", t.Program)
	a = attr(a, "stepbox.attempt.verdict", string(t.Verdict))
	a = attr(a, "stepbox.attempt.rule", t.Rule)
	a = attr(a, "stepbox.attempt.sent", t.Sent)
	a = attr(a, "stepbox.attempt.received", t.Received)
	if t.Verdict == api.Deny || t.Failure != "" {
		failed = cmp.Or(t.Failure, "denied")
		a = attr(a, "error.type", failed)
	}
	return s.span(s.id("attempt", t.ID), parent, "connect "+t.Host(), spanClient, t.At, t.At.Add(t.Duration), failed, a)
}
