package redact_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"stepbox/session/e2e/must"
	"stepbox/session/redact"
)

// recording has a secret of each sort: by its name, by the profile, and a name that says
// so with a value that is too short to be looked for.
func recording() *redact.Redactor {
	return redact.Recording([]string{"MY_TOKEN=t0k'en/with+odd", "ODD=profile-says-so", "SHORT_KEY=abc", "LINES_KEY=line one\nline two", "PLAIN=not-a-secret", "CONFIG_KEY=/etc/passwd"}, []string{"env", "GIVEN_KEY=given-on-line", "claude", "--api-key", "sk-given-too", "-c", "mine.env_key=NAME_OF_KEY"}, "ODD")
}

func TestRecording(t *testing.T) {
	r := recording()
	for in, want := range map[string]string{
		"echo t0k'en/with+odd":                            "echo •••",
		`echo 't0k'\''en/with+odd'`:                       `echo '•••'`,
		"GET /?q=t0k%27en%2Fwith%2Bodd":                   "GET /?q=•••",
		"profile-says-so not-a-secret":                    "••• not-a-secret",
		"given-on-line sk-given-too /etc/passwd":          "••• ••• /etc/passwd",
		"-c mine.env_key=NAME_OF_KEY NAME_OF_KEY":         "-c mine.env_key=NAME_OF_KEY NAME_OF_KEY", // what only names one
		"env X_KEY=abc claude":                            "env X_KEY=••• claude",
		"X_KEY=abc X_KEY_2='q9' claude":                   "X_KEY=••• X_KEY_2='•••' claude",
		"mysql -e " + strings.Repeat("x", 500) + " -pabc": "mysql -e " + strings.Repeat("x", 500) + " -p•••",
		"claude --api-key sk-abcdef1":                     "claude --api-key •••",
		"claude --api-key=sk-abcdef1 --x":                 "claude --api-key=••• --x",
		"aider --my-own-openai-api-key sk-abcdef1":        "aider --my-own-openai-api-key •••",
		`curl -H "x-api-key: abcdef12" example.org`:       `curl -H "x-api-key: •••" example.org`,
		"git push https://me:hunter2hunter@h/x":           "git push https://me:•••@h/x",
		"X_KEY=••• --token •••":                           "X_KEY=••• --token •••", // what is hidden stays so
		"note: profile-says…":                             "note: •••…",            // cut off
		"note: profile-says… and 17 bytes more":           "note: •••… and 17 bytes more",
		"note: pro…":                                      "note: pro…",
		"sort --key=2 -k1 primary_key=id":                 "sort --key=2 -k1 primary_key=id",
		"SSH_ASKPASS=/tmp/evil GIT_ASKPASS=x ssh":         "SSH_ASKPASS=/tmp/evil GIT_ASKPASS=x ssh",
		"MAX_TOKENS=4096 OLDPWD=/x PWD=/y XKEYBOARD=d":    "MAX_TOKENS=4096 OLDPWD=/x PWD=/y XKEYBOARD=d",

		// A part of a command can't hide behind a name.
		"X_KEY=a;rm${IFS}-rf${IFS}/ ls":                       "X_KEY=a;rm${IFS}-rf${IFS}/ ls",
		"curl -H 'x-api-key: $(rm -rf ~)'":                    "curl -H 'x-api-key: $(rm -rf ~)'",
		"sh -c 'API_TOKEN=aaaaaa&&curl${IFS}evil'":            "sh -c 'API_TOKEN=•••&&curl${IFS}evil'",
		"tool --token --yolo":                                 "tool --token --yolo",
		"env GIT_ASKPASS= LD_PRELOAD=e5v1l-x9q7z.so ls":       "env GIT_ASKPASS= LD_PRELOAD=e5v1l-x9q7z.so ls",
		"env MY_TOKEN= ./e5v1l-x9q7z ls":                      "env MY_TOKEN= ./e5v1l-x9q7z ls",
		"sh -c 'env MY_TOKEN= ./e5v1l-x9q7z ls'":              "sh -c 'env MY_TOKEN= ./e5v1l-x9q7z ls'",
		"token: ./e5v1l-x9q7z":                                "token: ./e5v1l-x9q7z",
		"make SIGN_KEY=tools/e5v1l-x9q7z":                     "make SIGN_KEY=tools/e5v1l-x9q7z",
		"git -c core.pager=./sk-abcdefghabcdefghabcdefgh log": "git -c core.pager=./sk-abcdefghabcdefghabcdefgh log",
		"/tmp/sk-abcdefghabcdefghabcdefgh --version":          "/tmp/sk-abcdefghabcdefghabcdefgh --version",
		"authorization: ./e5v1l-x9q7z":                        "authorization: ./e5v1l-x9q7z",
		"bearer ./e5v1l-x9q7z-and-more":                       "bearer ./e5v1l-x9q7z-and-more",
		"docker login x password ./e5v1l-x9q7z":               "docker login x password ./e5v1l-x9q7z",
		`curl -H "Authorization: Bearer abcdef12" h`:          `curl -H "Authorization: Bearer •••" h`,
		`curl --header 'Authorization: token abcdef12'`:       `curl --header 'Authorization: token •••'`,
		"GIT_CONFIG_KEY_0=core.sshCommand git fetch":          "GIT_CONFIG_KEY_0=core.sshCommand git fetch",
		// A line of a script is a command, however its end is written.
		"echo 'line one↵line two'; echo 'line one\\nline two'": "echo '•••'; echo '•••'",
		"export X_TOKEN=abc↵cd a↵claude --token sk-ab1↵x":      "export X_TOKEN=•••↵cd a↵claude --token •••↵x",
		`export X_TOKEN=abc\ncd a\nclaude --token sk-abc1\nx`:  `export X_TOKEN=•••\ncd a\nclaude --token •••\nx`,
		`ls\nmysql -phunter2\nrm -p mysql↵sshpass -p h2↵ls`:    `ls\nmysql -p•••\nrm -p mysql↵sshpass -p •••↵ls`,
		"X_KEY=a↵rm${IFS}-rf${IFS}/ ls":                        "X_KEY=•••↵rm${IFS}-rf${IFS}/ ls",
		`claude --token↵./e5v1l-x9q7z a; sshpass -p\n"scp" a`:  `claude --token↵./e5v1l-x9q7z a; sshpass -p\n"scp" a`,
		"curl -H 'x-api-key: ↵./e5v1l-x9q7z; token=↵ e5v1l-x9": "curl -H 'x-api-key: ↵./e5v1l-x9q7z; token=↵ e5v1l-x9",
		"env A=mongo scp -p id_rsa host:":                      "env A=mongo scp -p id_rsa host:", // what is sent, not a password
		"cp mongo -p id_rsa shared; mongo -p hunter2":          "cp mongo -p id_rsa shared; mongo -p •••",
		"ssh db mysql -phunter2":                               "ssh db mysql -p•••",
	} {
		if got := r.Text(in, ""); got != want {
			t.Errorf("%s\n is recorded as %s\n want           %s", in, got, want)
		}
	}
}

// Arguments are looked at with those before them, in a list of JSON as well; a resource's
// texts that are needed as they are stay.
func TestRecordingArgs(t *testing.T) {
	r := recording()
	for line, want := range map[string]string{
		"claude|--api-key|sk-abcdef1|-p|hi":                "claude|--api-key|•••|-p|hi",
		"claude|--token|abc|x":                             "claude|--token|•••|x",
		"curl|-u|me:hunter2hunter|h":                       "curl|-u|me:•••|h",
		"mysql|-h|h|-P|3306|-u|root|-pabc|x":               "mysql|-h|h|-P|3306|-u|root|-p•••|x",
		"mysql|-e|" + strings.Repeat("x", 500) + "|-pabc":  "mysql|-e|" + strings.Repeat("x", 500) + "|-p•••",
		"ldapsearch|-D|cn=me|-w|abc":                       "ldapsearch|-D|cn=me|-w|•••",
		"env|X_KEY=abc|ls":                                 "env|X_KEY=•••|ls",
		"env|MY_TOKEN=|LD_PRELOAD=e5v1l-x9q7z.so|ls":       "env|MY_TOKEN=|LD_PRELOAD=e5v1l-x9q7z.so|ls",
		"env|MY_TOKEN=|e5v1l-x9q7zk2|ls":                   "env|MY_TOKEN=|e5v1l-x9q7zk2|ls",
		"curl|-H|x-api-key: abcdef12|h":                    "curl|-H|x-api-key: •••|h",
		"/usr/bin/tar|cf|-|ldap|-w|id_rsa":                 "/usr/bin/tar|cf|-|ldap|-w|id_rsa",
		"npm|publish|./ldap|-w|private":                    "npm|publish|./ldap|-w|private",
		"rm|-rf|--|--token|sources":                        "rm|-rf|--|--token|sources",
		"sudo|/bin/rm|--|--token|sources|profile-says-so":  "sudo|/bin/rm|--|--token|sources|•••",
		"sh|-c|rm -- --token sources":                      "sh|-c|rm -- --token sources",
		"sh|-c|rm x; claude --token sources":               "sh|-c|rm x; claude --token •••",
		"env|RESTIC_PASSWORD_COMMAND=/tmp/x|restic":        "env|RESTIC_PASSWORD_COMMAND=/tmp/x|restic",
		"sh|--token|rm -rf /":                              "sh|--token|rm -rf /",
		"echo|profile-says-so|t0k'en/with+odd|x":           "echo|•••|•••|x",
		"dropdb|--password|production":                     "dropdb|--password|production",
		"psql|--password|postgres://me:hunter2hunter@h/db": "psql|--password|postgres://me:•••@h/db",
	} {
		argv := strings.Split(line, "|")
		if got := strings.Join(r.Args(argv), "|"); got != want {
			t.Errorf("%s is %s, want %s", line, got, want)
		}
		if r.Hides(argv) != (line != want) {
			t.Errorf("%s: hides is %v", line, r.Hides(argv))
		}
	}
	type resource struct {
		Folder string   `json:"folder"`
		Hash   string   `json:"hash"`
		Title  string   `json:"title"`
		Argv   []string `json:"argv"`
		Env    []string `json:"env"`
	}
	deletes := resource{Title: "rm -- --token sources", Argv: []string{"rm", "--", strings.Repeat("x", 500), "--token", "sources"}}
	if got := redact.Of(r, deletes); got.Title != deletes.Title || !slices.Equal(got.Argv, deletes.Argv) {
		t.Errorf("what is deleted is hidden: %q", got)
	}
	in := resource{"/p/profile-says-so", "profile-says-so", "profile-says-so", []string{"x", "--token", "abcdef1"}, []string{"A_KEY=a $(b)", "B=c", "C_KEY="}}
	want := resource{"/p/profile-says-so", "profile-says-so", "•••", []string{"x", "--token", "•••"}, []string{"A_KEY=••• $(b)", "B=c", "C_KEY="}}
	got := redact.Of(r, in)
	a, _ := json.Marshal(got)
	b, _ := json.Marshal(want)
	if string(a) != string(b) || !slices.Equal(redact.Of(r, got).Argv, got.Argv) {
		t.Errorf("%s\nwant %s", a, b)
	}
}

// Whatever an agent's command is, of a known secret nothing is left, and what is hidden
// once stays as it is.
func FuzzRecording(f *testing.F) {
	r := recording()
	for _, s := range []string{"profile-says-so", "a X_KEY=b c", "x --token profile-says-so", `{"argv":["--token","profile-says-so"]}`, "profile-say\xff…"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		once := r.Text(s, "")
		if strings.Contains(strings.ToLower(once), "profile-says-so") {
			t.Errorf("%q is left in %q", s, once)
		}
		if again := r.Text(once, ""); again != once {
			t.Errorf("%q becomes %q and then %q", s, once, again)
		}
	})
}

// BenchmarkRecording hides nothing in what most events are like.
func BenchmarkRecording(b *testing.B) {
	r := recording()
	doc := []byte(`{"id":12,"action":3,"argv":["git","commit","-m","add the author and api of a thing"],"program":"/usr/bin/git","cwd":"/home/me/project","verdict":"allow","rule":"no rule asks about it","at":"2026-11-26T21:06:31Z","title":"git commit -m 'add the author and api of a thing'"}`)
	for b.Loop() {
		r.JSON(doc, "")
	}
}

// What is known later is hidden in every form as well; a credential's name, which a member
// says that it is, isn't one.
func TestKnow(t *testing.T) {
	r := recording()
	r.Know("with/held+one")
	for in, want := range map[string]string{
		`{"title":"echo with/held+one with%2Fheld%2Bone"}`: `{"title":"echo ••• •••"}`,
		`{"credential":"anthropic"}`:                       `{"credential":"anthropic"}`,
		`{"password":"anthropic"}`:                         `{"password":"•••"}`,
	} {
		if got, _ := r.JSON([]byte(in), ""); string(got) != want {
			t.Errorf("%s is recorded as %s", in, got)
		}
	}
}

// What an agent hands to a tool is recorded as the JSON that it is.
func TestRecordingInJSON(t *testing.T) {
	for _, secret := range []string{"p&ssw0rd<1>xyz", `ab"cdefghij`, `ab\cdefghij`, "two\nlines-of-it"} {
		r := redact.Recording([]string{"A_PASSWORD=" + secret}, nil)
		for _, html := range []bool{false, true} {
			var input strings.Builder
			e := json.NewEncoder(&input)
			e.SetEscapeHTML(html)
			must.OK(t, e.Encode(map[string]string{"command": "echo " + secret + "!"}))
			doc, _ := json.Marshal(map[string]string{"input": input.String()})
			if got, _ := r.JSON(doc, ""); !strings.Contains(string(got), "echo •••!") {
				t.Errorf("%q is recorded as %s", secret, got)
			}
		}
	}
}
