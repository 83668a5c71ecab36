/*
 * sys/calls.h - the one table through which the library enters the kernel.
 *
 *     fd = hf_sys.openat(dirfd, name, flags, mode);
 *
 * The table holds the real calls and is never written outside tests, which
 * replace entries to fail the Nth call with an errno or to die at it (see
 * tests/helper/faults.h). Code above this layer uses sys/io.h and sys/replace.h
 * where those say what is meant; it comes here for the rest.
 */
#ifndef SYS_CALLS_H
#define SYS_CALLS_H

#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/vfs.h>

struct hf_clone;

struct hf_sys {
#define HF_SYS_CALL(result, name, params, args) result(*name) params;
#include "hf/sys/calls.def"
#undef HF_SYS_CALL
};

extern struct hf_sys hf_sys;

#endif
