/*
 * page_text.h: the page for browsers, which cmake/page.cmake makes of the files in page/, and the
 * headers of its answer.
 */
#ifndef DRIVER_CONTROL_PAGE_TEXT_H
#define DRIVER_CONTROL_PAGE_TEXT_H

#include <stddef.h>

extern const unsigned char page_text[];
extern const size_t page_text_length;
/* The policy names the style and the script of the page by their sums: no other one runs. */
extern const char page_headers[];
/* The policy of the page as a file (page_file.c), which asks no server for anything. */
extern const char page_file_policy[];

#endif
