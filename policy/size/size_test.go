package size

import (
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	for s, want := range map[string]int64{"0": 0, "512": 512, "1k": 1 << 10, "4G": 4 << 30, "1.5M": 3 << 19, "2GiB": 2 << 30, "3KB": 3 << 10, "1T": 1 << 40, "8192T": 1 << 53} {
		if n, err := Parse(s); err != nil || n != want {
			t.Errorf("%q is %d, %v, want %d", s, n, err, want)
		}
	}
	for _, s := range []string{"", "x", "-1", "1X", "0x10", "0x1p4", "1_0", "NaN", "Inf", "1e30", "8193T", "1 M", "M", "\x1b"} {
		if n, err := Parse(s); err == nil || strings.ContainsRune(err.Error(), 0x1b) {
			t.Errorf("%q is %d, %v", s, n, err)
		}
	}
}
