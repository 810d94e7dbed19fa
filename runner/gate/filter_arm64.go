package gate

// privilegedHere lists calls that only this architecture has and that nobody
// without rights on the machine can use: none.
func privilegedHere() []uintptr { return nil }
