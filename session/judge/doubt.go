package judge

import "stepbox/session/api"

// Doubt is why an exec is asked about where rules would let it run: what it is about
// to do isn't all known. It is escaped; "" is none.
func (x *Exec) Doubt() string {
	switch {
	case x.Truncated:
		return tooLarge
	case x.Linker != "":
		return linked(x.Linker)
	case len(x.suspects) > 0:
		return readsFrom(x.suspects[0])
	}
	return ""
}

const tooLarge = "its arguments are too large to be read whole"

func linked(linker string) string {
	return "it starts in the dynamic linker " + api.Escape(linker) + ", which the agent can write"
}

func readsFrom(file string) string {
	return "it reads commands from " + file + ", which the agent can write"
}
