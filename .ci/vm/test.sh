#!/bin/bash
# A short end-to-end test for a machine as users have it: systemd with cgroup v2 and an ordinary user in a login
# session. Needs ./stepbox beside it. docs/develop.md says how to run it. TestMachine runs it wherever the other tests
# run, so that it says what the program says; what takes systemd is left out there.
set -u
here=$(cd "$(dirname "$0")" && pwd)
s=$here/stepbox
work=$(mktemp -d) && cd "$work" || exit 1
fails=0
ok() { echo "ok    $*"; }
no() { echo "FAIL  $*"; fails=$((fails + 1)); }
check() { local what=$1; shift; if "$@" >out 2>&1; then ok "$what"; else no "$what (exit $?)"; sed 's/^/      /' out | tail -n 15; fi; }
wants() { local what=$1 text=$2; if grep -q -- "$text" out; then ok "$what"; else no "$what: no \"$text\""; sed 's/^/      /' out | tail -n 15; fi; }
until_() { local text=$1; shift; for _ in $(seq 200); do "$@" >out 2>&1; grep -q -- "$text" out && return 0; sleep 0.1; done; return 1; }

uname -r
check doctor "$s" doctor; cat out
grep -q 'cgroups  *systemd user manager' out && systemd=yes || systemd=
check "demo --auto" timeout 120 "$s" demo --auto
mkdir p && cd p || exit 1

timeout 60 "$s" run --mode watch -- sh -c 'exit 7' >out 2>&1 </dev/null; [ $? = 7 ] && ok "exit code" || no "exit code"
timeout 60 "$s" run --mode watch -- sh -c 'kill -9 $$' >out 2>&1 </dev/null; rc=$?; [ $rc = 137 ] && ok "exit by a signal" || { no "exit by a signal ($rc)"; cat out; }
timeout 60 "$s" run --mode watch --name exits -- bash -c 'bash -c "exit 3"; bash -c "kill -TERM \$\$"; true' >out 2>&1 </dev/null
"$s" show exits >out 2>&1; wants "an action's exit code" "exit 3"; wants "an action's signal" "SIGTERM"

# Limits that are really enforced.
"$s" run --mode watch --name limits --detach -- sleep 60 >out 2>&1
"$s" show limits >out 2>&1; wants "what enforces limits" "(${systemd:+systemd user manager}"
"$s" kill limits >out 2>&1
timeout 60 "$s" run --mode watch --memory 64M -- python3 -c 'x = bytearray(512 << 20); print("survived")' >out 2>&1 </dev/null
rc=$?; { [ $rc = 137 ] || { [ -z "$systemd" ] && [ $rc != 0 ]; } && ! grep -q survived out; } && ok "out of memory is a kill" || { no "out of memory: exit $rc"; cat out; }
timeout 120 "$s" run --mode watch --pids 64 --wall-time 60s -- bash -c 'n=0; while [ $n -lt 200 ]; do sleep 30 & n=$((n+1)); done; kill $(jobs -p); echo forked' >out 2>&1 </dev/null
wants "a fork bomb is stopped" "Resource temporarily unavailable"

# Freeze and thaw, with a held program.
printf 'i=0\nwhile :; do i=$((i+1)); echo $i >> /tmp/tick; [ $((i %% 50)) = 0 ] && sleep 0.01; done\n' > loop.sh
"$s" run --mode watch --name f --detach -- bash loop.sh >out 2>&1
id=$(sed -n 's/.*attach \([a-z2-7]*\) .*/\1/p' out)
until_ "sleep 0.01" "$s" show f || no "the loop runs"
check pause "$s" pause f
data=${STEPBOX_DATA:-${XDG_DATA_HOME:-$HOME/.local/share}/stepbox}
tick=$data/sessions/$id/tmp/tick
a=$(wc -c <"$tick"); sleep 1; b=$(wc -c <"$tick"); [ -n "$a" ] && [ "$a" = "$b" ] && ok "paused means still" || no "it ran on while paused: $a to $b"
check continue "$s" continue f
for _ in $(seq 50); do c=$(wc -c <"$tick"); [ "$c" != "$b" ] && break; sleep 0.1; done
[ -n "$c" ] && [ "$c" != "$b" ] && ok "it goes on" || no "it stayed frozen"
check kill "$s" kill f

# Step, approve, deny and roll back from another terminal.
echo hello > a.txt
printf 'cat a.txt\nrm a.txt\nsed -i s/hello/changed/ a.txt\nsleep 600\n' > agent.sh
"$s" run --mode step --name s --detach -- sh agent.sh >out 2>&1
until_ "held: #1" "$s" show s && ok "held" || no "held"
check approve "$s" approve s 1
until_ "held: #2" "$s" show s || no "the second is held"
check deny "$s" deny s 2 --reason no
until_ "held: #3" "$s" show s || no "the third is held"
check "approve the third" "$s" approve s 3
until_ "unreviewed" "$s" show s || no "its changes wait"
check "pause with a held program" "$s" pause s
check "continue with a held program" "$s" continue s
check "roll back" "$s" rollback s --to-before 3
"$s" diff s >out 2>&1; [ -s out ] && { no "the roll back isn't exact"; cat out; } || ok "the roll back is exact"
[ "$(cat a.txt)" = hello ] && ok "the host's file is untouched" || no "the host's file changed"

# What an approval covers: what descends from it while it lives, so not what two forks leave behind, and nothing that replaces the agent.
printf 'sh -c "(setsid sh -c \\"sleep 1; touch orphan; echo > written\\" &)"\nsleep 3\nread x\n' > agent2.sh
"$s" run --mode step --name d --detach -- bash agent2.sh >out 2>&1
until_ "held: #1" "$s" show d || no "the first is held"
"$s" approve d 1 >out 2>&1
until_ "held: #2" "$s" show d || no "the next is held"
"$s" approve d 2 >out 2>&1
until_ "held: #1 .*sleep 1; touch orphan" "$s" show d && ok "an orphan is asked about" || { no "the orphan isn't held"; "$s" show d; }
"$s" approve d 1 >out 2>&1
"$s" approve d 1 --hash "$(sed -n 's/.*--hash \([0-9a-f]*\).*/\1/p' out)" >out 2>&1 || { no "the orphan isn't approved"; cat out; }
until_ "orphan" "$s" diff d && ok "approved, it is a box of its own" || { no "the orphan's programs didn't run"; "$s" show d; }
"$s" kill d >out 2>&1
echo 'exec rm -v a.txt agent3.sh' > agent3.sh
"$s" run --mode step --name e --detach -- bash agent3.sh >out 2>&1
until_ "held: #1  *rm -v" "$s" show e && ok "an agent that becomes another program is held" || { no "it isn't held"; cat out; }
"$s" deny e 1 >out 2>&1; "$s" kill e >out 2>&1
timeout 60 "$s" run --mode watch -- sh -c 'echo ran' >out 2>/dev/null </dev/null; [ "$(cat out)" = ran ] && ok "output is all that was printed" || { no "output"; cat -A out; }

# Files: one action is taken back, the rest is applied with a check, undone and gone on with.
mkdir ../q && cd ../q || exit 1
seq 8 > a.txt; echo x > gone.txt
"$s" run --mode watch --name w --detach -- bash -c '/bin/sed -i s/1/one/ a.txt; /bin/sed -i s/8/eight/ a.txt; /bin/rm gone.txt; sleep 600' >out 2>&1
until_ "deletes gone.txt" "$s" show w && ok "a row says what was done" || { no "a row says what was done"; cat out; }
check "take back one action" "$s" rollback w --action 1 --yes
check "take back a deletion" "$s" rollback w --action 3 --yes
check "it comes again" "$s" rollback w --redo 2 --yes
check "apply with a check" "$s" apply w --check 'grep -qx 1 a.txt && grep -qx eight a.txt && test ! -e gone.txt' --looked --yes
{ [ "$(tail -n 1 a.txt)" = eight ] && [ "$(head -n 1 a.txt)" = 1 ] && [ ! -e gone.txt ]; } && ok "the project has what was kept" || { no "the project isn't right"; cat a.txt; ls; }
check "undo" "$s" apply w --undo --yes
{ [ "$(cat a.txt)" = "$(seq 8)" ] && [ "$(cat gone.txt)" = x ]; } && ok "the project is as it was" || { no "the undoing isn't exact"; cat a.txt; ls; }
"$s" apply w --check false --looked --yes >out 2>&1; [ $? = 4 ] && ok "a check that fails stops it" || no "a failing check"
"$s" kill w >out 2>&1
timeout 60 "$s" resume w -- sh -c 'tail -n 1 a.txt; test ! -e gone.txt' >out 2>&1 </dev/null; rc=$?; { [ $rc = 0 ] && grep -q eight out; } && ok "resume" || { no "resume: exit $rc"; cat out; }
"$s" diff w | (mkdir ../r && cd ../r && cp ../q/* . && git apply >out2 2>&1 && tail -n 1 a.txt) >out 2>&1; wants "diff is a patch" "eight"
check "rm" "$s" rm --force w
cd ../p || exit 1

# History: of a session whose project a person changes afterwards.
mkdir -p ../h && cd ../h || exit 1
{ git init -q && echo one >a && echo b >b && git add -A && git -c user.name=x -c user.email=x@example.org commit -qm base; } >out 2>&1
echo 'for i in 1 2 3 4 5 6 7 8; do sh -c "echo $i >>a"; [ $i = 5 ] && sh -c "echo broken >>b"; done; :' >../history.sh
check "a session to look back at" "$s" run --mode watch --name h -- bash -c "$(cat ../history.sh)"
printf 'b\nperson\n' >b
check "replay" "$s" replay h --plain; wants "it has the actions" "echo broken"
check "a file at a moment" "$s" cat h:a@3; wants "it is of then" "^3$"
check "the files at the end" "$s" checkout h@end --into ../h-end
[ "$(cat ../h-end/b)" = "$(printf 'b\nbroken')" ] && ok "they are the agent's" || no "they aren't the agent's"
check "blame" "$s" blame h:b; wants "it names the action" "echo broken"
check "bisect" "$s" bisect h -- sh -c '! grep -q broken b'; wants "it finds the fault" "echo broken"
check "fork" "$s" fork h@3 --name f --mode watch -- sh -c 'echo forked >>a'
check "apply the fork" "$s" apply f --looked --yes
{ grep -qx forked a && grep -qx person b; } && ok "the person's own work stays" || no "the apply took more than the fork's"
for f in cast patch jsonl html intoto; do check "export as $f" "$s" export h --format $f --yes -o "../h.$f"; done
check "verify" "$s" verify --all
cd ../p || exit 1

# Rules: what waits to be reached, answers that stick, and a policy that denies.
mkdir -p ../n && cd ../n || exit 1
mkdir -p www
port=$((20000 + $$ % 10000))
PORT=$port perl -MIO::Socket::INET -e '$s = IO::Socket::INET->new(LocalAddr => "127.0.0.1", LocalPort => $ENV{PORT}, Listen => 5) or die;
	while ($c = $s->accept) { sysread $c, $_, 4096; print $c "HTTP/1.0 200 OK\r\n\r\nserved\n"; close $c }' & server=$!
echo "curl -sS --max-time 60 http://host.stepbox.internal:$port/x; echo curl \$?" >get.sh
until_ served curl -sS "http://127.0.0.1:$port/x" || no "the server answers"
(until_ "waits" "$s" net n1; "$s" allow n1 host.stepbox.internal:$port --always) >../allowed 2>&1 &
timeout 60 "$s" run --name n1 -- sh get.sh >out 2>/dev/null </dev/null; wants "an answer lets through what waits" served; wait $!
timeout 60 "$s" run --name n2 --on-ask deny -- sh get.sh >out 2>/dev/null </dev/null; wants "always isn't asked again" served
check forget "$s" allow --always --forget host.stepbox.internal:$port
timeout 60 "$s" run --name n3 --on-ask deny -- sh get.sh >out 2>/dev/null </dev/null; wants "what nobody allows isn't reached" "curl 7"
mkdir -p "${XDG_CONFIG_HOME:-$HOME/.config}/stepbox"
printf 'version: 1\ncommands:\n  - deny: rm -rf *\n' >"${XDG_CONFIG_HOME:-$HOME/.config}/stepbox/policy.yaml"
timeout 60 "$s" run -- sh -c 'env rm -fr www; ls -d www' >out 2>&1 </dev/null; wants "a rule denies, however it is spelled" "^www"; wants "and says which it was" "policy.yaml:3"
check "policy explain" "$s" policy explain -- rm -rf www; wants "it names the line" "policy.yaml:3"
kill $server
cd ../p || exit 1

# Killing the supervisor leaves nothing alive.
"$s" run --mode watch --name k --detach -- sh -c 'sleep 600; :' >out 2>&1
descend() { for p in $(pgrep -P "$1"); do echo "$p"; descend "$p"; done; }
alive() { for p in $all; do case $(sed -n 's/^State:.//p' "/proc/$p/status" 2>/dev/null) in "" | Z*) ;; *) echo "$p" ;; esac; done; }
for note in "$data"/live/*.json; do
	pid=$(sed -n 's/.*"pid": *\([0-9]*\).*/\1/p' "$note")
	all="$pid $(descend "$pid")"
	kill -9 "$pid"; for _ in $(seq 200); do left=$(alive); [ -z "$left" ] && break; sleep 0.1; done
	[ -z "$left" ] && ok "no process is left" || { no "processes are left"; ps $left; }
done
"$s" ls >out 2>&1; wants "interrupted" "interrupted"
cgroups() { for id in $(ls "$data/sessions"); do find /sys/fs/cgroup -name "stepbox-$id*" -type d 2>/dev/null; done; }
for _ in $(seq 200); do left=$(cgroups); [ -z "$left" ] && break; sleep 0.1; done
[ -z "$left" ] && ok "no cgroup is left" || no "cgroups are left: $left"
cd / && rm -rf "$work"
echo "$fails failed"
[ $fails = 0 ]
