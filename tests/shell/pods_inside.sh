#!/usr/bin/env bash
# shellcheck disable=SC2154 # what pods.sh has written into the file
# Becomes the first process of a container, in the namespaces of its pod: makes its file system below pods/POD, then its
# program with the user and the rights of the manifest. Started by pods.sh (pod_run), with a file of variables.
set -euo pipefail
# shellcheck source=/dev/null
. "$1"
cd "$folder"
root=$folder/pods/$pod

mount --make-rprivate /
mkdir -p "$root"
mount -t tmpfs -o mode=755 tmpfs "$root"
mkdir -p "$root"/{usr,etc,proc,dev,opt/train}
for name in bin sbin lib lib64; do
  [ ! -L "/$name" ] || ln -s "usr/$name" "$root/$name"
done
mount --rbind /usr "$root/usr"
mount --rbind /dev "$root/dev"
mount -t proc proc "$root/proc"
cp /etc/passwd /etc/group /etc/ld.so.cache /etc/nsswitch.conf "$root/etc/"
: >"$root/etc/hosts"
mount --bind hosts "$root/etc/hosts"
# the image
mount -t tmpfs -o mode=755 tmpfs "$root/usr/local/bin"
ln -s "$elastic" "$build/agent/hvd-agent" "$root/usr/local/bin"
ln -s "$pods_program" "$root/opt/train/train"

for mount in "${mounts[@]}"; do
  read -r kind name path part mode <<<"$mount"
  mkdir -p "$root$path"
  case $kind in
    claim) mount --bind "claims/$name/$part" "$root$path" ;;
    secret) mount --bind "secrets/$name" "$root$path" ;;
    scratch) mount --bind "pods/$pod.scratch/$part" "$root$path" ;;
    memory) mount -t tmpfs -o "size=$name,mode=777" tmpfs "$root$path" ;;
  esac
  [ "$mode" = rw ] || mount -o remount,bind,ro "$root$path"
done

# what only the test needs; it may lie below a folder of the pod
mkdir -p "$root$build" "$root$folder/seen"
mount --bind "$build" "$root$build"
mount --bind seen "$root$folder/seen"

mount -o remount,bind,ro "$root"
hostname "$pod"
exec chroot "$root" setpriv --reuid "$pod_uid" --regid "$pod_uid" --groups "$pod_gid" --no-new-privs \
  --bounding-set=-all --inh-caps=-all \
  env -i -C / PATH=/usr/local/bin:/usr/bin:/bin BODY_TEST="$folder" HVD_TRACEABLE=1 HVD_LOG_TIME=utc \
  HVD_LOG_LEVEL=info,job:debug "${pod_settings[@]}" "${pod_env[@]}" "${words[@]}"
