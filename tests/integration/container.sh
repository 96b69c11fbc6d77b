#!/usr/bin/env bash
# The images of deploy/container, built by buildah, and run by crun as docker runs them: their sizes, users and files; then a
# driver and two agents in containers whose roots cannot be written, with a training program on top of the image, in networks
# of their own. One agent has 2 workers and the usual 64 MB of /dev/shm; the other has no /dev/shm, and a user that the image
# does not know, or users of a namespace as without root. A container of an agent is killed, an agent is killed inside of its
# container, a container leaves, the driver is stopped.
#
#     container.sh C-COMPILER
source=$(dirname "$(realpath "$0")")/count.c
tree=$(realpath "$(dirname "$0")/../..")
MAX_MB=60 # of hvd-agent, unpacked
. "$(dirname "$0")/../shell/lib.sh"
. "$(dirname "$0")/../shell/networks.sh"
. "$(dirname "$0")/../shell/containers.sh"
containers_needed
networks_alone "$@"
cc=$1
archive=$("$tree/scripts/tarball" "$tree/build/package" "$tree/build/package") || skip 'no archive is made (see above)'
test_begin "$tree/build/package/driver/hvd-elastic" "$source"
containers_begin

# ---- the images ------------------------------------------------------------------------------------

build() { # NAME WORDS...
  image_build "$@" --build-arg "ARCHIVE=${archive#"$tree"/}" -f "$tree/deploy/container/Containerfile" "$tree"
}
build hvd-agent --target agent
build hvd-elastic

# A program for the image is built against the library of the archive, and put on top.
mkdir unpacked program
tar -C unpacked --strip-components=1 -xzf "$archive"
read -ra use <<<"$(PKG_CONFIG_LIBDIR=$(dirname "$(find unpacked -name hvd.pc)") pkg-config --cflags --libs hvd)"
"$cc" -std=c11 -O1 "$source" -o program/train "${use[@]}" "-Wl,-rpath-link,$(dirname "$(find unpacked -name libhvd.so)")" ||
  die 'no program is built against the library of the archive'
sed -n 's/^    FROM hvd-elastic$/FROM hvd-elastic/p; s/^    COPY train /COPY train /p' "$tree/deploy/container.md" >program/Containerfile
[ "$(wc -l <program/Containerfile)" = 2 ] || die 'deploy/container.md does not say how a program is put on top'
image_build train -f program/Containerfile program
grep -qF "$(sed -n 's/^ *newName: //p' "$tree/deploy/kubernetes/base/kustomization.yaml"):1" "$tree/deploy/container.md" ||
  die 'deploy/container.md and deploy/kubernetes name different images'

# The sizes of all files below, in tenths of a MB.
tenths() { find "$@" -type f -printf '%s\n' | awk '{ sum += $1 } END { printf "%d\n", sum / 100000 + 0.999 }'; }
mb() { tenths "$@" | sed -E 's/^(.*)(.)$/0\1.\2/; s/^0([1-9])/\1/'; }
look_at() { # NAME
  box_image "$1"
  bad=$(find "$box_root" -xdev \( -perm /6000 -o ! -uid 0 -o ! -gid 0 -o -type f -perm /0002 -o -name '*.h' -o -name '*.a' -o -name '*.o' \))
  [ -z "$bad" ] || die "$1 has files that it should not have: $bad"
  for name in cc gcc ld as apt-get dpkg perl; do
    [ ! -e "$box_root/usr/bin/$name" ] || die "$1 has the program $name"
  done
  chroot "$box_root" flock --version >/dev/null || die "$1 has no flock, with which the driver's pod of deploy/kubernetes waits"
  broken=$(find "$box_root" -xtype l ! -path '*/proc/*' | head -n 5)
  [ -z "$broken" ] || die "$1 has links that lead nowhere: $broken"
  [ "$(stat -c %a "$box_root/tmp")" = 1777 ] || die "/tmp of $1 has mode $(stat -c %a "$box_root/tmp")"
  [ "$(sed -n 's/^ *"User": //p' "$box_config" | sort -u)" = '"1000:1000",' ] || die "the user of $1: $(grep '"User"' "$box_config")"
  say_line "$1: $(mb "$box_root") MB, of which libhvd.so $(mb "$(find "$box_root" -name 'libhvd.so.0.*')")"
}
look_at hvd-agent
[ "$(tenths "$box_root")" -lt $((MAX_MB * 10)) ] || die "hvd-agent has $(mb "$box_root") MB, not less than $MAX_MB"
look_at hvd-elastic
mapfile -t health < <(python3 "$boxes_tool" health "$folder/boxes/hvd-agent.json")
look_at train

# ---- a training ------------------------------------------------------------------------------------

for n in 1 2 3; do network_join $n; done
mkdir -m 700 job
chown 1000:1000 job
mkdir -m 777 seen
chmod 777 seen
od -An -N32 -tx1 /dev/urandom | tr -d ' \n' >token
chmod 444 token
new_training() {
  new_job
  say=$folder/seen/$job
  : >"$say"
  chmod 666 "$say"
}
limits=() # each container has its own
words() { printf 'word %s\n' "$@"; }
settings() { mapfile -t limits < <(printf '%s\n' "$@" && printf 'mount %s\n' "$folder/token /token ro" "$folder/seen /seen rw"); }

start_driver() {
  settings "mount $folder/job /job rw" 'nofile 1024' 'shm 0'
  mapfile -t command < <(words hvd-elastic --state-dir /job/state --job train -np 3 --min-np 1 --max-np 8 --discovery join \
    --port 7000 --token-file /token --beat 200ms --lease 3s --gather 1s --blacklist-cooldown-range 0 0 /opt/train/train "/seen/$job" /seen/stop)
  box_start driver 1 "${limits[@]}" "${command[@]}"
}
start_agent() { # NAME NET SLOTS SETTINGS...
  settings "${@:4}"
  mapfile -t command < <(words hvd-agent --join "$net.1.2:7000" --token-file /token --slots "$3")
  box_start "$1" "$2" "${limits[@]}" "${command[@]}"
}
two_agents() {
  start_agent one 2 2
  start_agent two 3 1 'user 1000770000:0' 'shm 0' 'nofile 1024'
}
healthy() { # NAME
  box_exec "$1" "${health[@]}" >health.out 2>&1
}

new_training
# in any order; HEALTHCHECK says why a container is well or not
two_agents
start_driver
await_round 3
for name in one two; do
  healthy $name || die "the HEALTHCHECK of $name fails: $(cat health.out)"
  grep -q "the agent of job train on host $name is connected to its driver" health.out || die "$name says: $(cat health.out)"
done
if healthy driver; then die "the HEALTHCHECK of agents passes where none is: $(cat health.out)"; fi

# a container is killed, and comes back
box_signal two KILL
box_ended two 137
await_round 2
start_agent two 3 1 'subordinate 200000' 'shm 0'
await_round 3
[ "$(stat -c %u "/proc/$(box_first two)")" = 201000 ] || die "two runs as user $(stat -c %u "/proc/$(box_first two)")"

# Only the agent in the container is killed: the first process of the container reaps its supervisor, and another agent comes.
first=$(box_first one)
supervisor=$(pgrep -P "$first" -x hvd-agent)
kill -KILL "$(pgrep -P "$supervisor" -x hvd-agent)"
await_true "the supervisor $supervisor is reaped" [ ! -e "/proc/$supervisor" ]
await_round 3
for name in one driver; do
  first=$(box_first $name)
  orphan=$(box_exec $name sh -c 'sh -c "echo \$\$" & exec true')
  if [ -z "$orphan" ] || [ ! -e "/proc/$first/root/proc/1" ]; then die "no orphan is left in $name"; fi
  await_true "the orphan $orphan in $name is reaped" [ ! -e "/proc/$first/root/proc/$orphan" ]
done

# the training ends by itself
: >seen/stop
box_ended driver 0
for name in one two; do box_ended $name 0; done
[ "$(grep -c 'counted [1-9]' driver.log)" = 3 ] || die "three workers were to say what they have counted: $(tail driver.log)"

# another training: a container is told to leave, then the driver is stopped
rm seen/stop
new_training
two_agents
start_driver
await_round 3
box_signal two TERM
box_ended two 0
await_round 2
box_signal driver TERM
box_ended driver 143
box_ended one 0
[ "$(crun --root "$folder/boxes/crun" list -q)" = '' ] || die "a container is left: $(crun --root "$folder/boxes/crun" list)"
state=$folder/job/state
nothing_left
say_line 'two trainings in containers: one killed, an agent killed inside of one, one told to leave, the driver stopped'
