package api

import (
	"context"
	"net/http"
	"strconv"
	"strings"
)

// asHeader names whom a request is from.
const asHeader = "Stepbox-As"

// maxName bounds a person's name, in bytes.
const maxName = 64

type asKey struct{}

// Named makes the client say whom its requests are from, so that what is decided
// has a name. It is called before the client is used. A name is what its person
// calls themselves: who can ask at all has the same user's rights.
func (c *Client) Named(who string) { c.as = Trim(Escape(who), maxName) }

// From says whom a request is from: ""  when it doesn't tell. Nobody passes for the
// rules, whose word is "rule".
func From(q *http.Request) string {
	who := strings.TrimSpace(Trim(Escape(q.Header.Get(asHeader)), maxName))
	if who == "rule" {
		return strconv.Quote(who)
	}
	return who
}

// WithPerson has a context tell whom its request is from.
func WithPerson(ctx context.Context, who string) context.Context {
	return context.WithValue(ctx, asKey{}, who)
}

// Person is whom a context's request is from; "" when that isn't known.
func Person(ctx context.Context) string {
	who, _ := ctx.Value(asKey{}).(string)
	return who
}
