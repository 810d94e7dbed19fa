// Package near finds what a word that nobody knows may have been meant to be.
package near

import "fmt"

// longest is how many letters of a word are compared.
const longest = 60

// Words asks whether a known word was meant, to be added to an error; "" when none is near.
func Words(word string, known []string) string {
	if best := one(word, known); best != "" {
		return fmt.Sprintf("; is it %q?", best)
	}
	return ""
}

// one is the known word that is nearest, "" when it would take more letters changed than
// a third of it.
func one(word string, known []string) (best string) {
	a, least := []rune(word), 0
	if len(a) > longest {
		return ""
	}
	for _, k := range known {
		b := []rune(k)
		if d := distance(a, b); d <= max(1, len(b)/3) && d < len(b) && (best == "" || d < least) {
			best, least = k, d
		}
	}
	return best
}

// distance is how many letters must be added, left out or replaced.
func distance(a, b []rune) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i, x := range a {
		last := row[0]
		row[0] = i + 1
		for j, y := range b {
			cost := last
			if x != y {
				cost++
			}
			last = row[j+1]
			row[j+1] = min(cost, row[j+1]+1, row[j]+1)
		}
	}
	return row[len(b)]
}
