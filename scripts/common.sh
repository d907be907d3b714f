# What the scripts share: a Python that is new enough, and a virtual environment with the project.
# Sourced, not run. The caller has set -euo pipefail.

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
venv=${VENV:-$root/.venv}

fail() {
    echo "$(basename -- "$0"): $*" >&2
    exit 2
}

say() {
    echo "== $*" >&2
}

# The first Python of at least 3.11 among $PYTHON, python3 and the versioned names.
find_python() {
    local name
    for name in ${PYTHON:+"$PYTHON"} python3 python3.13 python3.12 python3.11 python; do
        if "$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            echo "$name"
            return
        fi
    done
    fail "needs Python 3.11 or newer: install it, or set PYTHON to its path"
}

# Usage: prepare EXTRA. Makes the environment if need be and installs the project with the extra.
# A stamp remembers what was installed, so that a second run starts at once.
prepare() {
    local extra=$1 python stamp wanted
    if [ ! -x "$venv/bin/python" ]; then
        python=$(find_python)
        say "making a virtual environment in $venv with $("$python" --version)"
        "$python" -m venv "$venv" || {
            rm -rf -- "$venv"
            fail "cannot make a virtual environment: install Python's venv module" \
                "(Debian and Ubuntu: apt install python3-venv)"
        }
    fi
    stamp=$venv/installed-$extra
    wanted=$(cd -- "$root" && pwd && cat pyproject.toml)
    if [ "$(cat "$stamp" 2>/dev/null || true)" != "$wanted" ]; then
        say "installing the project with extra '$extra' (once, about a minute)"
        "$venv/bin/python" -m pip install --quiet --disable-pip-version-check \
            --editable "$root[$extra]" ||
            fail "pip could not install the project: see its message above"
        printf '%s\n' "$wanted" >"$stamp"
    fi
}
