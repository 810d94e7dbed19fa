// Package files knows the state of a session's files and what became of it:
// checkpoints (taker.go), how two states differ (compare.go, diff.go, lines.go),
// whose a change is (account.go), what an action alone changed (tell.go), which
// changes nobody needs to review (keptrule.go), what a session that is over left
// (history.go), which state some of its changes come to (select.go, choose.go), and
// rolling back: planned in rollback.go and, of single changes, in takeback.go, carried
// out in restore.go. Changes are made on other states than their own in carry.go.
//
// It forms no actions and records nothing. What it has to know of actions comes
// in as plain data; what only the session can decide while a roll back is carried
// out is asked through Desk. Nothing here runs in the session's loop but Line and
// Accountant, which read no files.
//
// What is in the upper and the names of files are hostile. They are escaped before
// they enter an api value.
package files
