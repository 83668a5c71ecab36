/* view/doctor/probes.h - what a probe of the machine answers. */
#ifndef VIEW_DOCTOR_PROBES_H
#define VIEW_DOCTOR_PROBES_H

#include "hf/view/doctor/doctor.h"

/*
 * Each tries the thing itself rather than a version number, changes nothing that
 * stays, and writes what it saw.
 */
enum hf_finding hf_probe_kernel(char text[HF_DOCTOR_TEXT_MAX]);
enum hf_finding hf_probe_proc(char text[HF_DOCTOR_TEXT_MAX]);
enum hf_finding hf_probe_pidfd(char text[HF_DOCTOR_TEXT_MAX]);
enum hf_finding hf_probe_pidfs(char text[HF_DOCTOR_TEXT_MAX]);
enum hf_finding hf_probe_cgroup(char text[HF_DOCTOR_TEXT_MAX]);
enum hf_finding hf_probe_reflink(char text[HF_DOCTOR_TEXT_MAX]);
enum hf_finding hf_probe_inotify(char text[HF_DOCTOR_TEXT_MAX]);

/* The same for sandboxes, with the state directory `dir` (NULL: the usual one). */
enum hf_finding hf_probe_userns(const char *dir, char text[HF_DOCTOR_TEXT_MAX]);
enum hf_finding hf_probe_overlay(const char *dir, char text[HF_DOCTOR_TEXT_MAX]);
enum hf_finding hf_probe_rename(const char *dir, char text[HF_DOCTOR_TEXT_MAX]);

#endif
