package policy

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// fed judges a here-document or here-string that a shell reads as its script.
func (s *scan) fed(ws []word, st *syntax.Stmt, at *site, text string) (*finding, bool) {
	if st == nil || len(ws) == 0 {
		return nil, false
	}
	name, ok := ws[0].name()
	if !ok || !grammarOf([]string{name}).Shell {
		return nil, false
	}
	if _, has, file, unsure := shellArgs(ws[1:]); has || unsure || len(file) > 0 && !isInput(file[0].text) && !file[0].process {
		return nil, false
	}
	for _, r := range st.Redirs {
		if r.N != nil && r.N.Value != "0" {
			continue
		}
		var w word
		switch r.Op {
		case syntax.Hdoc, syntax.DashHdoc:
			if r.Hdoc == nil {
				return nil, true
			}
			w = heredoc(r.Hdoc, quotedWord(r.Word))
		case syntax.WordHdoc:
			w = s.r.word(r.Word)
		default:
			continue
		}
		inner := *at
		inner.piped = false
		f, _ := s.j.script(w.text, w.known(), name, inner, text)
		return f, true
	}
	return nil, false
}

func quotedWord(w *syntax.Word) bool {
	return slices.ContainsFunc(w.Parts, func(p syntax.WordPart) bool {
		l, ok := p.(*syntax.Lit)
		return !ok || strings.Contains(l.Value, `\`)
	})
}

// heredoc is the text of a here-document.
func heredoc(w *syntax.Word, quoted bool) word {
	var b build
	for _, p := range w.Parts {
		if l, ok := p.(*syntax.Lit); ok {
			if quoted {
				b.lit(l.Value)
			} else {
				b.lit(unescape(l.Value, "$`\\"))
			}
			continue
		}
		b.unknown(true)
	}
	b.w.text = b.text.String()
	return b.w
}

// here is the text of $(cat <<'EOF' …), which is how agents write longer
// arguments such as commit messages.
func here(p *syntax.CmdSubst) (string, bool) {
	if len(p.Stmts) != 1 || len(p.Stmts[0].Redirs) != 1 {
		return "", false
	}
	st := p.Stmts[0]
	c, ok := st.Cmd.(*syntax.CallExpr)
	r := st.Redirs[0]
	if !ok || len(c.Args) != 1 || len(c.Assigns) > 0 || c.Args[0].Lit() != "cat" || r.Op != syntax.Hdoc || r.N != nil || r.Hdoc == nil || !quotedWord(r.Word) {
		return "", false
	}
	w := heredoc(r.Hdoc, true)
	if !w.known() {
		return "", false
	}
	return strings.TrimRight(w.text, "\n"), true
}
