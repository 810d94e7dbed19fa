package scratch

import (
	"bytes"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"stepbox/policy/git"
)

// ours is where the fetched commits are kept in a repository.
const ours = "refs/stepbox/"

// maxRepositories bounds how many are looked at.
const maxRepositories = 50

// repository is one that the agent changed.
type repository struct {
	dir     string   // with HEAD, from the project: .git, sub/.git, .git/modules/sub
	folder  string   // as people call it, from the project; "" for the project's own
	commits []commit // that are new, the newest first
	head    string   // what the session has checked out: a reference, or a commit
	tips    []tip
	kept    []string // names, below ours and the session, of what was fetched before and no branch leads to any more
	left    []string // what isn't fetched beside the commits, in words
	trouble string   // why its commits can't be had
}

// tip is the newest commit of a branch, or of what else leads to new ones.
type tip struct {
	hash, ref string
	name      string // below ours and the session
	head      bool   // it is checked out
	own       []int  // commits that no tip before it leads to
	danger    string // what its merge would take; escaped
}

// commit is one as git keeps it.
type commit struct {
	hash    string
	parents []string
	author  string // of any bytes
	subject string // likewise
	at      time.Time
}

var errObject = errors.New("git's list of them isn't well-formed")

// parseCommits reads what git cat-file --batch printed of commits. Each is checked
// to be the one of its hash: whoever printed them can't have made them up.
func parseCommits(data []byte) (out []commit, err error) {
	known := make(map[string]bool)
	for len(data) > 0 {
		line, rest, ok := bytes.Cut(data, []byte("\n"))
		words := strings.Split(string(line[:min(len(line), 200)]), " ")
		if !ok || len(words) != 3 || words[1] != "commit" || !isHash(words[0]) {
			return nil, errObject
		}
		size, err := strconv.Atoi(words[2])
		if err != nil || size < 0 || size >= len(rest) || rest[size] != '\n' {
			return nil, errObject
		}
		text := rest[:size]
		data = rest[size+1:]
		if sum(words[0], text) != words[0] {
			return nil, fmt.Errorf("commit %s isn't what its hash says", words[0])
		}
		if known[words[0]] {
			continue
		}
		known[words[0]] = true
		c, err := parseCommit(text)
		if err != nil {
			return nil, err
		}
		c.hash = words[0]
		out = append(out, c)
	}
	return out, nil
}

// sum is the name that git gives a commit, as long as another one.
func sum(like string, text []byte) string {
	h := git.Object("commit", int64(len(text)), len(like)/2)
	h.Write(text)
	return hex.EncodeToString(h.Sum(nil))
}

func isHash(s string) bool {
	return (len(s) == 2*sha1.Size || len(s) == 2*sha256.Size) && strings.Trim(s, "0123456789abcdef") == ""
}

// maxSubject bounds how much of a message is looked at.
const maxSubject = 4 << 10

func parseCommit(text []byte) (c commit, err error) {
	head, message, _ := bytes.Cut(text, []byte("\n\n"))
	for line := range strings.Lines(string(head)) {
		key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		switch key {
		case "parent":
			if !isHash(value) {
				return c, errObject
			}
			c.parents = append(c.parents, value)
		case "author":
			who, when, ok := strings.Cut(value, "> ")
			if !ok {
				who, when = value, ""
			} else {
				who += ">"
			}
			c.author = who
			seconds, _, _ := strings.Cut(when, " ")
			if n, err := strconv.ParseInt(seconds, 10, 64); err == nil && n > 0 && n < 1<<40 {
				c.at = time.Unix(n, 0).UTC()
			}
		}
	}
	first, _, _ := strings.Cut(strings.TrimLeft(string(message[:min(len(message), maxSubject)]), " \t\r\n"), "\n\n")
	c.subject = strings.Join(strings.Fields(first), " ")
	return c, nil
}

// references are what git keeps them in, in a repository's folder.
var references = map[string]bool{
	"HEAD":        true,
	"packed-refs": true,
	"refs":        true,
	"reftable":    true,
	"worktrees":   true,
}

// ofReference is the folder of the repository that a file says something about, by where it
// is: a branch, or what is checked out; "" for other files. A branch, or a submodule, may
// be called as any folder of git's, and where a submodule's name ends only its folder tells.
func ofReference(file string, is func(dir string) bool) string {
	before, rest, _ := strings.Cut("/"+file, "/.git/")
	dir := strings.TrimPrefix(before+"/.git", "/")
	for {
		first, below, _ := strings.Cut(rest, "/")
		if references[first] && !strings.HasPrefix(rest, ours) {
			return dir
		}
		if first != "modules" {
			return ""
		}
		rest = ""
		for i, c := range below {
			if at := dir + "/modules/" + below[:i]; c == '/' && is(at) {
				dir, rest = at, below[i+1:]
				break
			}
		}
	}
}
