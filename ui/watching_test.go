package ui

import (
	"image/color"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"stepbox/session/api"
	"stepbox/session/e2e/must"
	"stepbox/themes"
)

// A theme's file that appears, breaks and is mended while the screen is shown.
func TestThemeFileIsFollowed(t *testing.T) {
	t.Parallel()
	good, err := os.ReadFile("../themes/dark.yaml")
	must.OK(t, err)
	red := strings.ReplaceAll(string(good), "amber: \"#ffc95e\"", "amber: \"#ff0000\"")
	if red == string(good) {
		t.Fatal("the theme has another amber")
	}
	for _, session := range []string{"", sceneSession().ID} {
		dir := filepath.Join(t.TempDir(), "stepbox", "themes")
		file := filepath.Join(dir, "dark.yaml")
		d := drive(t, sceneWorkbench(), 120, 35, Options{Config: themed("dark"), ThemeDir: dir, Session: session})
		d.shows("fix-tests")
		held := func() color.Color { return d.m.palette.Theme.Style(themes.Held).Fg }
		before := held()
		put := func(text string) {
			must.OK(t, os.MkdirAll(dir, 0o700))
			must.OK(t, os.WriteFile(file, []byte(text), 0o600))
		}
		put(red)
		d.until("the file is shown", func() bool { return held() != before })
		mine := held()
		put("tokens: [\x1b]")
		d.shows(`cannot read theme "dark"`)
		if held() != mine {
			t.Error("a broken file was taken")
		}
		put(red)
		if session != "" {
			d.shows("can be read again")
		}
		d.until("it is mended", func() bool { return d.m.theme == "" })
		must.OK(t, os.Remove(file))
		d.until("the file is gone", func() bool { return held() == before })
	}
}

func TestBrokenThemeDoesNotKeepAnyoneOut(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must.OK(t, os.WriteFile(filepath.Join(dir, "dark.yaml"), []byte("dark: maybe"), 0o600))
	d := drive(t, sceneWorkbench(), 120, 35, Options{Config: themed("dark"), ThemeDir: dir})
	d.shows(`cannot read theme "dark"`)
	d.shows("bump-deps")
}

// The list is read when its folders change, not every second; and now and then,
// for what changes nothing there.
func TestListIsWatched(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := sceneWorkbench()
	d := drive(t, c, 120, 35, Options{Config: themed("plain"), Folders: []string{dir}})
	d.shows("fix-tests")
	d.until("it is watched", func() bool { return d.m.list.watched && !d.m.home.Reading() })
	rename := func(name string) {
		s := sceneSession()
		s.Name = name
		c.Put(api.Event{Session: &s})
	}
	rename("second")
	d.advance(longest - 2*time.Second)
	d.idle()
	d.lacks("second")
	must.OK(t, os.WriteFile(filepath.Join(dir, "id.json"), nil, 0o600))
	d.shows("second")
	d.idle()
	rename("third")
	d.now.Add(int64(longest))
	d.send(clock{})
	d.shows("third")
}
