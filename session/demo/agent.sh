#!/bin/bash
# The demo's agent: it works on a small project and misbehaves on the way.
# It needs bash, coreutils and sed, no account and no network.
# wrap prints words in lines of at most so many columns as the terminal has now.
shopt -s checkwinsize
wrap() {
  local word column=0
  (:) # bash asks for the terminal's size after it
  for word in $2; do
    if ((column > 0 && column + 1 + ${#word} > ${COLUMNS:-80} - $1)); then printf '\n%*s' "$1" ''; column=0; fi
    if ((column > 0)); then printf ' '; ((column++)); fi
    printf '%s' "$word"; ((column += ${#word}))
  done
}
# While a question is open at 80x24 three rows of this are in view: what came of the one before is in the first.
say() { printf '\n\033[1magent:\033[0m '; wrap 7 "$*"; echo; }
you() { printf '\033[2m   -> '; wrap 6 "$*"; printf '\033[0m\n'; }

say "Hello. I am a scripted agent, and you supervise me: what I start waits in 4 Actions, below, for your answer."
you "press ctrl+] and then 4 once: you are there, and single keys answer. (Or ctrl+] a: the question, whole.)"

say "First I read the project's README."
you "#1: a approves it; d would deny it. Keys that come too fast don't count."
cat README.md

say "Next I run its test. It will fail: a red mark, not your fault."
you "#2: its row can't show all of it, so it opens. Read it, and approve it (a)."
sh test.sh
echo "   the test ended with $?"

say "I write down what I found, which no program does: an edit. Then I mend the greeting."
you "#3, the edit, has happened, in my sandbox: keep it (y). Then approve #4 (a), and keep what it changed (y)."
echo "greet.sh greets nobody" >> notes.txt
sed -i 's/nobody/"$1"/' greet.sh

say "And I test again."
you "what #4 changed comes first: keep it (y). Then #5: approve it (a)."
sh test.sh
echo "   the test ended with $?"

say "This folder looks cluttered to me. I will delete it."
you "#6: deny it (d). Type a reason for me, or nothing, and press enter."
rm -rf ./*
if [ -f README.md ]; then
  say "It was denied: it didn't run, and I was told why. I leave it alone."
else
  say "All gone, from my sandbox. To have it back, select #6 (k goes up), press u, look at the files, and say yes (y)."
fi

say "Let me phone home."
you "a connection waits, as one to each new host does. Deny it: d, then enter."
if (exec 3<>/dev/tcp/telemetry.example/443) 2>/dev/null; then
  say "It answered! Now I would like your private key."
else
  say "Refused. I would like your private key."
fi
you "#7: approve it (a), if you dare: your home isn't in my sandbox."
cat ~/.ssh/id_ed25519 && key="I have it!" || key="No key here."

say "$key Last, I tidy up."
you "#8: approve it (a), then roll back what it changed (u; y). Then approve #9 (a)."
sh tidy.sh
cat greet.sh

say "That was all. Nothing outside this sandbox has changed."
you "what is next stands in a box: look through the changes, apply them to the folder, replay. esc closes it, q goes to the list of sessions, q again leaves."
you "then: stepbox run, in a folder of yours; stepbox help explains the rest."
