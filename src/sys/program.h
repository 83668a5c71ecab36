/* sys/program.h - programs and modules of Holdfast that people do not start. */
#ifndef SYS_PROGRAM_H
#define SYS_PROGRAM_H

#include "holdfast/err.h"

#define HF_LIBEXEC_VARIABLE "HOLDFAST_LIBEXEC"

/*
 * Opens the file `name`: in the directory that HOLDFAST_LIBEXEC names, or else in ../libexec beside our own
 * file, or else where it was installed. What is opened is a program that only its owner can change, and that is root, the
 * caller, or the owner of our own file (HF_E_UNTRUSTED). `purpose` says in the message what is not possible without it.
 */
int hf_program_open(const char *name, const char *purpose, int *ret_fd, struct hf_err *err);

#endif
