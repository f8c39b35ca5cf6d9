#!/usr/bin/env bash
# Makes a fresh machine ready for Faultline, and does nothing on one that is.
#
#   tools/set_up.sh python    .venv with the locked dependencies and this package, editable
#   tools/set_up.sh java      a Java runtime that Spark can use, from Debian's packages when there is none
#   tools/set_up.sh hosts     what hosts made of namespaces need, and small stores; in CI only, and never a reason to fail
#
# Every step that takes time is announced; what is installed outside the repository is a Debian package and named.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly PYTHON_MINOR_MIN=11
readonly JAVA_MAJOR_MIN=17
readonly ENGINE=faultline/checkers/linearizability/engine
# Where the machine's own files begin: tests name a folder of theirs, so that no machine decides whether they pass.
readonly MACHINE=${SET_UP_MACHINE:-}

say() { printf 'set-up: %s\n' "$*"; }

fail() {
  printf 'set-up: %s\n' "$@" >&2
  exit 4
}

# Runs its arguments as root: directly, or through sudo when that asks for no password.
as_root() {
  if [ "$(id -u)" -eq 0 ]; then
    "$@"
  else
    sudo -n "$@"
  fi
}

can_be_root() {
  [ "$(id -u)" -eq 0 ] || sudo -n true 2>/dev/null
}

# Installs the first of the given Debian packages that the machine's sources offer; $1 says what for.
install_debian_package() {
  local purpose=$1 package
  shift
  command -v apt-get >/dev/null ||
    fail "$purpose is missing, and this is not a Debian machine." "Install it, then run make again."
  can_be_root ||
    fail "$purpose is missing, and only root may install it." "Run: sudo apt-get install $1 - then run make again."
  say "$purpose is missing: refreshing the package lists (apt-get update)"
  as_root apt-get update -qq || say "not every package list could be refreshed; going on with those there are"
  for package in "$@"; do
    if apt-cache show "$package" >/dev/null 2>&1; then
      say "installing the Debian package $package (apt-get install)"
      # Slim images lack the manual folder, without which the Java packages' set-up scripts fail.
      as_root mkdir -p "$MACHINE/usr/share/man/man1"
      as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$package" >/dev/null ||
        fail "apt-get could not install $package; its message stands above." "Install $purpose by hand, then run make again."
      return
    fi
  done
  fail "None of the Debian packages $* is on offer." "Install $purpose by hand, then run make again."
}

# -- Python ---------------------------------------------------------------------------------------------------------

# Is $1 an interpreter that is new enough?
is_python() {
  "$1" -c "import sys; sys.exit(sys.version_info < (3, $PYTHON_MINOR_MIN))" >/dev/null 2>&1
}

can_make_environments() {
  "$1" -c 'import ensurepip, venv' >/dev/null 2>&1
}

# Prints the best interpreter: one that can make environments, else any that is new enough.
find_python() {
  local candidate fallback=""
  for candidate in ${PYTHON:-} python3 python3.11 python3.12 python3.13 python3.14; do
    is_python "$candidate" || continue
    if can_make_environments "$candidate"; then
      echo "$candidate"
      return
    fi
    fallback=${fallback:-$candidate}
  done
  echo "$fallback"
}

set_up_python() {
  local python minor stamp
  stamp=".venv/.installed-$(cat requirements.lock pyproject.toml hatch_build.py "$ENGINE"/build_kernel.py "$ENGINE"/native/* | sha256sum | cut -c1-16)"
  if [ -e "$stamp" ] && .venv/bin/python -c 'import faultline' 2>/dev/null; then
    return
  fi
  python=$(find_python)
  if [ -z "$python" ]; then
    install_debian_package "Python 3.$PYTHON_MINOR_MIN or newer" python3.11 python3
    python=$(find_python)
    [ -n "$python" ] || fail "There is no Python 3.$PYTHON_MINOR_MIN or newer." "Install one, then run: make PYTHON=/path/to/python3 ..."
  fi
  if ! can_make_environments "$python"; then
    minor=$("$python" -c 'import sys; print(sys.version_info.minor)')
    install_debian_package "Python's venv module" "python3.$minor-venv" python3-venv
    can_make_environments "$python" || fail "$python still cannot make virtual environments." "Name another: make PYTHON=/path/to/python3 ..."
  fi
  if ! .venv/bin/python -m pip --version >/dev/null 2>&1 || ! is_python .venv/bin/python; then
    say "making the virtual environment .venv with $("$python" --version)"
    rm -rf .venv
    "$python" -m venv .venv
  fi
  say "installing the locked dependencies into .venv (the first time this downloads about 500 MB, most of it Spark)"
  pip_install --require-hashes --requirement requirements.lock
  say "installing faultline itself, editable"
  pip_install --no-deps --no-build-isolation --editable .
  rm -f .venv/.installed-*
  touch "$stamp"
}

# Twice quiet: errors only. Once would still show warnings about every index the machine has been given.
pip_install() {
  .venv/bin/python -m pip install -qq --disable-pip-version-check --root-user-action=ignore --no-input "$@" ||
    fail "pip could not install ($*)." "Its message stands above; is the package index reachable from here? Then run make again."
}

# -- Java -----------------------------------------------------------------------------------------------------------

# The java that Spark would start.
java_command() {
  if [ -n "${JAVA_HOME:-}" ]; then
    echo "$JAVA_HOME/bin/java"
  else
    echo java
  fi
}

# Prints the major version of that java, 0 when there is none. Java 8 called itself 1.8, which counts as 1: too old.
java_major() {
  local banner
  banner=$("$(java_command)" -version 2>&1) || {
    echo 0
    return
  }
  sed -nE 's/.* version "([0-9]+).*/\1/p' <<<"$banner" | head -n 1 | grep . || echo 0
}

set_up_java() {
  [ "$(java_major)" -lt "$JAVA_MAJOR_MIN" ] || return 0
  [ -z "${JAVA_HOME:-}" ] ||
    fail "JAVA_HOME=$JAVA_HOME has no Java $JAVA_MAJOR_MIN or newer, which Spark needs." "Point it at one, or unset it, then run make again."
  install_debian_package "A Java runtime, version $JAVA_MAJOR_MIN or newer, for Spark" \
    openjdk-17-jre-headless openjdk-21-jre-headless default-jre-headless
  hash -r
  [ "$(java_major)" -ge "$JAVA_MAJOR_MIN" ] ||
    fail "Java $JAVA_MAJOR_MIN is installed, but the java on the PATH is older." "Set JAVA_HOME to the new one (see: update-alternatives --list java)."
}

# -- Hosts of namespaces --------------------------------------------------------------------------------------------

# An SSH server must not be installed without the consent of the user, so it is installed in CI and suggested elsewhere.
set_up_hosts() {
  local missing=() offered=() lacking=() package
  command -v sshd >/dev/null || missing+=(openssh-server)
  command -v nft >/dev/null || missing+=(nftables)
  { command -v iptables-legacy-restore || [ -x "$MACHINE/usr/sbin/iptables-legacy-restore" ]; } >/dev/null || missing+=(iptables)
  command -v ip >/dev/null || missing+=(iproute2)
  command -v newuidmap >/dev/null || missing+=(uidmap)
  command -v etcd >/dev/null || missing+=(etcd-server)
  { command -v mkfs.ext4 || [ -x "$MACHINE/usr/sbin/mkfs.ext4" ]; } >/dev/null || missing+=(e2fsprogs)
  command -v redis-server >/dev/null || missing+=(redis-server)
  command -v nats-server >/dev/null || missing+=(nats-server)
  [ -x "$MACHINE/usr/share/zookeeper/bin/zkServer.sh" ] || missing+=(zookeeper)
  [ -x "$MACHINE/usr/lib/postgresql/15/bin/postgres" ] || missing+=(postgresql-15)
  command -v patroni >/dev/null || missing+=(patroni)
  [ -x "$MACHINE/usr/sbin/mariadbd" ] || missing+=(mariadb-server)
  [ -e "$MACHINE/usr/lib/galera/libgalera_smm.so" ] || missing+=(galera-4)
  command -v rsync >/dev/null || missing+=(rsync)
  [ -x "$MACHINE/usr/lib/rabbitmq/bin/rabbitmq-server" ] || missing+=(rabbitmq-server)
  compgen -G "$MACHINE/usr/lib/*/faketime/libfaketimeMT.so.1" >/dev/null || missing+=(libfaketime)
  [ "${#missing[@]}" -gt 0 ] || return 0
  if [ -z "${CI:-}" ] || ! command -v apt-get >/dev/null || ! can_be_root; then
    say "hosts of namespaces, or some stores and faults on them, are refused here; for them, as root: apt-get install ${missing[*]}"
    return
  fi
  as_root apt-get update -qq || say "not every package list could be refreshed; going on with those there are"
  # One that is not on offer would keep apt-get from installing the others.
  for package in "${missing[@]}"; do
    if apt-cache show "$package" >/dev/null 2>&1; then offered+=("$package"); else lacking+=("$package"); fi
  done
  [ "${#lacking[@]}" -eq 0 ] || say "not on offer here: ${lacking[*]}; tests on hosts show that they are refused, and no more"
  [ "${#offered[@]}" -gt 0 ] || return 0
  say "installing the Debian packages ${offered[*]} (apt-get install)"
  without_daemons env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -qq --no-install-recommends "${offered[@]}" >/dev/null ||
    say "apt-get could not install ${offered[*]}; tests on hosts show that they are refused, and no more"
}

# Runs its arguments as root, while packages may start no daemons (Debian's policy-rc.d) and make no databases.
without_daemons() {
  local policy=$MACHINE/usr/sbin/policy-rc.d databases=$MACHINE/etc/postgresql-common/createcluster.conf status=0 ours=
  [ -e "$policy" ] || ours=$policy
  [ -z "$ours" ] || as_root sh -c "printf '#!/bin/sh\nexit 101\n' >$policy && chmod 755 $policy"
  [ -e "$databases" ] || as_root sh -c "mkdir -p ${databases%/*} && echo 'create_main_cluster = false' >$databases"
  as_root "$@" || status=$?
  [ -z "$ours" ] || as_root rm -f "$ours"
  return "$status"
}

case "${1:-}" in
  python) set_up_python ;;
  java) set_up_java ;;
  hosts) set_up_hosts ;;
  *)
    echo "usage: tools/set_up.sh python|java|hosts" >&2
    exit 2
    ;;
esac
