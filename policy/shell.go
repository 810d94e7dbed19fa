package policy

import (
	"path"
	"slices"
	"strings"
)

// shell judges what a shell is told to run.
func (j *judging) shell(called []string, args []word, at site, text string) (*finding, bool) {
	dialect := called[len(called)-1]
	script, has, rest, unsure := shellArgs(args)
	var file *word
	if len(rest) > 0 {
		file = &rest[0]
	}
	switch {
	case unsure:
		return j.unknown(whatUnknown), false
	case has:
		return j.script(script.text, script.known(), dialect, at, text)
	case file == nil:
		if at.piped {
			return j.unknown(fromInput), false
		}
	case file.process, isInput(file.text):
		return j.unknown(fromInput), false
	}
	if file == nil {
		return nil, false
	}
	return j.file(rest, at, text) // its commands are judged as they start
}

// file judges what a shell or an interpreter is told to run as the command that it is too:
// a tool that is a script stays that tool, whoever starts it. Only what is asked or denied
// of it counts.
func (j *judging) file(ws []word, at site, text string) (*finding, bool) {
	if name, ok := ws[0].name(); !ok || name == "" {
		return nil, false
	}
	if f := j.chain(text, ws, at); f != nil && f.verdict != Allow {
		return f, false
	}
	return nil, false
}

func isInput(name string) bool {
	name = path.Clean(name)
	rest, inProc := strings.CutPrefix(name, "/proc/")
	_, fd, _ := strings.Cut(rest, "/")
	return name == "/dev/stdin" || strings.HasPrefix(name, "/dev/fd/") || inProc && strings.HasPrefix(fd, "fd/")
}

// shellArgs finds what a shell is told to run: a script after -c, or a file with its
// arguments.
// bash(1), dash(1), zsh(1) and fish(1) agree closely enough.
func shellArgs(args []word) (script word, has bool, file []word, unsure bool) {
	command, input := false, false
	i := 0
	for ; i < len(args); i++ {
		t := args[i].text
		if args[i].wild() {
			return word{}, false, nil, true
		}
		if t == "--" || t == "-" {
			i++
			break
		}
		if len(t) < 2 || t[0] != '-' && t[0] != '+' {
			break
		}
		if strings.HasPrefix(t, "--") {
			name, val, attached := strings.Cut(t, "=")
			switch name {
			case "--command", "--init-command": // fish
				if attached {
					return word{text: val}, true, nil, false
				}
				if i+1 < len(args) {
					return args[i+1], true, nil, false
				}
			case "--rcfile", "--init-file", "--features", "--profile":
				if !attached {
					i++
				}
			}
			continue
		}
		if strings.Contains(t, unknown) {
			return word{}, false, nil, true
		}
		command = command || t[0] == '-' && strings.Contains(t, "c")
		input = input || t[0] == '-' && strings.Contains(t, "s")
		if n := strings.Count(t, "o") + strings.Count(t, "O"); n > 0 { // -o NAME
			i += n
		}
	}
	if i < len(args) && command {
		return args[i], true, nil, false
	}
	if i < len(args) && !input {
		return word{}, false, args[i:], false
	}
	return word{}, false, nil, false
}

// builtin judges what a command of the shell itself runs.
func (j *judging) builtin(name string, args []word, at site, text string) (*finding, bool) {
	switch name {
	case "eval":
		if len(args) > 0 && args[0].text == "--" {
			args = args[1:]
		}
		return j.joined(args, at, text)
	case "trap":
		return j.trap(args, at, text)
	}
	if slices.ContainsFunc(args, func(w word) bool { return w.process || isInput(w.text) }) { // source
		return j.unknown(fromInput), false
	}
	return nil, false
}

func (j *judging) trap(args []word, at site, text string) (*finding, bool) {
	args = slices.DeleteFunc(slices.Clone(args), func(w word) bool { return w.text == "--" })
	if len(args) < 2 || args[0].text == "" || args[0].text == "-" || len(args[0].text) == 2 && args[0].text[0] == '-' {
		return nil, false
	}
	at.dirs = nil // it runs later
	return j.script(args[0].text, args[0].known(), "bash", at, text)
}

// find judges -delete and -exec as commands on the paths that it walks. A
// filter on names makes them paths of that name.
func (j *judging) find(args []word, at site, text string) (*finding, bool) {
	var paths []word
	i := 0
	for ; i < len(args); i++ { // find(1): options, then paths, then the expression
		t := args[i].text
		switch {
		case t == "-H" || t == "-L" || t == "-P" || strings.HasPrefix(t, "-O"):
			continue
		case t == "-D", t == "-S", t == "-regextype": // bfs takes the latter two here
			i++
			continue
		case args[i].wild():
			paths = append(paths, args[i])
			continue
		case strings.HasPrefix(t, "-") || t == "(" || t == "!" || t == ")":
		default:
			paths = append(paths, args[i])
			continue
		}
		break
	}
	if len(paths) == 0 {
		paths = words([]string{"."})
	}
	expr := args[min(i, len(args)):] // nothing may follow an option that takes more
	narrow := nameFilter(expr)
	var found []word
	for _, p := range paths {
		if narrow != "" {
			base := strings.TrimSuffix(p.text, "/")
			p.text, p.pattern, p.glob = base+"/"+narrow, base+"/"+narrow, true
		}
		found = append(found, p)
	}
	var all findings
	for k := 0; k < len(expr); k++ {
		switch expr[k].text {
		case "-delete":
			all.add(j.chain(text, append(words([]string{"rm", "-r", "--"}), found...), at))
		case "-exec", "-execdir", "-ok", "-okdir":
			end := k + 1
			for end < len(expr) && expr[end].text != ";" && !(expr[end].text == "+" && expr[end-1].text == "{}") {
				end++
			}
			var inner []word
			for _, w := range expr[k+1 : end] {
				switch {
				case w.text == "{}":
					inner = append(inner, found...)
				case strings.Contains(w.text, "{}"):
					w.text = strings.ReplaceAll(w.text, "{}", unknown)
					inner = append(inner, w)
				default:
					inner = append(inner, w)
				}
			}
			if len(inner) > 0 {
				all.add(j.chain(text, inner, at))
			}
			k = end
		}
	}
	return all.found, all.parts
}

// nameFilter is the pattern that every file found must have as its name, or "".
func nameFilter(expr []word) string {
	pattern := ""
	for i, w := range expr {
		switch w.text {
		case "-o", "-or", ",", "!", "-not", "(":
			return ""
		case "-name", "-iname":
			if i+1 < len(expr) && !strings.Contains(expr[i+1].text, unknown) && !strings.Contains(expr[i+1].text, "/") {
				pattern = expr[i+1].text
			}
		case "-delete", "-exec", "-execdir", "-ok", "-okdir":
			return pattern // later tests don't count
		}
		if w.wild() {
			return ""
		}
	}
	return pattern
}
