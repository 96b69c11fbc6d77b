/*
 * test_log_file.c: agent/log_file: which files the agent writes its log to.
 */
#include "agent/log_file.h"

#include "base/log.h"
#include "tests/lib/files.h"
#include "tests/lib/fixture.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define STRANGER 12345 /* a user without a name */

static struct log_file file;
static struct file_bytes bytes;
static char path[400], other[400];

static void begin(struct test *t)
{
    snprintf(path, sizeof(path), "%s/a/b/agent.log", test_dir(t));
    snprintf(other, sizeof(other), "%s/other", test_dir(t));
}

static void end(struct test *t)
{
    (void)t;
    log_file_close(&file);
}
FIXTURE(begin, end)

/* Writes a line, and reads what the file at `where` then holds. */
static const char *logged(const char *where)
{
    log_file_open(&file, path, "job", "host");
    log_warning(AGENT, "a line");
    log_file_close(&file);
    files_read(where, &bytes);
    bytes.bytes[bytes.length] = '\0';
    return bytes.bytes;
}

TEST(the_first_line_makes_folders_and_file)
{
    struct stat st;

    log_file_open(&file, path, "job", "host");
    CHECK(t, !files_exist(path));
    CHECK_HAS(t, logged(path), "a line\n");
    CHECK_INT(t, stat(path, &st), ==, 0);
    CHECK_INT(t, st.st_mode & 0777, ==, 0600);
}

/* Another user may have planted files in a folder that both may use. */
TEST(planted_files_are_not_written)
{
    CHECK_HAS(t, logged(path), "a line\n");
    files_write(other, "mine", 4);
    CHECK_INT(t, unlink(path), ==, 0);
    CHECK_INT(t, symlink(other, path), ==, 0);
    CHECK_TEXT(t, logged(other), "mine");
    CHECK_INT(t, unlink(path), ==, 0);
    CHECK_INT(t, link(other, path), ==, 0);
    CHECK_TEXT(t, logged(other), "mine");
    CHECK_INT(t, unlink(path), ==, 0);
    CHECK_INT(t, mkfifo(path, 0600), ==, 0); /* without a reader: not waited for */
    CHECK_TEXT(t, logged(other), "mine");
    CHECK_INT(t, unlink(path), ==, 0);
    if (geteuid() == 0) {
        files_write(path, "theirs", 6);
        CHECK_INT(t, chown(path, STRANGER, STRANGER), ==, 0);
        CHECK_TEXT(t, logged(path), "theirs");
    }
}
