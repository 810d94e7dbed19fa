package patch_test

import (
	"strings"
	"testing"
)

// A hunk after one with two edits stands at its own lines: git would find it a
// place where the same lines stand earlier, else.
func TestHunksStandAtTheirLines(t *testing.T) {
	same := strings.Repeat("x\n", 40)
	both(t,
		tree{"f": {body: "a\nb\nc\nd\ne\nf\n" + same + "y\n" + same}},
		tree{"f": {body: "A\nb\nc\nd\ne\nF\n" + same + "Y\n" + same}})
	both(t,
		tree{"f": {body: "a\nb\nc\nd\ne\nf\n" + same + same}},
		tree{"f": {body: "A\nb\nc\nd\ne\nF\n" + same + "new\n" + same}})
}
