package session

import (
	"path"
	"slices"
	"unicode/utf8"

	"stepbox/session/api"
	"stepbox/session/judge"
)

// maxExact bounds the arguments that are kept as they are, in bytes: those of ordinary
// scripts. Rules ask about what is much larger.
const maxExact = 64 << 10

// basis is what a program start was judged on, as the record keeps it.
func basis(x *judge.Exec) *api.Basis {
	b := &api.Basis{Doubt: api.Trim(x.Doubt(), maxReason), Cut: x.Truncated}
	size, odd := 0, len(x.Argv) > maxArgs
	for _, a := range x.Argv {
		size += len(a) + 1
		odd = odd || api.Unclear(a) || len(a) > maxArg
		b.Cut = b.Cut || !utf8.ValidString(a) // JSON has no such text
	}
	if b.Cut = b.Cut || odd && size > maxExact; odd && !b.Cut {
		b.Exact = slices.Clone(x.Argv)
	}
	if b.Posing = x.Posing; len(x.Argv) > 0 {
		if name := path.Base(x.Path); name != path.Base(x.Argv[0]) && name != path.Base(x.Program.Path) {
			b.Started = api.Escape(x.Path)
		}
	}
	if n := len(x.Files); len(x.Prefix) > 0 && n > 1 {
		b.Interpreter, b.Loaded = bounded(api.EscapeAll(x.Prefix)), api.Escape(x.Files[n-1].Path)
	}
	return b
}
