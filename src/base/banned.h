/*
 * base/banned.h - functions that this project does not call, as compile errors.
 *
 * The build includes this file before everything else. The system headers come
 * first so that their declarations are read before the names are taken away.
 * What to use instead stands beside each group.
 */
#ifndef BASE_BANNED_H
#define BASE_BANNED_H

#include <dirent.h>
#include <libgen.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define HF_BANNED(name) hf_banned_##name##_see_banned_h

/* Unbounded copies: hf_buf, snprintf. */
#undef strcpy
#define strcpy(a, b) HF_BANNED(strcpy)
#undef strcat
#define strcat(a, b) HF_BANNED(strcat)
#undef strncpy
#define strncpy(a, b, c) HF_BANNED(strncpy)
#undef strncat
#define strncat(a, b, c) HF_BANNED(strncat)
#undef sprintf
#define sprintf(...) HF_BANNED(sprintf)
#undef vsprintf
#define vsprintf(...) HF_BANNED(vsprintf)
#undef strtok
#define strtok(a, b) HF_BANNED(strtok)
/* Numbers: base/parse.h, which refuses signs, spaces, overflow and rests. */
#undef atoi
#define atoi(a) HF_BANNED(atoi)
#undef atol
#define atol(a) HF_BANNED(atol)
#undef strtol
#define strtol(a, b, c) HF_BANNED(strtol)
#undef strtoul
#define strtoul(a, b, c) HF_BANNED(strtoul)
#undef strtoll
#define strtoll(a, b, c) HF_BANNED(strtoll)
#undef strtoull
#define strtoull(a, b, c) HF_BANNED(strtoull)
#undef sscanf
#define sscanf(...) HF_BANNED(sscanf)
/* Names of temporary files: O_EXCL beside the target. */
#undef mktemp
#define mktemp(a) HF_BANNED(mktemp)
#undef tmpnam
#define tmpnam(a) HF_BANNED(tmpnam)
/* Static buffers: the _r forms, strerrordesc_np. */
#undef gmtime
#define gmtime(a) HF_BANNED(gmtime)
#undef localtime
#define localtime(a) HF_BANNED(localtime)
#undef ctime
#define ctime(a) HF_BANNED(ctime)
#undef asctime
#define asctime(a) HF_BANNED(asctime)
#undef strerror
#define strerror(a) HF_BANNED(strerror)
#undef basename
#define basename(a) HF_BANNED(basename)
#undef dirname
#define dirname(a) HF_BANNED(dirname)
/* Processes: identity first (L6), own children only, no shell, no handlers (L13). */
#undef kill
#define kill(a, b) HF_BANNED(kill)
#undef killpg
#define killpg(a, b) HF_BANNED(killpg)
#undef wait
#define wait(a) HF_BANNED(wait)
#undef waitpid
#define waitpid(a, b, c) HF_BANNED(waitpid)
#undef system
#define system(a) HF_BANNED(system)
#undef popen
#define popen(a, b) HF_BANNED(popen)
#undef signal
#define signal(a, b) HF_BANNED(signal)
#undef vfork
#define vfork() HF_BANNED(vfork)
/* Descriptors: F_DUPFD_CLOEXEC from 3 up, pipe2. */
#undef dup
#define dup(a) HF_BANNED(dup)
#undef pipe
#define pipe(a) HF_BANNED(pipe)
/* Waiting: poll with a deadline. */
#undef sleep
#define sleep(a) HF_BANNED(sleep)
#undef usleep
#define usleep(a) HF_BANNED(usleep)

#endif
