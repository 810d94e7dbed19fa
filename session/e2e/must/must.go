// Package must has tests end where they can't go on. It may be used from many goroutines.
package must

import (
	"errors"
	"hash/fnv"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

// LeftByRunc is the goroutine that libcontainer leaves where a sandbox ends while it starts: it waits for
// one that waits no more.
var LeftByRunc = goleak.IgnoreTopFunction("github.com/opencontainers/runc/libcontainer.awaitFifoOpen.func1")

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

// Sampled goes on with one of four tests in short runs, which are those with the race
// detector: tests that are much alike have the same goroutines meet. Of the rows of a table,
// which are more so, it is one of sixteen. A test's name says which, so that it is always the
// same; the whole run has all.
func Sampled(t testing.TB) {
	t.Helper()
	sum, of := fnv.New32a(), uint32(4)
	_, _ = sum.Write([]byte(t.Name())) // it never fails
	if strings.Contains(t.Name(), "/") {
		of = 16
	}
	if testing.Short() && sum.Sum32()%of != 0 {
		t.Skip("the whole run has it")
	}
}

// Get is a value that can be had. Where it can't, it panics.
func Get[V any](v V, err error) V {
	if err != nil {
		panic(err)
	}
	return v
}
