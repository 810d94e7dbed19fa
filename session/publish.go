package session

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/time/rate"

	"stepbox/runner"
	"stepbox/runner/egress"
	"stepbox/session/api"
	"stepbox/session/loop"
	"stepbox/session/ports"
	"stepbox/session/signin"
	"stepbox/session/tell"
)

// Bounds of looking for servers, and of pages that are to be opened.
const (
	serversEvery = 2 * time.Second
	maxOffered   = 20  // ports and pages that are told of; an agent may open many
	maxPages     = 3   // that are offered at a time
	openRate     = 0.1 // wishes to open one in a second, on average
	openBurst    = 5   // and at once
)

// Publish has this machine reach a server of the sandbox, until the session ends or what
// is asked for is over.
func (s *Session) Publish(ctx context.Context, p api.Publishing) (api.Port, error) {
	if p.Port < 1 || p.Port > 65535 || p.At < 0 || p.At > 65535 || p.For < 0 {
		return api.Port{}, api.Problemf(api.CodeUsage, "there is no port %d to be published at %d", p.Port, p.At)
	}
	var out api.Port
	_, err := s.change(ctx, "published", func() (err error) {
		if out, err = s.publish(p); err != nil {
			err = api.Problemf(api.CodeInvalid, "%s", api.Escape(err.Error()))
		}
		return err
	})
	return out, err
}

func (s *Session) publish(p api.Publishing) (api.Port, error) {
	if s.ports == nil || s.loop.Now() >= loop.Stopping {
		return api.Port{}, ErrEnded
	}
	at, err := s.ports.Publish(p.Port, cmp.Or(p.At, p.Port), p.Exactly)
	if err != nil {
		return api.Port{}, err
	}
	out := api.Port{Port: p.Port, At: at, By: api.Escape(p.By)}
	how := ""
	if p.For > 0 {
		out.Until = time.Now().Add(p.For).UTC()
		how = fmt.Sprintf(", for %s", p.For)
		time.AfterFunc(p.For, func() {
			s.loop.Submit(func() {
				if slices.ContainsFunc(s.info.Ports, func(o api.Port) bool { return o.Port == out.Port && o.Until.Equal(out.Until) }) {
					s.unpublish(out.Port)
					s.record(nil, s.changed("unpublished"))
				}
			})
		})
	}
	s.info.Ports = append(slices.Clip(s.served()), out)
	s.info.Servers = slices.DeleteFunc(slices.Clone(s.info.Servers), func(l api.Server) bool { return l.Port == p.Port })
	if wanted := cmp.Or(p.At, p.Port); at != wanted {
		how += fmt.Sprintf(": port %d of this machine is taken", wanted)
	}
	s.note(false, "port %d is published at %s%s (by %s)", out.Port, out.URL(), how, cmp.Or(out.By, "whoever started the session"))
	return out, nil
}

// Unpublish ends that.
func (s *Session) Unpublish(ctx context.Context, p api.Publishing) (api.Session, error) {
	return s.change(ctx, "unpublished", func() error {
		if !s.unpublish(p.Port) {
			return api.Problemf(api.CodeNotFound, "port %d isn't published", p.Port)
		}
		return nil
	})
}

func (s *Session) unpublish(port int) bool {
	if s.ports == nil {
		return false
	}
	now := s.served()
	i := slices.IndexFunc(now, func(p api.Port) bool { return p.Port == port })
	if i < 0 || !s.ports.Unpublish(port) {
		return false
	}
	s.note(false, "port %d isn't published any more (connections: %d)", port, now[i].Connections)
	s.info.Ports = slices.Delete(now, i, i+1)
	return true
}

// served are the published ports, with how many connections each has had.
func (s *Session) served() []api.Port {
	out := slices.Clone(s.info.Ports)
	for i := range out {
		out[i].Connections = max(out[i].Connections, s.ports.Served(out[i].Port))
	}
	return out
}

// openPorts publishes what the session was started with.
func (s *Session) openPorts(box *runner.Sandbox) {
	s.ports = ports.New(box.Dial)
	for _, p := range s.cfg.Extras.Publish {
		if _, err := s.publish(p); err != nil {
			s.note(true, "%s", api.Escape(err.Error()))
		}
	}
	if len(s.info.Ports) > 0 {
		s.record(nil, s.changed("published"))
	}
}

// watchServers looks which servers there are.
func (s *Session) watchServers(box *runner.Sandbox) {
	tick := time.NewTicker(serversEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			found, err := box.Listeners()
			if err != nil {
				s.log.Warn("the agent's servers can't be listed", "error", err)
				return
			}
			var to api.WebPage
			if len(found) > 0 {
				to = signin.Find(s.term.Text())
			}
			s.loop.Submit(func() { s.serving(found, to) })
		case <-s.loop.In(loop.Stopping):
			return
		}
	}
}

// servers are what is known of the agent's: by their ports, what was seen at the last
// look, and what a person was told.
type servers struct {
	seen, told, signIn map[int]bool
	notes              int // at most maxOffered
	opens              *rate.Limiter
}

// serving offers the servers that are there at two looks, each port once; and once more
// when the agent's screen has a page for signing in that leads back to it.
func (s *Session) serving(found []egress.Listener, to api.WebPage) {
	if s.loop.Now() != loop.Running {
		return
	}
	k := &s.servers
	if k.told == nil {
		k.told, k.signIn = map[int]bool{}, map[int]bool{}
	}
	if !slices.Equal(s.info.Ports, s.served()) {
		s.countSoon()
	}
	before, there := k.seen, []api.Server(nil)
	k.seen = map[int]bool{}
	for _, l := range found {
		k.seen[l.Port] = true
		published := slices.ContainsFunc(s.info.Ports, func(p api.Port) bool { return p.Port == l.Port })
		name := ""
		if l.Program != "" {
			name = api.Escape(path.Base(l.Program))
		}
		if before[l.Port] && !published && len(there) < maxOffered {
			there = append(there, api.Server{Port: l.Port, Program: name})
		}
		fresh := to.Port == l.Port && s.offer(to)
		if fresh {
			s.countSoon()
		}
		switch {
		case published || k.notes >= maxOffered:
		case to.Port == l.Port && !k.signIn[l.Port]:
			k.signIn[l.Port], k.told[l.Port] = true, true
			if !fresh { // who wanted it opened was told of
				continue
			}
			k.notes++
			s.note(true, "the agent's screen has a page for signing in at %s, which leads back to its port %d: the palette opens or copies it, or stepbox publish %s %d --exactly --for 10m, then open the address that it shows. It may be any page: look at its name",
				api.Escape(to.Host), l.Port, s.cfg.ID, l.Port)
		case before[l.Port] && !k.told[l.Port]:
			k.notes++
			k.told[l.Port] = true
			s.note(false, "%s listens on port %d; stepbox publish %s %d, or the palette, opens http://localhost:%d", cmp.Or(name, "a program"), l.Port, s.cfg.ID, l.Port, l.Port)
		}
	}
	if !slices.Equal(there, s.info.Servers) {
		s.info.Servers = there
		s.countSoon()
	}
}

// offer has a page be one of those that a person is offered; false when it is already.
func (s *Session) offer(p api.WebPage) bool {
	if slices.Contains(s.info.Pages, p) {
		return false
	}
	s.info.Pages = append(slices.Clone(s.info.Pages[max(0, len(s.info.Pages)+1-maxPages):]), p)
	return true
}

// wantsOpen offers what a program of the sandbox wants opened, by the agent itself or in
// an action. Nothing opens it by itself.
func (s *Session) wantsOpen(text string, by int) tell.Reply {
	if s.loop.Now() != loop.Running || !s.servers.opens.Allow() {
		return tell.Reply{Failed: true, Text: errTooOften.Error()}
	}
	p, err := api.ParseWebPage(text)
	if err != nil {
		return tell.Reply{Failed: true, Text: err.Error()}
	}
	if s.offer(p) {
		s.record(nil, s.changed("offered"))
		if s.servers.notes < maxOffered {
			s.servers.notes++
			who := "the agent"
			if by != 0 {
				who = fmt.Sprintf("#%d", by)
			}
			s.note(true, "%s wants a page of %s opened in your browser: the palette shows, opens or copies it. It may be any page: look at its name", who, api.Escape(p.Host))
		}
	}
	return tell.Reply{}
}

// withOpener is an environment whose programs have the opener open pages, unless the
// person said by what.
func withOpener(environ []string) []string {
	out := slices.Clone(environ)
	folder := path.Dir(runner.SelfPath)
	for i, e := range out {
		if strings.HasPrefix(e, "PATH=") {
			out[i] = e + ":" + folder
		}
	}
	if !slices.ContainsFunc(out, func(e string) bool { return strings.HasPrefix(e, "BROWSER=") }) {
		out = append(out, "BROWSER="+path.Join(folder, tell.Opener))
	}
	return out
}
