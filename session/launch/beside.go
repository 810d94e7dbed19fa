package launch

import (
	"context"
	"net"
	"sync"
	"time"

	"stepbox/session"
	"stepbox/session/api"
	"stepbox/session/server"
	"stepbox/store"
)

// tellTime bounds how long a session waits for a neighbour to take in its news:
// one that is stuck keeps nobody else from anything.
const tellTime = 2 * time.Second

// maxPaths bounds the paths of one piece of news, in bytes.
const maxPaths = 32 << 10

// Tell tells all live sessions whose project folder is from's, in it or around
// it, what happened to the files. Those that can't be reached learn nothing.
func Tell(ctx context.Context, n api.News) {
	dir, err := store.Dir()
	if err != nil {
		return
	}
	size := 0
	for i, p := range n.Paths { // a server reads no more
		if size += len(p); size > maxPaths {
			n.Paths, n.More = n.Paths[:i], n.More+len(n.Paths)-i
			break
		}
	}
	var told sync.WaitGroup
	for _, o := range registryIn(dir).beside(n.From) {
		told.Go(func() { tell(ctx, o, n) })
	}
	told.Wait()
}

// tell tells one session.
func tell(ctx context.Context, o neighbour, n api.News) {
	ctx, cancel := context.WithTimeout(ctx, tellTime)
	defer cancel()
	client := api.NewClientFunc(func(ctx context.Context) (net.Conn, error) {
		return server.Dial(ctx, o.socket)
	})
	defer client.Close()
	_, _ = client.Tell(ctx, o.ID, n) // it is just starting or ending, or of an older version: nobody to tell
}

// neighbour is a live session over files of another's, and where it is served.
type neighbour struct {
	api.Neighbour
	socket string
}

// beside lists the live sessions over the same files as one.
func (r registry) beside(of api.Neighbour) []neighbour {
	live, _, _ := r.list() // without it nobody is known
	var out []neighbour
	for id, n := range live {
		o := api.Neighbour{ID: id, Name: n.Name, Folder: n.Folder}
		if id != of.ID && n.Folder != "" && session.Overlap(of, o) {
			out = append(out, neighbour{o, r.served(id, n)})
		}
	}
	return out
}

// meet makes a session that is served by now, and its neighbours, known to each
// other. Of two that start at once the second to be served finds the first.
func meet(ctx context.Context, r registry, s *session.Session, me api.Neighbour) {
	for _, o := range r.beside(me) {
		_, _ = s.Hear(ctx, api.News{Kind: api.NewsStarted, From: o.Neighbour}) // it has ended already: there is nothing to warn of
		tell(ctx, o, api.News{Kind: api.NewsStarted, From: me})
	}
}
