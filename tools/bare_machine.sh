#!/usr/bin/env bash
# Makes a bare Debian 12 with git, make and python3, clones the current commit into it, and runs the README's two
# commands there. That is what a user's fresh machine has; the machine of a developer has more than its owner remembers.
#
#   tools/bare_machine.sh               both commands
#   tools/bare_machine.sh --only demo   one of them; ARGS=... then goes to make
#   CI=true tools/bare_machine.sh       as in CI: what hosts of namespaces and their stores need is installed first
#
# The bare machine is an image in a file that has no name from the start, mounted in a mount and pid namespace of its
# own: when this script ends, be it killed, the processes, the mounts and the image go with it. It has the network of
# this machine, and asks the mirrors and the package index that apt and pip are configured to ask here.
# Needs root, a free loop device, debootstrap and about 6 GB. Ends with 0 when all commands did, else 1; 2 for wrong
# usage, 4 when the bare machine could not be made.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly RELEASE=bookworm SIZE=16G

say() { printf 'bare machine: %s\n' "$*"; }

refuse() {
  printf 'bare machine: %s\n' "$2" >&2
  exit "$1"
}

usage() { refuse 2 "usage: tools/bare_machine.sh [--only demo|test]"; }

# The two commands, as the README's users read them.
commands_of_readme() {
  sed -nE '/^## Two commands/,/^## /s/^(make [a-z]+) .*/\1/p' README.md
}

# "deb URI RELEASE COMPONENT", from what apt is configured to use here.
debian_sources() {
  apt-get indextargets --format 'deb $(REPO_URI) $(RELEASE) $(COMPONENT)' 'Identifier: Packages' |
    grep -E "^deb [^ ]+ $RELEASE(-[a-z]+)? " | sort -u
}

check_machine() {
  [ "$(id -u)" -eq 0 ] || refuse 4 "only root can make one; run it with sudo"
  command -v debootstrap >/dev/null || refuse 4 "debootstrap is missing; run: apt-get install debootstrap"
  [ -n "$(debian_sources)" ] || refuse 4 "apt has no source of Debian $RELEASE here; add one to /etc/apt/sources.list"
  [ -z "$(git status --porcelain)" ] || say "what is not committed is left out"
}

# -- In the namespaces, before the bare machine is there -------------------------------------------------------------

# Mounts an empty file system at $1. Its file loses its name at once, and its space when the namespace ends.
mount_image() {
  local image
  image=$(mktemp "${TMPDIR:-/tmp}/bare-machine.XXXXXX")
  exec 3<>"$image"
  rm "$image"
  truncate -s "$SIZE" /proc/self/fd/3
  mkfs.ext4 -q -F /proc/self/fd/3
  mount -o loop /proc/self/fd/3 "$1" || refuse 4 "there is no loop device to mount it with"
  exec 3>&-
}

# Gives the bare machine at $1 this one's ways to the network, to Debian's packages and to Python's.
configure() {
  debian_sources >"$1/etc/apt/sources.list"
  apt-config dump | grep '^Acquire::' >"$1/etc/apt/apt.conf.d/90this-machine" || true
  printf '127.0.0.1 localhost\n127.0.1.1 bare\n' >"$1/etc/hosts"
  local file
  # Certificates count twice: as a bundle now, and as what Debian makes its bundle of once ca-certificates is installed.
  for file in /etc/resolv.conf /etc/apt/auth.conf /etc/apt/auth.conf.d /etc/ssl/certs/ca-certificates.crt \
    /usr/local/share/ca-certificates /etc/pip.conf "${HOME:-/root}/.config/pip"; do
    [ ! -e "$file" ] || { mkdir -p "$1${file%/*}" && cp -rL "$file" "$1${file%/*}/"; }
  done
}

# Runs $@ on the machine at $1, as its process 1 and with its root as that of all processes: a chroot could make no namespaces.
enter() {
  local root=$1
  shift
  mount -t proc proc "$root/proc"
  mount --rbind /sys "$root/sys"
  mount --rbind /dev "$root/dev"
  mount -t tmpfs tmpfs "$root/dev/shm"
  mount -t tmpfs tmpfs "$root/run"
  hostname bare
  cd "$root"
  mkdir before
  pivot_root . before
  exec chroot . /bin/sh -c 'umount -l /before && rmdir /before && exec "$@"' sh "$@" </dev/null
}

make_machine() {
  local root=/mnt mirror passed_on
  mirror=$(debian_sources | awk -v release="$RELEASE" '$3 == release && $4 == "main" { print $2; exit }')
  mount_image "$root"
  say "making a bare Debian 12 ($RELEASE) with git, make and python3"
  debootstrap --variant=minbase --include=git,make,python3 "$RELEASE" "$root" "$mirror" >/mnt/debootstrap.log || {
    tail -n 5 /mnt/debootstrap.log >&2
    refuse 4 "debootstrap failed; its message stands above"
  }
  configure "$root"
  git clone --quiet --no-hardlinks . "$root/root/faultline"
  say "it has $(chroot "$root" dpkg-query -f '.\n' -W | wc -l) packages; commit $(git rev-parse --short HEAD) is cloned"
  readarray -d '' passed_on < <(env -0 | grep -zE '^(CI|ARGS|PIP_[A-Z_]+|[a-z]+_proxy|[A-Z]+_PROXY)=')
  enter "$root" /usr/bin/env --ignore-environment HOME=/root TERM=dumb \
    PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "${passed_on[@]}" \
    /bin/bash /root/faultline/tools/bare_machine.sh --inside "$@"
}

# -- On the bare machine ----------------------------------------------------------------------------------------------

run_commands() {
  local command status began summary='' worst=0
  for command in "$@"; do
    say "$command"
    began=$SECONDS status=0
    $command || status=$?
    [ "$status" -eq 0 ] || worst=1
    summary+="${summary:+, }$command: exit code $status after $((SECONDS - began)) s"
  done
  say "$summary"
  exit "$worst"
}

case "${1:-}" in
  --in-namespaces) shift && make_machine "$@" ;;
  --inside) shift && run_commands "$@" ;;
esac

readarray -t commands < <(commands_of_readme)
if [ $# -gt 0 ]; then
  [ $# -eq 2 ] && [ "$1" = --only ] && [[ " ${commands[*]} " == *" make $2 "* ]] || usage
  commands=("make $2")
elif [ -n "${ARGS:-}" ]; then
  refuse 2 "ARGS are for one of the commands; name it with --only"
fi
check_machine
exec unshare --mount --pid --uts --ipc --kill-child -- "$PWD/tools/bare_machine.sh" --in-namespaces "${commands[@]}"
