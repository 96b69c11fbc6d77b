# Completion for fish: the options of the programs, as each program lists them itself, and the verbs of hvd-elastic.
function __hvd_elastic_options
    $argv[1] --list-options 2>/dev/null | string replace -r '\t.*' '' | string replace -r -- '^' '--'
end
function __hvd_elastic_verbs
    hvd-elastic --help 2>/dev/null | awk '/^ *hvd-elastic [a-z]+ \|/ { on = 1 } on { sub(/^ *hvd-elastic /, ""); end = sub(/\[--help\]$/, ""); gsub(/\|/, " "); print } end { on = end = 0 }' | string split -n ' '
end
for program in hvd-elastic hvd-agent hvd-hosts hvd-audit hvd-timeline hvd-bench
    complete -c $program -n 'string match -q -- "-*" (commandline -ct)' -a "(__hvd_elastic_options $program)"
end
complete -c hvd-elastic -n 'test (count (commandline -opc)) = 1' -a '(__hvd_elastic_verbs)'
