#!/bin/bash
# Makes a folder with boto3 out of PyPI. Arguments: the folder to make, this folder, the version.
set -euo pipefail

if ! /usr/bin/python3.11 -m pip --version >/dev/null 2>&1; then
  echo "installing Debian package: python3-pip"
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends python3 python3-pip
fi
/usr/bin/python3.11 -m pip install --quiet --no-cache-dir --no-compile --disable-pip-version-check --root-user-action=ignore \
  --target "$1" "boto3==$3"
/usr/bin/python3.11 -m compileall -q -s "$1" -p /opt/boto3 "$1" >/dev/null || true
