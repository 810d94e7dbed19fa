package session_test

import (
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zeebo/blake3"

	"stepbox/policy"
	"stepbox/session"
	"stepbox/session/api"
	"stepbox/session/e2e/must"
	"stepbox/session/rules"
)

// answer answers a question with more than an answer.
func (w *world) answer(q api.Question, a api.Answer, e api.Extent, pattern string) error {
	_, err := w.Decide(w.Context(), api.Decision{Question: q.ID, Hash: q.Hash, Answer: a, For: e, Pattern: pattern, By: "test"})
	return err
}

// policy is where the person's own policy is.
func (w *world) policy() string {
	return rules.User(filepath.Join(filepath.Dir(w.project), "home"), "")
}

// asks.yaml are rules of the person's that ask. Their own file includes it, so that what is
// put there comes before.
const included = "include: [asks.yaml]\n"

// startAsking starts a session of a person who has such rules.
func startAsking(t *testing.T, mode api.Mode, script string, prepare ...func(project string)) *world {
	t.Helper()
	return startWith(t, mode, script, func(project string) {
		file := rules.User(filepath.Join(filepath.Dir(project), "home"), "")
		must.OK(t, os.MkdirAll(filepath.Dir(file), 0o700))
		must.OK(t, os.WriteFile(file, []byte(included), 0o600))
		asks := "commands: [{allow: git push --dry-run}, {ask: git push}, {ask: ssh}, {ask: rm -r}]\n"
		must.OK(t, os.WriteFile(filepath.Join(filepath.Dir(file), "asks.yaml"), []byte(asks), 0o600))
		for _, f := range prepare {
			f(project)
		}
	})
}

// writes puts a text into a file, whole. What asks is included still.
func (w *world) writes(file, text string) {
	w.Helper()
	if _, err := os.Lstat(filepath.Join(filepath.Dir(file), "asks.yaml")); err == nil {
		text += included
	}
	w.must(os.MkdirAll(filepath.Dir(file), 0o755))
	w.must(os.WriteFile(file+".new", []byte(text), 0o644))
	w.must(os.Rename(file+".new", file))
}

func (w *world) reads(file, want string) {
	w.Helper()
	data, err := os.ReadFile(file)
	w.must(err)
	if strings.NewReplacer(included, "", "answered on "+time.Now().Format(time.DateOnly), "TODAY").Replace(string(data)) != want {
		w.Errorf("%s is\n%s\nwant\n%s", file, data, want)
	}
}

// closed waits until a question is, and says how.
func (w *world) closed(q api.Question) api.Question {
	w.Helper()
	return *w.happened("the end of "+q.Title, func(e api.Event) bool {
		return e.Kind == "question.closed" && e.Question.ID == q.ID
	}).Question
}

// both waits for two questions that wait at once.
func (w *world) both() (a, b api.Question) {
	a = w.held(0)
	return a, w.held(a.ID)
}

func TestAnAnswerHoldsForTheSession(t *testing.T) {
	t.Parallel()
	w := startAsking(t, api.ModePolicy, "git push a; git push a; timeout 9 git push 'b c'; git push 'b c'; git push d; read x")
	q := w.held(0)
	if err := w.answer(q, api.AnswerApprove, api.ExtentSession, "git pull *"); code(err) != api.CodeUsage {
		t.Errorf("a rule on something else: %v", err)
	}
	if err := w.answer(q, api.AnswerStepInto, api.ExtentSession, ""); code(err) != api.CodeUsage {
		t.Errorf("a step was made a rule: %v", err)
	}
	w.must(w.answer(q, api.AnswerApprove, api.ExtentSession, ""))
	q = w.asks(q, "timeout 9 git push")
	w.must(w.answer(q, api.AnswerApprove, api.ExtentSession, ""))
	w.asks(q, "git push d")
	s, err := w.read.Session(t.Context(), w.ID())
	w.must(err)
	if len(s.Rules) != 2 || s.Rules[0].Command != `git push b\ c` || s.Rules[1].Command != "git push a" || s.Rules[1].By != "test" {
		t.Errorf("its rules are %+v", s.Rules)
	}
}

func TestARuleAnswersWhatWaits(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		mode   api.Mode
		answer api.Answer
		closed string
	}{
		"allow": {api.ModePolicy, api.AnswerApprove, "allow"},
		"deny":  {api.ModePolicy, api.AnswerDeny, "deny"},
		"step":  {api.ModeStep, api.AnswerDeny, "deny"},
	} {
		t.Run(name, func(t *testing.T) {
			w := startAsking(t, c.mode, "git push a & git push b & wait; read x")
			a, b := w.both()
			w.must(w.answer(a, c.answer, api.ExtentSession, "git push *"))
			if b = w.closed(b); b.Closed != c.closed || !strings.Contains(b.ClosedBy, "git push *") {
				t.Errorf("%s was answered %q by %q", b.Title, b.Closed, b.ClosedBy)
			}
		})
	}
}

// A person is asked in step mode, whatever is allowed.
func TestARuleDoesNotReleaseInStepMode(t *testing.T) {
	t.Parallel()
	w := startAsking(t, api.ModeStep, "git push a & git push b & wait; read x")
	a, b := w.both()
	w.must(w.answer(a, api.AnswerApprove, api.ExtentSession, "git push *"))
	w.happened("the end of a", func(e api.Event) bool { return e.Kind == "action.ended" && e.Action.N == a.Action })
	w.must(w.decide(b, api.AnswerDeny)) // it waits
}

func TestAnAnswerHoldsAlways(t *testing.T) {
	t.Parallel()
	w := startAsking(t, api.ModePolicy, "git push a; git push a; exec 3<>/dev/tcp/192.0.2.1/80; git push b; read x")
	q := w.held(0)
	w.must(w.answer(q, api.AnswerApprove, api.ExtentAlways, ""))
	q = w.asks(q, "192.0.2.1:80")
	w.must(w.answer(q, api.AnswerDeny, api.ExtentAlways, ""))
	q = w.asks(q, "git push b")
	w.reads(w.policy(), "commands:\n  - allow: git push a # TODAY\nnetwork:\n  - deny: '192.0.2.1:80' # TODAY\n")
	w.must(w.answer(q, api.AnswerDeny, api.ExtentProject, "git push b"))
	w.reads(filepath.Join(w.project, rules.Name), "commands:\n  - deny: git push b # TODAY\n")

	if _, err := w.RemoveRule(t.Context(), api.Rule{Verdict: api.Allow, Host: "192.0.2.1:80"}); code(err) != api.CodeNotFound {
		t.Errorf("a rule was taken back that isn't there: %v", err)
	}
	s, err := w.RemoveRule(t.Context(), api.Rule{Verdict: api.Deny, Host: "192.0.2.1:80"})
	w.must(err)
	if len(s.Rules) != 2 {
		t.Errorf("its rules are %+v", s.Rules)
	}
	w.reads(w.policy(), "commands:\n  - allow: git push a # TODAY\n")
	_, err = w.RemoveRule(t.Context(), api.Rule{Verdict: api.Deny, Command: "git push b", For: api.ExtentProject})
	w.must(err)
	if _, err := os.Lstat(filepath.Join(w.project, rules.Name)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the project's policy, in which nothing is, is left (%v)", err)
	}
}

// What was answered for always isn't asked in the next session, nor what the project
// has of it.
func TestTheNextSessionDoesNotAsk(t *testing.T) {
	t.Parallel()
	w := startAsking(t, api.ModePolicy, "git push a; git push b; read x")
	q := w.held(0)
	w.must(w.answer(q, api.AnswerApprove, api.ExtentAlways, ""))
	w.must(w.answer(w.asks(q, "git push b"), api.AnswerApprove, api.ExtentProject, ""))
	w.happened("its end", func(e api.Event) bool { return e.Kind == "action.ended" && e.Action.Title == "git push b" })
	_, err := w.Kill(t.Context())
	w.must(err)

	cfg := w.config
	cfg.ID += "2"
	cfg.Argv = []string{"bash", "-c", "git push a; git push b; git push c; read x"}
	w.Session, err = session.Start(t.Context(), w.store, cfg)
	w.must(err)
	w.read = w.Reader()
	if q := w.held(0); q.Title != "git push c" {
		t.Errorf("it asks about %s", q.Title)
	}
}

// A policy holds as soon as it is changed; one that can't be read changes nothing.
func TestAPolicyIsFollowed(t *testing.T) {
	t.Parallel()
	w := startAsking(t, api.ModePolicy, "git push a; git push b; git push c; read x")
	q := w.held(0)
	w.writes(w.policy(), "commands:\n  - allow: git push a\n")
	if q := w.closed(q); q.Closed != "allow" {
		t.Errorf("it was answered %s", q.Closed)
	}
	q = w.asks(q, "git push b")
	w.writes(w.policy(), "commands:\n  - allow: git push a\n  - bad: x\n")
	w.happened("what is wrong", func(e api.Event) bool {
		return e.Note != nil && e.Note.Warn && strings.Contains(e.Note.Text, "policy.yaml") && strings.Contains(e.Note.Text, "3") && strings.Contains(e.Note.Text, "holds on")
	})
	w.happened("what holds", func(e api.Event) bool {
		return e.Kind == "session.ruled" && e.Session.Policy[0].Problem != "" && e.Session.Policy[0].Hash != ""
	})
	if err := w.answer(q, api.AnswerApprove, api.ExtentAlways, ""); code(err) != api.CodeInvalid {
		t.Errorf("a rule was put into what can't be read: %v", err)
	}
	w.writes(w.policy(), "commands:\n  - deny: git push b|c\n    why: it is mine\n")
	if q := w.closed(q); q.Closed != "deny" || !strings.Contains(q.ClosedBy, "it is mine (your policy, "+w.policy()+":2); the person can change it there") {
		t.Errorf("it was answered %s by %s", q.Closed, q.ClosedBy)
	}
	w.happened("the next denial", func(e api.Event) bool { return e.Kind == "action.denied" && e.Action.Title == "git push c" })
}

// Of a project's policy that nobody confirmed only that holds which forbids more.
// Confirmed, it holds at once; changed, it doesn't.
func TestAProjectsPolicyIsConfirmed(t *testing.T) {
	t.Parallel()
	const text = "commands:\n  - allow: git push a|b\n  - deny: git push evil\n"
	w := startAsking(t, api.ModePolicy, "git push evil; git push a; git push b; read x", func(project string) {
		must.OK(t, os.WriteFile(filepath.Join(project, rules.Name), []byte(text), 0o644))
	})
	w.happened("a word on it", func(e api.Event) bool {
		return e.Note != nil && strings.Contains(e.Note.Text, "stepbox policy trust "+w.project)
	})
	w.happened("the denial", func(e api.Event) bool { return e.Kind == "action.denied" && e.Action.Title == "git push evil" })
	q := w.held(0)
	if err := w.answer(q, api.AnswerApprove, api.ExtentProject, ""); code(err) != api.CodeInvalid || !strings.Contains(err.Error(), "policy trust") {
		t.Errorf("something was put into it: %v", err)
	}
	trust := rules.TrustIn(w.config.DataDir)
	file := rules.Look(rules.Config{Project: filepath.Join(w.project, rules.Name), Trust: trust}).Project
	w.must(file.Problem)
	w.must(trust.Confirm(file.Path, file.Hash, "test"))
	if q = w.closed(q); q.Closed != "allow" {
		t.Errorf("confirmed, it was answered %s", q.Closed)
	}
	w.happened("the next one", func(e api.Event) bool { return e.Kind == "action.ended" && e.Action.Title == "git push b" })
	w.writes(file.Path, text+"  - allow: git push *\n")
	w.happened("a word on the change", func(e api.Event) bool {
		return e.Kind == "session.ruled" && !e.Session.Policy[1].Trusted && e.Session.Policy[1].Loosens && e.Session.Policy[1].Hash != file.Hash
	})
}

// What an agent writes in its sandbox, or into what it thinks are the person's files,
// is nobody's policy.
func TestAnAgentMakesNoRules(t *testing.T) {
	t.Parallel()
	w := startAsking(t, api.ModePolicy, `p='commands: [{allow: "git push *"}]'; echo "$p" > .stepbox.yaml; mkdir -p ~/.config/stepbox; echo "$p" > ~/.config/stepbox/policy.yaml; cat .stepbox.yaml ~/.config/stepbox/policy.yaml; git push a; read x`)
	if q := w.held(0); q.Title != "git push a" {
		t.Errorf("it asks about %s", q.Title)
	}
	s, err := w.read.Session(t.Context(), w.ID())
	w.must(err)
	for _, f := range s.Policy {
		if f.Hash != "" && f.Path != w.policy() {
			t.Errorf("%s is in force", f.Path)
		}
	}
}

// A session doesn't start with a policy that can't be read.
func TestABadPolicyIsRefused(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(file string) error{
		"syntax": func(file string) error { return os.WriteFile(file, []byte("commands: [\n"), 0o644) },
		"a link": func(file string) error { return os.Symlink("/etc/passwd", file) },
		"large":  func(file string) error { return os.WriteFile(file, make([]byte, 10<<20), 0o644) },
		"folder": func(file string) error { return os.Mkdir(file, 0o755) },
	} {
		t.Run(name, func(t *testing.T) {
			w := start(t, api.ModePolicy, "true")
			_, err := w.Kill(t.Context())
			w.must(err)
			w.must(prepare(filepath.Join(w.project, rules.Name)))
			cfg := w.config
			cfg.ID += "2"
			if _, err := session.Start(t.Context(), w.store, cfg); err == nil || !strings.Contains(err.Error(), rules.Name) {
				t.Errorf("it started: %v", err)
			}
		})
	}
}

// What was recorded and isn't in its file, as after a crash in between, is told at the
// next start, and doesn't hold. The session's own rules do.
func TestARuleThatIsNotInItsFile(t *testing.T) {
	t.Parallel()
	w := startAsking(t, api.ModePolicy, "git push a; git push b; read x")
	q := w.held(0)
	w.must(w.answer(q, api.AnswerApprove, api.ExtentAlways, ""))
	q = w.asks(q, "git push b")
	w.must(w.answer(q, api.AnswerApprove, api.ExtentSession, ""))
	_, err := w.Kill(t.Context())
	w.must(err)
	w.writes(w.policy(), "")

	cfg := w.config
	cfg.Resume, cfg.Argv = true, []string{"bash", "-c", "git push b; git push a; read x"}
	w.Session, err = session.Start(t.Context(), w.store, cfg)
	w.must(err)
	w.read = w.Reader()
	w.happened("a word on it", func(e api.Event) bool {
		return e.Note != nil && strings.Contains(e.Note.Text, "the rule to allow git push a isn't in its file")
	})
	w.asks(q, "git push a")
	s, err := w.read.Session(t.Context(), w.ID())
	w.must(err)
	if len(s.Rules) != 1 || s.Rules[0].Command != "git push b" {
		t.Errorf("its rules are %+v", s.Rules)
	}
}

// Of two answers at once the first counts, and only its rule is made.
func TestTwoAnswersMakeOneRule(t *testing.T) {
	t.Parallel()
	w := startAsking(t, api.ModePolicy, "git push a; read x")
	q := w.held(0)
	done := make(chan error)
	for _, p := range []string{"git push a", "git push *", "git *"} {
		go func() { done <- w.answer(q, api.AnswerDeny, api.ExtentAlways, p) }()
	}
	won := 0
	for range 3 {
		if err := <-done; err == nil {
			won++
		} else if c := code(err); c != api.CodeDecided && c != api.CodeNotFound {
			t.Errorf("a late answer: %v", err)
		}
	}
	data, err := os.ReadFile(w.policy())
	w.must(err)
	if n := strings.Count(string(data), "deny:"); won != 1 || n != 1 {
		t.Errorf("%d answers counted, and there are %d rules:\n%s", won, n, data)
	}
	stale := w.answer(api.Question{ID: q.ID, Hash: "00"}, api.AnswerApprove, api.ExtentAlways, "")
	if c := code(stale); c != api.CodeDecided && c != api.CodeNotFound {
		t.Errorf("an answer to what is over: %v", stale)
	}
}

// The reason of a denial that is made a rule is what the rule says why: who is denied by it
// later is told the same.
func TestAReasonIsWhyOfItsRule(t *testing.T) {
	t.Parallel()
	w := startAsking(t, api.ModePolicy, "git push a; git push a; read x")
	q := w.held(0)
	reason := "not\x1b from here: " + strings.Repeat("é", 200)
	_, err := w.Decide(t.Context(), api.Decision{Question: q.ID, Hash: q.Hash, Answer: api.AnswerDeny, For: api.ExtentAlways, Reason: reason, By: "test"})
	w.must(err)
	w.happened("the denial of the next", func(e api.Event) bool {
		return e.Kind == "action.denied" && e.Action.N == 2 && strings.Contains(e.Action.Reason, `git push a: not\x1b from here: é`)
	})
	w.reads(w.policy(), "commands:\n  - {deny: git push a, why: 'not\\x1b from here: "+strings.Repeat("é", (policy.MaxWhy-len(`not\x1b from here: `))/2)+"'} # TODAY\n")
}

// What passes unasked, as a shell that is fed commands and the agent's housekeeping do, is denied
// where a rule denies it, and such a shell is asked about where one asks.
func TestARuleIsAboutWhatPassesUnasked(t *testing.T) {
	t.Parallel()
	w := begin(t, api.ModePolicy, map[string]string{
		rules.Name:   "commands: [{deny: dash}, {ask: rbash}, {deny: git rev-parse}, {deny: claude again}]\n",
		"bin/claude": "#!/bin/bash\n[ \"$1\" ] && exec git push c\necho : | dash; git rev-parse HEAD; git rev-parse; claude again; echo : | rbash; exec claude again\n",
	}, "claude")
	for _, title := range []string{"dash", "git rev-parse HEAD", "git rev-parse", "claude again"} {
		w.happened("the denial of "+title, func(e api.Event) bool { return e.Kind == "action.denied" && e.Action.Title == title })
	}
	q := w.held(0)
	if q.Title != "rbash" {
		t.Errorf("it asks about %s", q.Title)
	}
	w.must(w.decide(q, api.AnswerDeny))
	w.happened("the last denial", func(e api.Event) bool {
		return e.Kind == "action.denied" && e.Action.N > q.Action && e.Action.Title == "claude again"
	})
}

// An answer that comes once the program gave up makes a rule for its next try.
func TestAnAnswerAfterItGaveUp(t *testing.T) {
	t.Parallel()
	w := start(t, api.ModePolicy, "timeout 3 bash -c 'exec 3<>/dev/tcp/192.0.2.1/80'; read x; exec 3<>/dev/tcp/192.0.2.1/80; read x")
	q := w.held(0)
	w.happened("that it gave up", func(e api.Event) bool {
		return e.Question != nil && e.Question.ID == q.ID && e.Question.Connection.Waiting == 0
	})
	if err := w.answer(api.Question{ID: q.ID, Hash: "00"}, api.AnswerDeny, api.ExtentAlways, ""); code(err) != api.CodeStale {
		t.Errorf("an answer to something else: %v", err)
	}
	w.must(w.answer(q, api.AnswerDeny, api.ExtentAlways, "192.0.2.0/24:80"))
	v := w.Terminal().Join()
	defer v.Close()
	v.Input([]byte("\n"))
	w.happened("the denial", func(e api.Event) bool {
		return e.Kind == "attempt.closed" && strings.Contains(e.Attempt.Rule, "deny 192.0.2.0/24:80 (your policy, "+w.policy()+":2)")
	})
}

// In step mode, too, what was answered for more than once isn't asked about again, for as
// long as the file that it was put into says so.
func TestAnswersStickInStepMode(t *testing.T) {
	t.Parallel()
	w := start(t, api.ModeStep, "for h in a a b a; do (exec 3<>/dev/tcp/$h.invalid/443) 2>/dev/null; read x; done")
	v := w.Terminal().Join()
	defer v.Close()
	q := w.held(0)
	w.must(w.answer(q, api.AnswerApprove, api.ExtentAlways, ""))
	v.Input([]byte("\n\n")) // the second try of a, and then b
	q = w.asks(q, "connect to b.invalid:443")
	w.must(w.answer(q, api.AnswerDeny, api.ExtentOnce, ""))
	const empty = "network: []\n"
	sum := blake3.Sum256([]byte(empty))
	w.writes(w.policy(), empty)
	w.happened("the file as it is now", func(e api.Event) bool {
		return e.Kind == "session.ruled" && len(e.Session.Policy) > 0 && e.Session.Policy[0].Hash == hex.EncodeToString(sum[:])
	})
	v.Input([]byte("\n"))
	w.asks(q, "connect to a.invalid:443")
}

// The agent is told once, with its next command, what was denied and by which rule.
func TestAnAgentIsToldOfADenial(t *testing.T) {
	t.Parallel()
	const try = "timeout 9 bash -c 'exec 3<>/dev/tcp/192.0.2.1/80'; read x; ls -d / 2>>/tmp/err; "
	w := start(t, api.ModePolicy, "read x; "+try+try+"cp /tmp/err told; read x")
	w.writes(w.policy(), "network:\n  - deny: 192.0.2.1\n    why: it is far away\n")
	w.happened("that it holds", func(e api.Event) bool { return e.Kind == "session.ruled" })
	v := w.Terminal().Join()
	defer v.Close()
	denied := func(e api.Event) bool { return e.Kind == "attempt.closed" && e.Attempt.Verdict == api.Deny }
	v.Input([]byte("\n"))
	w.happened("the first denial", denied)
	v.Input([]byte("\n"))
	w.happened("the second", denied)
	v.Input([]byte("\n"))
	w.happened("the end", func(e api.Event) bool { return e.Kind == "action.ended" && strings.HasPrefix(e.Action.Title, "cp ") })
	told, err := os.ReadFile(filepath.Join(w.store.SessionDir(w.ID()), "upper", "told"))
	w.must(err)
	if strings.Count(string(told), "192.0.2.1:80, is denied: deny 192.0.2.1: it is far away") != 1 {
		t.Errorf("it was told:\n%s", told)
	}
}

// What wasn't answered in time isn't denied: the agent is told that it may try again.
func TestAnAgentIsToldOfAQuestion(t *testing.T) {
	t.Parallel()
	w := start(t, api.ModePolicy, "timeout 1 bash -c 'echo x >/dev/udp/192.0.2.1/99; exec 3<>/dev/tcp/192.0.2.1/80'; read x; ls -d / 2>/tmp/err; cp /tmp/err told; read x")
	w.happened("that it gave up", func(e api.Event) bool { return e.Kind == "attempt.closed" && e.Attempt.Protocol == "tcp" })
	v := w.Terminal().Join()
	defer v.Close()
	v.Input([]byte("\n"))
	w.happened("the end", func(e api.Event) bool { return e.Kind == "action.ended" && strings.HasPrefix(e.Action.Title, "cp ") })
	told, err := os.ReadFile(filepath.Join(w.store.SessionDir(w.ID()), "upper", "told"))
	w.must(err)
	if text := string(told); !strings.Contains(text, "192.0.2.1:80, is not allowed yet") || strings.Contains(text, "denied") {
		t.Errorf("it was told:\n%s", told)
	}
}

// Why a person denied a connection reaches the agent, as with a command.
func TestAnAgentIsToldWhy(t *testing.T) {
	t.Parallel()
	w := start(t, api.ModePolicy, "timeout 9 bash -c 'exec 3<>/dev/tcp/192.0.2.1/80'; ls -d / 2>>/tmp/err; cp /tmp/err told; read x")
	q := w.held(0)
	_, err := w.Decide(w.Context(), api.Decision{Question: q.ID, Hash: q.Hash, Answer: api.AnswerDeny, By: "test", Reason: "it is far away"})
	w.must(err)
	w.happened("the end", func(e api.Event) bool { return e.Kind == "action.ended" && strings.HasPrefix(e.Action.Title, "cp ") })
	told, err := os.ReadFile(filepath.Join(w.store.SessionDir(w.ID()), "upper", "told"))
	w.must(err)
	if strings.Count(string(told), "192.0.2.1:80, is denied by test: it is far away") != 1 {
		t.Errorf("it was told:\n%s", told)
	}
}
