#!/bin/sh
# Says hello to the world and checks the answer.
if [ "$(sh greet.sh world)" = "hello world" ]; then
  echo "ok: the world was greeted"
else
  echo "FAIL: the world was not greeted" >&2
  exit 1
fi
