#!/usr/bin/env bash
# Chromium for the browser tests: an existing one, else Debian's package when we may install it, else a loud failure.
set -u
for name in "${SEMIPRUNE_BROWSER:-}" chromium chromium-browser google-chrome google-chrome-stable; do
  [ -n "$name" ] && command -v "$name" > /dev/null 2>&1 && exit 0
done
if command -v apt-get > /dev/null 2>&1; then
  as_root=""
  [ "$(id -u)" = 0 ] || as_root="sudo -n"
  echo "Installing Chromium for the browser tests ..."
  if $as_root apt-get update -qq && DEBIAN_FRONTEND=noninteractive $as_root apt-get install -y -qq --no-install-recommends chromium > /dev/null; then
    exit 0
  fi
fi
cat >&2 <<'MESSAGE'
No browser for the browser tests: neither chromium nor google-chrome was found, and it could not be installed.
Install one (Debian, Ubuntu: apt-get install chromium), or set SEMIPRUNE_BROWSER to its path, and run make test again.
MESSAGE
exit 1
