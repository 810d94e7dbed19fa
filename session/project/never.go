package project

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"stepbox/runner/overlay/manifest"
)

// Never says why nothing is ever written at path, in words, or "" when it may be.
func Never(path string) string {
	if path == "" || !manifest.ValidPath(path) {
		return "it isn't a path inside the project"
	}
	for name := range strings.SplitSeq(path, "/") {
		if gitFolder(name) {
			return "it belongs to git's own folder, where files run as programs or say what git does"
		}
	}
	return ""
}

// gitFolder says whether some file system takes name for .git: any that folds
// case; HFS+ and ext4's casefolded folders, which leave out code points that
// can't be seen; NTFS and FAT, which leave out dots and blanks at the end, have
// short names, streams after a colon, and folders before a backslash (git's
// protectHFS and protectNTFS, CVE-2014-9390, CVE-2019-1353).
func gitFolder(name string) bool {
	var b strings.Builder
	for i, r := range name {
		if r == utf8.RuneError && name[i] != "\uFFFD"[0] {
			b.WriteByte(name[i])
		} else if !unicode.In(r, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector) {
			b.WriteRune(r)
		}
	}
	for plain := range strings.SplitSeq(b.String(), `\`) {
		plain, _, _ = strings.Cut(plain, ":")
		plain = strings.TrimRight(plain, ". ")
		short, ok := cutFold(plain, "git~")
		if strings.EqualFold(plain, ".git") || ok && strings.Trim(short, "0123456789") == "" {
			return true
		}
	}
	return false
}

// cutFold cuts prefix off in any case.
func cutFold(s, prefix string) (string, bool) {
	if len(s) <= len(prefix) || !strings.EqualFold(s[:len(prefix)], prefix) {
		return "", false
	}
	return s[len(prefix):], true
}
