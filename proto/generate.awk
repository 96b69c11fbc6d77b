# generate.awk: makes two headers of what is declared once, PROTOCOL.md (number, name, direction, moment, keys
# and limit of each message) and hvd.proto (its fields, each with its largest value in brackets).
#
#     awk -f generate.awk -v what=structs PROTOCOL.md hvd.proto     msg_structs.h: the types of messages, for msg.h
#     awk -f generate.awk -v what=fields  PROTOCOL.md hvd.proto     msg_fields.h: the tables that codec.c, copy.c,
#                                                                   describe.c and catalog.c are stamped out of
#
# Called by proto/CMakeLists.txt. A row that cannot be read, a field without a limit that needs one, a message that
# stands in one of the two files alone: each ends the build with the place and the remedy.

function stop(text) {
  print FILENAME ":" FNR ": " text > "/dev/stderr"
  failed = 1
  exit 1
}

function trim(text) {
  gsub(/^[ \t]+|[ \t]+$/, "", text)
  return text
}

# HELLO_AGENT -> HelloAgent
function camel(name,    words, count, i, out) {
  count = split(tolower(name), words, "_")
  for (i = 1; i <= count; i++)
    out = out toupper(substr(words[i], 1, 1)) substr(words[i], 2)
  return out
}

# HelloAgent -> hello_agent
function snake(name,    i, letter, out) {
  for (i = 1; i <= length(name); i++) {
    letter = substr(name, i, 1)
    out = out (letter ~ /[A-Z]/ && i > 1 ? "_" : "") tolower(letter)
  }
  return out
}

function link_of(words) {
  if (words == "up") return "LINK_UP"
  if (words == "down") return "LINK_DOWN"
  if (words == "agent ↔ driver") return "LINK_AGENT_TO_DRIVER | LINK_DRIVER_TO_AGENT"
  if (words == "worker ↔ agent") return "LINK_WORKER_TO_AGENT | LINK_AGENT_TO_WORKER"
  if (words !~ /^(agent|driver|worker|client|puller|holder) → (agent|driver|worker|client|puller|holder)$/)
    stop("\"" words "\" is no direction; it is written as in the other rows")
  sub(/ → /, "_TO_", words)
  return "LINK_" toupper(words)
}

function links_of(cell,    words, count, i, out) {
  count = split(cell, words, /, /)
  for (i = 1; i <= count; i++)
    out = out (i > 1 ? " | " : "") link_of(trim(words[i]))
  return out
}

function keys_of(cell,    out) {
  if (cell ~ /[^tir]/)
    stop("\"" cell "\" are no keys; they are letters of t, i and r")
  if (cell ~ /t/) out = out " | KEY_TERM"
  if (cell ~ /i/) out = out " | KEY_INCARNATION"
  if (cell ~ /r/) out = out " | KEY_ROUND"
  return out == "" ? "KEY_NONE" : substr(out, 4)
}

function when_of(cell) {
  if (cell == "G") return "WHEN_GREETING"
  if (cell == "O") return "WHEN_OPEN"
  if (cell == "GO") return "WHEN_ANY"
  stop("\"" cell "\" is no moment; it is G, O or GO")
}

function bytes_of(cell,    part) {
  if (cell !~ /^[0-9]+ [KM]iB$/)
    stop("\"" cell "\" is no limit; write 8 KiB or 1 MiB")
  split(cell, part, " ")
  return (part[2] == "KiB" ? "KIB(" : "MIB(") part[1] ")"
}

# A row of the table of messages in PROTOCOL.md.
FILENAME ~ /PROTOCOL.md$/ && /^\| [1-9][0-9][0-9] \| [A-Z_]+ \|/ {
  split($0, cell, "|")
  name = trim(cell[3])
  numbers[++messages] = trim(cell[2])
  names[messages] = name
  number_of[camel(name)] = messages
  catalog[messages] = links_of(trim(cell[4])) ", " keys_of(trim(cell[6])) ", " when_of(trim(cell[5])) ", " \
    bytes_of(trim(cell[7]))
}

FILENAME ~ /hvd.proto$/ && /^message [A-Za-z]+ \{/ {
  within = $2
  body[within] = declared[within] = ""
  next
}

within != "" && /^\}/ {
  if (!is_message[within])
    parts[++part_count] = within
  else if (!(within in number_of))
    stop(within " has no row in the table of PROTOCOL.md; give it a number, a direction and a limit there")
  seen[within] = 1
  within = ""
  next
}

# The keys are the first three fields of each message, and of nothing else.
within != "" && /^  uint64 (term = 1|incarnation = 2|round = 3);/ && (is_message[within] || $2 == "term") {
  is_message[within] = 1
  next
}

function max_of(default_max) {
  if (limit != "") return limit
  if (default_max == "") stop($0 ": a " type " needs its limit in brackets, as in // [LIMIT_TEXT_BYTES]")
  return default_max
}

# Adds a field to the struct and to the list of fields.
function field(kind, c_type, a, b) {
  declared[within] = declared[within] "    " c_type (c_type ~ /\*$/ ? "" : " ") name ";" \
    (remark == "" ? "" : " /* " remark " */") "\n"
  body[within] = body[within] " \\\n    F(" kind ", " name ", " a ", " b ")"
}

within != "" && /^  .*;/ {
  repeated = $1 == "repeated"
  type = repeated ? $2 : $1
  name = repeated ? $3 : $2
  limit = remark = ""
  raw = 0
  if (match($0, /\/\/ .*/)) {
    remark = substr($0, RSTART + 3)
    raw = sub(/^raw /, "", remark)
    if (match(remark, /^\[[^]]*\] ?/)) {
      limit = substr(remark, 2, index(remark, "]") - 2)
      remark = substr(remark, RLENGTH + 1)
    }
  }
  pair = split(limit, limits, /, /)
  if (!repeated && type == "bool") field("NUM", "bool", 1, 0)
  else if (!repeated && type == "uint32") field("NUM", "uint32_t", max_of("UINT32_MAX"), 0)
  else if (!repeated && type == "uint64") field("NUM", "uint64_t", max_of("UINT64_MAX"), 0)
  else if (!repeated && type == "int32") field("SIGNED", "int32_t", 0, 0)
  else if (!repeated && type == "int64" && name ~ /_us$/) field("SPAN", "int64_t", 0, 0)
  else if (!repeated && type == "string") field(raw ? "RAW" : "TEXT", "const char *", max_of(""), 0)
  else if (!repeated && type == "bytes") field("BYTES", "struct msg_bytes", max_of(""), 0)
  else if (repeated && type == "uint64") field("IDS", "struct msg_ids", max_of(""), 0)
  else if (repeated && type == "string" && pair == 2) field("TEXTS", "struct msg_texts", limits[1], limits[2])
  else if (repeated && type ~ /^[A-Z]/)
    field("LIST", "struct msg_" snake(type) "_list", max_of(""), snake(type))
  else stop($0 ": a field is bool, uint32, uint64, int32, int64 NAME_us, string, bytes, or a list of uint64, string " \
            "(with [entries, bytes of one]) or a part")
}

function struct_of(name) {
  return "struct msg_" snake(name) " {\n" declared[name] "};\n"
}

function print_structs(    i) {
  print "/* Made by proto/generate.awk of PROTOCOL.md and hvd.proto; included by proto/msg.h. */"
  print "enum msg_type {"
  for (i = 1; i <= messages; i++)
    print "    MSG_" names[i] " = " numbers[i] ","
  print "};\n"
  for (i = 1; i <= part_count; i++) {
    print struct_of(parts[i])
    print "struct msg_" snake(parts[i]) "_list {\n    const struct msg_" snake(parts[i]) " *items;\n    size_t count;\n};\n"
  }
  for (i = 1; i <= messages; i++)
    if (body[camel(names[i])] != "")
      print struct_of(camel(names[i]))
  print "union msg_body {"
  for (i = 1; i <= messages; i++)
    if (body[camel(names[i])] != "")
      print "    struct msg_" tolower(names[i]) " " tolower(names[i]) ";"
  print "};"
}

function print_fields(    i, name) {
  print "/* Made by proto/generate.awk of PROTOCOL.md and hvd.proto; included by proto/catalog.h. */"
  printf "#define MSG_PARTS(P)"
  for (i = 1; i <= part_count; i++)
    printf " \\\n    P(%s, %s)", snake(parts[i]), parts[i]
  print "\n"
  for (i = 1; i <= part_count; i++)
    print "#define FIELDS_" snake(parts[i]) "(F)" body[parts[i]] "\n"
  for (i = 1; i <= messages; i++)
    if (body[camel(names[i])] != "")
      print "#define FIELDS_" tolower(names[i]) "(F)" body[camel(names[i])] "\n"
  printf "#define MSG_CATALOG(M, EMPTY)"
  for (i = 1; i <= messages; i++) {
    name = camel(names[i])
    printf " \\\n    %s(%s, %s, %s, %s)", body[name] == "" ? "EMPTY" : "M", names[i], tolower(names[i]), name, catalog[i]
  }
  print ""
}

END {
  if (failed)
    exit 1
  if (!messages)
    stop("no row like | 101 | HELLO_AGENT | agent → driver | G | | 4 MiB | was found in PROTOCOL.md")
  for (i = 1; i <= messages; i++)
    if (!seen[camel(names[i])])
      stop("message " camel(names[i]) " is missing; PROTOCOL.md has " names[i] " in its table")
  if (what == "structs")
    print_structs()
  else
    print_fields()
}
