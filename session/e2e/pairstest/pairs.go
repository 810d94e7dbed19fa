// Package pairstest compares ways of doing one thing in benchmarks, so that what the
// machine does meanwhile falls on all of them alike: the ways take turns, each
// round has one run of every way, and what is told is the median of the runs and
// of each round's ratio, with their quartiles.
//
//	pairs.Compare(b,
//		pairs.Way{Name: "stepbox", Run: ours},
//		pairs.Way{Name: "runc", Run: theirs})
//
// Bwrap and Runc are other tools' commands that show the folders that a sandbox
// of ours shows. The package is for tests only, and has no state.
package pairstest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// least is how many rounds there are, however long one takes.
const least = 10

// Way is one way of doing the thing. Run does it once and says how long the part
// took that is compared: what prepares and cleans up needn't be in it.
type Way struct {
	Name string
	Run  func() time.Duration
}

// Compare runs the ways in turns for as long as the benchmark's time allows, at
// least ten rounds after one that warms the caches up and isn't counted. It
// reports each way's median in milliseconds and the first way's median ratio to
// each of the others, and logs both with their quartiles.
func Compare(b *testing.B, ways ...Way) {
	b.Helper()
	times := make([][]float64, len(ways)) // in milliseconds, by way and round
	round := func() {
		for i, way := range ways {
			times[i] = append(times[i], float64(way.Run().Nanoseconds())/1e6)
		}
	}
	round()
	for i := range times {
		times[i] = nil
	}
	for b.Loop() {
		round()
	}
	for len(times[0]) < least {
		round()
	}
	b.ReportMetric(0, "ns/op") // a round's whole time says nothing
	lines := []string{fmt.Sprintf("%d rounds, medians and quartiles:", len(times[0]))}
	for i, way := range ways {
		middle := spread(times[i])
		b.ReportMetric(middle.median, way.Name+"-ms")
		line := fmt.Sprintf("%12s %s ms", way.Name, middle)
		if i > 0 {
			ratios := make([]float64, len(times[i]))
			for n := range ratios {
				ratios[n] = times[0][n] / times[i][n]
			}
			ratio := spread(ratios)
			b.ReportMetric(ratio.median, "x-"+way.Name)
			line += fmt.Sprintf("; %s takes %s times as long", ways[0].Name, ratio)
		}
		lines = append(lines, line)
	}
	b.Log(strings.Join(lines, "\n"))
}

// quartiles are a sample's middle half.
type quartiles struct{ low, median, high float64 }

func (q quartiles) String() string {
	return fmt.Sprintf("%.2f (%.2f to %.2f)", q.median, q.low, q.high)
}

// spread gives a sample's quartiles; a value between two is their mean.
func spread(sample []float64) quartiles {
	sorted := slices.Sorted(slices.Values(sample))
	at := func(quarter int) float64 {
		last := (len(sorted) - 1) * quarter
		return (sorted[last/4] + sorted[(last+3)/4]) / 2
	}
	return quartiles{at(1), at(2), at(3)}
}
