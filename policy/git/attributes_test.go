package git

import "testing"

func TestGeneratedByAttributes(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, map[string]string{
		".gitattributes":     "# comment\n*.gen.go linguist-generated\ndocs/api/** linguist-generated=true text\ndocs/api/index.md -linguist-generated\n*.txt text eol=lf\n!*.x linguist-generated\nlonely\n",
		"sub/.gitattributes": "*.txt linguist-generated\n",
	})
	r := Open(dir, Person{})
	for name, want := range map[string]bool{
		"a.gen.go": true, "x/y/a.gen.go": true, "docs/api/a/b.md": true, "docs/api/index.md": false, "docs/other.md": false, "a.txt": false,
		"sub/a.txt": false, "b.x": false, "../a.gen.go": false, "": false,
	} {
		if got := r.Generated(name); got != want {
			t.Errorf("%q is generated: %v, want %v", name, got, want)
		}
	}
}
