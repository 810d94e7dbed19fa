package runner

import (
	"context"
	"fmt"
	"os"

	"stepbox/runner/egress"
)

// makeLink is the holder's part.
func makeLink() (any, []*os.File, error) {
	link, err := egress.MakeLink()
	if err != nil {
		return nil, nil, err
	}
	return link, link.Files(), nil
}

// pendingLink is a link that is made while the sandbox is.
type pendingLink struct {
	done chan struct{} // closed once link and err are set
	link *egress.Link
	err  error
}

// beginLink has the holder make the link; without an egress configuration the
// sandbox has nothing but its loopback.
func (s *Sandbox) beginLink(ctx context.Context, h Handlers) *pendingLink {
	p := &pendingLink{done: make(chan struct{})}
	if h.Egress == nil {
		close(p.done)
		return p
	}
	go func() {
		defer close(p.done)
		link := new(egress.Link)
		files, err := s.holder.Link(ctx, link)
		if err == nil {
			err = link.SetFiles(files)
		}
		if err != nil {
			closeFiles(files)
			p.err = err
			return
		}
		p.link = link
	}()
	return p
}

// abandon closes a link that nobody took.
func (p *pendingLink) abandon() {
	<-p.done
	if p.link != nil {
		_ = p.link.Close()
		p.link = nil
	}
}

// openGateway puts the gateway at the link's other end.
func (s *Sandbox) openGateway(ctx context.Context, h Handlers, p *pendingLink) error {
	<-p.done // bounded by the context that the call to the holder has
	if p.err != nil {
		return p.err
	}
	if p.link == nil {
		return nil
	}
	options := *h.Egress
	if options.Processes == nil {
		options.Processes = s.pids
	}
	link := *p.link
	p.link = nil
	gateway, err := egress.New(link, options)
	if err != nil {
		return fmt.Errorf("cannot open the sandbox's gateway: %w", err)
	}
	s.gateway = gateway
	s.box.Notes = append(s.box.Notes, link.Warnings...)
	return ctx.Err()
}

// Recheck ends the connections that are denied by now; see egress.Gateway's.
func (s *Sandbox) Recheck() {
	if s.gateway != nil {
		s.gateway.Recheck()
	}
}
