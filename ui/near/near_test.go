package near

import "testing"

func TestNearest(t *testing.T) {
	known := []string{"theme", "leader", "wall-time", "osc"}
	for word, want := range map[string]string{
		"them": "theme", "Theme": "theme", "laeder": "leader", "walltime": "wall-time", "os": "osc",
		"": "", "colour": "", "x": "", "théme": "theme",
	} {
		if got := one(word, known); got != want {
			t.Errorf("%q is near %q, not %q", word, got, want)
		}
	}
	if got := Words("them", known); got != `; is it "theme"?` {
		t.Errorf("it says %q", got)
	}
}
