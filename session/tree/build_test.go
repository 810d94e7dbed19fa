package tree

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"stepbox/session/api"
	"stepbox/session/base"
	"stepbox/session/e2e/must"
	"stepbox/store/storetest"
)

// Where a repository was there may be a link by now: nothing is read through it.
func TestOwnFolderBehindLink(t *testing.T) {
	other, project := t.TempDir(), t.TempDir()
	if out, err := exec.Command("git", "init", "-q", other).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	must.OK(t, os.Symlink(other, filepath.Join(project, "sub")))
	tr := &Tree{Session: api.Session{Folder: project}, source: Source{Store: storetest.New(t)}, repos: []base.Repository{{Path: "sub"}}}
	tr.ownFolders(t.Context())
	if len(tr.gaps) != 1 || tr.gaps[0].Path != "sub/.git" || !strings.Contains(tr.gaps[0].Text, "behind a link") {
		t.Errorf("the gaps are %+v", tr.gaps)
	}
}
