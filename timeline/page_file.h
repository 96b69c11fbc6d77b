/*
 * page_file.h: a file of lines that several processes append to. The file always consists of whole
 * lines, even when one of the processes is killed. A process that dies in the middle of a write has
 * written whole pages of it, because the kernel writes page by page. Therefore no line crosses the
 * end of a page: the rest of a page is filled with blanks.
 */
#ifndef TIMELINE_PAGE_FILE_H
#define TIMELINE_PAGE_FILE_H

#include "base/err.h"

#define PAGE_FILE_PAGE  4096
#define PAGE_FILE_PAGES 8

struct page_file {
    int fd; /* -1: not open */
    /* a buffer of PAGE_FILE_PAGES pages; its first byte is the beginning of a page of the file */
    char *data;
    size_t used; /* bytes in the buffer */
};

/*
 * The text of the first page, at most PAGE_FILE_PAGE bytes. Its first `same` bytes are equal in all
 * files of this kind; then follows the number of the job in decimal. A file that is missing, empty,
 * or of a lower job number is created anew. Codes are those of timeline_start.
 */
struct page_file_first {
    const char *text; /* the whole text of the first page */
    size_t same;      /* how many bytes of `text` are equal in all files of this kind */
    uint64_t number;  /* of the job */
};

/* Opens the file, or makes it with this first page. path and first are borrowed. */
int page_file_open(struct page_file *file, const char *path, const struct page_file_first *first,
                   struct hvd_err *err) MUST_CHECK;
void page_file_close(struct page_file *file); /* closes the file; buffered lines are lost */

/* Adds a line of at most one page, with its newline, to the buffer. Returns false if the buffer is
 * full: page_file_write must be called first. */
bool page_file_add(struct page_file *file, const char *line, size_t length);

/* Appends the buffer to the file. After the call the buffer is empty, even after an error. */
int page_file_write(struct page_file *file, struct hvd_err *err);

#endif
