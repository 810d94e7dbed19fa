// Package policy decides what may be done without asking a person: which
// commands are allowed, denied or asked about, which hosts may be reached, and
// what is known about the agents that Stepbox runs (their profiles).
//
// Rules and profiles are data, embedded as YAML and read strictly. Nothing here
// starts a program, reads the agent's files or keeps state: every function is
// pure and all values are immutable once made, so that they may be used from any
// goroutine.
//
// Whom it trusts: the rules and profiles, never what it is asked about. Argument
// vectors, scripts and host names come from the agent, may be any bytes of any
// length, and may be made to mislead; what can't be understood is asked about.
// It judges how commands are spelled, which an agent can evade by doing the
// same from an interpreter. Containment is the sandbox's work; the rules here
// choose the moments worth a person's attention.
package policy
