package home

// LookAtMost has fewer files be looked at than usual, until the test ends.
func LookAtMost(t interface{ Cleanup(func()) }, n int) {
	was := maxLooked
	t.Cleanup(func() { maxLooked = was })
	maxLooked = n
}
