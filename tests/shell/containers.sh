# shellcheck shell=bash disable=SC2154 # what lib.sh sets
# Images and containers for a test: buildah builds, crun runs, with the rights and the filter of system calls that docker gives,
# a root that cannot be written, /tmp and /dev/shm in memory. Sourced after lib.sh and networks.sh:
#
#     containers_needed; networks_alone "$@"; test_begin ...; containers_begin
#     image_build NAME WORDS OF BUILDAH BUD...
#     box_image NAME                               containers that are started from now on are of this image
#     box_start agent 2 'word hvd-agent' ...       in network 2; settings: containers.py; its output is in agent.log
#     box_exec agent WORDS...                      docker exec
#     box_signal agent TERM; box_ended agent 0
declare -A box_runner=()
boxes_tool=$(dirname "${BASH_SOURCE[0]}")/containers.py

containers_needed() {
  local tree
  tree=$(dirname "${BASH_SOURCE[0]}")/../..
  box_base=$("$tree/scripts/container") || skip 'buildah, crun or the Debian for images is not there; ./dev setup container'
  [ -e "$tree/build/package/driver/hvd-elastic" ] ||
    skip 'the programs for images are not built; ./dev test builds them with the preset package'
  [ -e /usr/share/containers/seccomp.json ] || skip 'there is no filter of system calls (golang-github-containers-common)'
  [ "$(id -u)" = 0 ] || skip 'only root can make these images and containers'
}

# The base image, and the cgroups as crun takes them. All mounts are in the namespace of the test.
containers_begin() {
  local box
  chmod 755 "$folder" # the users of a namespace are others than this test
  mkdir -p buildah boxes /var/lib/containers
  mount -t tmpfs tmpfs /var/lib/containers # buildah of root keeps a cache there, wherever its storage is
  for box_storage in overlay vfs; do # vfs works everywhere, and copies all for each layer
    if box=$(bah from scratch 2>>buildah.log) && bah mount "$box" >>buildah.log 2>&1; then break; fi
  done
  if mountpoint -q /sys/fs/cgroup/unified; then umount /sys/fs/cgroup/unified; fi
  [ -n "$box" ] || die "buildah makes no container: $(cat buildah.log)"
  bah add -q "$box" "$box_base" / >buildah.log 2>&1 || die "buildah add: $(cat buildah.log)"
  bah commit -q "$box" base >buildah.log 2>&1 || die "buildah commit: $(cat buildah.log)"
  bah rm "$box" >/dev/null
}

bah() {
  HOME=$folder/buildah TMPDIR=$folder/buildah buildah --storage-driver "$box_storage" --root "$folder/buildah/$box_storage" \
    --runroot "$folder/buildah/run" "$@"
}

# The limits are those of this process at most: it may not raise them.
image_build() { # NAME WORDS...
  local name=$1
  shift
  bah bud --isolation chroot --format docker --layers --ulimit nofile=1024:1024 --ulimit nproc=1024:1024 \
    --build-arg BASE=localhost/base -t "$name" "$@" >"build-$name.log" 2>&1 </dev/null ||
    die "the image $name is not built: $(tail -n 30 "build-$name.log")"
}

# In box_root: the root of an image, copied, so that no mount is left.
box_image() { # NAME
  local box mounted
  box=$(bah from --pull-never "$1") || die "buildah has no image $1"
  mounted=$(bah mount "$box") || die "the image $1 cannot be mounted"
  box_root=$folder/boxes/$1
  cp -a "$mounted" "$box_root"
  bah umount "$box" >/dev/null
  bah inspect --type image "$1" >"boxes/$1.json"
  box_config=$folder/boxes/$1.json
}

box_start() { # NAME NET SETTINGS...
  local name=$1 net=$2
  shift 2
  mkdir -p "boxes/$name"
  printf '%s\n' "env BODY_TEST=$folder" "$@" |
    python3 "$boxes_tool" "$box_config" "$box_root" "$name" "/run/netns/net$net" >"boxes/$name/config.json" ||
    die "no configuration of $name"
  box_run "$name" >>"$name.log" 2>&1 </dev/null &
  box_runner[$name]=$!
}

box_run() { exec crun --cgroup-manager=disabled --root "$folder/boxes/crun" run --bundle "$folder/boxes/$1" "$1"; }
box_signal() { crun --cgroup-manager=disabled --root "$folder/boxes/crun" kill "$@"; }

box_exec() { # NAME WORDS...
  local name=$1
  shift
  python3 "$boxes_tool" exec "boxes/$name/config.json" "$@" >"boxes/$name/exec.json"
  crun --cgroup-manager=disabled --root "$folder/boxes/crun" exec --process "boxes/$name/exec.json" "$name"
}

# The first process of a container, by its pid here.
box_first() { crun --root "$folder/boxes/crun" state "$1" | sed -n 's/^ *"pid" *: *\([0-9]*\).*/\1/p'; }

box_ended() { # NAME CODE
  { await_end "${box_runner[$1]}"; } 2>/dev/null || die "the container $1 does not end: $(tail -n 20 "$1.log")"
  { wait "${box_runner[$1]}"; } 2>/dev/null
  code=$?
  [ "$code" = "$2" ] || die "the container $1 has ended with $code, not $2: $(tail -n 20 "$1.log")"
}
