#!/usr/bin/env bash
# A state directory that another user has planted, or can change, is not believed. The harm: its key
# opens the victim's driver, and --resume runs its command as the victim.
#
#     state_folder.sh ELASTIC TRAINER
. "$(dirname "$0")/../shell/lib.sh"
test_begin "$@"
stranger=12345

# An unfinished job whose command leaves a mark; all its processes are killed.
planted() {
  new_job
  start -np 1 -H 127.0.0.1:1 sh -c "echo ran >>$folder/ran; exec $trainer --say $say"
  await_round 1
  lose_all
  : >"$folder/ran"
}

# The ways to drive the job of the folder, and to ask about it.
drives() { printf '%s\n' "--resume $job --state-dir $state" "--state-dir $state -np 1 -H 127.0.0.1:1 true"; }
asks() { printf '%s\n' status hosts events stop 'drain 127.0.0.1' | sed "s|\$| --state-dir $state|"; }

# refused WHAT TEXT [WAYS...]: each of these ways, or each of all, ends with a refusal that says TEXT, and runs nothing.
refused() {
  local way ways words
  mapfile -t ways < <(if [ $# -gt 2 ]; then "${@:3}"; else drives && asks; fi)
  for way in "${ways[@]}"; do
    read -ra words <<<"$way"
    BODY_TEST=$folder timeout "$PATIENCE" "$elastic" "${words[@]}" >>"$out" 2>"$err" </dev/null &&
      die "$1: '$way' was not refused"
    grep -qF -- "$2" "$err" || die "$1: '$way' does not say '$2': $(cat "$err")"
  done
  [ ! -s "$folder/ran" ] || die "$1: the planted command has run"
}

planted
chmod 0777 "$state"
refused 'a folder that others may write to' "$state: other users may write there"
grep -qF "chmod go-w $state" "$err" || die "no remedy: $(cat "$err")"
chmod 0700 "$state"
chmod 0666 "$state/command"
refused 'a command that others may write' "$state/command: other users may write there"
chmod 0600 "$state/command"
mv "$state/job.db" "$folder/elsewhere.db"
ln -s "$folder/elsewhere.db" "$state/job.db"
refused 'a job.db that is a link' "$state/job.db: this name is a symbolic link"
mv "$folder/elsewhere.db" "$state/job.db"

above=$folder/above
mkdir "$above" && mv "$state" "$above/" && state=$above/$job
chmod 0777 "$above"
refused 'a folder above that others may write to' "$above: other users may write there"
chmod 1777 "$above"
ask status >"$folder/found" 2>"$err"
grep -q 'orphaned' "$folder/found" || die "a sticky folder above is refused: $(cat "$err")"

if [ "$(id -u)" = 0 ]; then
  chown -R "$stranger" "$state"
  # Root asks as the user who owns the folder, so a verb is no way to run anything as root. A driver is.
  refused 'a folder of another user' "$state: belongs to user $stranger" drives
  chown -R 0 "$state"
  chown "$stranger" "$above"
  refused 'a folder above of another user' "$above: belongs to user $stranger"
  chown 0 "$above"
  for file in job.db command lock agents; do
    chown "$stranger" "$state/$file"
    refused "$file of another user" "$state/$file: belongs to user $stranger"
    chown 0 "$state/$file"
  done
  ln -s "$state" "$folder/way" && chown -h "$stranger" "$folder/way"
  real=$state state=$folder/way
  refused 'a link of another user on the way' "$folder/way: belongs to user $stranger"
  state=$real
else
  say_line 'not tried: folders of another user, which only root can make'
fi

# The same folder, when it is the user's own again, is a job that goes on.
BODY_TEST=$folder "$elastic" --resume "$job" --state-dir "$state" >>"$out" 2>>"$err" </dev/null &
driver=$!
await "$folder/ran" '^ran$'
ask stop >>"$out" 2>>"$err"
finish 143
