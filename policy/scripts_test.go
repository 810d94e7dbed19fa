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
		{"/usr/bin/python3.12", "python3 -X dev x.py", "-X dev x.py /dev/stdin"},
		{"/usr/bin/node", "node --require=./hook.js -r a.js x.js", "--require=./hook.js ./hook.js -r a.js x.js /dev/stdin"},
		{"/usr/bin/python3.12", "odd x.py", "x.py /dev/stdin"},
		{"/usr/bin/env", "env -i A=b node x.js", "-i A=b node x.js /dev/stdin"},
		{"/usr/bin/python3.12", "python3 -m a.b x", "a/b.py a/b/__main__.py a/b/__init__.py -m a.b x /dev/stdin"},
		{"/usr/bin/node", "node x y", "x.js x.json x/package.json x/index.js x y /dev/stdin"},
		{"/usr/bin/timeout", "timeout 5 bash x.sh", "5 bash x.sh /dev/stdin"},
		{"/usr/bin/mawk", "awk -f x.awk data", "-f x.awk data /dev/stdin"},
		{"/usr/bin/sed", "sed -i s/a/b/ x.c", ""},
		{"/usr/bin/sed", "sed -nf x.sed x.c", "-nf f x.sed x.c /dev/stdin"},
		{"/usr/bin/sed", "sed --fil=x.sed x.c", "--fil=x.sed x.sed x.c /dev/stdin"},
		{"/usr/bin/bash", "sed x.sh", "x.sh /dev/stdin"},
		{"/usr/bin/mawk", "awk {print} data", ""},
		{"/usr/bin/gawk", "awk -ilib {print} data", "-ilib lib {print} data /dev/stdin"},
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
	// Any words are a file's name, if there is one that is called so; but none is as long as a script may be.
	if got := Scripts([]string{"sh", "a\nb", strings.Repeat("x", maxPath)}, "/bin/sh"); !slices.Equal(got, []string{"a\nb", "/dev/stdin"}) {
		t.Errorf("it may read %q", got)
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
		{"awk -f /dev/stdin", "", true}, {"sed -f - x", "", true}, {"lua -", "", true},
		{"tclsh", "", true}, {"lua -i", "", true},
		{"python3 -X dev -i -c pass", "", true}, {"python3 -W ignore -i x.py", "", true},
		{"perl -de 0", "", true}, {"node inspect x.js", "", true}, {"busybox sh", "", true}, {"/lib64/ld-linux-x86-64.so.2 /bin/bash", "", true},
		{"bash /proc/thread-self/fd/0", "", true}, {"bash /proc/1/fd/0", "", true}, {"tclsh x.tcl", "", false}, {"python3 -X dev x.py -i", "", true}, {"python3 -W ignore x.py -i", "", false},
		{"busybox ls", "", false}, {"/lib64/ld-linux-x86-64.so.2 /bin/ls", "", false}, {"perl -e x", "", false}, {"bash /proc/fd", "", false},
		{"make", "", false}, {"make -f x.mk", "", false}, {"awk x -", "", false}, {"sed s/a/b/ -", "", false}, {"lua x.lua", "", false},
	} {
		if got := ReadsInput(strings.Fields(c.line), c.program); got != c.want {
			t.Errorf("%s (%s): %v", c.line, c.program, got)
		}
	}
}

func TestDeaf(t *testing.T) {
	for _, c := range []struct {
		line, program string
		want          bool
	}{
		{"bash -c ls", "/usr/bin/bash", true}, {"bash x.sh", "", true}, {"sh", "", false}, {"bash -s", "", false}, {"bash +s x.sh", "", false}, {"dash -eeeeeeeeees -c /bin/true", "", false}, {"dash -o stdin -c /bin/true", "", false}, {"node -e 1 -i", "", false}, {"sh /dev/stdin", "", false}, {"x -c ls", "/usr/bin/bash", false},
		{"python3 x.py", "/usr/bin/python3.12", true}, {"python3 -c x", "", true}, {"python3 -m pytest -q", "", true}, {"python3 -mpip", "", true},
		{"python3 -m code", "", false}, {"python3 -mpdb x.py", "", false}, {"python3 -m mine", "", false}, {"python3 -i x.py", "", false}, {"python3 -", "", false},
		{"node x.js", "", true}, {"node --inspect x.js", "", false}, {"node inspect x.js", "", false}, {"perl -de 0", "", false}, {"perl -pi -e x f", "", true}, {"php -d a=b x.php", "", false}, {"node -pe 1 -i", "", false}, {"node -p", "", false}, {"node --disable-warning x.js", "", false}, {"node --disable-warning=X x.js", "", true}, {"node --max-http-header-size 1", "", false}, {"fish -p x", "", false}, {"fish -c x", "", true}, {"mksh -T x", "", false}, {"perl -ne 1 -d", "", false}, {"perl -e 1 -- -d", "", true}, {"python3 -c x -i", "", true}, {"python3 -uc x", "", true}, {"node --max-old-space-size=1 x.js -i", "", true}, {"zsh -o SHIN_STD_IN -c x", "", false}, {"bash -eo pipefail -c x", "", true}, {"ruby -rdebug x.rb", "", false}, {"bash -xc x -s", "", true},
		{"git log", "/usr/bin/git", true}, {"git log", "/p/evil", false}, {"git apply -", "", false}, {"make", "", true}, {"make -f -", "", false}, {"make -f/dev/stdin", "", false}, {"make -sf-", "", false}, {"make -Bsf/dev/stdin x", "", false}, {"make -- x", "", true}, {"/lib64/ld-linux-x86-64.so.2 /tmp/cat x", "", false},
		{"gcc x.c", "/usr/bin/gcc-12", true}, {"cargo test", "", true}, {"env node x.js", "/usr/bin/env", true}, {"timeout 5 ls", "", true},
		{"sh -sc x", "", false}, {"sh -cs x", "", false}, {"bash -o errexit -sc x", "", false}, {"bash -lc x", "", true}, {"fish --init-command=x", "", false}, {"python3 -Bi x.py", "", false}, {"python3 -Xdev x.py", "", false}, {"python3 -uW x.py", "", false}, {"python3 -um code", "", false}, {"python3 -um pytest", "", true}, {"python3 -uW ignore x.py", "", true}, {"perl -wI x.pl", "", false}, {"perl -ie -w", "", false}, {"perl -0xe -w", "", false}, {"perl -0777 -ne x", "", true}, {"perl -lane x", "", true}, {"node -p --no-warnings", "", false}, {"php -fr x", "", false}, {"perl -wI lib x.pl", "", true},
		{"perl -wd x.pl", "", false}, {"perl -wi x.pl", "", false}, {"python3 -m pip install -r /dev/stdin", "", false}, {"ld.so --argv0 git /usr/bin/less x", "", false}, {"script -qc x", "", false},
		{"gcc -c a.c", "/usr/bin/x86_64-linux-gnu-gcc-12", true}, {"ld a.o", "/usr/bin/x86_64-linux-gnu-ld.bfd", true}, {"gcc @/dev/stdin", "", false}, {"tar -T-", "", false}, {"sort x", "", true},
		{"xargs rm", "", false}, {"less", "", false}, {"vim x", "", false}, {"gdb -q", "", false}, {"ssh x", "", false}, {"./mine", "/p/mine", false}, {"busybox sh -c ls", "", true}, {"busybox sh", "", false}, {"busybox", "", false},
	} {
		if got := Deaf(strings.Fields(c.line), c.program); got != c.want {
			t.Errorf("%s (%s): %v", c.line, c.program, got)
		}
	}
	if Deaf(nil, "") {
		t.Error("nothing is deaf")
	}
}
