package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Order is an order of sessions.
type Order int

// The orders. In each the newest come first of those that are alike.
const (
	ByNumber  Order = iota // newest first, those of Choice.First before all others
	ByLength               // longest first
	ByChanges              // most changed files first
	ByName
)

// Word is a text that a session has: in what its label and its document say of it, or
// because it is one of In.
type Word struct {
	Text string
	In   []string
}

// Choice asks for a part of the sessions. Its fields narrow each other down.
type Choice struct {
	Words                  []Word
	Agent, Session, Parent string
	Folder                 string // or one below it
	Tags                   []string
	Since, Before          time.Time // it started
	State                  string    // as its document says
	Failed                 bool      // it didn't end well
	Unapplied              bool      // it changed what nobody applied, as its document says, or it is one of Also
	Also                   []string
	Pinned, Trashed        bool      // without Trashed: those that aren't
	In                     *[]string // one of these; nil: any
	NotIn                  []string

	First []string // live sessions
	Order Order
	After string // Chosen.Next of the part before
	Skip  int
	Limit int
}

// Chosen is a part of the sessions.
type Chosen struct {
	Docs   []json.RawMessage
	Labels []json.RawMessage // of the same; nil: none
	Next   string            // Choice.After of what follows; "" when nothing does
	Total  int               // sessions, in all parts
}

// ErrChoice says that a Choice.After is none that Chosen.Next was.
var ErrChoice = errors.New("it isn't where a list was left")

// Choose lists a part of the sessions.
func (s *Store) Choose(ctx context.Context, c Choice) (out Chosen, err error) {
	q := s.where(c)
	from := ` FROM sessions s LEFT JOIN ` + labels + ` l ON l.session = s.session WHERE s.key = 0` + q.and.String()
	fail := func(err error) (Chosen, error) {
		return Chosen{}, fmt.Errorf("cannot list the sessions: %w", s.fault(err))
	}
	if err := s.reads.QueryRowContext(ctx, `SELECT count(*)`+from, q.args...).Scan(&out.Total); err != nil {
		return fail(err)
	}
	key, up, args := c.key()
	if c.After != "" {
		var at []any
		if err := json.Unmarshal([]byte(c.After), &at); err != nil || len(at) != 2 {
			return fail(ErrChoice)
		}
		less := "<"
		if up {
			less = ">"
		}
		from += ` AND (` + key + ` ` + less + ` ? OR ` + key + ` = ? AND s.number < ?)`
		q.args = append(append(append(append(append(q.args, args...), at[0]), args...), at[0]), at[1])
	}
	down := " DESC"
	if up {
		down = ""
	}
	order := `k` + down + `, s.number DESC`
	if key == "0" {
		order = `s.number DESC` // which an index has
	}
	inner := `SELECT s.session, s.number, ` + key + ` AS k, l.doc AS label` + from + ` ORDER BY ` + order + ` LIMIT ? OFFSET ?`
	all := append(append(args, q.args...), c.Limit+1, c.Skip)
	var last []any
	err = s.each(ctx, `SELECT `+ownDoc+`, p.label, p.k, coalesce(p.number, 0) FROM (`+inner+`) p JOIN sessions s ON s.session = p.session AND s.key = 0 ORDER BY p.k`+down+`, p.number DESC`, all, func(rows *sql.Rows) error {
		if len(out.Docs) == c.Limit {
			next, err := json.Marshal(last)
			out.Next = string(next)
			return err
		}
		var doc, label []byte
		var k any
		var number int64
		if err := rows.Scan(&doc, &label, &k, &number); err != nil {
			return err
		}
		if b, ok := k.([]byte); ok {
			k = string(b)
		}
		out.Docs, out.Labels, last = append(out.Docs, doc), append(out.Labels, label), []any{k, number}
		return nil
	})
	if err != nil {
		return fail(err)
	}
	return out, nil
}

// key is what an order goes by, which for names goes up, and what it is made of.
func (c Choice) key() (key string, up bool, args []any) {
	first := list(c.First)
	switch c.Order {
	case ByLength:
		return `coalesce(s.doc ->> '$.ran_before' / 1e9, 0) + coalesce(coalesce(unixepoch(s.ended_at, 'subsec'), iif(s.session IN (SELECT value FROM json_each(?)), ?, NULL))
	- unixepoch(coalesce(s.doc ->> '$.resumed_at', s.started_at), 'subsec'), 0)`,
			false, []any{first, float64(time.Now().UnixMilli()) / 1000}
	case ByChanges:
		return `coalesce(nullif(s.doc ->> '$.changed', 0), s.doc ->> '$.unapplied', 0)`, false, nil
	case ByName:
		return nameNow + ` COLLATE NOCASE`, true, nil
	}
	if len(c.First) == 0 {
		return "0", false, nil
	}
	return `(s.session IN (SELECT value FROM json_each(?)))`, false, []any{first}
}

// nameNow is a session's name as it is called now.
const nameNow = `coalesce(nullif(l.doc ->> '$.name', ''), s.name, '')`

// labels is the table of labels.
const labels = `(SELECT session, iif(json_valid(doc), doc, '"damaged"') AS doc FROM labels)`

// list is a list of texts for json_each.
func list(l []string) string {
	b, err := json.Marshal(append([]string{}, l...))
	if err != nil {
		return "[]" // texts can always be encoded
	}
	return string(b)
}

// conditions are put together with AND.
type conditions struct {
	and  strings.Builder
	args []any
}

func (q *conditions) add(cond string, args ...any) {
	q.and.WriteString(" AND (" + cond + ")")
	q.args = append(q.args, args...)
}

// where says what a choice asks for.
func (s *Store) where(c Choice) *conditions {
	q := new(conditions)
	in := func(column string, l []string) string {
		q.args = append(q.args, list(l))
		return column + ` IN (SELECT value FROM json_each(?))`
	}
	for _, w := range c.Words {
		q.add(`concat_ws(char(10), `+nameNow+`, s.name, s.agent, s.command, s.workspace, l.doc ->> '$.note', l.doc ->> '$.tags') LIKE ? ESCAPE '\' OR s.session IN (SELECT value FROM json_each(?))`,
			"%"+strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(w.Text)+"%", list(w.In))
	}
	for _, e := range []struct{ column, value string }{
		{"s.agent", c.Agent}, {"s.session", c.Session}, {"s.doc ->> '$.parent.id'", c.Parent}, {"s.state", c.State},
	} {
		if e.value != "" {
			q.add(e.column+" = ?", e.value)
		}
	}
	if f := strings.TrimRight(c.Folder, "/"); c.Folder != "" {
		q.add(`s.folder = ? OR substr(s.folder, 1, ?) = ?`, f, len([]rune(f))+1, f+"/")
	}
	for _, t := range c.Tags {
		q.add(`EXISTS (SELECT 1 FROM json_each(l.doc, '$.tags') WHERE value = ?)`, t)
	}
	if !c.Since.IsZero() {
		q.add(`unixepoch(s.started_at, 'subsec') >= ?`, float64(c.Since.UnixMilli())/1000)
	}
	if !c.Before.IsZero() {
		q.add(`unixepoch(s.started_at, 'subsec') < ?`, float64(c.Before.UnixMilli())/1000)
	}
	if c.Failed {
		q.add(`s.doc ->> '$.ended_by' = 'failure' OR s.exit_code <> 0`)
	}
	if c.Unapplied {
		q.add(in(`s.doc ->> '$.unapplied' > 0 OR s.session`, c.Also))
	}
	if c.Pinned {
		q.add(`l.doc ->> '$.pinned'`)
	}
	// A resume takes a session out of the trash, and one that lives is never in it.
	out := `l.doc ->> '$.trashed' IS NULL OR unixepoch(s.doc ->> '$.resumed_at', 'subsec') > unixepoch(l.doc ->> '$.trashed', 'subsec') OR s.session`
	if c.Trashed {
		q.add(`NOT coalesce(` + in(out, c.First) + `, false)`)
	} else if c.Session == "" {
		q.add(in(out, c.First))
	}
	if c.In != nil {
		q.add(in(`s.session`, *c.In))
	}
	if len(c.NotIn) > 0 {
		q.add(in(`s.session NOT`, c.NotIn))
	}
	return q
}

// Unended lists the sessions whose record has no end: live ones, and those that were
// interrupted. The newest come first.
func (s *Store) Unended(ctx context.Context) (out []string, err error) {
	if out, err = columnOf[string](ctx, s, `SELECT session FROM sessions WHERE state IN ('starting', 'running', 'paused') ORDER BY number DESC`); err != nil {
		return nil, fmt.Errorf("cannot list the sessions that haven't ended: %w", err)
	}
	return out, nil
}

// Rows says of each session which event wrote its row.
func (s *Store) Rows(ctx context.Context) (map[string]uint64, error) {
	out := make(map[string]uint64)
	err := s.each(ctx, `SELECT session, seq FROM sessions`, nil, func(rows *sql.Rows) error {
		var id string
		var seq uint64
		err := rows.Scan(&id, &seq)
		out[id] = seq
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("cannot list the sessions: %w", err)
	}
	return out, nil
}

// Touched lists the numbers of the resources of a kind that events after one, and up to
// another, told of.
func (s *Store) Touched(ctx context.Context, session string, kind Kind, after, upTo uint64) (keys []int64, err error) {
	err = s.each(ctx, `SELECT DISTINCT key FROM events WHERE session = ? AND kind = ? AND seq > ? AND seq <= ? ORDER BY key`,
		[]any{session, string(kind), int64(after), int64(upTo)}, func(rows *sql.Rows) error {
			var key int64
			err := rows.Scan(&key)
			keys = append(keys, key)
			return err
		})
	if err != nil {
		return nil, fmt.Errorf("cannot read the events of session %s: %w", session, err)
	}
	return keys, nil
}
