/*
 * test_newfile.c: sqlite/newfile: a database appears whole or not at all, one process makes it, and
 * files of a dead maker are removed.
 */
#include "sqlite/newfile.h"

#include "tests/lib/files.h"
#include "tests/lib/fixture.h"

#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static struct newfile newfile;
static char dir[LIMIT_DB_PATH_BYTES];
static char path[LIMIT_DB_PATH_BYTES];

static void begin(struct test *t)
{
    snprintf(dir, sizeof(dir), "%s", test_dir(t));
    snprintf(path, sizeof(path), "%.400s/x.db", dir);
}

static const char *beside(const char *suffix)
{
    static char name[LIMIT_DB_PATH_BYTES + 32];

    snprintf(name, sizeof(name), "%s%s", path, suffix);
    return name;
}

static struct newfile later;

static void end_case(struct test *t)
{
    (void)t;
    files_obey_permissions(false);
    newfile_release(&later);
    newfile_release(&newfile);
    newfile_release(&newfile);
}
FIXTURE(NULL, end_case)

TEST(appears_whole_when_published)
{
    static struct file_bytes bytes;

    begin(t);
    CHECK_OK(t, newfile_begin(&newfile, path, 0644, 0, NULL));
    CHECK_TEXT(t, newfile.temp, beside(".hvd-new"));
    files_write(newfile.temp, "whole", 5);
    CHECK(t, !files_exist(path));
    CHECK_OK(t, newfile_publish(&newfile, NULL));
    CHECK(t, !files_exist(beside(".hvd-new")));
    files_read(path, &bytes);
    CHECK_INT(t, bytes.length, ==, 5);
}

TEST(leaves_nothing_when_not_published)
{
    begin(t);
    CHECK_OK(t, newfile_begin(&newfile, path, 0644, 0, NULL));
    files_write(newfile.temp, "half", 4);
    files_write(beside(".hvd-new-journal"), "x", 1);
    newfile_release(&newfile);
    CHECK(t, !files_exist(path));
    CHECK(t, !files_exist(beside(".hvd-new")));
    CHECK(t, !files_exist(beside(".hvd-new-journal")));
    CHECK_OK(t, newfile_begin(&newfile, path, 0644, 0, NULL));
}

TEST(removes_the_files_of_a_dead_creator)
{
    static const char *const left[] = { ".hvd-new", ".hvd-new-journal", ".hvd-new-wal",
                                        ".hvd-new-shm" };
    static struct file_bytes bytes;

    begin(t);
    for (size_t i = 0; i < ARRAY_SIZE(left); i++)
        files_write(beside(left[i]), "half", 4);
    CHECK_OK(t, newfile_begin(&newfile, path, 0644, 0, NULL));
    files_read(beside(".hvd-new"), &bytes);
    CHECK_INT(t, bytes.length, ==, 0);
    for (size_t i = 1; i < ARRAY_SIZE(left); i++)
        CHECK(t, !files_exist(beside(left[i])));
}

TEST(names_a_file_that_cannot_be_removed)
{
    struct hvd_err err;

    begin(t);
    CHECK_INT(t, mkdir(beside(".hvd-new"), 0700), ==, 0);
    CHECK_CODE(t, newfile_begin(&newfile, path, 0644, 0, &err), HVD_E_IO);
    CHECK_HAS(t, err.text,
              "x.db.hvd-new: cannot remove the file that an earlier start has left: Is a dir");
}

TEST(touches_no_existing_file)
{
    static struct file_bytes bytes;

    begin(t);
    files_write(path, "mine", 4);
    CHECK_CODE(t, newfile_begin(&newfile, path, 0644, 0, NULL), HVD_E_EXISTS);
    newfile_release(&newfile);
    files_read(path, &bytes);
    CHECK_INT(t, bytes.length, ==, 4);
}

/* SQLite would play the old log back into the new database. */
TEST(refuses_a_log_without_its_database)
{
    static const char *const left[] = { "-wal", "-journal" };
    struct hvd_err err;

    begin(t);
    for (size_t i = 0; i < ARRAY_SIZE(left); i++) {
        files_write(beside(left[i]), "x", 1);
        CHECK_CODE(t, newfile_begin(&newfile, path, 0644, 0, &err), HVD_E_CORRUPT);
        newfile_release(&newfile);
        CHECK_HAS(t, err.text, beside(left[i]));
        CHECK_HAS(
            t, err.text,
            " is there without its database; move this file to the folder of the database, or "
            "delete it to "
            "start afresh");
        CHECK_INT(t, unlink(beside(left[i])), ==, 0);
    }
    files_write(beside("-shm"), "x", 1); /* this file is no sign of a log */
    CHECK_OK(t, newfile_begin(&newfile, path, 0644, 0, &err));
}

TEST(one_process_makes_the_file_at_a_time)
{
    struct hvd_err err;

    begin(t);
    CHECK_OK(t, newfile_begin(&newfile, path, 0644, 0, NULL)); /* flock() is between open files */
    CHECK_CODE(t, newfile_begin(&later, path, 0644, 0, &err), HVD_E_BUSY);
    CHECK_HAS(t, err.text,
              "x.db: another process has locked the directory of this file, perhaps to create");
    newfile_release(&later);
    CHECK(t, files_exist(beside(".hvd-new"))); /* the file of the first process is still there */
    CHECK_CODE(t, newfile_begin(&later, path, 0644, 15, &err), HVD_E_BUSY);
    newfile_release(&later);
    newfile_release(&newfile);
    CHECK_OK(t, newfile_begin(&later, path, 0644, 0, &err));
}

TEST(names_the_directory_that_is_wrong)
{
    struct hvd_err err;

    begin(t);
    CHECK_CODE(t, newfile_begin(&newfile, beside("/y.db"), 0644, 0, &err), HVD_E_NOTFOUND);
    newfile_release(&newfile);
    CHECK_HAS(t, err.text, "x.db: cannot open the directory: No such file or directory; create");
    files_write(path, "", 0);
    CHECK_CODE(t, newfile_begin(&newfile, beside("/y.db"), 0644, 0, &err), HVD_E_NOTFOUND);
    newfile_release(&newfile);
    CHECK_HAS(t, err.text, "Not a directory");
    files_obey_permissions(true);
    CHECK_INT(t, unlink(path), ==, 0);
    CHECK_INT(t, chmod(dir, 0500), ==, 0);
    CHECK_CODE(t, newfile_begin(&newfile, path, 0644, 0, &err), HVD_E_DENIED);
    newfile_release(&newfile);
    CHECK_HAS(t, err.text,
              "x.db.hvd-new: cannot create it: Permission denied; make the file and its dir");
    CHECK_INT(t, chmod(dir, 0000), ==, 0);
    CHECK_CODE(t, newfile_begin(&newfile, path, 0644, 0, &err), HVD_E_DENIED);
    CHECK_HAS(t, err.text, "cannot open the directory: Permission denied");
}

TEST(takes_the_current_and_the_root_directory)
{
    begin(t);
    CHECK_INT(t, chdir(dir), ==, 0);
    CHECK_OK(t, newfile_begin(&newfile, "plain", 0644, 0, NULL));
    CHECK_OK(t, newfile_publish(&newfile, NULL));
    newfile_release(&newfile);
    snprintf(path, sizeof(path), "%.400s/plain", dir);
    CHECK(t, files_exist(path));
    CHECK_CODE(t, newfile_begin(&newfile, "/proc", 0644, 0, NULL), HVD_E_EXISTS);
}

TEST(says_which_step_failed)
{
    struct hvd_err err;

    begin(t);
    CHECK_OK(t, newfile_begin(&newfile, path, 0644, 0, NULL));
    CHECK_INT(t, unlink(newfile.temp), ==, 0);
    CHECK_CODE(t, newfile_publish(&newfile, &err), HVD_E_NOTFOUND);
    CHECK_HAS(t, err.text, "x.db.hvd-new: cannot write it to the disk");
}
