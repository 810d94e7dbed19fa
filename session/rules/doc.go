// Package rules has what of a session's rules comes from files: the person's own
// policy and the project's. It reads them, tells when they change, and writes rules
// into them that answers were made, keeping the rest of a file as it is.
//
// Whom it trusts: the person's own file; the project's only as far as the person
// confirmed exactly what it says, see [Trust]. Of another its rules that ask or deny
// hold, and those that allow don't. The project's file is the one in the real project
// folder: what an agent writes in its sandbox isn't looked at.
//
// A [Set] has one goroutine, which owns what was read last. All else may be called
// from any goroutine.
package rules

// Name is what a project's policy is called, in its folder.
const Name = ".stepbox.yaml"
