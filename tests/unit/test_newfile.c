#include "sqlite/newfile.h"

#include "tests/lib/files.h"
#include "tests/lib/test.h"

#include <stdio.h>
#include <string.h>
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

static void appears_whole_when_it_is_published(struct test *t)
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
out:
    newfile_release(&newfile);
}

static void leaves_nothing_when_it_is_not(struct test *t)
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
out:
    newfile_release(&newfile);
    newfile_release(&newfile);
}

static void removes_what_a_dead_creator_left(struct test *t)
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
out:
    newfile_release(&newfile);
}

static void names_what_it_cannot_remove(struct test *t)
{
    struct hvd_err err;

    begin(t);
    CHECK_INT(t, mkdir(beside(".hvd-new"), 0700), ==, 0);
    CHECK_CODE(t, newfile_begin(&newfile, path, 0644, 0, &err), HVD_E_IO);
    CHECK_HAS(t, err.text,
              "x.db.hvd-new: cannot remove what is left of an earlier start: Is a dir");
out:
    newfile_release(&newfile);
}

static void touches_nothing_that_is_there(struct test *t)
{
    static struct file_bytes bytes;

    begin(t);
    files_write(path, "mine", 4);
    CHECK_CODE(t, newfile_begin(&newfile, path, 0644, 0, NULL), HVD_E_EXISTS);
    newfile_release(&newfile);
    files_read(path, &bytes);
    CHECK_INT(t, bytes.length, ==, 4);
out:;
}

/* SQLite would play them back into the new database. */
static void refuses_a_log_without_its_database(struct test *t)
{
    static const char *const left[] = { "-wal", "-journal" };
    struct hvd_err err;

    begin(t);
    for (size_t i = 0; i < ARRAY_SIZE(left); i++) {
        files_write(beside(left[i]), "x", 1);
        CHECK_CODE(t, newfile_begin(&newfile, path, 0644, 0, &err), HVD_E_CORRUPT);
        newfile_release(&newfile);
        CHECK_HAS(t, err.text, beside(left[i]));
        CHECK_HAS(t, err.text,
                  " is there without its database; move it to where that went, or delete it to "
                  "start afresh");
        CHECK_INT(t, unlink(beside(left[i])), ==, 0);
    }
    files_write(beside("-shm"), "x", 1); /* this one says nothing */
    CHECK_OK(t, newfile_begin(&newfile, path, 0644, 0, &err));
out:
    newfile_release(&newfile);
}

static void one_process_makes_it_at_a_time(struct test *t)
{
    struct newfile second = { .dir_fd = -1 };
    struct hvd_err err;

    begin(t);
    CHECK_OK(t, newfile_begin(&newfile, path, 0644, 0, NULL)); /* flock() is between open files */
    CHECK_CODE(t, newfile_begin(&second, path, 0644, 0, &err), HVD_E_BUSY);
    CHECK_HAS(t, err.text, "x.db: another process has locked its directory, perhaps to create");
    newfile_release(&second);
    CHECK(t, files_exist(beside(".hvd-new"))); /* the first one's, still */
    CHECK_CODE(t, newfile_begin(&second, path, 0644, 15, &err), HVD_E_BUSY);
    newfile_release(&second);
    newfile_release(&newfile);
    CHECK_OK(t, newfile_begin(&second, path, 0644, 0, &err));
out:
    newfile_release(&second);
    newfile_release(&newfile);
}

static void names_the_directory_that_is_wrong(struct test *t)
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
              "x.db.hvd-new: cannot create it: Permission denied; make it and its dir");
    CHECK_INT(t, chmod(dir, 0000), ==, 0);
    CHECK_CODE(t, newfile_begin(&newfile, path, 0644, 0, &err), HVD_E_DENIED);
    CHECK_HAS(t, err.text, "cannot open the directory: Permission denied");
out:
    files_obey_permissions(false);
    newfile_release(&newfile);
}

static void takes_the_current_and_the_root_directory(struct test *t)
{
    begin(t);
    CHECK_INT(t, chdir(dir), ==, 0);
    CHECK_OK(t, newfile_begin(&newfile, "plain", 0644, 0, NULL));
    CHECK_OK(t, newfile_publish(&newfile, NULL));
    newfile_release(&newfile);
    snprintf(path, sizeof(path), "%.400s/plain", dir);
    CHECK(t, files_exist(path));
    CHECK_CODE(t, newfile_begin(&newfile, "/proc", 0644, 0, NULL), HVD_E_EXISTS);
out:
    newfile_release(&newfile);
}

static void says_which_step_failed(struct test *t)
{
    struct hvd_err err;

    begin(t);
    CHECK_OK(t, newfile_begin(&newfile, path, 0644, 0, NULL));
    CHECK_INT(t, unlink(newfile.temp), ==, 0);
    CHECK_CODE(t, newfile_publish(&newfile, &err), HVD_E_NOTFOUND);
    CHECK_HAS(t, err.text, "x.db.hvd-new: cannot write it to the disk");
out:
    newfile_release(&newfile);
}

TESTS(CASE(appears_whole_when_it_is_published), CASE(leaves_nothing_when_it_is_not),
      CASE(removes_what_a_dead_creator_left), CASE(names_what_it_cannot_remove),
      CASE(touches_nothing_that_is_there), CASE(refuses_a_log_without_its_database),
      CASE(one_process_makes_it_at_a_time), CASE(names_the_directory_that_is_wrong),
      CASE(takes_the_current_and_the_root_directory), CASE(says_which_step_failed))
