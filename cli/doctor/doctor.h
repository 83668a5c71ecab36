/* cli/doctor/doctor.h - what a probe of the machine answers. */
#ifndef CLI_DOCTOR_DOCTOR_H
#define CLI_DOCTOR_DOCTOR_H

enum finding {
	FOUND_OK,     /* there */
	FOUND_ABSENT, /* not there: something weaker is used instead */
	FOUND_WARN,   /* there, but the administrator should look */
	FOUND_FAIL,   /* Holdfast cannot work like this */
};

#define DOCTOR_TEXT_MAX 512

/*
 * Each tries the thing itself rather than a version number, changes nothing that
 * stays, and writes what it saw.
 */
enum finding probe_kernel(char text[DOCTOR_TEXT_MAX]);
enum finding probe_proc(char text[DOCTOR_TEXT_MAX]);
enum finding probe_pidfd(char text[DOCTOR_TEXT_MAX]);
enum finding probe_pidfs(char text[DOCTOR_TEXT_MAX]);
enum finding probe_cgroup(char text[DOCTOR_TEXT_MAX]);
enum finding probe_reflink(char text[DOCTOR_TEXT_MAX]);
enum finding probe_inotify(char text[DOCTOR_TEXT_MAX]);

/* The same for sandboxes, with the state directory `dir` (NULL: the usual one). */
enum finding probe_userns(const char *dir, char text[DOCTOR_TEXT_MAX]);
enum finding probe_overlay(const char *dir, char text[DOCTOR_TEXT_MAX]);
enum finding probe_rename(const char *dir, char text[DOCTOR_TEXT_MAX]);

#endif
