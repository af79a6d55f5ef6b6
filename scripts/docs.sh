#!/usr/bin/env bash
# Builds the site of the documentation into build/site: pages, C++ API, Python API. A warning or a dead link fails.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
  cat <<'TEXT'
usage: scripts/docs.sh [--help] [--package DIR]

Builds build/site from README.md, docs/, the public C++ headers (Doxygen) and the Python package (mkdocstrings). Installs
MkDocs into a virtual environment in tutti/docs-env of the user's cache folder. Needs Doxygen and CMake (scripts/deps.sh
--docs). Fails on warnings, links without a target and missing anchors. Search needs a server: python3 -m http.server -d build/site

  --package DIR   the folder tutti of the built Python package (default: build/release/python/tutti). Without it the API of the
                  compiled module and of the ops is left out
TEXT
}

package=build/release/python/tutti
while [ $# -gt 0 ]; do
  case "$1" in
    -h | --help) usage; exit 0 ;;
    --package)
      [ $# -ge 2 ] || { echo "docs: --package needs a value (see scripts/docs.sh --help)" >&2; exit 2; }
      package=${2%/}
      [ -e "$package/__init__.py" ] || { echo "docs: --package $package is not a folder of the Python package" >&2; exit 2; }
      shift ;;
    *) echo "docs: unknown option $1 (see scripts/docs.sh --help)" >&2; exit 2 ;;
  esac
  shift
done
[ -e "$package/__init__.py" ] || package=python/tutti
command -v doxygen >/dev/null || { echo "docs: Doxygen is not installed (scripts/deps.sh --docs)" >&2; exit 1; }

packages=("mkdocs==1.6.1" "mkdocs-material==9.8.2" "mkdocstrings==1.0.8" "mkdocstrings-python==2.0.11")
env=${XDG_CACHE_HOME:-$HOME/.cache}/tutti/docs-env
mkdir -p "$(dirname "$env")"
exec 9>"$env.lock"
flock 9  # two runs make one environment
if [ "$(cat "$env/packages.txt" 2>/dev/null)" != "${packages[*]}" ]; then
  echo "docs: making $env"
  python3 -m venv --clear "$env" || { echo "docs: python3 has no venv: install python3-venv" >&2; exit 1; }
  "$env/bin/python" -m pip install -q --disable-pip-version-check "${packages[@]}"
  echo "${packages[*]}" >"$env/packages.txt"
fi
exec 9>&-

mkdir -p build
python3 scripts/docs/pages.py build/docs/pages --package "$package"
scripts/site.sh --output build/docs/pages/agreement
python3 scripts/docs/headers.py build/docs/include
doxygen scripts/docs/Doxyfile
DOCS_PACKAGE=$(dirname "$package") NO_MKDOCS_2_WARNING=1 "$env/bin/mkdocs" build --strict --clean >build/docs/mkdocs.log 2>&1 || {
  grep -v '^INFO' build/docs/mkdocs.log >&2  # --quiet would hide warnings from --strict
  exit 1
}
python3 scripts/docs/check_links.py build/site
echo "docs: build/site/index.html"
