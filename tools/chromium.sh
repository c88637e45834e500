#!/bin/sh
# A browser for the page's tests: Debian's Chromium without windows, installed when it is missing and we may. The whole one
# serves too, for more than twice the CPU. Without either they are skipped.
command -v chromium-headless-shell >/dev/null 2>&1 && exit 0
test "$(id -u)" -eq 0 && command -v apt-get >/dev/null 2>&1 && apt-get update -qq -o Acquire::http::Timeout=20 &&
  apt-get install -y -qq --no-install-recommends chromium-headless-shell fonts-noto-cjk >/dev/null && exit 0
command -v chromium >/dev/null 2>&1 || echo "no chromium here, nor could it be installed: the page's tests will be skipped"
