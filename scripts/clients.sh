#!/usr/bin/env bash
# Builds the client packages: humanqa-VERSION.tgz for npm and humanqa-VERSION-….whl for Python.
# Their types are generated from the API's document, and type checkers pass. It needs node, npm, python3 and what
# make contract installs in tools/clients.
#
#	scripts/clients.sh FOLDER VERSION
set -euo pipefail
cd "$(dirname "$0")/.."
out=$(mkdir -p "$1" && cd "$1" && pwd) version=$2
tools=tools/clients
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
command -v python3 >/dev/null || { echo "clients: install Python 3.9 or newer" >&2; exit 1; }

for document in openapi openapi-3.1; do
	gunzip -c "httpapi/openapi/dist/$document.json.gz" >"$work/$document.json"
done

npm=$work/typescript
cp -R integrations/clients/typescript "$npm"
rm -rf "$npm/dist" "$npm/node_modules"
node $tools/typescript.mjs "$work/openapi-3.1.json" "$npm/src/types.ts"
$tools/node_modules/.bin/tsc -p "$npm"
$tools/node_modules/.bin/tsc -p "$npm/tests"
cp LICENSE "$npm"
# A version of a commit has a ~, which npm does not know.
semver=$(sed -E 's/~([0-9]+)\.([0-9a-f]+)$/-\1-\2/' <<<"$version")
(cd "$npm" && npm pkg set "version=$semver" && npm pack --silent --pack-destination "$out")

python3 integrations/clients/python/build.py "$work/openapi.json" "$out" "$version"
$tools/node_modules/.bin/pyright -p integrations/clients/python
