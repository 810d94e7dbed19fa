package cellstest

import (
	_ "embed"
	"encoding/json"
	"time"
)

// Now is the moment that the scene shows.
var Now = time.Date(2026, 11, 20, 14, 14, 9, 0, time.UTC)

//go:embed scene.json
var scene []byte

// Scene reads what the tests of the screens show.
func Scene(what any) {
	if err := json.Unmarshal(scene, what); err != nil {
		panic(err)
	}
}
