/*
 * state_home.h: the folder in which driver, agents and verbs of a user keep the state of jobs.
 */
#ifndef OS_STATE_HOME_H
#define OS_STATE_HOME_H

#include "base/err.h"
#include "base/limits.h"

/*
 * Writes the absolute path of the folder "hvd-elastic" of this user: below XDG_STATE_HOME if it is
 * set to an absolute path, else below .local/state of HOME. If HOME is not set, the home folder is
 * the one that the user database names. Nothing is made. HVD_E_NOTFOUND: the user has no home
 * folder. HVD_E_LIMIT: the path is too long.
 */
int state_home(char path[LIMIT_PATH_BYTES], struct hvd_err *err) MUST_CHECK;

/* An agent keeps a file JOB/HOST.agent, which has the name of the agent's socket. The file is below
 * the folder of state_home, or below STATE_HOME_TMP if the agent cannot use that folder.
 * STATE_HOME_TMP is a format for the id of the user. */
#define STATE_HOME_TMP     "/tmp/hvd-agent-%u"
#define STATE_AGENT_ENDING ".agent"

#endif
