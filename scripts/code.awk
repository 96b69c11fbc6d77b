# code.awk: C without what only looks like code.

# The line without comments, and with its strings and character constants empty.
# within_comment carries a comment over to the next line; reset it for each file.
function code_of(line,    out, at) {
  out = ""
  while (line != "") {
    if (within_comment) {
      at = index(line, "*/")
      if (!at)
        return out
      within_comment = 0
      line = " " substr(line, at + 2)
    } else if (!match(line, /["'\/]/)) {
      return out line
    } else {
      out = out substr(line, 1, RSTART - 1)
      line = substr(line, RSTART)
      if (line ~ /^\/\*/) {
        within_comment = 1
        line = substr(line, 3)
      } else if (line ~ /^\/\//) {
        return out
      } else {
        out = out substr(line, 1, 1)
        if (match(line, /^"([^"\\]|\\.)*"/) || match(line, /^'([^'\\]|\\.)*'/)) {
          out = out substr(line, 1, 1)
          line = substr(line, RLENGTH + 1)
        } else {
          line = substr(line, 2)
        }
      }
    }
  }
  return out
}
