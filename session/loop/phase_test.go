package loop

import "testing"

func TestSessionLifeIsExhaustive(t *testing.T) {
	allowed := map[[2]Phase]bool{
		{Starting, Running}: true, {Starting, Stopping}: true,
		{Running, Stopping}:  true,
		{Stopping, Draining}: true, {Stopping, Recorded}: true,
		{Draining, Recorded}: true,
		{Recorded, Closed}:   true,
	}
	for from := range Phase(phases) {
		for to := range Phase(phases) {
			l := newLife()
			l.now = from
			if from != to && to != Starting {
				l.entered[to] = make(chan struct{})
			}
			err := l.to(to)
			if (err == nil) != allowed[[2]Phase{from, to}] {
				t.Errorf("from %s to %s: %v, want allowed %v", from, to, err, !(err == nil))
			}
			select {
			case <-l.In(to):
				if err != nil && to != Starting {
					t.Errorf("a refused move from %s to %s was told to those who wait", from, to)
				}
			default:
				if err == nil {
					t.Errorf("the move from %s to %s wasn't told to those who wait", from, to)
				}
			}
			if err != nil && l.now != from {
				t.Errorf("a refused move from %s to %s changed the phase", from, to)
			}
		}
	}
}

func TestEveryPhaseLeadsToTheEnd(t *testing.T) {
	for from := range Phase(phases) {
		reached := map[Phase]bool{from: true}
		for list := []Phase{from}; len(list) > 0; list = list[1:] {
			for _, next := range ways[list[0]] {
				if next <= list[0] {
					t.Errorf("the session goes back from %s to %s", list[0], next)
				}
				if !reached[next] {
					reached[next] = true
					list = append(list, next)
				}
			}
		}
		if !reached[Closed] {
			t.Errorf("a session that is %s never closes", from)
		}
	}
}
