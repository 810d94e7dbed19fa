#!/bin/bash
# The demo's agent: it works on a small project and misbehaves on the way.
# It needs bash, coreutils and sed, no account and no network.
say() { printf '\n\033[1;36magent:\033[0m %s\n' "$*"; }
hint() { printf '\033[2m   you: %s\033[0m\n' "$*"; }

say "Hello. I am a scripted agent, and you are my supervisor."
hint "everything I start is held until you say so: it shows in Actions below."
hint "ctrl+] then a opens the question, a approves, d denies. ? helps."

say "First I read the project's README."
cat README.md

say "Next I run its test."
sh test.sh
echo "   the test ended with $?"

say "I write down what I found. No program runs for this: it is an edit."
hint "I am frozen until you keep it (y) or take it back (u)."
echo "greet.sh greets nobody" >> notes.txt

say "I mend the greeting."
hint "afterwards look at Changes, then keep it (y)."
sed -i 's/nobody/"$1"/' greet.sh

say "And test again."
sh test.sh
echo "   the test ended with $?"

say "This folder looks cluttered to me. I will delete it."
hint "deny this one (d), with a reason if you like: I get to read it."
rm -rf ./*
if [ -f README.md ]; then
  say "It was denied, so I leave it alone."
else
  say "All gone. Take it back: select that action and press U."
fi

say "Let me phone home."
hint "no question: only hosts you named may be reached. Look at Network."
if (exec 3<>/dev/tcp/telemetry.example/443) 2>/dev/null; then
  echo "   telemetry.example answered"
else
  echo "   telemetry.example refused the connection"
fi

say "I would like to see your private key."
cat ~/.ssh/id_ed25519 && echo "   I have your key" || echo "   there is no key here"

say "Last, I tidy up in my own way."
hint "approve it, look at what it did, and take it back (u)."
sh tidy.sh
cat greet.sh

say "That was all. Nothing outside this sandbox has changed."
