//go:build !cgo

package box

// Namespaces are joined by C code that runs before the Go runtime, and the
// record is SQLite's, which is C too: without cgo there is no Stepbox. This
// line is what a build without it stops at.
var _ = stepbox_needs_cgo__set_CGO_ENABLED_1_and_install_a_C_compiler
