#!/bin/sh
# Tidies a little too well.
for f in greet.sh notes.txt; do
  echo "tidied" > "$f"
done
