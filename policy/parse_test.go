package policy

// ParseLayer is policytest's, for tests within the package.
func ParseLayer(name, file string, data []byte) (Layer, error) {
	l, _, err := parseLayer(name, file, data)
	return l, err
}
