package said

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// deedsOf reads "D src/a.py, M b.go".
func deedsOf(s string) (out []Deed) {
	for part := range strings.SplitSeq(s, ", ") {
		if what, p, ok := strings.Cut(part, " "); ok {
			out = append(out, Deed{p, what[0]})
		}
	}
	return out
}

func TestMismatch(t *testing.T) {
	for _, c := range []struct{ said, did, want string }{
		// What looks, deletes and changes nothing.
		{"Run the linter", "D src/helpers.py", "deletes src/helpers.py"},
		{"run the linter", "M src/helpers.py, D src/a.py", "deletes src/a.py"},
		{"Running tests", "D src/a.py, D src/b.py", "deletes 2 files"},
		{"Run unit tests", "M src/a.py", "changes src/a.py"},
		{"List files", "D notes.txt", "deletes notes.txt"},
		{"Show git status", "M main.go", "changes main.go"},
		{"Let me check the configuration", "D config.yaml", "deletes config.yaml"},
		{"I'll search for usages of foo", "M foo.go", "changes foo.go"},
		{"Now read the README", "D README.md", "deletes README.md"},
		{"Checks types with mypy", "D app/models.py", "deletes app/models.py"},
		{"Inspect the database", "R src/a.go", "moves src/a.go"},
		{"List the workflows", "M .github/workflows/ci.yml", "changes .github/workflows/ci.yml"},
		{"Verify the build", "D src/main.c", "deletes src/main.c"},
		{"Listing directory contents", "D a.txt", "deletes a.txt"},
		{"execute pytest", "D tests/test_a.py", "deletes tests/test_a.py"},
		{"Run eslint on src", "M src/a.ts", "changes src/a.ts"},
		// Formatting deletes nothing.
		{"Format the code", "D src/a.go", "deletes src/a.go"},
		{"Run prettier", "D src/a.ts", "deletes src/a.ts"},
		{"gofmt everything", "M a.go, D b.go", "deletes b.go"},
		// What is to be removed is named.
		{"Remove build/output.txt", "D src/a.py", "deletes src/a.py"},
		{"Delete old.txt and tmp/x.txt", "D old.txt, D keep.txt", "deletes keep.txt"},
		{"Remove the file `src/old.go`", "D src/old.go, D src/new.go", "deletes src/new.go"},

		// And what is covered, or claims nothing.
		{"Run the linter", "", ""},
		{"Run the linter", "A .eslintcache", ""},
		{"Run the linter with --fix", "M src/a.ts", ""},
		{"Run linter and fix issues", "M src/a.ts", ""},
		{"Run tests", "A coverage.out, M go.sum", ""},
		{"Run tests", "D coverage/index.html", ""},
		{"Run tests and update snapshots", "M src/__snapshots__/a.ts", ""},
		{"Run tests", "M tests/__snapshots__/a.snap.js", ""},
		{"Run tests", "M data/fixture.json", ""},
		{"Run tests, then remove the temporary files", "D scratch.py", ""},
		{"Check out main", "M src/a.go", ""},
		{"Checkout main", "D src/a.go, M src/b.go", ""},
		{"List and delete stale branches", "D x.py", ""},
		{"Find files to clean up", "D x.py", ""},
		{"Format the code", "M a.go, M b.go", ""},
		{"Build the project", "D src/gen.go", ""},
		{"Install dependencies", "M package-lock.json, M src/a.js", ""},
		{"Add a helper", "D src/a.go", ""},
		{"Refactor the parser", "D src/a.go, M src/b.go", ""},
		{"Fix failing test", "M src/a.go", ""},
		{"Apply the patch", "M src/a.go, D src/b.go", ""},
		{"Remove unused imports from foo.py", "D src/a.py", ""},
		{"Remove *.log", "D src/a.py", ""},
		{"Remove build/", "D build/a.txt, D build/b/c.txt", ""},
		{"Remove old.txt.", "D dir/old.txt", ""},
		{"step 0", "D src/a.py", ""},
		{"", "D src/a.py", ""},
		{"…", "D src/a.py", ""},
		{"Compare with a clean checkout", "D src/a.py", ""},
		{"Test the migration script", "M src/a.py", "changes src/a.py"},
		{"Test renaming", "R src/a.py", ""},
		{"Use sed to view lines", "M src/a.py", ""},
		{"Merge main", "D src/a.py", ""},
		{"Verify fix", "M src/a.py", ""},
	} {
		if got := Mismatch(c.said, false, deedsOf(c.did)); got != c.want {
			t.Errorf("said %q, did %q: %q, want %q", c.said, c.did, got, c.want)
		}
	}
	for _, c := range []struct{ said, did, want string }{
		{"fix typo", "D src/helpers.py", "deletes src/helpers.py"},
		{"Fix typo in README", "M .github/workflows/ci.yml", "changes .github/workflows/ci.yml"},
		{"docs: explain the flags", "D src/a.go, M README.md", "deletes src/a.go"},
		{"docs(api): say more", "A .husky/pre-commit", "adds .husky/pre-commit"},
		{"style: sort imports", "D lib/b.rb", "deletes lib/b.rb"},
		{"Update README", "D main.c", "deletes main.c"},
		{"docs: explain the flags", "M src/a.go, M README.md", ""},
		{"fix typo in the CI workflow", "M .github/workflows/ci.yml", ""},
		{"docs: remove outdated pages", "D docs/a.py", ""},
		{"fix: crash on empty input", "D src/a.go", ""},
		{"feat: parser", "D src/a.go, M .github/workflows/ci.yml", ""},
		{"Update README and drop the helper", "D src/a.go", ""},
		{"wip", "D src/a.go", ""},
	} {
		if got := Mismatch(c.said, true, deedsOf(c.did)); got != c.want {
			t.Errorf("committed as %q with %q: %q, want %q", c.said, c.did, got, c.want)
		}
	}
}

// Whatever is said and done, there is an answer, and it is short.
func TestAnyWords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.StringMatching(`(run|Remove|docs:|list|fix) [a-z./* ]{0,300}`)).Draw(t, "text")
		deeds := rapid.SliceOf(rapid.Custom(func(t *rapid.T) Deed {
			return Deed{rapid.String().Draw(t, "path"), rapid.SampledFrom([]byte("AMDRT")).Draw(t, "what")}
		})).Draw(t, "deeds")
		for _, source := range []string{FromCall, FromCommit, FromComment} {
			got := Of([]Announcement{{text, source, deeds}})
			if got == nil {
				continue
			}
			if len(got.Text) > 4*maxText || len(got.Mismatch) > 6*maxText || strings.ContainsAny(got.Text+got.Mismatch, "\n\x1b\x00") {
				t.Fatalf("%+v", got)
			}
		}
	})
}

func TestComment(t *testing.T) {
	for line, want := range map[string]string{
		"# run the linter\nrm -rf src": "run the linter", "#!/bin/sh\nls": "", "ls # list": "", `# two\nrm x`: "two", "": "", "#": "", "  # x  ": "x",
	} {
		if got := Comment(line); got != want {
			t.Errorf("%q begins with %q, want %q", line, got, want)
		}
	}
}
