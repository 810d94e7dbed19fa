package git

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Configs lists the configuration files in a repository's folder, relative to
// it: its own, and those of its linked worktrees and submodules. The folders
// with its objects and references aren't looked into.
func Configs(metadata string) []string {
	var found []string
	left := maxConfigs
	_ = filepath.WalkDir(metadata, func(p string, d fs.DirEntry, err error) error {
		if left--; err != nil || left < 0 {
			return nil // unreadable for the agent, too
		}
		rel, err := filepath.Rel(metadata, p)
		if err != nil {
			return err
		}
		switch name := d.Name(); {
		case d.IsDir() && (rel == "." || rel == "modules" || rel == "worktrees" || strings.HasPrefix(rel, "modules/") || strings.HasPrefix(rel, "worktrees/")):
			if _, err := os.Lstat(filepath.Join(filepath.Dir(p), "HEAD")); err == nil && nowhere[name] {
				return fs.SkipDir // else it is a submodule's name
			}
		case d.IsDir():
			return fs.SkipDir
		case d.Type().IsRegular() && (name == "config" || name == "config.worktree"):
			found = append(found, rel)
		}
		return nil
	})
	return found
}

// nowhere are folders of a repository that have none.
var nowhere = map[string]bool{
	"objects": true,
	"refs":    true,
	"logs":    true,
	"hooks":   true,
}

// maxConfigs bounds how many names Configs looks at.
const maxConfigs = 10_000

// Redact reads a configuration file and takes what is secret out of it: user
// names and passwords in addresses, headers that are sent along, how to get at
// credentials, and settings that are called passwords or tokens. redacted is
// false when there is nothing of that kind, and then text is nil. What is left
// out and what can't be parsed isn't in the text, nor are comments.
func Redact(file string) (text []byte, redacted bool, err error) {
	data, err := ReadFile(file, maxConfig)
	if err != nil {
		return nil, false, err
	}
	text, redacted = redact(data)
	return text, redacted, nil
}

func redact(data []byte) ([]byte, bool) {
	redacted := anonymous(string(data)) != string(data) || header().Match(data) // in a comment, perhaps
	var kept []entry
	for _, e := range parseConfig(data) {
		if secretSetting(e) {
			redacted = true
			continue
		}
		e.value, e.subsection = anonymous(e.value), anonymous(e.subsection)
		kept = append(kept, e)
	}
	if !redacted {
		return nil, false
	}
	return format(kept), true
}

// userinfo is what stands before the host in an address, of any scheme.
var (
	userinfo = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*://)([^/?#\s"'@]*(?:@[^/?#\s"'@]*)*)@`)
	})
	header = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?i)\b(authorization|private-token)\b\s*[:=]`) })
)

// anonymous takes user names and passwords out of the addresses in a text. A
// name without a password stays where it isn't a secret: ssh://git@host.
func anonymous(s string) string {
	return userinfo().ReplaceAllStringFunc(s, func(m string) string {
		parts := userinfo().FindStringSubmatch(m)
		scheme, user := parts[1], parts[2]
		if strings.Contains(scheme, "ssh") {
			if user, _, _ = strings.Cut(user, ":"); user != "" {
				return scheme + user + "@"
			}
		}
		return scheme
	})
}

// secretSetting says whether a setting is one that holds a secret, or says what
// to run to get one.
func secretSetting(e entry) bool {
	if e.section == "credential" || strings.HasSuffix(e.key, "extraheader") || header().MatchString(e.value) {
		return true
	}
	return slices.ContainsFunc([]string{"pass", "password", "passwd", "token", "secret", "apikey", "cookiefile"}, func(end string) bool {
		return strings.HasSuffix(e.key, end)
	})
}

// format writes settings as a configuration file.
func format(entries []entry) []byte {
	var b strings.Builder
	quote := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`, "\b", `\b`).Replace
	section, subsection := "", ""
	for i, e := range entries {
		if i == 0 || e.section != section || e.subsection != subsection {
			section, subsection = e.section, e.subsection
			b.WriteString("[" + section)
			if subsection != "" {
				b.WriteString(` "` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(subsection) + `"`)
			}
			b.WriteString("]\n")
		}
		if e.bare {
			b.WriteString("\t" + e.key + "\n")
		} else {
			b.WriteString("\t" + e.key + ` = "` + quote(e.value) + "\"\n")
		}
	}
	return []byte(b.String())
}

// Serve writes, below a folder of the caller's, what is to be shown in place of
// the configuration files of some repositories (their folders, relative to the
// project), and of files in the project that those include. It lists the files
// that it replaced, and those that hold what can't be read and so have to be
// hidden. Looks (mode and times) are copied.
func Serve(project, to string, repositories []string) (served, hidden []string, err error) {
	var configs []string
	for _, metadata := range repositories {
		for _, config := range Configs(filepath.Join(project, metadata)) {
			configs = append(configs, filepath.Join(metadata, config))
		}
	}
	known := make(map[string]bool)
	for i := 0; i < len(configs) && i < maxConfigs; i++ {
		rel := configs[i]
		if known[rel] {
			continue
		}
		known[rel] = true
		configs = append(configs, included(project, rel)...)
		text, redacted, err := Redact(filepath.Join(project, rel))
		switch {
		case err != nil:
			hidden = append(hidden, rel)
		case redacted:
			if err := writeServed(project, to, rel, text); err != nil {
				return nil, nil, err
			}
			served = append(served, rel)
		}
	}
	return served, hidden, nil
}

// included lists the files in the project that a configuration includes.
func included(project, rel string) []string {
	data, err := ReadFile(filepath.Join(project, rel), maxConfig)
	if err != nil {
		return nil
	}
	var found []string
	for _, e := range parseConfig(data) {
		if e.section != "include" && e.section != "includeif" || e.key != "path" {
			continue
		}
		file := e.value
		if !filepath.IsAbs(file) {
			file = filepath.Join(project, filepath.Dir(rel), file)
		}
		if real, err := filepath.EvalSymlinks(file); err == nil {
			if in, err := filepath.Rel(project, real); err == nil && filepath.IsLocal(in) {
				found = append(found, in)
			}
		}
	}
	return found
}

// writeServed writes a file and the folders above it, which look like the project's.
func writeServed(project, to, rel string, text []byte) error {
	path := filepath.Join(to, rel)
	// Folders that an earlier file made may be read-only, as the project's are.
	for i, c := range rel {
		if c != '/' {
			continue
		}
		if err := os.Chmod(filepath.Join(to, rel[:i]), 0o700); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) { // it may be another name of the person's file
		return err
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return err
	}
	for at := rel; ; at = filepath.Dir(at) {
		info, err := os.Lstat(filepath.Join(project, at))
		if err != nil {
			return err
		}
		ours := filepath.Join(to, at)
		if err := os.Chmod(ours, info.Mode().Perm()); err != nil {
			return err
		}
		if err := os.Chtimes(ours, info.ModTime(), info.ModTime()); err != nil {
			return err
		}
		if at == "." {
			return nil
		}
	}
}
