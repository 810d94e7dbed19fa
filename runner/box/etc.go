package box

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// etcFiles are the files of /etc that say who and where one is; inside, that
// isn't what the host says. Those of the specification come on top.
func etcFiles(spec Spec) map[string][]byte {
	home := cmp.Or(spec.HomeTo, "/")
	shell := "/bin/sh"
	if info, err := os.Stat("/bin/bash"); err == nil && !info.IsDir() {
		shell = "/bin/bash"
	}
	machine := sha256.Sum256([]byte("stepbox " + spec.ID))
	files := map[string][]byte{
		"passwd":        []byte("root:x:0:0:root:" + home + ":" + shell + "\nnobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n"),
		"group":         []byte("root:x:0:\nnogroup:x:65534:\n"),
		"hostname":      []byte(hostname + "\n"),
		"hosts":         []byte("127.0.0.1\tlocalhost " + hostname + "\n::1\tlocalhost ip6-localhost ip6-loopback\n"),
		"nsswitch.conf": []byte("passwd: files\ngroup: files\nshadow: files\nhosts: files dns\nnetworks: files\nprotocols: files\nservices: files\n"),
		"machine-id":    []byte(hex.EncodeToString(machine[:16]) + "\n"),
	}
	maps.Copy(files, spec.Files)
	return files
}

// makeEtc writes our own files of /etc into a folder that stands in front of the
// host's /etc as a layer. That works for names that the host doesn't have, and
// for links that lead nowhere inside.
func (l *layout) makeEtc(spec Spec) (front string, files map[string][]byte, err error) {
	front = filepath.Join(l.dir, "etc")
	if err := os.Mkdir(front, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", nil, fmt.Errorf("cannot prepare the sandbox's /etc: %w", err)
	}
	files = etcFiles(spec)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if !filepath.IsLocal(name) {
			return "", nil, fmt.Errorf("cannot prepare the sandbox's /etc: %q isn't below it", name)
		}
		path := filepath.Join(front, name)
		err := os.MkdirAll(filepath.Dir(path), 0o755)
		if err == nil {
			err = os.WriteFile(path, files[name], 0o444)
		}
		if err != nil {
			return "", nil, fmt.Errorf("cannot prepare the sandbox's /etc: %w", err)
		}
	}
	return front, files, nil
}

// bindEtc binds our own files over the host's where no layer is possible, as in
// containers, which mount some of them.
func (l *layout) bindEtc(front string, files map[string][]byte) {
	for _, name := range slices.Sorted(maps.Keys(files)) {
		target := filepath.Join("/etc", name)
		if link, err := os.Readlink(target); err == nil {
			if !filepath.IsAbs(link) {
				link = filepath.Join("/etc", link)
			}
			target = filepath.Clean(link)
		} else if _, err := os.Lstat(target); err != nil {
			l.notes = append(l.notes, fmt.Sprintf("/etc/%s is missing in the sandbox: the host has none, and something is mounted below the host's /etc", name))
			continue
		}
		l.addReadOnly(filepath.Join(front, name), target)
	}
}
