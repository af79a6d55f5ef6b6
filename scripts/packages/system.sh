# shellcheck shell=bash
# Sourced by the tests of packages: minimal systems of Debian or Ubuntu in folders. Needs root and mmdebstrap.

ubuntu_keyring() {  # prints a keyring of Ubuntu's archive, fetched once; the sum is that of Ubuntu's package list
  local folder=$PWD/.deps/ubuntu-keyring deb=ubuntu-keyring_2021.03.26_all.deb
  if [ ! -e "$folder/usr/share/keyrings/ubuntu-archive-keyring.gpg" ]; then
    mkdir -p "$folder"
    python3 -c 'import sys, urllib.request; urllib.request.urlretrieve(*sys.argv[1:])' \
      "http://archive.ubuntu.com/ubuntu/pool/main/u/ubuntu-keyring/$deb" "$folder/$deb" >&2
    echo "0d0e7ed6b112f5d03eabf3c7eb01ebdacf9c57714b279e90495cfc58c8c4520f  $folder/$deb" | sha256sum --check --quiet >&2 || return 1
    dpkg-deb -x "$folder/$deb" "$folder" || return 1
  fi
  echo "$folder/usr/share/keyrings/ubuntu-archive-keyring.gpg"
}

# RELEASE FOLDER PACKAGE…: a release by its code name, such as bookworm or noble, with apt and these packages; with -backports packages are
# taken from there if it has them; $architecture, if set, is
# Debian's name of one that the kernel runs.
minimal_system() {
  local release=$1 root=$2 include sources=() keyring
  shift 2
  include=$(IFS=,; echo "$*")
  case "$release" in
    jammy | noble | plucky | questing)
      keyring=$(ubuntu_keyring) || return 1
      sources=("--keyring=$keyring" "$release" "$root" "deb http://archive.ubuntu.com/ubuntu $release main universe"
               "deb http://archive.ubuntu.com/ubuntu $release-updates main universe") ;;
    *-backports)
      sources=(--aptopt="APT::Default-Release \"$release\"" "${release%-backports}" "$root"
               "deb http://deb.debian.org/debian ${release%-backports} main" "deb http://deb.debian.org/debian $release main") ;;
    *) sources=("$release" "$root") ;;
  esac
  mmdebstrap --quiet --variant=apt ${architecture:+--architectures="$architecture"} ${include:+--include="$include"} "${sources[@]}"
  [ ! -e /etc/resolv.conf ] || cp /etc/resolv.conf "$root/etc/resolv.conf"
}

# In a mount namespace, which ends with its command: nothing stays mounted.
in_system() {  # FOLDER COMMAND…: runs a command there, as root, in an environment of its own; $host, if set, is seen as /host
  env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 host="${host:-}" ${http_proxy:+http_proxy="$http_proxy"} \
    ${https_proxy:+https_proxy="$https_proxy"} unshare --mount --propagation private sh -euc '
      root=$1
      shift
      mount -t proc proc "$root/proc"
      mount --rbind /dev "$root/dev"
      [ -z "$host" ] || mkdir -p "$root/host"
      [ -z "$host" ] || mount --bind -o ro "$host" "$root/host"
      exec chroot "$root" "$@"' sh "$@"
}
