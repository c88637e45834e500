#!/bin/sh
# A browser for the tests of the page: Debian's, installed when it is missing and we may. Without one they are skipped.
command -v chromium >/dev/null 2>&1 && exit 0
test "$(id -u)" -eq 0 && command -v apt-get >/dev/null 2>&1 || { echo "no chromium here: the page's tests will be skipped"; exit 0; }
apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium fonts-noto-cjk >/dev/null ||
  echo "chromium could not be installed: the page's tests will be skipped"
