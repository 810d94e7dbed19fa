package paint

import (
	"math"
	"slices"
	"testing"
)

func TestGraph(t *testing.T) {
	for _, tt := range []struct {
		name        string
		shares      []float64
		cells, rows int
		plain       bool
		want        []string
	}{
		{"none yet", nil, 3, 1, false, []string{"   "}},
		{"at rest, the newest at the right", []float64{0, 0}, 3, 1, false, []string{" ▁▁"}},
		{"rising", []float64{0, 0.25, 0.5, 0.75, 1}, 5, 1, false, []string{"▁▂▄▆█"}},
		{"only what fits", []float64{1, 1, 1, 0, 0}, 2, 1, false, []string{"▁▁"}},
		{"in two rows", []float64{0.5, 1, 0, 0.75}, 5, 2, false, []string{"  █ ▄", " ██▁█"}},
		{"without blocks", []float64{0, 0.4, 0.6, 1}, 4, 1, true, []string{"..:#"}},
		{"without blocks, in two rows", []float64{0.5, 1}, 2, 2, true, []string{" #", "##"}},
		{"what isn't a share", []float64{math.NaN(), math.Inf(1), -5, 1e300}, 4, 1, false, []string{"▁█▁█"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := Graph(tt.shares, tt.cells, tt.rows, tt.plain); !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
