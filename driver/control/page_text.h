/*
 * page_text.h: the page for browsers, which cmake/page.cmake makes from the files in page/, and the
 * HTTP headers of an answer with this page.
 */
#ifndef DRIVER_CONTROL_PAGE_TEXT_H
#define DRIVER_CONTROL_PAGE_TEXT_H

#include <stddef.h>

extern const unsigned char page_text[];
extern const size_t page_text_length;
/* Their Content-Security-Policy names the style and the script of the page by their hashes, so no
 * other style or script runs. */
extern const char page_headers[];
/* The Content-Security-Policy of the page as a file (page_file.c), which may load nothing from a
 * server. */
extern const char page_file_policy[];

#endif
