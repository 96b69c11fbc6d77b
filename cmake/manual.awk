# The page that help2man makes begins its description with the lines of "usage:". Here they become the synopsis.
/^\.SH DESCRIPTION/ && !part { print ".SH SYNOPSIS"; print ".nf"; part = 1; next }
part == 1 && /^\.(IP|PP|TP|br)/ && !/^\.PP/ { next }
part == 1 && /^\.PP/ { print ".fi"; print ".SH DESCRIPTION"; part = 2; next }
part == 1 { sub(/^usage: /, ""); sub(/^or: /, "") }
{ print }
