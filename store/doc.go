// Package store is the record: what happened in every session of one user, in
// one SQLite database, and the contents that it names, in one folder.
//
// Truth is the table of events: append-only, one hash chain per session. Each
// event holds a resource as JSON, as it is after the event. The other tables
// hold every resource as it was last told; they are written in the transaction
// of the event and can be made again from the events. The package doesn't know
// what the resources are: a table in code says which of their fields become
// columns, so that a person who opens the database finds plain columns.
//
// Contents (bodies) are named by their BLAKE3 hash and kept once, small ones in
// the database, large ones as files. The agent's terminal goes to a journal of
// its own beside the database, packed into chunks that the chain names.
//
// What has been acknowledged survives kill -9 of the process. Power loss may
// take the last second, and of large bodies what the kernel hasn't written out
// yet: they aren't synced. When the disk is full, calls fail with ErrFull and
// nothing of them is kept, so that a session can stop rather than go unrecorded.
//
// Concurrency: all methods of Store and Journal may be called from many
// goroutines, and many processes may have one folder open. A Store owns two
// goroutines, one that commits (transactions of all callers are grouped) and
// one that makes commits durable; Close stops both and waits.
//
// Trust: the folder belongs to the user alone, and only to processes outside
// every sandbox; Open refuses a folder that others can enter. JSON and bytes
// that come out of a sandbox are data here and are never run. Whoever has the
// user's rights can rewrite a whole chain; Examine finds everything short of that.
package store
