package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
)

// References finds bodies that a resource leads to beyond those that its
// document names, like the objects of a manifest.
type References func(ctx context.Context, session string, kind Kind, doc json.RawMessage) ([]Hash, error)

// Examination is what Examine is told besides the session.
type Examination struct {
	More     []References
	Event    func(Event)                     // called with every event, in order, while none is held; nil: none wants to know
	Progress func(events uint64, read int64) // called now and then; nil: nobody wants to know
	Known    map[Hash]error                  // bodies that were looked at, of other sessions, are added; nil: none
	Quick    bool                            // events and tables alone: no bodies, and nothing of the terminal
}

// Examined is what was found of a session's record.
type Examined struct {
	Events   uint64
	Head     Hash // of the last event
	Bodies   int
	Chunks   int
	Bytes    int64 // read
	Problems []Problem
	Hidden   int  // problems beyond those kept
	Torn     bool // the terminal's output ends in the middle of a frame, which wasn't acknowledged
}

// Problem is something that a record doesn't agree with itself in. It wraps ErrTampered.
type Problem struct {
	Table bool // what is made of the events isn't what they say: Rebuild, or Remake, mends it
	why   error
}

func (p Problem) Error() string   { return p.why.Error() }
func (p Problem) Unwrap() []error { return []error{ErrTampered, p.why} }

// Examine checks a session's record: that no event was changed, removed, added
// or reordered; that the other tables say what the events say; that each body
// that a resource names is there and is what its name says, and so for the
// chunks of the terminal. An error means that it couldn't look. Removing the last
// events with all that follows from them leaves a shorter record that agrees with
// itself: only a head that was kept elsewhere finds that.
func (s *Store) Examine(ctx context.Context, session string, x Examination) (Examined, error) {
	if x.Known == nil {
		x.Known = make(map[Hash]error)
	}
	v := &verifier{store: s, session: session, x: x, latest: make(map[resource]state), bodies: make(map[Hash]string)}
	if err := v.run(ctx); err != nil {
		return v.found, fmt.Errorf("cannot verify session %.80q: %w", session, s.fault(err))
	}
	v.found.Bodies, v.found.Chunks = len(v.bodies), len(v.chunks)
	return v.found, nil
}

// resource names a row of a kind's table.
type resource struct {
	kind Kind
	key  int64
}

func (r resource) String() string {
	if r.kind == KindSession {
		return "the session"
	}
	return fmt.Sprintf("%s %d", r.kind, r.key)
}

// state is what the events last said of a resource.
type state struct {
	seq uint64
	doc Hash
}

// verifier holds about 100 bytes per resource and body.
type verifier struct {
	store   *Store
	session string
	x       Examination
	latest  map[resource]state
	bodies  map[Hash]string // who names it
	chunks  []chunk
	last    uint64 // event
	found   Examined
}

// mostProblems bounds those that are kept.
const mostProblems = 50

func (v *verifier) problem(format string, args ...any) {
	v.add(Problem{why: fmt.Errorf(format, args...)})
}

// outdated is a problem that Rebuild mends, unless the events have some too.
func (v *verifier) outdated(format string, args ...any) {
	v.add(Problem{why: fmt.Errorf(format, args...), Table: true})
}

func (v *verifier) add(p Problem) {
	if len(v.found.Problems) >= mostProblems {
		v.found.Hidden++
		return
	}
	v.found.Problems = append(v.found.Problems, p)
}

// tell says how it goes, every so many bytes.
func (v *verifier) tell(read int64) {
	const each = 1 << 20
	before := v.found.Bytes
	v.found.Bytes += read
	if v.x.Progress != nil && before/each != v.found.Bytes/each {
		v.x.Progress(v.found.Events, v.found.Bytes)
	}
}

func (v *verifier) run(ctx context.Context) error {
	// One snapshot, so that a live session can be verified.
	tx, err := v.store.reads.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // it only read
	docs, err := v.rows(ctx, tx)
	if err != nil {
		return err
	}
	if err := tx.Rollback(); err != nil || v.x.Quick {
		return err
	}
	for _, d := range docs {
		for _, f := range v.x.More {
			hashes, err := f(ctx, v.session, d.kind, d.doc)
			if err != nil {
				v.problem("%s: %w", d, err)
			}
			for _, h := range hashes {
				v.bodies[h] = d.String()
			}
		}
	}
	for h, who := range v.bodies {
		if err := v.body(ctx, h, who); err != nil {
			return err
		}
	}
	return v.terminal(ctx)
}

// rows checks the events, and what the tables make of them.
func (v *verifier) rows(ctx context.Context, q querier) (docs []namedDoc, err error) {
	if err := v.chain(ctx, q); err != nil {
		return nil, err
	}
	others, err := v.store.others(ctx, q)
	if err != nil {
		return nil, err
	}
	for _, o := range others {
		if !o.guard() { // without them a session is what it was
			v.add(o.problem())
		}
	}
	for _, k := range described() {
		if err := v.table(ctx, q, k, len(v.x.More) > 0, &docs); err != nil {
			return nil, err
		}
	}
	return docs, nil
}

// namedDoc is a document that References want to see.
type namedDoc struct {
	resource
	doc json.RawMessage
}

// chain checks the events by themselves and remembers what they last said.
func (v *verifier) chain(ctx context.Context, q querier) error {
	var last Event
	err := readEvents(ctx, q, v.session, func(e Event, err error) error {
		if err != nil {
			v.problem("%w", err)
			return nil
		}
		switch {
		case e.Seq != last.Seq+1:
			v.problem("event %d follows on %d: events were removed or added", e.Seq, last.Seq)
		case e.Prev != last.Hash:
			v.problem("event %d doesn't name the one before it: events were changed or reordered", e.Seq)
		case last.Seq > 0 && !e.At.After(last.At):
			v.problem("event %d isn't later than the one before it", e.Seq)
		case last.Seq == 0 && e.Kind != KindSession:
			v.problem("the first event is a %s, not the session's own", e.Kind)
		}
		if e.digest() != e.Hash {
			v.problem("event %d (%s, %s) isn't what its hash says: it was changed", e.Seq, e.Event, resource{e.Kind, e.Key})
		}
		if kindOf(e.Kind) == nil {
			v.problem("event %d has the unknown kind %q", e.Seq, e.Kind)
		}
		v.latest[resource{e.Kind, e.Key}] = state{e.Seq, HashOf(e.Doc)}
		last = Event{Seq: e.Seq, At: e.At, Hash: e.Hash}
		v.last, v.found.Head = e.Seq, e.Hash
		v.found.Events++
		if v.x.Event != nil {
			v.x.Event(e)
		}
		v.tell(int64(len(e.Doc)))
		return nil
	}, fromSeq, v.session, math.MinInt64, -1)
	if err == nil && last.Seq == 0 && len(v.found.Problems) == 0 {
		return ErrNotFound
	}
	return err
}

// table compares a kind's table with the events. What a row that differs should name, the
// event says.
func (v *verifier) table(ctx context.Context, q querier, k *kind, keep bool, docs *[]namedDoc) error {
	look := func(id resource, doc []byte) {
		v.names(k, id.key, doc)
		if keep {
			*docs = append(*docs, namedDoc{id, doc})
		}
	}
	told := make(map[resource]bool) // that its row differs
	err := eachRow(ctx, q, `SELECT key, seq, doc FROM "`+k.table+`" WHERE session = ? ORDER BY key`, []any{v.session}, func(rows *sql.Rows) error {
		var key, seq int64
		var doc []byte
		if err := rows.Scan(&key, &seq, &doc); err != nil {
			v.outdated("a row of the table %s can't be read: %w", k.table, err)
			return nil
		}
		id := resource{k.name, key}
		want, ok := v.latest[id]
		told[id] = true
		switch {
		case !ok:
			v.outdated("%s has event %d in its table, and no event tells of it", id, seq)
		case int64(want.seq) != seq:
			v.outdated("%s is as event %d has it in its table, and the last event that tells it is %d", id, seq, want.seq)
		case want.doc != HashOf(doc):
			v.outdated("%s doesn't say in its table what event %d says", id, seq)
		default:
			delete(v.latest, id)
			delete(told, id)
			look(id, doc)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for id, st := range v.latest {
		if id.kind != k.name {
			continue
		}
		if !told[id] {
			v.outdated("%s of event %d is missing from its table", id, st.seq)
		}
		if err := readEvents(ctx, q, v.session, func(e Event, err error) error {
			look(id, e.Doc)
			return err
		}, `session = ? AND seq = ?`, v.session, int64(st.seq)); err != nil {
			return err
		}
	}
	return nil
}

// names collects the bodies and chunks that a document names.
func (v *verifier) names(k *kind, key int64, doc []byte) {
	if k.name == KindChunk {
		c, err := parseChunk(doc)
		if err != nil {
			v.problem("chunk %d: %w", key, err)
			return
		}
		v.chunks = append(v.chunks, c)
	}
	hashes, err := k.names(doc)
	if err != nil {
		v.problem("%s: %w", resource{k.name, key}, err)
	}
	for _, h := range hashes {
		v.bodies[h] = resource{k.name, key}.String()
	}
}

// names lists the bodies that a document names itself, those that can be read
// also with an error.
func (k *kind) names(doc []byte) (out []Hash, err error) {
	if len(k.bodies) == 0 {
		return nil, nil
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(doc, &members); err != nil {
		return nil, err
	}
	for _, m := range k.bodies {
		name, bad := memberAt(members, m)
		var h Hash
		if bad == nil && name != "" {
			h, bad = ParseHash(name)
		}
		if bad != nil {
			err = errors.Join(err, fmt.Errorf("it names a body in %s: %w", m, bad))
		} else if name != "" {
			out = append(out, h)
		}
	}
	return out, err
}

// memberAt is the text at a path of members like a.b; "" when there is none.
func memberAt(members map[string]json.RawMessage, path string) (text string, err error) {
	first, rest, nested := strings.Cut(path, ".")
	raw, ok := members[first]
	if !ok {
		return "", nil
	}
	if !nested {
		return text, json.Unmarshal(raw, &text)
	}
	var below map[string]json.RawMessage
	if err := json.Unmarshal(raw, &below); err != nil {
		return "", err
	}
	return memberAt(below, rest)
}

// body reads a whole body, which checks it.
func (v *verifier) body(ctx context.Context, h Hash, who string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	err, known := v.x.Known[h]
	if !known {
		var r io.ReadCloser
		if r, _, err = v.store.OpenBody(ctx, h); err == nil {
			var n int64
			n, err = io.Copy(io.Discard, r)
			r.Close() // only read
			v.tell(n)
		}
	}
	if err == nil || errors.Is(err, ErrNotFound) || errors.Is(err, ErrBody) {
		v.x.Known[h] = err
		if errors.Is(err, ErrNotFound) {
			v.problem("%s names the content %s, which is missing", who, h)
		} else if err != nil {
			v.problem("%s names the content %s: %w", who, h, err)
		}
		return nil
	}
	return err
}

// terminal checks the packed files against their rows, and those that aren't
// packed yet by themselves.
func (v *verifier) terminal(ctx context.Context) error {
	dir := filepath.Join(v.store.SessionDir(v.session), terminal)
	known := make(map[uint32]bool, len(v.chunks))
	for _, c := range v.chunks {
		if err := ctx.Err(); err != nil {
			return err
		}
		known[uint32(c.N)] = true
		raw, err := unpack(filepath.Join(dir, c.File), c.Hash, true)
		if err == nil {
			err = c.check(raw)
		}
		if errors.Is(err, fs.ErrNotExist) {
			v.problem("chunk %d of the terminal is missing", c.N)
		} else if err != nil {
			v.problem("chunk %d of the terminal: %w", c.N, err)
		}
		v.tell(c.Packed)
	}
	files, chunks, left, err := v.store.journalFiles(ctx, v.session)
	if errors.Is(err, ErrTampered) {
		v.outdated("%w", err)
		return nil
	}
	if err != nil {
		return err
	}
	for _, n := range left {
		c, recorded := chunks[n]
		if recorded && v.store.spare(dir, n, c) {
			continue // it wasn't removed
		}
		if _, err := os.Lstat(rawName(dir, n)); err == nil { // else a live session has just removed it
			v.problem("part %d of the terminal's output isn't in the record: it was added, or there was no room to record it when the session ended", n)
		}
	}
	aside, _ := filepath.Glob(filepath.Join(dir, "*.damaged")) // the pattern is fine
	for _, p := range aside {
		v.problem("a part of the terminal's output that isn't in the record is set aside in %s: it was damaged before it was recorded, or added", filepath.Base(p))
	}
	for _, f := range files {
		if f.raw {
			v.unpacked(dir, f)
			continue
		}
		if known[f.number] {
			continue
		}
		// A live session may have packed it since the snapshot.
		_, err := v.store.Doc(ctx, v.session, KindChunk, int64(f.number))
		if errors.Is(err, ErrNotFound) {
			v.problem("chunk %d of the terminal was never recorded", f.number)
		} else if err != nil {
			return err
		}
	}
	return nil
}

// unpacked checks a file of which nothing is in the chain yet. Its end may be missing:
// its writer is at it, or was killed.
func (v *verifier) unpacked(dir string, f journalFile) {
	raw, err := readWhole(rawName(dir, f.number), rawMost)
	if errors.Is(err, fs.ErrNotExist) {
		return // it was packed just now
	}
	if err == nil {
		_, err = parseHeader(raw, f.number)
	}
	if err == nil {
		p := parser{b: raw[headerSize:], number: f.number}
		err = p.end()
	}
	if errors.Is(err, errTorn) {
		v.found.Torn = true
	} else if err != nil {
		v.problem("part %d of the terminal's output: %w", f.number, err)
	}
	v.tell(int64(len(raw)))
}

// check compares a chunk's row with the frames that its file holds.
func (c chunk) check(raw []byte) error {
	if _, err := parseHeader(raw, uint32(c.N)); err != nil {
		return err
	}
	p := parser{b: raw[headerSize:], number: uint32(c.N)}
	if err := p.end(); err != nil {
		return err
	}
	if p.frames != c.Frames || int64(len(raw)) != c.Bytes {
		return fmt.Errorf("it holds %d frames in %d bytes, and %d in %d were recorded", p.frames, len(raw), c.Frames, c.Bytes)
	}
	return nil
}
