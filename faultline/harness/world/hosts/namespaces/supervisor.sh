#!/bin/sh
# The supervisor of one set of hosts: process 1 of the pid namespace they all live in, at home in the network namespace of
# their bridge. What it keeps lives exactly as long as it does: when the harness that holds its standard input ends,
# however it ends, the supervisor reads the end of the stream and ends too, and the kernel kills every process below it and
# takes namespaces, links and mounts along. Nothing of the set stands in a place that would outlive it, but its folder
# and the control groups and shared memory named after that, which the supervisor removes.
#
# Standard input, one command per line:
#   start HOST         runs the host's wire script (again: reboot, with the same disk)
#   stop HOST          kills all its processes at once: power-off
#   plug LINK BRIDGE   joins a link to a bridge
#   serve NAME         runs the script NAME.sh beside the bridge; it ends with the supervisor
# Standard output, one answer per line:  ready · started PID · stopped · plugged · serving
set -u
folder=$1

# The control groups of the set (or of one host of it), inner ones first.
groups() { find /sys/fs/cgroup -depth -type d -path "*/$(basename "$folder")${1:+/$1-}*" 2>/dev/null; }

# Lets frozen processes run, which may be what they need to be killed.
thaw() {
  for group in $(groups "$1"); do
    [ -e "$group/freezer.state" ] && echo THAWED >"$group/freezer.state"
    [ -e "$group/cgroup.freeze" ] && echo 0 >"$group/cgroup.freeze"
  done
}

# A group can be removed when the last of its processes is gone, which may be a moment after it was killed.
remove_groups() {
  for _ in $(seq 100); do
    for group in $(groups ""); do rmdir "$group" 2>/dev/null; done
    [ -z "$(groups "")" ] && return
    sleep 0.1
  done
}

ip link set lo up
ip link add br0 type bridge stp_state 0 forward_delay 0 || exit 1
ip link set br0 up
# The second one carries SSH and nothing else.
ip link add br1 type bridge stp_state 0 forward_delay 0 || exit 1
ip link set br1 up
# Copy-on-write layers of the hosts' system folders: in memory, since a layer cannot lie on every file system.
mkdir -p "$folder/layers"
mount -t tmpfs -o mode=755 faultline "$folder/layers" || exit 1
echo ready

while read -r verb name bridge; do
  case $verb in
    start)
      unshare --net /bin/sh "$folder/$name/wire.sh" >>"$folder/$name/init.log" 2>&1 </dev/null &
      echo $! >"$folder/$name/outer.pid"
      echo "started $!"
      ;;
    stop)
      read -r outer <"$folder/$name/outer.pid"
      kill -KILL "$outer"
      thaw "$name"
      wait "$outer" 2>/dev/null
      # At once: the kernel takes its time to clear away a network namespace, and a reboot needs the name.
      ip link del "$name" 2>/dev/null
      ip link del "${name}m" 2>/dev/null
      echo stopped
      ;;
    plug)
      ip link set "$name" master "$bridge" up
      echo plugged
      ;;
    serve)
      /bin/sh "$folder/$name.sh" >>"$folder/$name.log" 2>&1 </dev/null &
      echo serving
      ;;
  esac
done

# A frozen file system holds its writers, and no signal ends them: thaw those that the harness could not thaw any more.
for note in "$folder"/*/frozen; do
  [ -e "$note" ] || continue
  host=${note%/frozen}
  read -r outer <"$host/outer.pid"
  read -r place <"$note"
  nsenter --mount="/proc/$outer/ns/mnt" fsfreeze --unfreeze "$place"
done

# Files are removed once no process writes them.
kill -KILL -1
thaw ""
wait
remove_groups
# What libfaketime shares is named after the set, and in the machine's own memory.
rm -f /dev/shm/*"$(basename "$folder")"*
umount -l "$folder/layers"
rm -rf "$folder"
