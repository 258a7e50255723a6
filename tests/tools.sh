#!/usr/bin/env bash
# What some tests need beside Python: a Chromium and promtool. Brings them where it can; what is missing is said in one
# line, and its tests are skipped. It never fails, and is quiet when all is there. Usage: tests/tools.sh FOLDER
tools=$1
have() { PATH="$tools/usr/bin:$PATH" command -v "$1" >/dev/null; }

apt=() # as root, or not at all
if command -v apt-get >/dev/null; then
  if [ "$(id -u)" = 0 ]; then apt=(env DEBIAN_FRONTEND=noninteractive apt-get)
  elif sudo -n true 2>/dev/null; then apt=(sudo -n env DEBIAN_FRONTEND=noninteractive apt-get)
  fi
fi

has_chromium() { have chromium-headless-shell || have chromium || have chromium-browser || have google-chrome; }

if ! has_chromium || ! have promtool; then
  [ ${#apt[@]} -gt 0 ] && "${apt[@]}" update -qq >/dev/null 2>&1
  if ! has_chromium && [ ${#apt[@]} -gt 0 ]; then
    echo "Installing Debian's package chromium-headless-shell for the tests of the dashboard (once)…"
    "${apt[@]}" install -y -qq --no-install-recommends chromium-headless-shell >/dev/null 2>&1 ||
      "${apt[@]}" install -y -qq --no-install-recommends chromium >/dev/null 2>&1
  fi
  if ! have promtool && command -v apt-get >/dev/null && command -v dpkg >/dev/null; then
    # Unpacked, not installed: the package would start a daemon, and only one program of it is needed.
    scratch=$(mktemp -d)
    (cd "$scratch" && apt-get download -qq prometheus && dpkg -x prometheus_*.deb unpacked) >/dev/null 2>&1 &&
      mkdir -p "$tools/usr/bin" && cp "$scratch/unpacked/usr/bin/promtool" "$tools/usr/bin/"
    rm -rf "$scratch"
  fi
fi

missing=()
has_chromium || missing+=("a Chromium (Debian's package chromium-headless-shell)")
have promtool || missing+=("promtool (in Debian's package prometheus)")
if [ ${#missing[@]} -gt 0 ]; then
  printf -v list '%s and ' "${missing[@]}"
  echo "Not there, and cannot be brought here: ${list% and }. Tests that need it will be skipped."
fi
exit 0
