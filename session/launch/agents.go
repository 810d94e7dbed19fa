package launch

import (
	"os"
	"os/exec"
)

// Installed is a kind of agent that is installed here.
type Installed struct{ Name, Title, Program string }

// Agents are those of the known kinds of agents, the person's own among them, of which the
// person's PATH has a program.
func Agents() (out []Installed) {
	home, err := os.UserHomeDir()
	if err != nil {
		home = "" // then there are no profiles of the person's own
	}
	for _, p := range profilesOf(home).All() {
		for _, program := range p.Programs() {
			if _, err := exec.LookPath(program); p.Agent() && err == nil {
				out = append(out, Installed{p.Name, p.Title, program})
				break
			}
		}
	}
	return out
}
