package policy

import (
	"slices"
	"strings"
	"testing"
)

func TestScripts(t *testing.T) {
	for _, c := range []struct {
		program string
		argv    string
		want    string
	}{
		{"/usr/bin/dash", "sh /tmp/x.sh a", "/tmp/x.sh a /dev/stdin"},
		{"/usr/bin/dash", "sh", "/dev/stdin"},
		{"/usr/bin/python3.12", "python3 -X dev x.py", "dev x.py /dev/stdin"},
		{"/usr/bin/node", "node --require=./hook.js -r a.js x.js", "./hook.js a.js x.js /dev/stdin"},
		{"/usr/bin/python3.12", "odd x.py", "x.py /dev/stdin"},
		{"/usr/bin/env", "env -i A=b node x.js", "x.js /dev/stdin"},
		{"/usr/bin/timeout", "timeout 5 bash x.sh", "x.sh /dev/stdin"},
		{"/usr/bin/mawk", "awk -f x.awk data", "x.awk data /dev/stdin"},
		{"/usr/bin/sed", "sed -i s/a/b/ x.c", ""},
		{"/usr/bin/sed", "sed -nf x.sed x.c", "x.sed x.c /dev/stdin"},
		{"/usr/bin/sed", "sed --fil=x.sed x.c", "x.sed x.c /dev/stdin"},
		{"/usr/bin/bash", "sed x.sh", "x.sh /dev/stdin"},
		{"/usr/bin/mawk", "awk {print} data", ""},
		{"/usr/bin/gawk", "awk -ilib {print} data", "{print} data /dev/stdin"},
		{"/usr/bin/env", "env ls x", ""},
		{"/usr/bin/rm", "rm sh x", ""},
		{"/usr/bin/git", "git commit", ""},
	} {
		if got := strings.Join(Scripts(strings.Fields(c.argv), c.program), " "); got != c.want {
			t.Errorf("%q may read %q, want %q", c.argv, got, c.want)
		}
	}
	if got := Scripts(nil, ""); got != nil {
		t.Errorf("nothing may read %q", got)
	}
	// A script in an argument isn't a file's name.
	if got := Scripts([]string{"sh", "-c", "echo a\necho b"}, "/bin/sh"); !slices.Equal(got, []string{"/dev/stdin"}) {
		t.Errorf("a script given whole may read %q", got)
	}
}

func TestReadsInput(t *testing.T) {
	for _, c := range []struct {
		line, program string
		want          bool
	}{
		{"python3 -", "/usr/bin/python3.12", true}, {"python3", "", true}, {"python3 -q", "", true}, {"python3 -i x.py", "", true}, {"node", "", true}, {"node -i x.js", "", true},
		{"sh", "", true}, {"bash -s x", "", true}, {"x", "/usr/bin/python3", true}, {"ls", "/usr/bin/bash", true}, {"perl -", "", true}, {"python3 /dev/stdin", "", true},
		{"python3 x.py", "", false}, {"python3 -c x", "", false}, {"python3 -m http.server", "", false}, {"node x.js -i", "", false}, {"perl -pi -e x f", "", false},
		{"bash x.sh", "", false}, {"bash -c x", "", false}, {"cat", "", false}, {"sort -", "", false},
		{"xargs -I{} sh -c {}", "", true}, {"parallel", "", true}, {"make -f -", "", true}, {"make -f-", "", true}, {"make --file=/dev/stdin", "", true},
		{"awk -f /dev/stdin", "", true}, {"sed -f - x", "", true}, {"gdb -q", "", true}, {"ed -s x", "", true}, {"lua -", "", true},
		{"tclsh", "", true}, {"lua -i", "", true}, {"script -q /dev/null", "", true}, {"dc", "", true}, {"vim -es", "", true}, {"csh", "", true},
		{"python3 -m code", "", true}, {"python3 -mpdb x.py", "", true}, {"python3 -X dev -i -c pass", "", true}, {"python3 -W ignore -i x.py", "", true},
		{"perl -de 0", "", true}, {"node inspect x.js", "", true}, {"busybox sh", "", true}, {"/lib64/ld-linux-x86-64.so.2 /bin/bash", "", true},
		{"bash /proc/thread-self/fd/0", "", true}, {"bash /proc/1/fd/0", "", true}, {"tclsh x.tcl", "", false}, {"python3 -X dev x.py -i", "", false},
		{"busybox ls", "", false}, {"/lib64/ld-linux-x86-64.so.2 /bin/ls", "", false}, {"perl -e x", "", false}, {"bash /proc/fd", "", false},
		{"make", "", false}, {"make -f x.mk", "", false}, {"awk x -", "", false}, {"sed s/a/b/ -", "", false}, {"lua x.lua", "", false},
	} {
		if got := ReadsInput(strings.Fields(c.line), c.program); got != c.want {
			t.Errorf("%s (%s): %v", c.line, c.program, got)
		}
	}
}
