// Package api is what a program may say to Stepbox and what it gets back: the
// resources, the decisions and the event stream of a session, as JSON over
// HTTP on a unix socket, and a client for them.
//
// A supervisor serves its own session under /v1/sessions/{id}; the stepbox
// command serves the same paths for recorded sessions and passes requests for
// a live one on to its supervisor. The same JSON is what the record keeps, so
// a field is never renamed or given another meaning: new ones are added.
//
// Text that came out of the sandbox (commands, paths, names, reasons, titles)
// is hostile. It has been through Escape before it is put into a value of this
// package, so that it is one line of printable characters. Exact bytes are
// covered by a Hash instead.
//
// Values are plain data, safe to copy and to read from several goroutines.
package api
