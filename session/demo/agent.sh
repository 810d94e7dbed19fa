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
hint "each thing I start is held until you say so (4 Actions)."
hint "ctrl+] a opens the question; then a approves, d denies."

say "First I read the project's README."
cat README.md

say "Next I run its test."
sh test.sh
echo "   the test ended with $?"

say "I write down what I found: an edit, no program runs."
hint "I am frozen until you keep it (y) or roll it back (u)."
echo "greet.sh greets nobody" >> notes.txt

say "I mend the greeting."
hint "afterwards look at Changes, then keep it (y)."
sed -i 's/nobody/"$1"/' greet.sh

say "And test again."
sh test.sh
echo "   the test ended with $?"

say "This folder looks cluttered to me. I will delete it."
hint "deny this one (d); a reason, if you give one, reaches me."
rm -rf ./*
if [ -f README.md ]; then
  say "It was denied, so I leave it alone."
else
  say "All gone. Select that action and press u to roll it back."
fi

say "Let me phone home."
hint "deny it (d): it waits for your word, as it does for each new host."
if (exec 3<>/dev/tcp/telemetry.example/443) 2>/dev/null; then
  echo "   telemetry.example answered"
else
  echo "   telemetry.example refused the connection"
fi

say "I would like to see your private key."
cat ~/.ssh/id_ed25519 && echo "   I have your key" || echo "   there is no key here"

say "Last, I tidy up in my own way."
hint "approve it, look at what it did, and roll it back (u)."
sh tidy.sh
cat greet.sh

say "That was all. Nothing outside this sandbox has changed."
