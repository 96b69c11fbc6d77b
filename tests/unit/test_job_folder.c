/*
 * test_job_folder.c: the folder of a job: who may begin or take over a job, what is put aside, and
 * which folder a user gets.
 */
#include "driver/job_folder.h"
#include "driver/journal/job_file.h"
#include "driver/journal/job_path.h"

#include "base/mem.h"
#include "tests/lib/files.h"
#include "tests/lib/test.h"

#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char state_dir[300];

static struct job_folder_wish wish_for(struct test *t)
{
    snprintf(state_dir, sizeof(state_dir), "%s/state/of/job", test_dir(t));
    return (struct job_folder_wish){ .state_dir = state_dir };
}

static void nothing(struct job_folder *folder)
{
    *folder = (struct job_folder){ .lock_fd = -1 };
}

static int end_job(struct job_folder *folder)
{
    const struct job_write ended = { .ended = true, .code = 0, .text = "finished" };

    return store_write(folder->store, &ended, 1, NULL);
}

TEST_FLAGS(a_job_begins_and_is_taken_over, TEST_NO_TORTURE)
{
    struct job_folder_wish wish = wish_for(t);
    struct job_folder first, second;
    struct stat stat_of;

    nothing(&first);
    nothing(&second);
    wish.job = "nightly";
    CHECK_OK(t, job_folder_open(&wish, &first, NULL));
    CHECK(t, !first.resumed);
    CHECK_TEXT(t, first.facts.job, "nightly");
    CHECK(t, first.facts.port);
    CHECK(t, stat(first.path, &stat_of) == 0 && (stat_of.st_mode & 0777) == 0700);
    memcpy(second.facts.key, first.facts.key, JOB_KEY_BYTES);
    job_folder_release(&first);
    wish.job = NULL;
    CHECK_OK(t, job_folder_open(&wish, &first, NULL));
    CHECK(t, first.resumed);
    CHECK_TEXT(t, first.facts.job, "nightly");
    CHECK(t, !memcmp(second.facts.key, first.facts.key, JOB_KEY_BYTES));
out:
    job_folder_release(&first);
}

TEST_FLAGS(the_folder_of_an_ended_job_is_put_aside, TEST_NO_TORTURE)
{
    struct job_folder_wish wish = wish_for(t);
    struct job_folder folder;
    struct hvd_err err;
    char aside[400];
    uint8_t key[JOB_KEY_BYTES];

    nothing(&folder);
    wish.job = "one";
    CHECK_OK(t, job_folder_open(&wish, &folder, NULL));
    CHECK_OK(t, end_job(&folder));
    memcpy(key, folder.facts.key, sizeof(key));
    job_folder_release(&folder);
    wish.resume = "one";
    CHECK_CODE(t, job_folder_open(&wish, &folder, &err), HVD_E_STATE);
    CHECK_HAS(t, err.text, "job one has ended: finished");
    CHECK(t, folder.facts.ended && folder.lock_fd < 0);
    CHECK_TEXT(t, folder.facts.text, "finished");
    CHECK(t, memcmp(key, folder.facts.key, sizeof(key)));
    wish.resume = NULL;
    wish.job = "two";
    CHECK_OK(t, job_folder_open(&wish, &folder, NULL));
    CHECK(t, !folder.resumed);
    CHECK_TEXT(t, folder.facts.job, "two");
    CHECK(t, memcmp(key, folder.facts.key, sizeof(key)));
    snprintf(aside, sizeof(aside), "%s/one.db", folder.path);
    CHECK(t, files_exist(aside));
out:
    job_folder_release(&folder);
}

TEST_FLAGS(a_living_driver_keeps_others_out, TEST_NO_TORTURE)
{
    struct job_folder_wish wish = wish_for(t);
    struct job_folder first, second, third;
    struct hvd_err err = { .code = 0 };

    nothing(&first);
    nothing(&second);
    nothing(&third);
    CHECK_OK(t, job_folder_open(&wish, &first, NULL));
    CHECK_CODE(t, job_folder_open(&wish, &second, &err), HVD_E_BUSY);
    CHECK_HAS(t, err.text, "the driver of this job lives");
    CHECK_OK(t, store_check(first.store, NULL));
    wish.takeover = true;
    CHECK_OK(t, job_folder_open(&wish, &second, NULL));
    CHECK(t, second.resumed);
    CHECK_CODE(t, store_check(first.store, NULL), HVD_E_LOST);
    job_folder_release(&first); /* the lock is the second one's by now */
    wish.takeover = false;
    CHECK_CODE(t, job_folder_open(&wish, &third, NULL), HVD_E_BUSY);
out:
    job_folder_release(&first);
    job_folder_release(&second);
    job_folder_release(&third);
}

/* A driver was killed while it started a program: the child that it had forked has the lock, too,
 * until it runs that program. Here the child waits until the next driver tries for the second time.
 */
TEST_FLAGS(the_lock_of_a_dead_driver_is_awaited, TEST_NO_TORTURE)
{
    struct job_folder_wish wish = wish_for(t);
    struct job_folder folder;
    char lock[400], ready;
    int fds[2] = { -1, -1 };
    pid_t driver;

    nothing(&folder);
    CHECK(t, !pipe(fds));
    driver = fork();
    if (driver == 0) {
        if (job_folder_open(&wish, &folder, NULL))
            abort();
        snprintf(lock, sizeof(lock), "%s/lock", folder.path);
        if (fork() == 0) {
            char opens[2 * (sizeof(struct inotify_event) + NAME_MAX + 1)];
            int watch = inotify_init1(IN_CLOEXEC);
            size_t seen = 0;

            if (inotify_add_watch(watch, lock, IN_OPEN) < 0 || write(fds[1], "r", 1) != 1)
                abort();
            while (seen < 2 * sizeof(struct inotify_event)) {
                ssize_t got = read(watch, opens, sizeof(opens));

                if (got <= 0)
                    abort();
                seen += (size_t)got;
            }
            _exit(0);
        }
        _exit(read(fds[0], &ready, 1) == 1 ? 0 : 1);
    }
    CHECK_INT(t, waitpid(driver, NULL, 0), ==, driver);
    CHECK_OK(t, job_folder_open(&wish, &folder, NULL));
    CHECK(t, folder.resumed);
out:
    close(fds[0]);
    close(fds[1]);
    job_folder_release(&folder);
}

TEST_FLAGS(an_unusable_folder_is_not_resumed, TEST_NO_TORTURE)
{
    struct job_folder_wish wish = wish_for(t);
    struct job_folder folder;
    struct hvd_err err = { .code = 0 };

    nothing(&folder);
    wish.resume = "nightly";
    CHECK_CODE(t, job_folder_open(&wish, &folder, &err), HVD_E_NOTFOUND);
    CHECK_HAS(t, err.text, "there is no job to resume");
    CHECK(t, !files_exist(state_dir));
    wish.resume = NULL;
    wish.job = "one";
    CHECK_OK(t, job_folder_open(&wish, &folder, NULL));
    job_folder_release(&folder);
    wish.job = "two";
    CHECK_CODE(t, job_folder_open(&wish, &folder, &err), HVD_E_EXISTS);
    CHECK_HAS(t, err.text, "the job in this folder is one, not two");
    wish.job = "../two";
    CHECK_CODE(t, job_folder_open(&wish, &folder, &err), HVD_E_INVAL);
out:
    job_folder_release(&folder);
}

/* A verb reads the file of the ended job while the next job begins in its folder: the records that
 * are only in the write-ahead log go aside with the file, and none of them gets into the new one.
 */
TEST_FLAGS(a_file_that_is_looked_at_is_put_aside_whole, TEST_NO_TORTURE)
{
    struct job_folder_wish wish = wish_for(t);
    struct store *looked = NULL;
    struct job_folder folder;
    struct job_facts facts;
    char path[400];

    nothing(&folder);
    wish.job = "one";
    CHECK_OK(t, job_folder_open(&wish, &folder, NULL));
    snprintf(path, sizeof(path), "%s/job.db", state_dir);
    CHECK_OK(t, job_file_look(path, &looked, NULL));
    CHECK_OK(t, end_job(&folder));
    job_folder_release(&folder); /* not the last to close the file: nothing is copied back */
    wish.job = "two";
    CHECK_OK(t, job_folder_open(&wish, &folder, NULL));
    CHECK(t, !folder.resumed && !folder.facts.ended);
    CHECK_TEXT(t, folder.facts.job, "two");
    store_close(looked);
    snprintf(path, sizeof(path), "%s/one.db", state_dir);
    CHECK_OK(t, job_file_look(path, &looked, NULL));
    CHECK_OK(t, store_facts(looked, &facts, NULL));
    CHECK(t, facts.ended);
    CHECK_TEXT(t, facts.job, "one");
out:
    store_close(looked);
    job_folder_release(&folder);
}

TEST(a_look_makes_no_file)
{
    struct store *looked = NULL;
    char path[400];

    snprintf(path, sizeof(path), "%s/job.db", test_dir(t));
    CHECK_CODE(t, job_file_look(path, &looked, NULL), HVD_E_NOTFOUND);
    CHECK(t, access(path, F_OK));
out:
    store_close(looked);
}

TEST(the_users_state_directory)
{
    const struct passwd *user = getpwuid(geteuid());
    char expected[LIMIT_PATH_BYTES];
    char *path = NULL;

    setenv("XDG_STATE_HOME", "/s", 1);
    CHECK_OK(t, job_path_folder(NULL, "j", &path, NULL));
    CHECK_TEXT(t, path, "/s/hvd-elastic/j");
    mem_free(path);
    path = NULL;
    unsetenv("XDG_STATE_HOME");
    setenv("HOME", "/h", 1);
    CHECK_OK(t, job_path_folder(NULL, "j", &path, NULL));
    CHECK_TEXT(t, path, "/h/.local/state/hvd-elastic/j");
    mem_free(path);
    path = NULL;
    unsetenv("HOME"); /* the user database names the home folder */
    CHECK(t, user);
    snprintf(expected, sizeof(expected), "%s/.local/state/hvd-elastic/j", user->pw_dir);
    CHECK_OK(t, job_path_folder(NULL, "j", &path, NULL));
    CHECK_TEXT(t, path, expected);
    mem_free(path);
    path = NULL;
    setenv("HOME", "not/absolute", 1);
    CHECK_OK(t, job_path_folder(NULL, "j", &path, NULL));
    CHECK_TEXT(t, path, expected);
    mem_free(path);
    path = NULL;
    CHECK_OK(t, job_path_folder("/x/y", NULL, &path, NULL));
    CHECK_TEXT(t, path, "/x/y");
out:
    mem_free(path);
}
