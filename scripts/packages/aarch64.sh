# shellcheck shell=bash
# Sourced by what builds for Linux on ARM: the libraries of the platform, and the emulator that runs its programs. Needs root.

# The cross compiler, installed; Debian's libraries of this release for arm64, unpacked, not installed, in .deps/sysroot-aarch64; dpkg-query --admindir knows their versions.
aarch64_sysroot() {
  scripts/deps.sh --run --cross-aarch64
  local root=$PWD/.deps/sysroot-aarch64 release packages
  packages="libc6-dev libstdc++-12-dev libboost-dev libcli11-dev libfmt-dev nlohmann-json3-dev zlib1g-dev libpcre2-dev libicu-dev libpng-dev
 libjpeg-dev libprotobuf-dev libgtest-dev libgmock-dev ocl-icd-opencl-dev opencl-headers pocl-opencl-icd libopenblas-dev libpython3-dev"
  packages=$(tr -d '\n' <<<"$packages")
  if [ "$(cat "$root/packages.txt" 2>/dev/null)" = "$packages" ]; then return; fi
  release=$(. /etc/os-release && echo "$VERSION_CODENAME")
  echo "aarch64: unpacking arm64 packages of $release into $root"
  rm -rf "$root"
  # shellcheck disable=SC2016
  mmdebstrap --quiet --variant=extract --architectures=arm64 --include="${packages// /,}" \
    --extract-hook='for deb in "$1"/var/cache/apt/archives/*.deb; do
        dpkg-deb -f "$deb" Package Version Architecture Multi-Arch Maintainer Description | sed "/^Maintainer/i Status: install ok installed"
        echo
      done >"$1/var/lib/dpkg/status"' "$release" "$root"
  if [ ! -L "$root/lib" ]; then  # merged with usr/lib, as where packages are installed
    cp -a "$root/lib/." "$root/usr/lib/"
    rm -rf "$root/lib"
    ln -s usr/lib "$root/lib"
  fi
  # Absolute links would lead to this machine's files.
  find "$root" -type l -lname '/*' | while read -r link; do ln -snfr "$root$(readlink "$link")" "$link"; done
  echo "$packages" >"$root/packages.txt"
}

# Lets the kernel run programs of the platform, in a chroot too (flag F: the emulator is opened now): processes of Tutti start others.
register_emulator() {
  local known=/proc/sys/fs/binfmt_misc magic mask
  [ -e $known/register ] || mount -t binfmt_misc binfmt_misc $known || true
  if [ -e $known/qemu-aarch64 ]; then
    ! grep -q '^flags:.*F' $known/qemu-aarch64 || return 0
    echo -1 >$known/qemu-aarch64
  fi
  magic='\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00'
  mask='\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff'
  printf '%s' ":qemu-aarch64:M::$magic:$mask:/usr/bin/qemu-aarch64-static:PF" >$known/register || {
    echo "aarch64: the kernel does not let programs be registered (binfmt_misc); install qemu-user-static on the host" >&2
    return 1
  }
}
