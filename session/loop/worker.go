package loop

// worker does what needs the session's files for itself, one job after the
// other in the order in which they were asked for: checkpoints and roll backs.
// The queue holds at most one job for each program that is held, each process that
// is about to end and each client that waits.
type worker struct {
	queue []func(next func())
	busy  bool
}

// Alone runs work outside the loop when its turn has come, and then what comes
// after it in the loop, always and once, with what work returned. The next job waits
// until next is called, in the loop and once. What that waits for must not itself
// be a job: it would never get its turn. Alone is the loop's own to call.
func (l *Loop) Alone(work func() error, then func(err error, next func())) {
	l.worker.queue = append(l.worker.queue, func(next func()) {
		l.Aside(func() func() {
			err := work()
			return func() { then(err, next) }
		})
	})
	l.nextJob()
}

func (l *Loop) nextJob() {
	w := &l.worker
	if w.busy || len(w.queue) == 0 {
		return
	}
	job := w.queue[0]
	w.queue = w.queue[1:]
	w.busy = true
	job(func() {
		w.busy = false
		l.nextJob()
	})
}
