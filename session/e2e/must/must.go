// Package must has tests end where they can't go on. It may be used from many goroutines.
package must

import "errors"

// T is a test, a benchmark, or one of a property's.
type T interface {
	Helper()
	Fatal(args ...any)
}

// OK ends a test in which something failed.
func OK(t T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// Get is a value that can be had. Where it can't, it panics.
func Get[V any](v V, err error) V {
	if err != nil {
		panic(err)
	}
	return v
}
