package ui

import (
	"context"
	"slices"
	"testing"

	"stepbox/session/api"
	"stepbox/session/e2e/must"
)

// signIn is a page that leads back to a port.
const signIn = "https://auth.example/authorize?client_id=a&redirect_uri=http%3A%2F%2Flocalhost%3A1455%2Fcb&state=0123456789"

// serving drives the workbench of a session with servers and pages.
func serving(t *testing.T, o Options, pages ...api.WebPage) (d *driver, command func(words string)) {
	s := sceneSession()
	s.Servers, s.Pages = []api.Server{{Port: 3000, Program: "node"}}, pages
	s.Ports = []api.Port{{Port: 5173, At: 5174}}
	c := sceneWorkbench()
	o.Session, o.Config = s.ID, themed("plain")
	d = drive(t, c, 80, 24, o)
	d.until("the session is shown", func() bool { return d.m.bench != nil && d.m.bench.Arrived() })
	c.Put(api.Event{Session: &s})
	d.idle()
	return d, func(words string) {
		d.press(leader, ":")
		d.types(words)
		d.shows("▸ " + words)
		d.calmly("enter")
	}
}

// The palette publishes a server that there is, and copies and opens the address of one
// that is published.
func TestServers(t *testing.T) { alone(t, testServers) }

func testServers(t *testing.T) {
	opened := make(chan string, 4)
	d, command := serving(t, Options{Browse: func(_ context.Context, url string) error { opened <- url; return nil }})
	command("publish port 3000")
	d.shows("✓ port 3000 is at http://localhost:3000")
	command("copy localhost:5174")
	d.until("it is copied", func() bool { return d.copied == "http://localhost:5174" })
	command("open localhost:5174")
	d.shows("✓ your browser was told to open it")
	command("unpublish port 5173")
	d.shows("port 5173 isn't published any more")
	if url := <-opened; url != "http://localhost:5174" {
		t.Errorf("opened is %s", url)
	}
	if got := d.c.Calls(); !slices.Contains(got, "publish 3000 false 0s") || !slices.Contains(got, "unpublish 5173") {
		t.Errorf("it called %q", got)
	}
}

// A page is shown whole before anything happens, and then the port that it leads back to
// is published first; no key by itself opens it, and no address that isn't a page's is.
func TestPages(t *testing.T) { alone(t, testPages) }

func testPages(t *testing.T) {
	opened := make(chan string, 4)
	p, err := api.ParseWebPage(signIn)
	must.OK(t, err)
	d, command := serving(t, Options{Browse: func(_ context.Context, url string) error { opened <- url; return nil }}, api.WebPage{URL: "javascript:alert(1)", Host: "good.example"}, p)
	command("open page")
	d.shows("Open a page in your browser?")
	d.shows("host        auth.example")
	d.shows("state=0123456789")
	d.shows("port 1455 of the sandbox")
	d.press("enter")
	d.lacks("Open a page in your browser?")
	command("open page")
	d.press("y")
	d.shows("too soon")
	if len(opened) > 0 || slices.Contains(d.c.Calls(), "publish 1455 true 10m0s") {
		t.Error("it was opened before it was read")
	}
	d.calmly("y")
	d.shows("✓ your browser was told to open it")
	if url := <-opened; url != signIn {
		t.Errorf("opened is %s", url)
	}
	command("copy page")
	d.shows("Copy the address of a page?")
	d.calmly("y")
	d.until("it is copied", func() bool { return d.copied == signIn })
	if got := d.c.Calls(); !slices.Contains(got, "publish 1455 true 10m0s") {
		t.Errorf("it called %q", got)
	}

	d, command = serving(t, Options{}, api.WebPage{URL: "javascript:alert(1)", Host: "good.example"})
	d.press(leader, ":", "o", "p", "e", "n", " ", "p")
	d.shows("there is no browser here")
	d.press("enter", "esc")
	command("copy page")
	d.shows("it can't be opened: only https pages")
	if d.copied != "" {
		t.Errorf("copied is %s", d.copied)
	}
}
