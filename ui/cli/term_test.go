package cli

import "testing"

// An agent starts with the size that the workbench gives it: what it prints
// before the workbench opens is wrapped and not cut.
func TestPaneSize(t *testing.T) {
	for _, c := range []struct{ cols, rows, wantCols, wantRows int }{
		{80, 24, 46, 14},
		{120, 35, 70, 23},
		{60, 24, 58, 13}, // tabs: one pane at a time
		{20, 5, 20, 5},   // too small for a workbench
	} {
		if cols, rows := paneSize(c.cols, c.rows); cols != c.wantCols || rows != c.wantRows {
			t.Errorf("on %d×%d the Terminal has %d×%d, want %d×%d", c.cols, c.rows, cols, rows, c.wantCols, c.wantRows)
		}
	}
}
