/*
 * become.h: root acts as another user, and not as root, on what belongs to that user.
 */
#ifndef OS_BECOME_H
#define OS_BECOME_H

#include "base/err.h"

/*
 * If this process is root's and `path` belongs to another user, the process becomes that user for
 * good, with the groups and the HOME of that user: what the user has put there can then not make
 * root do anything. Otherwise nothing happens, also if there is no such path. HVD_E_DENIED: root
 * may not become the user (a container without CAP_SETUID); the text says how to go on.
 */
int become_owner(const char *path, struct hvd_err *err) MUST_CHECK;

#endif
