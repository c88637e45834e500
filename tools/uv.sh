#!/bin/sh
# Run uv from a bare machine: the installed one where it works, else one fetched by pip, by hash, into .uv/.
# Every install of the Makefile passes here. PYTHON=/path/to/python names another interpreter.
set -eu
cd "$(dirname "$0")/.."

# The interpreter behind a pyenv shim or an active virtual environment: neither may stay under ours.
find_python() {
    for name in "${PYTHON:-python3}" python3.11 python3.12 python3.13 python3.14; do
        "$name" -c 'import sys
if sys.version_info < (3, 11): sys.exit(1)
print(getattr(sys, "_base_executable", sys.executable))' 2>/dev/null && return
    done
    echo "everthread needs Python 3.11 or newer. Install it, or name one: make PYTHON=/path/to/python" >&2
    return 1
}

# --target needs neither the venv module nor leave of an externally managed Python (PEP 668).
fetch_uv() {
    echo "uv is not installed: fetching it into .uv/" >&2
    PIP_USER=0 PIP_ROOT_USER_ACTION=ignore PIP_DISABLE_PIP_VERSION_CHECK=1 "$python" -m pip install \
        --quiet --upgrade --no-deps --require-hashes --target .uv --requirement requirements/uv.txt </dev/null
}

# A machine without uv has told only pip where its packages are: pass that on. (`pip config get` reads one
# file and not the others, so the whole list is asked.)
follow_pip() {
    index=${UV_DEFAULT_INDEX:-${UV_INDEX_URL:-${PIP_INDEX_URL:-$(
        "$python" -m pip config list 2>/dev/null | sed -n "s/^global\.index-url='\(.*\)'$/\1/p"
    )}}}
    [ -z "$index" ] || export UV_DEFAULT_INDEX="$index"
}

# uv trusts a list of its own; we trust what the machine trusts, which may know a proxy's certificate.
follow_certificates() {
    cert=${SSL_CERT_FILE:-${PIP_CERT:-/etc/ssl/certs/ca-certificates.crt}}
    [ ! -f "$cert" ] || export SSL_CERT_FILE="$cert"
}

python=$(find_python)
if uv --version >/dev/null 2>&1; then
    uv=uv
else
    uv=.uv/bin/uv
    "$uv" --version >/dev/null 2>&1 || fetch_uv
    follow_pip
fi

follow_certificates
# Accounts without a home (containers, service users) get a cache beside the code.
[ -n "${UV_CACHE_DIR:-}" ] || [ -w "${HOME:-/nonexistent}" ] || export UV_CACHE_DIR="$PWD/.uv/cache"
unset VIRTUAL_ENV CONDA_PREFIX
UV_PYTHON="$python" UV_PYTHON_DOWNLOADS=never exec "$uv" "$@" </dev/null
