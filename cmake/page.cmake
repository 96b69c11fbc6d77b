# Makes page_text.c of page.html, into which page.css and page.js are put: one page that needs no other file.
#     cmake -DFOLDER=driver/control/page -DOUT=page_text.c -P page.cmake

# The SHA-256 of a text, in base64.
function(page_sum text out)
  string(SHA256 hex "${text}")
  string(APPEND hex "00") # 32 bytes and one more are 11 groups of three
  set(digits ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/)
  set(sum "")
  foreach(group RANGE 10)
    math(EXPR at "${group} * 6")
    string(SUBSTRING ${hex} ${at} 6 bits)
    foreach(shift 18 12 6 0)
      math(EXPR digit "(0x${bits} >> ${shift}) & 63")
      string(SUBSTRING ${digits} ${digit} 1 digit)
      string(APPEND sum ${digit})
    endforeach()
  endforeach()
  string(SUBSTRING ${sum} 0 43 sum)
  set(${out} "${sum}=" PARENT_SCOPE)
endfunction()

file(READ ${FOLDER}/page.html page)
file(READ ${FOLDER}/page.css css)
file(READ ${FOLDER}/page.js js)
page_sum("\n${css}" css_sum)
page_sum("\n${js}" js_sum)
string(REPLACE "<style></style>" "<style>\n${css}</style>" page "${page}")
string(REPLACE "<script></script>" "<script>\n${js}</script>" page "${page}")
file(WRITE ${OUT}.html "${page}")
file(READ ${OUT}.html bytes HEX)
string(LENGTH "${bytes}" length)
math(EXPR length "${length} / 2")
string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
string(REGEX REPLACE "((0x..,)(0x..,)(0x..,)(0x..,)(0x..,)(0x..,)(0x..,)(0x..,))" "\\1\n" bytes "${bytes}")
set(policy "img-src data:; style-src 'sha256-${css_sum}'; script-src 'sha256-${js_sum}'; ")
string(APPEND policy "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'")
file(WRITE ${OUT} "/* Made by cmake/page.cmake. */
#include \"driver/control/page_text.h\"

const unsigned char page_text[] = {
${bytes}0
};
const size_t page_text_length = ${length};
const char page_headers[] = \"Content-Security-Policy: default-src 'none'; connect-src 'self'; \"
                            \"frame-ancestors 'none'; ${policy}\\r\\n\"
                            \"Referrer-Policy: no-referrer\\r\\n\"
                            \"Cross-Origin-Resource-Policy: same-origin\\r\\n\";
const char page_file_policy[] = \"default-src 'none'; ${policy}\";
")
