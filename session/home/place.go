package home

import (
	"fmt"
	"os"
	"path/filepath"

	"stepbox/session/api"
)

// Place is where a session's home is on the host.
type Place struct {
	Kind   api.HomeKind
	Folder string // what is mounted: the profile's, or the session's own
	Upper  string // takes what is written in its place; "" for none
	Saved  string // takes what programs obey of Folder, as it was; "" where Folder is no other session's
	Inside string // where it is in the sandbox, which Save needs; else it may be ""
	Front  string // a layer with what is brought, in front of Folder; "" where that is written to Folder
}

// Of is the place of a session's home. Nothing of it needs to be there.
func Of(kind api.HomeKind, dataDir, stateDir, profile string) Place {
	shared := filepath.Join(dataDir, "homes", profile)
	switch kind {
	case api.HomeFresh:
		return Place{Kind: kind, Folder: filepath.Join(stateDir, "home", "own")}
	case api.HomeSession:
		return Place{Kind: kind, Folder: shared, Upper: filepath.Join(stateDir, "home", "upper"), Front: filepath.Join(stateDir, "home", "brought")}
	}
	return Place{Kind: api.HomeProfile, Folder: shared, Saved: filepath.Join(stateDir, "home")}
}

// Make makes its folders. What is brought is brought anew at each start.
func (p Place) Make() error {
	folders := []string{p.Folder}
	if p.Front != "" {
		if err := os.RemoveAll(p.Front); err != nil { // the agent never could write there
			return fmt.Errorf("cannot make the home anew: %w", err)
		}
		folders = append(folders, p.Front)
	}
	for _, dir := range folders {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("cannot make the home folder: %w", err)
		}
	}
	return nil
}

// Above are the layers in front of Folder.
func (p Place) Above() []string {
	if p.Front == "" {
		return nil
	}
	return []string{p.Front}
}

// Written is the folder that has what the agent writes; Below are those of which it
// sees what isn't there, written by earlier agents.
func (p Place) Written() string {
	if p.Upper != "" {
		return p.Upper
	}
	return p.Folder
}

// Below is what Written says.
func (p Place) Below() string {
	if p.Upper != "" {
		return p.Folder
	}
	return ""
}
