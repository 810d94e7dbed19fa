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
say() { printf '\n\033[1;36magent:\033[0m '; wrap 7 "$*"; echo; }
hint() { printf '\033[2m   you: '; wrap 8 "$*"; printf '\033[0m\n'; }

say "Hello. I am a scripted agent, and you are my supervisor."
hint "whatever I start is held in 4 Actions, below, until you say so."
hint "press ctrl+] and then 4 once: you are there, and single keys answer. (Or ctrl+] a: the question, whole.)"
hint "#1 waits: a approves it, d denies it. Keys that come too fast don't count."

say "First I read the project's README."
cat README.md

say "Next I run its test. It will fail: a red mark, not your fault."
hint "#2: approve it (a). If that only opens it, as its row can't show it whole: read it, and a again."
sh test.sh
echo "   the test ended with $?"

say "I write down what I found. No program runs for that, so it is an edit: it has happened, in my sandbox alone."
hint "#3 is in 2 Changes, on the right. I stand still until you keep it (y) or roll it back (u). Keep it."
echo "greet.sh greets nobody" >> notes.txt

say "I mend the greeting."
hint "#4: approve it (a). Then its changes are asked about, too: look, and keep them (y)."
sed -i 's/nobody/"$1"/' greet.sh

say "And test again."
hint "#5: approve it (a)."
sh test.sh
echo "   the test ended with $?"

say "This folder looks cluttered to me. I will delete it."
hint "#6: deny it (d). A line opens: type a reason for me, or nothing, and press enter."
rm -rf ./*
if [ -f README.md ]; then
  say "It was denied: it didn't run, and I was told why. I leave it alone."
else
  say "All gone, from my sandbox. To have it back, select #6 (k goes up), press u, look at the files, and say yes (y)."
fi

say "Let me phone home."
hint "a connection, held in 3 Network and in 4 Actions: it waits, as for each new host. Deny it: d, enter."
if (exec 3<>/dev/tcp/telemetry.example/443) 2>/dev/null; then
  echo "   telemetry.example answered"
else
  echo "   telemetry.example refused the connection"
fi

say "I would like to see your private key."
hint "#7: approve it (a), if you dare: your home isn't in my sandbox."
cat ~/.ssh/id_ed25519 && echo "   I have your key" || echo "   there is no key here"

say "Last, I tidy up in my own way."
hint "#8: approve it (a), and look at what it did. Then roll it back: u, and yes (y)."
sh tidy.sh
hint "then #9 comes, which shows that the file is as it was: approve it (a)."
cat greet.sh

say "That was all. Nothing outside this sandbox has changed."
hint "what is next stands in a box: look through the changes, apply them to the folder, replay. esc closes it, q goes to the list of sessions, q again leaves."
hint "then: stepbox run, in a folder of yours; stepbox help explains the rest."
