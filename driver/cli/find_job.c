/*
 * find_job.c: finds the folder of the job that a verb is for. cli.c calls it before it connects. A
 * driver counts as alive when its control socket accepts a connection: a socket file that a dead
 * driver has left refuses connections. Only folders in the user's state directory are searched. If
 * root names the folder of another user, the process becomes that user.
 */
#include "driver/cli/find_job.h"

#include "base/buf.h"
#include "base/limits.h"
#include "base/mem.h"
#include "driver/journal/job_path.h"
#include "driver/journal/job_private.h"
#include "os/become.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define SHOWN_MAX 8 /* an error names at most so many jobs */

static int find_job_no_memory(struct hvd_err *err)
{
    return err_set(err, HVD_E_NOMEM, "%s", err_text(HVD_E_NOMEM));
}

/* Makes a name of the control socket in the folder. If the path is too long for the address of a
 * socket, the name is "/proc/self/fd/N/control", where N is *ret_fd, a descriptor of the folder.
 * The caller closes *ret_fd after the connect; -1: no descriptor is needed. */
int cli_socket_name(const char *folder, char **ret_name, int *ret_fd, struct hvd_err *err)
{
    static const char file[] = "control";
    struct sockaddr_un address;
    struct buf name;
    int fd = -1;
    int rc;

    buf_init(&name, LIMIT_PATH_BYTES);
    if (strlen(folder) + sizeof("/") + sizeof(file) <= sizeof(address.sun_path)) {
        rc = buf_printf(&name, "%s/%s", folder, file);
    } else {
        /* The address of a socket holds 107 bytes. A socket with a longer path is reached through a
         * descriptor of its folder. If the folder cannot be opened, the connect to this name fails.
         */
        fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
        rc = buf_printf(&name, "/proc/self/fd/%d/%s", fd, file);
    }
    *ret_name = rc ? NULL : mem_strdup(buf_text(&name));
    buf_release(&name);
    if (!*ret_name) {
        if (fd >= 0)
            close(fd);
        return find_job_no_memory(err);
    }
    *ret_fd = fd;
    return 0;
}

/* True: a driver listens on the control socket in the folder. It may be stopped (SIGSTOP) and never
 * answer. */
bool cli_driver_is_alive(const char *folder)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    bool connected = false;
    char *name;
    int folder_fd = -1;
    int fd;

    if (cli_socket_name(folder, &name, &folder_fd, NULL))
        return false;
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0) {
        snprintf(address.sun_path, sizeof(address.sun_path), "%s", name);
        connected = !connect(fd, (const struct sockaddr *)&address, sizeof(address)) ||
                    /* EAGAIN: the queue of connections is full, so a driver listens */
                    errno == EAGAIN;
        close(fd);
    }
    if (folder_fd >= 0)
        close(folder_fd);
    mem_free(name);
    return connected;
}

/* The result of a search for jobs in a folder: of all jobs, or only of those whose driver is alive.
 */
struct search {
    char *folder; /* the folder of the first job that was found */
    size_t found;
    struct buf names; /* the names of the found jobs, "a, b, ..." */
};

static void search_release(struct search *search)
{
    mem_free(search->folder);
    buf_release(&search->names);
}

/* Searches the folder `root` for jobs; a missing folder has none. With alive_only a job is found if
 * its driver is alive; otherwise if it has a job.db. Returns 0 or HVD_E_NOMEM. */
static int search_root(struct search *search, const char *root, bool alive_only,
                       struct hvd_err *err)
{
    char folder[LIMIT_PATH_BYTES];
    char file[LIMIT_PATH_BYTES + sizeof("/job.db")];
    struct dirent *entry;
    int rc = 0;
    DIR *dir;

    *search = (struct search){ 0 };
    buf_init(&search->names, LIMIT_REASON_BYTES);
    dir = opendir(root);
    while (dir && !rc && (entry = readdir(dir))) {
        const char *name = entry->d_name;

        if (*name == '.' ||
            snprintf(folder, sizeof(folder), "%s/%s", root, name) >= (int)sizeof(folder))
            continue;
        snprintf(file, sizeof(file), "%s/job.db", folder);
        if (alive_only ? !cli_driver_is_alive(folder) : access(file, F_OK) != 0)
            continue;
        search->found++;
        if (search->found == 1 && !(search->folder = mem_strdup(folder)))
            rc = HVD_E_NOMEM;
        if (!rc && search->found <= SHOWN_MAX)
            rc = buf_printf(&search->names, "%s%s", search->found > 1 ? ", " : "", name);
        if (!rc && search->found == SHOWN_MAX + 1)
            rc = buf_append_text(&search->names, ", ...");
    }
    if (dir)
        closedir(dir);
    /* HVD_E_LIMIT: the text of the names is full. It has enough names for an error text. */
    return rc && rc != HVD_E_LIMIT ? find_job_no_memory(err) : 0;
}

/* Finds the folder of the job that a verb is for: state_dir if it is given, else the folder of
 * `job`, else that of the only job whose driver is alive. The folder must be private: in a folder
 * that another user can change, that user might have made the socket. */
int cli_find_job(const char *state_dir, const char *job, char **ret_folder, struct hvd_err *err)
{
    struct search search;
    char *folder = NULL, *root;
    int rc;

    /* Without a name: finds the only job whose driver is alive. */
    if (!state_dir && !job) {
        rc = job_path_root(&root, err);
        if (rc)
            return rc;
        rc = search_root(&search, root, true /* only jobs with a live driver */, err);
        if (!rc && search.found > 1)
            rc = err_set(err, HVD_E_EXISTS, "%zu jobs run here: %s; name one of them", search.found,
                         buf_text(&search.names));
        if (!rc && search.found == 0)
            rc = err_set(err, HVD_E_NOTFOUND,
                         "no driver of yours runs on this machine with its state in %s; name the "
                         "job ('hvd-elastic jobs' lists those without a driver too), or give "
                         "--state-dir",
                         root);
        if (!rc)
            rc = job_private_check(search.folder, false /* do not make the folder */, err);
        if (!rc) {
            *ret_folder = search.folder;
            search.folder = NULL;
        }
        search_release(&search);
        mem_free(root);
        return rc;
    }
    rc = job_path_folder(state_dir, job, &folder, err);
    if (!rc)
        rc = become_owner(folder, err); /* root may look at and stop the job of any user */
    if (!rc && access(folder, F_OK)) {
        if (state_dir) {
            rc = err_set(err, HVD_E_NOTFOUND, "%s: %s", folder, strerror(errno));
        } else if (!(rc = job_path_root(&root, err))) {
            /* There is no job of this name: the error names the jobs that there are. */
            rc = search_root(&search, root, false /* all jobs */, err);
            if (!rc && search.found)
                rc = err_set(err, HVD_E_NOTFOUND, "%s: there is no such job in %s; there are %s",
                             job, root, buf_text(&search.names));
            else if (!rc)
                rc = err_set(err, HVD_E_NOTFOUND,
                             "%s: there is no such job in %s; give its --state-dir", job, root);
            search_release(&search);
            mem_free(root);
        }
    }
    /* In a folder of another user that user might answer at the socket. */
    if (!rc)
        rc = job_private_check(folder, false /* do not make the folder */, err);
    if (rc)
        mem_free(folder);
    else
        *ret_folder = folder;
    return rc;
}

/* Sets the error for a folder in which no driver listens. A folder with job.db has a job; one with
 * a lock but without job.db has a job whose journal is in etcd; any other folder has no job.
 * Returns HVD_E_NOTFOUND. */
int cli_no_driver(const char *folder, struct hvd_err *err)
{
    char file[LIMIT_PATH_BYTES + sizeof("/job.db")];
    const char *name = strrchr(folder, '/');

    name = name ? name + 1 : "JOB";
    snprintf(file, sizeof(file), "%s/job.db", folder);
    if (!access(file, F_OK))
        return err_set(err, HVD_E_NOTFOUND,
                       "%s: no driver of this job runs on this machine; if the job has not ended, "
                       "resume it with 'hvd-elastic --resume %s --state-dir %s'",
                       folder, name, folder);
    snprintf(file, sizeof(file), "%s/lock", folder);
    if (!access(file, F_OK))
        return err_set(err, HVD_E_NOTFOUND,
                       "%s: the journal of this job is in etcd, and no driver of this job runs on "
                       "this machine; ask on the machine of its driver, take the job over with "
                       "'hvd-elastic --resume %s --store URL', or end it with "
                       "'hvd-elastic stop %s --store URL'",
                       folder, name, name);
    return err_set(err, HVD_E_NOTFOUND,
                   "%s: there is no job in this folder; give the state directory of a job", folder);
}
