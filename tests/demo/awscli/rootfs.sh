#!/bin/bash
# Makes a root file system with the AWS CLI and nothing else that a shell script around it does not need, out of Debian
# packages and PyPI, without a container engine. Nothing is installed on this machine but pip, when it is missing.
# Arguments: the folder to make, the version of the AWS CLI.
set -euo pipefail

out=$1
version=$2

packages=(
  bash coreutils dash diffutils
  python3.11-minimal libpython3.11-minimal libpython3.11-stdlib media-types
  libacl1 libattr1 libbz2-1.0 libc6 libcrypt1 libexpat1 libffi8 libgcc-s1 libgmp10 liblzma5 libncursesw6 libpcre2-8-0
  libreadline8 libselinux1 libsqlite3-0 libssl3 libtinfo6 libuuid1 libzstd1 zlib1g
)

if [ ! -x /usr/bin/python3.11 ] || ! /usr/bin/python3.11 -m pip --version >/dev/null 2>&1; then
  echo "installing Debian package: python3-pip"
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends python3 python3-pip
fi

rm -rf "$out"
mkdir -p "$out/debs"

# The folders at the root are links into /usr in Debian 12, and packages still name them.
for folder in bin sbin lib lib64; do
  mkdir -p "$out/rootfs/usr/$folder"
  ln -s "usr/$folder" "$out/rootfs/$folder"
done

cd "$out/debs"
if ! apt-get download -qq -o APT::Sandbox::User=root "${packages[@]}"; then
  apt-get update -qq # the package lists may be older than what is served
  apt-get download -qq -o APT::Sandbox::User=root "${packages[@]}"
fi
for package in *.deb; do
  dpkg-deb --fsys-tarfile "$package" | tar -x --keep-directory-symlink --no-same-owner -C "$out/rootfs"
done
cd "$out"

root=$out/rootfs
rm -rf "$root"/usr/share/{doc,man,info,locale,lintian,bug} "$root"/var
mkdir -p "$root"/tmp "$root"/etc "$root"/proc "$root"/sys "$root"/dev
chmod 1777 "$root/tmp"
ln -sf python3.11 "$root/usr/bin/python3"
ln -sf bash "$root/usr/bin/sh"
echo 'root:x:0:0:root:/tmp:/bin/bash' >"$root/etc/passwd"
echo 'root:x:0:' >"$root/etc/group"

site=$root/usr/lib/python3/dist-packages
/usr/bin/python3.11 -m pip install --quiet --no-cache-dir --no-compile --disable-pip-version-check --root-user-action=ignore \
  --target "$site" "awscli==$version"
mv "$site/bin/aws" "$root/usr/bin/aws"
sed -i '1s|.*|#!/usr/bin/python3.11|' "$root/usr/bin/aws"
rm -rf "$site/bin" "$site/awscli/examples"

# The file system of the Pod is read-only: without compiled files each start would compile everything.
/usr/bin/python3.11 -m compileall -q -s "$root" -p / "$root/usr/lib/python3.11" "$site" >/dev/null || true
rm -rf "$out/debs"
