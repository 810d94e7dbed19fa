package store

import (
	"slices"
	"sync"
)

// Kind is a kind of resource. Each has its table.
type Kind string

// The kinds. A chunk is the store's own: a packed piece of a terminal journal.
const (
	KindSession    Kind = "session"
	KindAction     Kind = "action"
	KindQuestion   Kind = "question"
	KindDecision   Kind = "decision"
	KindExec       Kind = "exec"
	KindEnds       Kind = "ends"
	KindAttempt    Kind = "attempt"
	KindCheckpoint Kind = "checkpoint"
	KindRollback   Kind = "rollback"
	KindChunk      Kind = "chunk"
	KindNote       Kind = "note"
	KindApply      Kind = "apply"
	KindClaim      Kind = "claim"
	KindSeal       Kind = "seal" // a signature of the chain's head by then
)

// kind describes the table of one kind.
type kind struct {
	name    Kind
	table   string
	since   int      // the schema version that made the table
	view    int      // the one from which on the events alone have it and the table is a view of them; 0: none
	alike   []string // members that are the same in many documents, see fold
	columns []column
	bodies  []string // members of the document that hold the hash of a body, or are empty; a.b is b in a
}

// column is a generated column: what json_extract finds in the document.
type column struct {
	name  string
	typ   string
	path  string
	since int // the schema version that added it
}

const (
	text    = "TEXT"
	integer = "INTEGER"
	real    = "REAL"
)

// same describes columns named as the members of the document are.
func same(typ string, since int, names ...string) []column {
	var cs []column
	for _, n := range names {
		cs = append(cs, column{n, typ, "$." + n, since})
	}
	return cs
}

// exitColumns describe how a process ended.
var exitColumns = []column{{"exit_code", integer, "$.exit.code", 1}, {"exit_signal", text, "$.exit.signal", 1}}

// described is the table that DDL and queries are made of. A later schema adds
// lines with a higher since; lines that are there never change, since they are
// what an older migration made. It is built on first use: every re-execution of
// the binary would pay for it otherwise.
var described = sync.OnceValue(func() []*kind {
	return []*kind{
		{name: KindSession, table: "sessions", since: 1, bodies: []string{"screen", "base.hash"}, columns: slices.Concat(
			same(integer, 1, "number"),
			same(text, 1, "name", "agent", "command", "workspace", "folder", "mode", "state", "started_at", "ended_at"),
			exitColumns,
			same(integer, 1, "cols", "rows"),
			[]column{
				{"limits_source", text, "$.limits.source", 1}, {"limits_memory", integer, "$.limits.memory", 1},
				{"limits_cpus", real, "$.limits.cpus", 1}, {"limits_pids", integer, "$.limits.pids", 1},
				{"limits_wall_time", integer, "$.limits.wall_time", 1},
			},
			same(text, 1, "warnings", "hidden", "hosts"),
			same(integer, 1, "actions", "held", "unreviewed", "attempts"),
			same(text, 1, "last_action", "screen"),
		)},
		{name: KindAction, table: "actions", since: 1, alike: []string{"title", "kind", "state", "housekeeping", "verdict", "rule", "by", "exit"}, columns: slices.Concat(
			[]column{{"action_kind", text, "$.kind", 1}},
			same(text, 1, "state", "review", "title"),
			same(integer, 1, "housekeeping"),
			same(text, 1, "verdict", "rule", "by", "reason", "started_at", "released_at", "ended_at"),
			exitColumns,
			same(integer, 1, "execs", "left_running", "files", "added", "removed", "shared", "before", "after"),
		)},
		{name: KindQuestion, table: "questions", since: 1, columns: slices.Concat(
			same(integer, 1, "action"),
			same(text, 1, "subject", "title", "hash", "rule", "held_at", "closed"),
			[]column{
				{"line", text, "$.command.line", 1}, {"argv", text, "$.command.argv", 1}, {"cwd", text, "$.command.cwd", 1},
				{"program", text, "$.command.program", 1}, {"written", integer, "$.command.written", 1}, {"pid", integer, "$.command.pid", 1},
			},
			same(text, 1, "changes"),
		)},
		{name: KindDecision, table: "decisions", since: 1, columns: slices.Concat(
			same(integer, 1, "question", "action"),
			same(text, 1, "hash", "answer", "reason", "by", "at"),
		)},
		{name: KindExec, table: "execs", since: 1, view: 4, alike: []string{"argv", "program", "cwd", "verdict", "rule"}, columns: slices.Concat(
			same(integer, 1, "action", "pid", "parent"),
			same(text, 1, "argv", "program", "cwd", "verdict", "rule", "at", "ended_at"),
			exitColumns,
			same(text, 1, "failure"),
		)},
		{name: KindAttempt, table: "attempts", since: 1, columns: slices.Concat(
			same(integer, 1, "action", "pid"),
			same(text, 1, "at", "program", "protocol", "name", "address"),
			same(integer, 1, "port"),
			same(text, 1, "resolved", "verdict", "rule"),
			same(integer, 1, "sent", "received", "duration", "open"),
			same(text, 1, "failure"),
		)},
		{name: KindCheckpoint, table: "checkpoints", since: 1, view: 4, bodies: []string{"root"}, columns: slices.Concat(
			same(integer, 1, "action"),
			same(text, 1, "at", "root"),
			same(integer, 1, "files", "bytes"),
		)},
		{name: KindRollback, table: "rollbacks", since: 1, columns: slices.Concat(
			same(integer, 1, "to_before", "checkpoint"),
			same(text, 1, "at", "actions"),
			same(integer, 1, "files"),
			same(text, 1, "by", "failure"),
		)},
		{name: KindChunk, table: "chunks", since: 1, columns: slices.Concat(
			same(text, 1, "file", "hash"),
			same(integer, 1, "frames", "bytes", "packed", "from_ms", "to_ms"),
		)},
		{name: KindNote, table: "notes", since: 1, columns: slices.Concat(
			same(text, 1, "at", "text"),
			same(integer, 1, "warn"),
		)},
		{name: KindApply, table: "applies", since: 2, columns: slices.Concat(
			same(integer, 2, "checkpoint"),
			same(text, 2, "at", "state"),
			same(integer, 2, "files"),
			same(text, 2, "by", "ref", "journal", "failure", "undone_at"),
		)},
		{name: KindSeal, table: "seals", since: 3, columns: slices.Concat(
			same(integer, 3, "of"),
			same(text, 3, "hash", "at", "by", "signer", "signature"),
		)},
		{name: KindEnds, table: "ends", since: 3, view: 4, columns: same(text, 3, "list")},
		{name: KindClaim, table: "claims", since: 5, view: 5, columns: slices.Concat(
			same(integer, 5, "by"),
			same(text, 5, "at", "event", "tool", "input", "text", "call", "session_id"),
		)},
	}
})

// kinds are the descriptions of what the database has tables for: one of an older
// schema that is only read lacks the later ones.
func (s *Store) kinds() []*kind {
	return slices.DeleteFunc(slices.Clone(described()), func(k *kind) bool { return k.since > s.schema })
}

// tables are those of which the database has a table beside the events.
func (s *Store) tables() []*kind {
	return slices.DeleteFunc(s.kinds(), func(k *kind) bool { return k.view != 0 && s.schema >= k.view })
}

// kindOf finds a description, or nil.
func kindOf(name Kind) *kind {
	for _, k := range described() {
		if k.name == name {
			return k
		}
	}
	return nil
}
