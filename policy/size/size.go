// Package size reads sizes as people write them, in policies, settings and flags.
package size

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// most is the largest: up to it each number of bytes is exact as a fraction is read.
const most = 1 << 53

// Parse reads a number of bytes with an optional K, M, G or T (powers of 1024).
func Parse(s string) (int64, error) {
	digits, factor := strings.TrimSuffix(strings.TrimSuffix(strings.ToUpper(s), "B"), "I"), 1.0
	if digits != "" {
		if i := strings.IndexByte("KMGT", digits[len(digits)-1]); i >= 0 {
			digits, factor = digits[:len(digits)-1], math.Pow(1024, float64(i+1))
		}
	}
	n, err := strconv.ParseFloat(digits, 64)
	if n *= factor; err != nil || !(n >= 0 && n <= most) || strings.ContainsAny(digits, "XP_") {
		return 0, fmt.Errorf("%q is no size: use a number with K, M, G or T, like 512M", s)
	}
	return int64(n), nil
}
