#!/usr/bin/env bash
# What the tests drive beside Python: Chromium (needed) and PostgreSQL (wanted).
# An existing one is taken; else Debian's package where we may install it; else a loud word with the remedy.
set -u

install() {
  command -v apt-get > /dev/null 2>&1 || return 1
  local as_root=""
  [ "$(id -u)" = 0 ] || as_root="sudo -n"
  echo "Installing $1 for the tests ..."
  $as_root apt-get update -qq > /dev/null 2>&1
  DEBIAN_FRONTEND=noninteractive $as_root apt-get install -y -qq --no-install-recommends "$1" > /dev/null 2>&1
}

has_browser() {
  local name
  for name in "${SEMIPRUNE_BROWSER:-}" chromium chromium-browser google-chrome google-chrome-stable; do
    [ -n "$name" ] && command -v "$name" > /dev/null 2>&1 && return 0
  done
  return 1
}

has_postgres() {
  command -v initdb > /dev/null 2>&1 || ls /usr/lib/postgresql/*/bin/initdb > /dev/null 2>&1
}

has_postgres || { [ "$(id -u)" = 0 ] && install postgresql; } || has_postgres ||
  echo "No PostgreSQL: the label store is tested over SQLite alone (Debian, Ubuntu: apt-get install postgresql)." >&2

has_browser || install chromium || has_browser || {
  cat >&2 <<'MESSAGE'
No browser for the browser tests: neither chromium nor google-chrome was found, and it could not be installed.
Install one (Debian, Ubuntu: apt-get install chromium), or set SEMIPRUNE_BROWSER to its path, and run make test again.
MESSAGE
  exit 1
}
