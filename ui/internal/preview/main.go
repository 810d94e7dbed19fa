//go:build preview

// Command preview shows the interface with made-up sessions, to look at it in a
// real terminal: go run -tags preview ./ui/internal/preview [home|bench|long] [theme].
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"stepbox/session/api"
	"stepbox/ui"
	"stepbox/ui/internal/fake"
)

func main() {
	scene, theme := "bench", ""
	if len(os.Args) > 1 {
		scene = os.Args[1]
	}
	if len(os.Args) > 2 {
		theme = os.Args[2]
	}
	questions := []api.Question{fake.Question()}
	if scene == "long" {
		questions = append(questions, fake.LongQuestion())
	}
	if scene == "calm" {
		questions = nil
	}
	o := ui.Options{
		Client: fake.Workbench(questions...), NewTerminal: fake.NewEmulator, Theme: theme, Version: "preview", Quiet: true,
		Start: func(context.Context) (string, error) { return fake.Session().ID, nil },
	}
	if scene != "home" {
		o.Session = fake.Session().ID
	}
	began := time.Now()
	o.Now = func() time.Time { return fake.Now.Add(time.Since(began)) }
	if err := ui.Run(context.Background(), o); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
