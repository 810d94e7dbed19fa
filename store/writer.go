package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"
)

// writer commits for all goroutines of the process. One goroutine owns the
// connection that writes; what is asked for while it commits shares the next
// transaction, so the price of a commit is split among those who wait for one.
type writer struct {
	dir   string
	db    *sql.DB
	conn  *sql.Conn // owned by run
	jobs  chan *job // full: callers wait, or give up with their context
	stop  chan struct{}
	done  chan struct{} // closed when run has ended and all accepted jobs are answered
	wrote func()        // told of each commit; set before the first job

	gone atomic.Bool // the database isn't where it was: nothing is committed any more

	mu     sync.RWMutex // held shared while a job is handed over
	closed bool         // guarded by mu
}

// job is one caller's part of a transaction.
type job struct {
	ctx   context.Context
	size  int // bytes that it writes, roughly
	run   func(t *tx) error
	state atomic.Int32
	err   chan error // holds one
}

// A job is waiting until it is claimed by the writer or withdrawn by its caller.
const (
	jobWaiting int32 = iota
	jobClaimed
	jobWithdrawn
)

// Bounds of one transaction, so that other processes get their turn.
const (
	groupJobs  = 256
	groupBytes = 2 << 20
)

// lockedFor is how long a commit is tried while others keep the write lock.
const lockedFor = 30 * time.Second

func newWriter(ctx context.Context, dir string, db *sql.DB) (*writer, error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	// The keeper moves the log; this is for a process whose keeper can't.
	// SQLite's own waiting goes in steps of up to 100 ms, in which others that
	// write a lot slip past again and again; begin asks more often.
	if _, err := conn.ExecContext(ctx, `PRAGMA wal_autocheckpoint = 16384; PRAGMA busy_timeout = 0`); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	w := &writer{
		dir: dir, db: db, conn: conn, jobs: make(chan *job, groupJobs),
		stop: make(chan struct{}), done: make(chan struct{}), wrote: func() {},
	}
	go w.run()
	return w, nil
}

// do runs f in a transaction and returns once it is committed or undone. f may
// run more than once; each run must start afresh and must not do IO of its own.
// A caller whose ctx is done before f ran is told so, and then f never runs;
// after that it learns what became of the transaction.
func (w *writer) do(ctx context.Context, size int, f func(t *tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	j := &job{ctx: ctx, size: size, run: f, err: make(chan error, 1)}
	if err := w.accept(ctx, j); err != nil {
		return err
	}
	select {
	case err := <-j.err:
		return err
	case <-ctx.Done():
		if j.state.CompareAndSwap(jobWaiting, jobWithdrawn) {
			return ctx.Err()
		}
		return <-j.err
	}
}

func (w *writer) accept(ctx context.Context, j *job) error {
	w.mu.RLock() // across a send on purpose: close waits until nobody hands over any more
	defer w.mu.RUnlock()
	if w.closed {
		return ErrClosed
	}
	select {
	case w.jobs <- j:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// close answers what was accepted and closes the connection.
func (w *writer) close() error {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	close(w.stop)
	<-w.done
	return errors.Join(w.conn.Close(), w.db.Close())
}

func (w *writer) run() {
	defer close(w.done)
	t := &tx{conn: w.conn, stmts: make(map[string]*sql.Stmt), heads: make(map[string]*head)}
	defer t.close()
	for {
		select {
		case j := <-w.jobs:
			w.commit(t, j)
		case <-w.stop:
			if len(w.jobs) == 0 {
				return
			}
		}
	}
}

// gather adds what waits to a job, up to the bounds.
func (w *writer) gather(first *job) []*job {
	jobs, size := []*job{first}, first.size
	for len(jobs) < groupJobs && size < groupBytes {
		select {
		case j := <-w.jobs:
			jobs = append(jobs, j)
			size += j.size
		default:
			return jobs
		}
	}
	return jobs
}

// commit runs jobs in one transaction, and one by one when that fails, so that
// one caller's mistake isn't another's.
func (w *writer) commit(t *tx, first *job) {
	if err := w.begin(t); err != nil {
		answer(claim([]*job{first}), fault(w.dir, err))
		return
	}
	jobs := claim(w.gather(first))
	if err := w.together(t, jobs); err == nil || len(jobs) == 1 {
		answer(jobs, fault(w.dir, err))
		return
	}
	for _, j := range jobs {
		err := w.begin(t)
		if err == nil {
			err = w.together(t, []*job{j})
		}
		answer([]*job{j}, fault(w.dir, err))
	}
}

// begin takes the write lock.
func (w *writer) begin(t *tx) error {
	if w.gone.Load() {
		return fmt.Errorf("%w: %s isn't the file any more that was opened; it was removed, moved or replaced", ErrGone, quote(filepath.Join(w.dir, database)))
	}
	var end time.Time
	for pause := 50 * time.Microsecond; ; pause = min(2*pause, 2*time.Millisecond) {
		err := t.exec(`BEGIN IMMEDIATE`)
		if err == nil {
			return nil
		}
		if end.IsZero() {
			end = time.Now().Add(lockedFor)
		}
		if !isBusy(err) || time.Now().After(end) {
			return err
		}
		select {
		case <-time.After(pause):
		case <-w.stop:
			return err
		}
	}
}

// together runs and commits jobs in the transaction that begin opened.
func (w *writer) together(t *tx, jobs []*job) error {
	clear(t.heads) // what the last transaction knew
	for _, j := range jobs {
		if err := j.run(t); err != nil {
			return errors.Join(err, t.rollback())
		}
	}
	if len(jobs) == 0 {
		return t.rollback()
	}
	if err := t.exec(`COMMIT`); err != nil {
		return errors.Join(err, t.rollback())
	}
	w.wrote()
	return nil
}

// claim leaves out jobs that were withdrawn.
func claim(jobs []*job) []*job {
	kept := jobs[:0]
	for _, j := range jobs {
		if j.state.CompareAndSwap(jobWaiting, jobClaimed) || j.state.Load() == jobClaimed {
			kept = append(kept, j)
		}
	}
	return kept
}

func answer(jobs []*job, err error) {
	for _, j := range jobs {
		j.err <- err
	}
}

// tx is the transaction under way. It is owned by the writer's goroutine.
type tx struct {
	conn  *sql.Conn
	stmts map[string]*sql.Stmt
	heads map[string]*head // of the chains that this transaction read
}

func (t *tx) rollback() error {
	err := t.exec(`ROLLBACK`)
	if err != nil && isNoTransaction(err) {
		return nil // SQLite has rolled back by itself (lang_transaction.html)
	}
	return err
}

// stmt prepares a statement once. The writer isn't cancelled in the middle of
// a transaction, and a context that can be costs a goroutine per statement.
func (t *tx) stmt(query string) (*sql.Stmt, error) {
	if s := t.stmts[query]; s != nil {
		return s, nil
	}
	s, err := t.conn.PrepareContext(context.Background(), query)
	if err != nil {
		return nil, fmt.Errorf("cannot prepare %q: %w", query, err)
	}
	t.stmts[query] = s
	return s, nil
}

func (t *tx) exec(query string, args ...any) error {
	s, err := t.stmt(query)
	if err != nil {
		return err
	}
	_, err = s.Exec(args...)
	return err
}

// row scans the only row of a query; sql.ErrNoRows when there is none.
func (t *tx) row(query string, args []any, into ...any) error {
	s, err := t.stmt(query)
	if err != nil {
		return err
	}
	return s.QueryRow(args...).Scan(into...)
}

func (t *tx) close() {
	for _, s := range t.stmts {
		s.Close() // the connection is closed next and frees what this can't
	}
}
