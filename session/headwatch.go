package session

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"

	"stepbox/policy/git"
	"stepbox/session/base"
	"stepbox/session/frozen"
	"stepbox/session/loop"
)

// headSettles is how long the host's git is given to write its files, from the first that
// it wrote on.
const headSettles = 100 * time.Millisecond

// watchHead tells when the project has another commit checked out, until the session
// ends. Files that the agent didn't change are the host's: where they became others than
// its own branch has, a commit of all changes would hold them. It is paused then, before
// it makes one.
func (s *Session) watchHead() {
	g := s.outfit.Git
	_, dir := git.Above(g.Project)
	if dir == "" || g.Of(dir) == dir {
		return
	}
	w, err := fsnotify.NewWatcher()
	if err == nil {
		defer w.Close()
		err = w.Add(dir)
	}
	if err != nil {
		s.log.Warn("it isn't watched what git has checked out in the project", "error", err)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	was := git.CheckedOut(g.Project, g.Of)
	var settled <-chan time.Time
	for {
		select {
		case <-s.loop.In(loop.Stopping):
			return
		case <-w.Errors: // events were lost: something happened
		case <-w.Events:
		case <-settled:
			settled = nil
			if is := git.CheckedOut(g.Project, git.Here); is != was {
				was = is
				s.loop.Post(func() { s.loop.Aside(func() func() { return s.headMoved(ctx, head(is)) }) })
			}
			continue
		}
		if settled == nil {
			settled = time.After(headSettles)
		}
	}
}

// headMoved tells that the project has another commit checked out, and pauses the session
// where that shows in it.
func (s *Session) headMoved(ctx context.Context, to string) (then func()) {
	apart := s.apart()
	s.loop.Post(func() { s.nowApart(apart) })
	others, err := s.others(ctx)
	if err != nil {
		s.log.Warn("cannot tell what is another in the project", "error", err)
	}
	if len(others) == 0 && err == nil {
		return func() {
			s.note(false, "git: the project has %s checked out by now; the session stays on its own branch", to)
		}
	}
	if _, err := s.Pause(ctx); err != nil {
		s.log.Warn("cannot pause the session", "error", err)
	}
	return func() {
		s.note(true, "git: the project has %s checked out by now, and files show through that are others than those the agent began with (%s): what it commits could hold them. The session is paused: switch back and let it go on; or end it and resume it, which has all as it was, or as the project is by now if the agent did nothing in git; or let it go on as it is", to, fewOf(others, backPath))
	}
}

// apart says how far the project's git and the session's are from one another.
func (s *Session) apart() string {
	return s.outfit.Git.Apart(func(args ...string) (string, error) {
		ctx, cancel := context.WithTimeout(context.Background(), askFor)
		defer cancel()
		key := strings.Join(args, " ") // they name commits, of which it stays true
		if known, ok := s.gitSaid.Load(key); ok {
			return known.(gitAnswer).words, known.(gitAnswer).no
		}
		out, err := s.hostGit(ctx, "", args...)
		var exit interface{ ExitCode() int }
		if err == nil || errors.As(err, &exit) && exit.ExitCode() > 0 { // its code is an answer
			s.gitSaid.Store(key, gitAnswer{string(out), err})
		}
		return string(out), err
	})
}

// gitAnswer is what the person's git said.
type gitAnswer struct {
	words string
	no    error
}

// askFor bounds how long the person's git is asked.
const askFor = 10 * time.Second

// nowApart records that. It runs in the loop.
func (s *Session) nowApart(words string) {
	if s.info.Git != words {
		s.info.Git = words
		s.record(nil, s.changed("git"))
	}
}

// others are the files that git has and that are others in the project by now than when
// the session began, as far as they show in it.
func (s *Session) others(ctx context.Context) ([]frozen.Back, error) {
	g := s.outfit.Git
	taken, _, err := frozen.Load(g.Folder)
	if err != nil {
		return nil, err
	}
	var options base.Options
	var then *base.Record
	if failure := s.loop.Call(ctx, func() { options = s.baseOptions(); then, err = s.baseOf(ctx, taken.Run) }); failure != nil || err != nil {
		return nil, err // the session is over
	}
	now, err := base.Take(ctx, options)
	if err != nil {
		return nil, err
	}
	scanned, err := s.files.Scan(ctx)
	if err != nil {
		return nil, err
	}
	return frozen.Since(then, now, covered(scanned), s.added(options.Person)), nil
}
