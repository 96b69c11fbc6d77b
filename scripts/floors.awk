# floors.awk: scripts/floors.txt as arrays, and the questions that the checks ask of it.
BEGIN {
  table = "scripts/floors.txt"
  for (line = 1; (getline row < table) > 0; line++) {
    count = split(row, word, " ")
    if (word[1] == "folder") {
      floor_of[word[2]] = word[3]
      line_of[word[2]] = line
      for (i = 4; i <= count; i++)
        allowed[word[2], word[i]] = line
    } else if (word[1] == "header") {
      for (i = 3; i <= count; i++) {
        header_where[++headers] = word[2]
        header_name[headers] = pattern(word[i])
      }
    }
  }
  close(table)
}

# A shell pattern as a regular expression.
function pattern(text) {
  gsub(/[.+]/, "[&]", text)
  gsub(/\*/, ".*", text)
  return "^" text "$"
}

# The folder of the table that the file belongs to, or "".
function folder_of(path) {
  while (sub("/[^/]*$", "", path))
    if (path in floor_of)
      return path
  return ""
}

function is_pure(folder) {
  return folder in floor_of && floor_of[folder] <= 2
}

function may_include(from, to) {
  return from == to || (from, to) in allowed || (from, "*") in allowed
}
