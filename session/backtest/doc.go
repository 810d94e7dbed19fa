// Package backtest judges what sessions did by rules that may be others than they had:
// it goes through the record, program start by program start and connection by
// connection, and says what some rules would have said, beside what became of each and
// what a person answered.
//
// It judges as a session in policy mode does: wrappers of the agent are taken off, its
// housekeeping isn't asked about, what an approved action starts isn't either, and a
// connection that was answered isn't asked about again for a while. What a session knew
// and the record doesn't have is never taken for allowed: it can't be told, and that is
// counted. What an agent would have done otherwise after another answer nobody knows:
// each thing is judged as if all before it had gone as it went.
//
// It only reads. Sessions are read one after the other, in the order of their events, and
// of each is kept what its open actions need. What it reads was escaped when it was
// recorded; the record is ours, and no agent writes it. All functions may be called from
// any goroutine.
package backtest
