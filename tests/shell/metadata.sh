# shellcheck shell=bash
# shellcheck disable=SC2154 # what lib.sh sets
# The metadata services of clouds for a test, and agents that take them for those of their machines. Sourced after lib.sh,
# used after test_begin:
#
#     metadata_start                                      the server runs
#     metadata_agents                                     from now on each agent of a job has a service of its own
#     metadata notice host=127.0.0.2 cloud=aws in=120     see tests/metadata/metadata_server.py
metadata_root=$(realpath "$(dirname "$0")/..")

# metadata WHAT NAME=VALUE...: prints the answer. The shell speaks HTTP itself, because tests ask again and again.
metadata() {
  local what=$1 connection line
  shift
  exec {connection}<>"/dev/tcp/${metadata_server%:*}/${metadata_server##*:}" || die "$metadata_server: nothing listens there"
  printf 'GET /-/%s?%s HTTP/1.0\r\n\r\n' "$what" "$(IFS='&' && echo "$*")" >&"$connection"
  read -r -t 60 line <&"$connection" || die "$metadata_server: no answer to $what $*"
  [[ $line = 'HTTP/'*' 200 '* ]] || die "$metadata_server: $what $*: $line"
  while read -r -t 60 line <&"$connection" && [ "$line" != $'\r' ]; do :; done
  timeout 60 cat <&"$connection" || die "$metadata_server: half an answer to $what $*"
  exec {connection}>&-
}

# metadata_count HOST NAME: one of the counts.
metadata_count() { metadata counts "host=$1" | sed -E "s/.*\\b$2 ([0-9]+).*/\\1/"; }

metadata_start() {
  serve metadata python3 "$metadata_root/metadata/metadata_server.py"
  metadata_server=$address
}

# A stand-in for the agent gives the agent of each host its own services, as all hosts of a test are one machine: it looks
# for the name of its host in the settings, and puts that name in the place of @HOST@ in --preemption.
metadata_agents() {
  mkdir -p "$folder/far"
  cp "$elastic" "$folder/far/hvd-elastic"
  cat >"$folder/far/hvd-agent" <<END
#!/bin/bash
settings=\$(cat)
host=\$(sed -n 's/^host = "\\(.*\\)"\$/\\1/p' <<<"\$settings")
export AWS_EC2_METADATA_SERVICE_ENDPOINT=http://$metadata_server/\$host GCE_METADATA_HOST=$metadata_server/\$host
export HVD_AZURE_METADATA=http://$metadata_server/\$host HVD_NOTICE_PAUSE=${metadata_pause:-200ms} HVD_DMI=$folder/dmi
exec "$(realpath "${elastic%/*}/../agent/hvd-agent")" "\$@" <<<"\${settings//@HOST@/\$host}"
END
  chmod +x "$folder/far/hvd-agent"
  elastic=$folder/far/hvd-elastic
}
