package policy

import "strings"

// mistaken are the commands that git, told to correct what it doesn't know
// (help.autocorrect), may take a word for: those that begin so, and the nearest.
func mistaken(word string, commands []string) (out []string) {
	const far = 6
	least := far
	for _, c := range commands {
		least = min(least, distant(word, c))
	}
	for _, c := range commands {
		if strings.HasPrefix(c, word) || least < far && distant(word, c) == least {
			out = append(out, c)
		}
	}
	return out
}

// distant is how far git finds a word from a command: swapped letters cost nothing.
func distant(word, command string) int {
	const inserted, deleted, replaced, longest = 1, 3, 2, 64
	if len(word) > longest || len(command) > longest {
		return deleted * longest
	}
	var rows [3][longest + 1]int // of which two rows before one count
	for j := range len(command) + 1 {
		rows[0][j] = j * inserted
	}
	for i := 1; i <= len(word); i++ {
		row, last, before := &rows[i%3], &rows[(i-1)%3], &rows[(i+1)%3]
		row[0] = i * deleted
		for j := 1; j <= len(command); j++ {
			cost := replaced
			if word[i-1] == command[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+deleted, row[j-1]+inserted, last[j-1]+cost)
			if i > 1 && j > 1 && word[i-1] == command[j-2] && word[i-2] == command[j-1] {
				row[j] = min(row[j], before[j-2])
			}
		}
	}
	return rows[len(word)%3][len(command)]
}
