// Package e2e holds the tests that run the real program in a real terminal: a
// pseudo-terminal whose other end is read by package screen, in the place of a
// person's terminal emulator. The tests press keys and look at what is drawn.
//
// They wait for what a person would see, never for a time, and each has a
// person of its own: home, record and run folder are its own too, so that they
// run side by side. There is nothing in the package but tests and the benchmark
// of whole commands.
package e2e
