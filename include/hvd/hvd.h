/*
 * hvd.h: the one public header of hvd-elastic's worker library.
 *
 * Every call returns an int unless its comment says otherwise:
 *     0          it worked
 *     positive   news that the training loop acts on (it is not an error)
 *     negative   an error; hvd_strerror() turns any code into a sentence
 *
 * Usable from C11 and C++11.
 */
#ifndef HVD_HVD_H
#define HVD_HVD_H

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define HVD_API __attribute__((visibility("default")))
#else
#define HVD_API
#endif

#define HVD_VERSION_MAJOR 0
#define HVD_VERSION_MINOR 1
#define HVD_VERSION_PATCH 0

/* Numbers are part of the contract: a code is never renumbered or reused. */
enum hvd_code {
    HVD_OK = 0,

    HVD_HOSTS_UPDATED = 1, /* the membership is about to change: return this from train */
    HVD_LEFT = 2,          /* this worker was asked to leave and has left; end the process */
    HVD_DONE = 3,          /* the job has finished elsewhere; return from train */

    HVD_E_NOMEM = -1,        /* memory could not be allocated */
    HVD_E_INVAL = -2,        /* an argument or an input is wrong */
    HVD_E_LIMIT = -3,        /* a named limit would be exceeded */
    HVD_E_STATE = -4,        /* the call is not allowed at this moment */
    HVD_E_NOTFOUND = -5,     /* no such thing */
    HVD_E_EXISTS = -6,       /* it is already there */
    HVD_E_IO = -7,           /* reading or writing failed */
    HVD_E_FULL = -8,         /* no space is left */
    HVD_E_DENIED = -9,       /* permission or authentication was refused */
    HVD_E_BUSY = -10,        /* somebody else holds it */
    HVD_E_CORRUPT = -11,     /* stored data is damaged */
    HVD_E_VERSION = -12,     /* the other side speaks another version */
    HVD_E_PROTO = -13,       /* the other side broke the protocol */
    HVD_E_TIMEOUT = -14,     /* it did not happen in time */
    HVD_E_REVOKED = -15,     /* the round was revoked: return this from train */
    HVD_E_MISMATCH = -16,    /* two sides disagree about what should be equal */
    HVD_E_LOST = -17,        /* the driver, the agent or a peer is gone */
    HVD_E_UNSUPPORTED = -18, /* not available in this build or on this machine */
    HVD_E_INTERNAL = -19     /* a bug of ours; please report it */
};

/* A short sentence for any code, news included. Never NULL; static, not to be freed; any thread. */
HVD_API const char *hvd_strerror(int code);

/* The version of the library in use, "major.minor.patch". Static, not to be freed; any thread. */
HVD_API const char *hvd_version(void);

#ifdef __cplusplus
}
#endif
#endif
