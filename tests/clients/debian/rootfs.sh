#!/bin/bash
# Makes a root file system out of Debian packages of another release than this machine's, with all that they need, without
# a container engine and without installing anything here. Arguments: the folder to make, the release, the packages.
set -euo pipefail

out=$1
suite=$2
shift 2

rm -rf "$out"
mkdir -p "$out"/apt/{lists/partial,archives/partial} "$out/rootfs"
: >"$out/apt/status"

# The mirror is the one that this machine takes its own packages from.
find_mirror() { apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Codename: bookworm' | sort -u | head -n 1; }
mirror=$(find_mirror)
if [ -z "$mirror" ]; then
  apt-get update -qq
  mirror=$(find_mirror)
fi
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $suite main" >"$out/apt/sources.list"

apt=(
  apt-get -qq -o Acquire::Retries=3 -o Acquire::Languages=none -o APT::Sandbox::User=root
  -o "Dir::Etc::sourcelist=$out/apt/sources.list" -o Dir::Etc::sourceparts=/dev/null
  -o "Dir::State=$out/apt" -o "Dir::State::status=$out/apt/status" -o "Dir::State::lists=$out/apt/lists"
  -o "Dir::Cache=$out/apt"
)
"${apt[@]}" update
"${apt[@]}" install --download-only --no-install-recommends -y bash coreutils "$@"

# The folders at the root are links into /usr, and packages still name them.
root=$out/rootfs
for folder in bin sbin lib lib64; do
  mkdir -p "$root/usr/$folder"
  ln -s "usr/$folder" "$root/$folder"
done
for package in "$out"/apt/archives/*.deb; do
  dpkg-deb --fsys-tarfile "$package" | tar -x --keep-directory-symlink --no-same-owner -C "$root"
done

rm -rf "$out/apt" "$root"/usr/share/{doc,man,info,locale,lintian,bug} "$root"/var/{cache,log} "$root"/boot
mkdir -p "$root"/{tmp,etc,proc,sys,dev}
chmod 1777 "$root/tmp"
[ -e "$root/usr/bin/sh" ] || ln -s bash "$root/usr/bin/sh"
printf '%s\n' 'root:x:0:0:root:/tmp:/bin/bash' 'client:x:64535:64535:client:/tmp:/bin/bash' >"$root/etc/passwd"
printf '%s\n' 'root:x:0:' 'client:x:64535:' >"$root/etc/group"

# The file system of the Pod is read-only: without compiled files each start of a Python program would compile everything.
python=("$root"/usr/bin/python3.[0-9]*)
if [ -x "${python[0]}" ]; then
  chroot "$root" "/usr/bin/$(basename "${python[0]}")" -m compileall -q /usr/lib/python3 "/usr/lib/$(basename "${python[0]}")" >/dev/null || true
fi
