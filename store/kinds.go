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
	view    bool // the events alone have it: the table is a view of them
	columns []column
	bodies  []string // members of the document that hold the hash of a body, or are empty; a.b is b in a
}

// column is a generated column: what json_extract finds in the document.
type column struct {
	name string
	typ  string
	path string
}

const (
	text    = "TEXT"
	integer = "INTEGER"
	real    = "REAL"
)

// same describes columns named as the members of the document are.
func same(typ string, names ...string) []column {
	var cs []column
	for _, n := range names {
		cs = append(cs, column{n, typ, "$." + n})
	}
	return cs
}

// exitColumns describe how a process ended.
var exitColumns = []column{{"exit_code", integer, "$.exit.code"}, {"exit_signal", text, "$.exit.signal"}}

// described is the table that DDL and queries are made of. It is built on first use: every
// re-execution of the binary would pay for it otherwise.
var described = sync.OnceValue(func() []*kind {
	return []*kind{
		{name: KindSession, table: "sessions", bodies: []string{"screen", "base.hash"}, columns: slices.Concat(
			same(integer, "number"),
			same(text, "name", "agent", "command", "workspace", "folder", "mode", "state", "started_at", "ended_at"),
			exitColumns,
			same(integer, "cols", "rows"),
			[]column{
				{"limits_source", text, "$.limits.source"}, {"limits_memory", integer, "$.limits.memory"},
				{"limits_cpus", real, "$.limits.cpus"}, {"limits_pids", integer, "$.limits.pids"},
				{"limits_wall_time", integer, "$.limits.wall_time"},
			},
			same(text, "warnings", "hidden", "hosts"),
			same(integer, "actions", "held", "unreviewed", "attempts"),
			same(text, "last_action", "screen"),
		)},
		{name: KindAction, table: "actions", columns: slices.Concat(
			[]column{{"action_kind", text, "$.kind"}},
			same(text, "state", "review", "title"),
			same(integer, "housekeeping"),
			same(text, "verdict", "rule", "by", "reason", "started_at", "released_at", "ended_at"),
			exitColumns,
			same(integer, "execs", "left_running", "files", "added", "removed", "shared", "before", "after"),
		)},
		{name: KindQuestion, table: "questions", columns: slices.Concat(
			same(integer, "action"),
			same(text, "subject", "title", "hash", "rule", "held_at", "closed"),
			[]column{
				{"line", text, "$.command.line"}, {"argv", text, "$.command.argv"}, {"cwd", text, "$.command.cwd"},
				{"program", text, "$.command.program"}, {"written", integer, "$.command.written"}, {"pid", integer, "$.command.pid"},
			},
			same(text, "changes"),
		)},
		{name: KindDecision, table: "decisions", columns: slices.Concat(
			same(integer, "question", "action"),
			same(text, "hash", "answer", "reason", "by", "at"),
		)},
		{name: KindExec, table: "execs", view: true, columns: slices.Concat(
			same(integer, "action", "pid", "parent"),
			same(text, "argv", "program", "cwd", "verdict", "rule", "at", "ended_at"),
			exitColumns,
			same(text, "failure"),
		)},
		{name: KindAttempt, table: "attempts", columns: slices.Concat(
			same(integer, "action", "pid"),
			same(text, "at", "program", "protocol", "name", "address"),
			same(integer, "port"),
			same(text, "resolved", "verdict", "rule"),
			same(integer, "sent", "received", "duration", "open"),
			same(text, "failure"),
		)},
		{name: KindCheckpoint, table: "checkpoints", view: true, bodies: []string{"root"}, columns: slices.Concat(
			same(integer, "action"),
			same(text, "at", "root"),
			same(integer, "files", "bytes"),
		)},
		{name: KindRollback, table: "rollbacks", columns: slices.Concat(
			same(integer, "to_before", "checkpoint"),
			same(text, "at", "actions"),
			same(integer, "files"),
			same(text, "by", "failure"),
		)},
		{name: KindChunk, table: "chunks", columns: slices.Concat(
			same(text, "file", "hash"),
			same(integer, "frames", "bytes", "packed", "from_ms", "to_ms"),
		)},
		{name: KindNote, table: "notes", columns: slices.Concat(
			same(text, "at", "text"),
			same(integer, "warn"),
		)},
		{name: KindApply, table: "applies", columns: slices.Concat(
			same(integer, "checkpoint"),
			same(text, "at", "state"),
			same(integer, "files"),
			same(text, "by", "ref", "journal", "failure", "undone_at"),
		)},
		{name: KindSeal, table: "seals", columns: slices.Concat(
			same(integer, "of"),
			same(text, "hash", "at", "by", "signer", "signature"),
		)},
		{name: KindEnds, table: "ends", view: true, columns: same(text, "list")},
		{name: KindClaim, table: "claims", view: true, columns: slices.Concat(
			same(integer, "by"),
			same(text, "at", "event", "tool", "input", "text", "call", "session_id"),
		)},
	}
})

// tabled are those of which the database has a table beside the events.
func tabled() []*kind {
	return slices.DeleteFunc(slices.Clone(described()), func(k *kind) bool { return k.view })
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
