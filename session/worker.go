package session

// worker does what needs the session's files for itself, one job after the
// other in the order in which they were asked for: checkpoints and roll backs.
// Its fields are owned by the loop. The queue holds at most one job for each
// program that is held, each process that is about to end and each client that
// waits.
type worker struct {
	queue []job
	busy  bool
}

// job is one turn of the worker.
type job struct {
	// work runs outside the loop and may take its time.
	work func() error
	// then runs in the loop with what work returned, always and once. The
	// next job waits until next is called, in the loop and once.
	then func(err error, next func())
}

// alone gives a job its turn. Only the loop may call it. What the job's own
// continuation waits for must not itself be a job: it would never get its turn.
func (l *loop) alone(work func() error, then func(err error, next func())) {
	l.worker.queue = append(l.worker.queue, job{work, then})
	l.nextJob()
}

func (l *loop) nextJob() {
	w := &l.worker
	if w.busy || len(w.queue) == 0 {
		return
	}
	j := w.queue[0]
	w.queue = w.queue[1:]
	w.busy = true
	l.aside(func() func() {
		err := j.work()
		return func() {
			j.then(err, func() {
				w.busy = false
				l.nextJob()
			})
		}
	})
}
